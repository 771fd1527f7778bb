//! Command line and environment → [`Settings`]. The precedence is the order in which candidates are listed, nothing else.

mod life;
mod names;
mod parallel;
mod reader;
mod values;

use super::models_file::{check_tuning_number, is_variable_name};
use crate::cli::{JobArgs, Switch};
use crate::domain::codes::{CONTRADICTION, INVALID_SETTING};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, Place};
use crate::domain::environment::Environment;
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::{ByRole, Layout, Ports, Settings, TUNING, TuningInput, WorkerCounts};
use crate::domain::topology::Port;
use crate::domain::visible::visible;

pub use life::read_life;
pub use names::{VARIABLES, of_job};
use reader::Reader;
pub use values::interval;
use values::{
    address, boolean, concurrency, gpus, index, json_object, node_list, seconds, size_list, text,
    word_list,
};

/// Read all settings; all mistakes of command line and environment together.
pub fn read(args: &JobArgs, environment: &Environment) -> (Settings, Diagnostics) {
    let mut reader = Reader {
        environment,
        found: Diagnostics::default(),
    };
    let settings = reader.settings(args);
    names::near_misses(environment, &mut reader.found);
    (settings, reader.found)
}

impl Reader<'_> {
    #[expect(
        clippy::too_many_lines,
        reason = "a flat list, one setting after the other"
    )]
    fn settings(&mut self, args: &JobArgs) -> Settings {
        let prefill = self.read(
            "--prefill-workers",
            args.prefill_workers.as_deref(),
            &["xP"],
            values::workers,
        );
        let decode = self.read(
            "--decode-workers",
            args.decode_workers.as_deref(),
            &["yD"],
            values::workers,
        );
        let workers = (prefill.is_some() || decode.is_some()).then(|| WorkerCounts {
            prefill: Self::or(prefill, 1),
            decode: Self::or(decode, 1),
        });
        let topology = workers.is_some();
        // SLURM sets these in every batch step, so they mean something only once a topology is given.
        let rank_variables: &[&str] = if topology && !self.environment.is_batch_step() {
            &["NODE_RANK", "SLURM_PROCID"]
        } else {
            &["NODE_RANK"]
        };
        let node_variables: &[&str] = if topology {
            // A step may run on a part of its allocation; the batch step itself has no list of its own.
            &["IPADDRS", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"]
        } else {
            &["IPADDRS"]
        };
        let nodes = self.nodes(args, node_variables);
        let of_step = |nodes: &Sourced<Vec<String>>| {
            nodes.source == Source::Environment("SLURM_STEP_NODELIST".into())
        };
        let job_nodes = nodes.as_ref().is_some_and(of_step);
        let job_nodes = Vec::from_iter(job_nodes.then_some("SLURM_JOB_NODELIST"));
        let job_nodes = self.read("SLURM_JOB_NODELIST", None, &job_nodes, node_list);
        let step_node = topology && self.environment.is_set("SLURM_STEP_ID");
        let step_node = Vec::from_iter(step_node.then_some("SLURM_NODEID"));
        let step_node = self.read("SLURM_NODEID", None, &step_node, index);
        let mtp = self.mtp(args);
        Settings {
            dry_run: {
                let value = self.read("DRY_RUN", None, &["DRY_RUN"], boolean);
                Self::or(value, false)
            },
            model: self.read("--model", args.model.as_deref(), &["MODEL_NAME"], text),
            is_agentic: {
                let value = self.read("IS_AGENTIC", None, &["IS_AGENTIC"], boolean);
                Self::or(value, false)
            },
            role: Self::option("--role", args.role),
            rank: self.read("--rank", args.rank.as_deref(), rank_variables, index),
            worker: self.read("--worker", args.worker.as_deref(), &[], index),
            workers,
            layout: Self::or(Self::option("--layout", args.layout), Layout::Spread),
            mode: self.modes(args),
            tp: self.tp(args),
            gpus_per_node: {
                let value = self.read(
                    "--gpus-per-node",
                    args.gpus_per_node.as_deref(),
                    &["GPUS_PER_NODE"],
                    gpus,
                );
                Self::or(value, 8)
            },
            nodes,
            job_nodes,
            step_node,
            node0_addr: self.read(
                "--node0-addr",
                args.node0_addr.as_deref(),
                &["NODE0_ADDR"],
                address,
            ),
            host_ip: self.read("--host-ip", args.host_ip.as_deref(), &[], address),
            model_dir: self.read(
                "--model-dir",
                args.model_dir.as_deref(),
                &["MODEL_DIR"],
                text,
            ),
            model_path: self.model_path(args),
            mtp,
            concurrency: self.read(
                "--max-concurrency",
                args.max_concurrency.as_deref(),
                &["BENCH_MAX_CONCURRENCY"],
                concurrency,
            ),
            ports: self.ports(args),
            tuning: self.tuning(args),
            kv_cache_flags: self.read(
                "--kv-cache-flags",
                args.kv_cache_flags.as_deref(),
                &[],
                word_list,
            ),
            kv_cache_dtype: self.read("KV_CACHE_DTYPE", None, &["KV_CACHE_DTYPE"], text),
            capture_sizes: self.read(
                "--cudagraph-capture-sizes",
                args.cudagraph_capture_sizes.as_deref(),
                &[],
                size_list,
            ),
            decode_max_num_seqs: self.read(
                "--decode-max-num-seqs",
                args.decode_max_num_seqs.as_deref(),
                &["DECODE_MAX_NUM_SEQS"],
                |raw| check_tuning_number("max_num_seqs", raw).map(|()| raw.to_owned()),
            ),
            extra_args: self.read(
                "--server-args",
                args.server_args.as_deref(),
                &["EXTRA_SERVER_ARGS"],
                word_list,
            ),
            role_args: ByRole {
                prefill: self.read(
                    "--prefill-server-args",
                    args.prefill_server_args.as_deref(),
                    &["PREFILL_EXTRA_SERVER_ARGS"],
                    word_list,
                ),
                decode: self.read(
                    "--decode-server-args",
                    args.decode_server_args.as_deref(),
                    &["DECODE_EXTRA_SERVER_ARGS"],
                    word_list,
                ),
                standalone: None,
            },
            trailing_args: Vec::new(),
            prefix_caching: {
                let given = args
                    .prefix_caching
                    .map(|switch| if switch == Switch::On { "on" } else { "off" });
                self.read(
                    "--prefix-caching",
                    given,
                    &["ENABLE_PREFIX_CACHING"],
                    boolean,
                )
            },
            kv_transfer: ByRole {
                prefill: self.read(
                    "--prefill-kv-transfer-config",
                    args.prefill_kv_transfer_config.as_deref(),
                    &["PREFILL_KV_TRANSFER_CONFIG"],
                    json_object,
                ),
                decode: self.read(
                    "--decode-kv-transfer-config",
                    args.decode_kv_transfer_config.as_deref(),
                    &["DECODE_KV_TRANSFER_CONFIG"],
                    json_object,
                ),
                standalone: None,
            },
            env: self.env_options(args),
            python: {
                let value = self.read("--python", args.python.as_deref(), &["ATOM_PYTHON"], text);
                Self::or(value, "python3".into())
            },
            router_bin: {
                let value = self.read(
                    "--router-bin",
                    args.router_bin.as_deref(),
                    &["ATOM_ROUTER"],
                    text,
                );
                Self::or(value, "/usr/local/bin/atomesh".into())
            },
            router_policy: {
                let value = self.read(
                    "--router-policy",
                    args.router_policy.as_deref(),
                    &["ROUTER_POLICY"],
                    text,
                );
                Self::or(value, "random".into())
            },
            router_args: self.read("--router-args", args.router_args.as_deref(), &[], word_list),
            wait_server: {
                let value = self.read(
                    "--wait-server-timeout",
                    args.wait_server_timeout.as_deref(),
                    &["WAIT_SERVER_TIMEOUT"],
                    seconds,
                );
                Self::or(value, 2500)
            },
            wait_router: {
                let value = self.read(
                    "--wait-router-timeout",
                    args.wait_router_timeout.as_deref(),
                    &["WAIT_ROUTER_TIMEOUT"],
                    seconds,
                );
                Self::or(value, 300)
            },
            worker_cache: {
                let value = self.read(
                    "--worker-cache",
                    args.worker_cache.as_deref(),
                    &["ATOMESH_WORKER_CACHE_BASE"],
                    text,
                );
                let temp = self
                    .environment
                    .get("TMPDIR")
                    .unwrap_or("/tmp")
                    .trim_end_matches('/');
                Self::or(value, format!("{temp}/atom-launch-cache"))
            },
        }
    }

    fn nodes(
        &mut self,
        args: &JobArgs,
        variables: &[&'static str],
    ) -> Option<Sourced<Vec<String>>> {
        let before = self.found.0.len();
        let nodes = self.read("--nodes", args.nodes.as_deref(), variables, node_list);
        for diagnostic in &mut self.found.0[before..] {
            diagnostic.help.push(Help::give(
                "give one address a rank, joined by commas: ",
                ("--nodes 10.0.0.1,10.0.0.2", "IPADDRS"),
                "; a SLURM list such as `n[01-04]` is expanded",
            ));
        }
        nodes
    }

    /// MODEL_PATH counts only where MODEL_DIR is not set: job scripts export both, and the server has always had MODEL_DIR/name.
    fn model_path(&mut self, args: &JobArgs) -> Option<Sourced<String>> {
        let folder = args.model_dir.is_some() || self.environment.is_set("MODEL_DIR");
        let variables: &[&str] = if folder { &[] } else { &["MODEL_PATH"] };
        self.read("--model-path", args.model_path.as_deref(), variables, text)
    }

    fn ports(&mut self, args: &JobArgs) -> Ports {
        let mut port = |option, given: &Option<String>, variables: &[&'static str], default| {
            let value = self.read(option, given.as_deref(), variables, str::parse::<Port>);
            Self::or(value, Port::new(default))
        };
        Ports {
            server: ByRole {
                prefill: port(
                    "--prefill-port",
                    &args.prefill_port,
                    &["PREFILL_PORT"],
                    8010,
                ),
                decode: port("--decode-port", &args.decode_port, &["DECODE_PORT"], 8020),
                standalone: port("--server-port", &args.server_port, &[], 8000),
            },
            router: port("--router-port", &args.router_port, &["ROUTER_PORT"], 8000),
            handshake: port(
                "--handshake-port",
                &args.handshake_port,
                &["HANDSHAKE_PORT"],
                6301,
            ),
            prometheus: port(
                "--prometheus-port",
                &args.prometheus_port,
                &["PROMETHEUS_PORT"],
                29100,
            ),
        }
    }

    fn tuning(&mut self, args: &JobArgs) -> [TuningInput; 6] {
        let given = [
            &args.block_size,
            &args.mem_frac_static,
            &args.max_num_seqs,
            &args.max_model_len,
            &args.max_num_batched_tokens,
            &args.scheduler_delay_factor,
        ];
        std::array::from_fn(|position| {
            let spec = TUNING[position];
            let parse = |raw: &str| check_tuning_number(spec.field, raw).map(|()| raw.to_owned());
            TuningInput {
                option: self.read(spec.option, given[position].as_deref(), &[], parse),
                variable: self.read(spec.option, None, &[spec.variable], parse),
            }
        })
    }

    fn env_options(&mut self, args: &JobArgs) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for given in &args.env {
            match given.split_once('=') {
                Some((name, value)) if is_variable_name(name) => {
                    match pairs.iter_mut().find(|(known, _)| known == name) {
                        Some(earlier) if earlier.1 != value => self.found.push(Diagnostic::error(
                            CONTRADICTION,
                            Place::Input("--env".into()),
                            format!("`--env` gives {name} two values"),
                        )),
                        Some(_) => {}
                        None => pairs.push((name.to_owned(), value.to_owned())),
                    }
                }
                _ => {
                    let shown = given.split('=').next().unwrap_or_default();
                    self.found.push(
                        Diagnostic::error(
                            INVALID_SETTING,
                            Place::Input("--env".into()),
                            format!("`--env` must be NAME=VALUE, found `{}`", visible(shown)),
                        )
                        .help("letters, digits and `_` in the name, then `=`: `--env NCCL_DEBUG=INFO`"),
                    );
                }
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::topology::Mode;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        Environment::new(
            pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        )
    }

    fn messages(found: &Diagnostics) -> Vec<&str> {
        found
            .0
            .iter()
            .map(|finding| finding.message.as_str())
            .collect()
    }

    #[test]
    fn every_mistake_of_the_environment_is_reported_at_once() {
        let (_, found) = read(
            &JobArgs::default(),
            &env(&[
                ("xP", "two"),
                ("DECODE_MTP_SIZE", "abc"),
                ("ROUTER_PORT", "70000"),
                ("PREFILL_ENABLE_DP", "maybe"),
            ]),
        );
        assert_eq!(found.0.len(), 4, "{:?}", messages(&found));
    }

    #[test]
    fn the_command_line_beats_the_environment_and_remembers_it() {
        let args = JobArgs {
            mtp: Some("2".into()),
            ..JobArgs::default()
        };
        let (settings, found) = read(
            &args,
            &env(&[("DECODE_MTP_SIZE", "3"), ("SPEC_DECODING", "none")]),
        );
        assert!(found.0.is_empty(), "{:?}", messages(&found));
        assert_eq!(settings.mtp.value, 2);
        assert_eq!(settings.mtp.shadowed[0].value, "3");
    }

    #[test]
    fn slurm_alone_is_no_topology() {
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_JOB_NODELIST", "n[1-4]")];
        let (settings, _) = read(&JobArgs::default(), &env(&slurm));
        assert!(settings.workers.is_none() && settings.rank.is_none() && settings.nodes.is_none());
        let (settings, _) = read(
            &JobArgs::default(),
            &env(&[slurm[0], slurm[1], ("xP", "2")]),
        );
        assert_eq!(settings.rank.unwrap().value, 3);
        assert_eq!(settings.nodes.unwrap().value, ["n1", "n2", "n3", "n4"]);
        assert_eq!(settings.workers.unwrap().decode.value, 1);
    }

    #[test]
    fn a_batch_script_is_no_rank_and_a_step_is() {
        let batch = [
            ("xP", "1"),
            ("ENVIRONMENT", "BATCH"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NODEID", "0"),
            ("SLURM_JOB_NODELIST", "n[1-3]"),
        ];
        let (settings, found) = read(&JobArgs::default(), &env(&batch));
        assert!(found.0.is_empty(), "{:?}", messages(&found));
        assert!(settings.rank.is_none() && settings.step_node.is_none());
        assert_eq!(settings.nodes.unwrap().value, ["n1", "n2", "n3"]);
        let mut step = batch.to_vec();
        step.extend([("SLURM_STEP_ID", "0"), ("SLURM_STEP_NODELIST", "n[2-3]")]);
        let (settings, _) = read(&JobArgs::default(), &env(&step));
        assert_eq!(settings.rank.unwrap().value, 0);
        assert_eq!(settings.nodes.unwrap().value, ["n2", "n3"]);
        assert_eq!(settings.job_nodes.unwrap().value, ["n1", "n2", "n3"]);
    }

    #[test]
    fn booleans_in_every_spelling() {
        for (raw, expected) in [
            ("TRUE", Mode::TpDp),
            ("1", Mode::TpDp),
            ("On", Mode::TpDp),
            ("no", Mode::Tp),
            ("", Mode::Tp),
        ] {
            let (settings, found) = read(&JobArgs::default(), &env(&[("PREFILL_ENABLE_DP", raw)]));
            assert!(found.0.is_empty());
            assert_eq!(settings.mode.prefill.value, expected, "{raw}");
        }
    }

    #[test]
    fn speculation_is_contradicted_in_both_directions() {
        for (spec, size, good) in [
            ("none", "3", false),
            ("mtp", "0", false),
            ("mtp", "", false),
            ("mtp", "1", true),
            ("none", "0", true),
            ("", "3", true),
        ] {
            let (_, found) = read(
                &JobArgs::default(),
                &env(&[("SPEC_DECODING", spec), ("DECODE_MTP_SIZE", size)]),
            );
            assert_eq!(
                found.0.is_empty(),
                good,
                "{spec} {size}: {:?}",
                messages(&found)
            );
        }
    }
}
