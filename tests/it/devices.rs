//! GPUs that variables leave to a job: one rule for workers alone on a node and for those that share one, for every command.

use crate::common::Test;

/// A job refused with this text, whatever was to be done with it.
#[track_caller]
fn refused(job: &str, variables: &[(&str, &str)], stderr: &str) {
    for (command, end) in [
        ("plan", "there is no plan"),
        ("node", "nothing was started"),
        ("", "nothing was started"),
    ] {
        let rank = if job.contains("workers") && command != "plan" {
            "--rank 0"
        } else {
            ""
        };
        let slot = if job.contains("packed") && command.is_empty() {
            "--worker 0"
        } else {
            ""
        };
        Test::new(&format!(
            "{command} --model M --model-dir /m --models-file m.yaml --quiet {job} {rank} {slot}"
        ))
        .file("m.yaml", "M: {}")
        .envs(variables.iter().copied())
        .status(2)
        .stderr(format!("{stderr}atom-launch: 1 error; {end}\n"))
        .run();
    }
}

#[test]
fn a_worker_alone_needs_as_many_as_its_size() {
    for name in [
        "HIP_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    ] {
        let text = |wanted: &str, count: u32| {
            format!(
                "error[too-few-gpus]: worker standalone-0 needs {wanted} of its node, but {name} gives {count}\n  = help: unset {name}, or use a smaller tensor-parallel size\n"
            )
        };
        refused("--tp 4", &[(name, "0,1")], &text("4 GPUs", 2));
        refused("", &[(name, "GPU-1a,GPU-2b,GPU-3c")], &text("8 GPUs", 3));
        Test::new("plan --model M --model-dir /m --models-file m.yaml --tp 2")
            .file("m.yaml", "M: {}")
            .env(name, "5,7")
            .any_stdout()
            .run();
    }
}

#[test]
fn hip_is_read_before_cuda_and_an_option_before_both() {
    let refusal = "error[too-few-gpus]: worker standalone-0 needs 2 GPUs of its node, but HIP_VISIBLE_DEVICES gives 1\n  = help: unset HIP_VISIBLE_DEVICES, or use a smaller tensor-parallel size\n";
    let cuda = ("CUDA_VISIBLE_DEVICES", "0,1");
    refused("--tp 2", &[("HIP_VISIBLE_DEVICES", "0"), cuda], refusal);
    refused("--tp 2 --env HIP_VISIBLE_DEVICES=0", &[cuda], refusal);
}

#[test]
fn one_finding_stands_for_all_workers_of_a_role() {
    refused(
        "--tp 4 --prefill-workers 2 --decode-workers 2 --prefill-tp 2 --nodes a,b,c,d",
        &[("HIP_VISIBLE_DEVICES", "0,1,2")],
        "error[too-few-gpus]: worker decode-2 needs 4 GPUs of its node, but HIP_VISIBLE_DEVICES gives 3\n  = help: unset HIP_VISIBLE_DEVICES, or use a smaller tensor-parallel size\n",
    );
}

#[test]
fn what_the_driver_hides_is_counted_anew() {
    refused(
        "--tp 4",
        &[
            ("ROCR_VISIBLE_DEVICES", "4,5,6,7"),
            ("HIP_VISIBLE_DEVICES", "4,5,6,7"),
        ],
        "error[invalid-setting]: variable HIP_VISIBLE_DEVICES names GPU 4, but ROCR_VISIBLE_DEVICES leaves 4, which are counted from 0\n  = help: set one of the two variables only\n",
    );
    refused(
        "--tp 2 --prefill-workers 1 --decode-workers 2 --layout packed --nodes a",
        &[("ROCR_VISIBLE_DEVICES", "4,5,6,7")],
        "error[too-few-gpus]: worker decode-0-2 needs GPUs 4 to 5 of its node, but ROCR_VISIBLE_DEVICES gives 4\n  = help: use smaller tensor-parallel sizes, fewer workers, or `--layout spread`\n",
    );
}

#[test]
fn gpus_are_named_once_each() {
    for (job, size) in [
        ("--tp 1", "tp"),
        (
            "--tp 1 --nodes a --layout packed --prefill-workers 1 --decode-workers 1",
            "packed",
        ),
    ] {
        for (devices, error) in [
            ("3,3", "names GPU 3 twice"),
            ("0,,1", "has an empty entry"),
            (
                "0,-1",
                "has the entry -1, which hides all GPUs from there on",
            ),
        ] {
            for name in ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"] {
                let text = format!(
                    "error[invalid-setting]: variable {name} {error}\n  = help: name each GPU of the node once: `{name}=0,1,2,3`\n"
                );
                println!("{size} {devices}");
                refused(job, &[(name, devices)], &text);
            }
        }
    }
}
