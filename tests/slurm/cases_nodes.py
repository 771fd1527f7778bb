"""SLURM's own daemons that fail: a node's slurmd, the daemon of a step, a node that goes down and a job that starts again."""

import contextlib
import os
import re
import signal

from harness import AT_ONCE, BED, ROOT, case, check, edit, in_order, must, run

# From the loss of a slurmd to the end of its job: the testbed's SlurmdTimeout, and what else slurmctld needs.
LOST = 15 + AT_ONCE


def slurmd(node):
    """Pid of a node's slurmd."""
    with open(os.path.join(BED["env"]["SLURM_TESTBED_DIR"], "pids")) as handle:
        return int(next(line.split()[1] for line in handle if line.split()[0] == node))


@contextlib.contextmanager
def without_slurmd(node):
    """The node's slurmd is killed hard; afterwards it is back, so that the next case finds a good node."""
    os.kill(slurmd(node), signal.SIGKILL)
    try:
        yield
    finally:
        must(os.path.join(ROOT, "scripts/slurm-testbed"), "restart-node", node, env=BED["env"])


def held(test, *more, **kinds):
    """A job of one prefill and one decode worker in the midst of its workload."""
    test.tell("hold-workload")
    job = test.start(1, 1, *more, **kinds)
    test.until("the workload", lambda: test.heard("workload-began"))
    return job


def parent(pid):
    with open("/proc/%d/stat" % pid) as handle:
        return int(handle.read().rpartition(")")[2].split()[1])


@case(2, slow=True)
def a_node_that_loses_its_slurmd_ends_the_job_and_its_rank_ends_by_itself(test):
    job = held(test)
    with without_slurmd(test.nodes[1]):
        text = job.end("NODE_FAIL", "143:0", LOST)
        # What srun says and what a rank says have no order, so the rank is judged by its record alone.
        in_order(text, "srun: error: Node failure on %s" % test.nodes[1], "SLURM job %s" % job.id, "143  stopped in workload")
        job.ended_with(0, "stopped", "stopped by SIGTERM")
        job.ended_with(1, "done", "the router is gone")
        state = must("sinfo", "-h", "-p", "main", "-n", test.nodes[1], "-o", "%T", env=BED["env"]).strip()
        check(state == "down*", "the node is %s" % state)


@case(2, slow=True)
def a_first_node_that_loses_its_slurmd_has_a_rank_that_notices_that_it_is_alone(test):
    job = held(test)
    with without_slurmd(test.nodes[0]):
        check(job.ended(LOST)["JobState"] == "NODE_FAIL", "the job is %s" % job.state())
        job.ended_with(1, "stopped", "stopped by SIGTERM")
        # SLURM cannot reach rank 0, and its workload would run for ever: the servers of the others are gone.
        os.kill(job.record(0)["launcher_pid"], 0)
        test.until("the end of rank 0", lambda: job.record(0)["outcome"] == "failed")
        job.end("NODE_FAIL", "143:0")
        alone = job.record(0)
        check(alone["exit_code"] == 69 and re.fullmatch("decode-1 was ready and is gone: connection refused for 1[5-9] s, was ready before", alone["reason"]),
              "rank 0: %s" % alone["reason"])


@case(2, slow=True)
def a_slurmd_that_is_back_ends_what_is_left_of_a_job_that_failed(test):
    job = held(test)
    with without_slurmd(test.nodes[0]):
        check(job.ended(LOST)["JobState"] == "NODE_FAIL", "the job is %s" % job.state())
        os.kill(job.record(0)["launcher_pid"], 0)
    job.end("NODE_FAIL", "143:0")
    job.ended_with(0, "stopped", "stopped by SIGTERM")


@case(2)
def a_step_whose_daemon_is_killed_goes_on_and_ends_in_order(test):
    script = edit(test.script(1, 1), ("--wait=120", "--wait=3"))
    test.tell("hold-workload")
    job = test.submit(script)
    test.until("the workload", lambda: test.heard("workload-began"))
    daemon = parent(job.record(1)["launcher_pid"])
    with open("/proc/%d/cmdline" % daemon) as handle:
        check("slurmstepd: [%s.0]" % job.id in handle.read(), "the parent of a rank is its step's daemon")
    os.kill(daemon, signal.SIGKILL)
    test.until("its end", lambda: parent(job.record(1)["launcher_pid"]) == 1)
    test.untell("hold-workload")
    # Nobody tells srun that rank 1 has ended, so that it takes all of --wait.
    text = job.end("COMPLETED", "0:0")
    in_order(text, "rank 0: done: the workload ended with code 0", "srun: First task exited 3s ago", "task 1: running", "SLURM job %s" % job.id)
    job.ended_with(1, "done", "the router is gone")


@case(3, slow=True)
def a_job_requeued_after_a_node_failure_runs_on_other_nodes_with_logs_of_its_own(test):
    others = ["n%d" % number for number in range(1, len(BED["address"]) + 1) if "n%d" % number not in test.nodes]
    job = held(test, "--requeue", submit=("--nodelist=", "--exclude=" + ",".join(others)))
    first = job.record(0)
    must("scontrol", "update", "nodename=" + first["host"], "state=down", "reason=test", env=BED["env"])
    try:
        test.until("the second attempt", lambda: (test.heard("workload-began") or "").count("\n") == 2)
        test.untell("hold-workload")
        text = job.end("COMPLETED", "0:0")
    finally:
        run("scontrol", "update", "nodename=" + first["host"], "state=resume", env=BED["env"])
    first, second = ([job.record(rank, attempt) for rank in (0, 1)] for attempt in ("", "-restart1"))
    check([one["outcome"] for one in first] == ["stopped"] * 2, "first attempt: %s" % [one["reason"] for one in first])
    check([one["outcome"] for one in second] == ["done"] * 2, "second attempt: %s" % [one["reason"] for one in second])
    check([one["slurm"]["restart"] for one in first + second] == [0, 0, 1, 1], "the records count the attempts")
    check([one["host"] for one in second] == test.nodes[1:], "it ran on %s" % [one["host"] for one in second])
    in_order(text, "SIGTERM: ending everything", "started again 1×")
