//! Parallel mode, tensor-parallel size and speculation: settings that more than one input has a say in.

use super::reader::Reader;
use super::values::{boolean, count, index, text};
use crate::cli::JobArgs;
use crate::domain::codes::CONTRADICTION;
use crate::domain::diagnostic::{Diagnostic, Place};
use crate::domain::provenance::{Source, Sourced, strongest};
use crate::domain::settings::ByRole;
use crate::domain::topology::Mode;
use crate::domain::visible::visible;

impl Reader<'_> {
    pub(super) fn mtp(&mut self, args: &JobArgs) -> Sourced<u32> {
        let mtp = self.read("--mtp", args.mtp.as_deref(), &["DECODE_MTP_SIZE"], index);
        let mtp = Self::or(mtp, 0);
        let spec = self.read("SPEC_DECODING", None, &["SPEC_DECODING"], text);
        if let (Some(spec), true) = (
            spec.as_ref().map(|spec| spec.value.as_str()),
            args.mtp.is_none() && self.found_nothing_about("DECODE_MTP_SIZE"),
        ) {
            let wants = !matches!(
                spec.to_ascii_lowercase().as_str(),
                "none" | "false" | "off" | "0" | "no"
            );
            if wants != (mtp.value > 0) {
                let given = format!("SPEC_DECODING={}", visible(spec));
                let size = mtp.value;
                let message = match mtp.source {
                    _ if !wants => format!(
                        "{given} switches speculative decoding off, but DECODE_MTP_SIZE={size} asks for it"
                    ),
                    Source::Default => format!(
                        "{given} asks for speculative decoding, but DECODE_MTP_SIZE, its number of tokens, is not set"
                    ),
                    _ => format!(
                        "{given} asks for speculative decoding, but DECODE_MTP_SIZE={size} switches it off"
                    ),
                };
                self.found.push(
                    Diagnostic::error(CONTRADICTION, Place::Input("SPEC_DECODING".into()), message)
                        .help("make the two agree, or settle it with `--mtp N`"),
                );
            }
        }
        mtp
    }

    pub(super) fn modes(&mut self, args: &JobArgs) -> ByRole<Sourced<Mode>> {
        let prefill = (
            "--prefill-mode",
            args.prefill_mode,
            "PREFILL_ENABLE_EP",
            "PREFILL_ENABLE_DP",
        );
        let decode = (
            "--decode-mode",
            args.decode_mode,
            "DECODE_ENABLE_EP",
            "DECODE_ENABLE_DP",
        );
        let shared = Self::option("--mode", args.mode);
        ByRole {
            prefill: self.mode(shared.as_ref(), prefill),
            decode: self.mode(shared.as_ref(), decode),
            standalone: self.mode(shared.as_ref(), ("--mode", None, "ENABLE_EP", "ENABLE_DP")),
        }
    }

    /// `--<role>-mode`, else `--mode`, else the two switches, else tp.
    fn mode(
        &mut self,
        shared: Option<&Sourced<Mode>>,
        (option, own, ep_name, dp_name): (&'static str, Option<Mode>, &'static str, &'static str),
    ) -> Sourced<Mode> {
        let ep = self.read(ep_name, None, &[ep_name], boolean);
        let dp = self.read(dp_name, None, &[dp_name], boolean);
        let from_option = Self::option(option, own).or_else(|| shared.cloned());
        let on = |value: &Option<Sourced<bool>>| value.as_ref().is_some_and(|value| value.value);
        let switches = match (on(&ep), on(&dp)) {
            (true, true) => Some((Mode::EpDp, format!("{ep_name}, {dp_name}"))),
            (false, true) => Some((Mode::TpDp, dp_name.to_owned())),
            (true, false) => {
                if from_option.is_none() && self.found_nothing_about(dp_name) {
                    let off = if dp.is_some() { "is off" } else { "is not set" };
                    self.found.push(
                        Diagnostic::error(
                            CONTRADICTION,
                            Place::Input(ep_name.into()),
                            format!("{ep_name} is on but {dp_name} {off}: expert parallel runs only with data-parallel attention"),
                        )
                        .help(format!("set {dp_name}=true for mode ep-dp, or {ep_name}=false for mode tp")),
                    );
                }
                None
            }
            (false, false) if ep.is_some() || dp.is_some() => Some((
                Mode::Tp,
                [ep.as_ref().map(|_| ep_name), dp.as_ref().map(|_| dp_name)]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
            )),
            (false, false) => None,
        };
        let from_switches =
            switches.map(|(mode, names)| Sourced::new(mode, Source::Environment(names)));
        strongest([from_option, from_switches]).unwrap_or_else(|| Sourced::default_of(Mode::Tp))
    }

    pub(super) fn tp(&mut self, args: &JobArgs) -> ByRole<Sourced<u32>> {
        let shared = self.read("--tp", args.tp.as_deref(), &[], count);
        let mut of = |option, own: &Option<String>, variable| {
            // `--tp` stands between the role's own option and the variable.
            match own {
                Some(_) => self.read(option, own.as_deref(), &[variable], count),
                None if shared.is_some() => {
                    let shadowed = self.read(option, None, &[variable], count);
                    strongest([shared.clone(), shadowed])
                }
                None => self.read(option, None, &[variable], count),
            }
            .unwrap_or_else(|| Sourced::default_of(8))
        };
        ByRole {
            prefill: of("--prefill-tp", &args.prefill_tp, "PREFILL_TP_SIZE"),
            decode: of("--decode-tp", &args.decode_tp, "DECODE_TP_SIZE"),
            standalone: shared.clone().unwrap_or_else(|| Sourced::default_of(8)),
        }
    }
}
