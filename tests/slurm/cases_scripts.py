"""The job scripts themselves: the examples, and what stops before a rank starts."""

import os

from harness import AT_ONCE, BED, ROOT, case, check, in_order, must


@case(2)
def errors_of_the_plan_end_the_job_before_a_rank_starts(test):
    job = test.start(1, 1, env={"PREFILL_TP_SIZE": "16"})
    text = job.end("FAILED", "2:0", AT_ONCE)
    in_order(text, "PREFILL_TP_SIZE=16 is above 8", "there is no plan")
    check(not os.path.exists(os.path.join(job.logs(), "launch-rank0.json")), "no rank has started")


@case(0)
def the_example_scripts_are_accepted_by_sbatch_and_shellcheck(test):
    folder = os.path.join(ROOT, "examples/slurm")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        must("shellcheck", path)
        # The examples name a partition and an account that a reader replaces.
        must("sbatch", "--test-only", "--partition=main", "--account=", path, env=BED["env"])
