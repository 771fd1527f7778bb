"""The job scripts themselves: the examples, and what stops before a rank starts."""

import os
import shutil

from harness import AT_ONCE, BED, ROOT, case, check, edit, in_order, must, run, succeed


@case(2)
def errors_of_the_plan_end_the_job_before_a_rank_starts(test):
    job = test.submit(edit(test.script(1, 1), ("    --prefill-workers 1\n", "    --prefill-workers 1 --prefill-tp 16\n")))
    text = job.end("FAILED", "2:0", AT_ONCE)
    in_order(text, "`--prefill-tp 16` is above 8", "there is no plan")
    check(not os.path.exists(os.path.join(job.logs(), "launch-rank0.json")), "no rank has started")


@case(2)
def the_script_for_pyxis_gives_srun_options_that_pyxis_takes(test):
    shutil.copy(os.path.join(ROOT, "tests/slurm/pyxis.py"), test.path("bin/srun"))
    job, text = succeed(test, 1, 1, 2, "--container-image", "rocm/atom-dev:latest", "--mount", ROOT, "--mount", "/dev/shm")
    check(test.heard("pyxis") == "['image', 'mount-home', 'mounts', 'workdir']\n", "srun with pyxis was called once: %s" % test.heard("pyxis"))
    in_order(text, "SLURM job %s" % job.id, "prefill-0, router, workload", "decode-1")


@case(0)
def the_stand_in_for_pyxis_refuses_what_pyxis_refuses(test):
    shim = os.path.join(ROOT, "tests/slurm/pyxis.py")
    for words, message in (
        (["--container-mount=/tmp:/tmp"], "unrecognized option '--container-mount=/tmp:/tmp'"),
        (["--no-container-writable"], "unrecognized option '--no-container-writable'"),
        (["--container-image="], "--container-image: argument required"),
        (["--container-workdir=/tmp"], "--container-image or --container-name is needed"),
        (["--container-image=x", "--container-mounts=tmp:/tmp"], "mount source must be"),
        (["--container-image=x", "--container-mounts=/tmp:"], "invalid format"),
        (["--container-image=x", "--container-mounts=/tmp:/tmp:readonly"], "unknown mount flags"),
        (["--container-image=x", "--container-mounts=/no/such:/tmp"], "no such file or directory: /no/such"),
        (["--container-image=x", "--container-mounts=/tmp:/tmp"], "not in the container: /bin/true"),
        (["--container-image=x", "--container-image=y"], "specified multiple times"),
    ):
        code, text = run(shim, *words, "/bin/true", env=test.env)
        check(code == 1 and message in text, "%s: %d, %s" % (words, code, text))


@case(0)
def the_example_scripts_are_accepted_by_sbatch_and_shellcheck(test):
    folder = os.path.join(ROOT, "examples/slurm")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        must("shellcheck", path)
        # The examples name a partition and an account that a reader replaces.
        must("sbatch", "--test-only", "--partition=main", "--account=", path, env=BED["env"])
