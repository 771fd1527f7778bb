"""What ends a job: servers, routers, launchers and nodes that fail, and ports that are taken."""

import os
import signal

from harness import AT_ONCE, BED, STATES_OF_AN_END, case, check, in_order, must, run


def crash(test, rank, name, limit=AT_ONCE):
    """The server of a rank ends while the workload runs."""
    test.tell("hold-workload")
    job = test.start(2, 1)
    test.until("the workload", lambda: test.heard("workload-began"))
    port = 8020 if rank == 2 else 8010
    test.tell("crash-server-%d-%s" % (port, test.nodes[rank]), "3")
    text = job.end("FAILED", "3:0", limit)
    in_order(text, "the last 2 lines of " + name, "the stand-in was told to crash", "rank %d: error: %s ended with code 3 before its time" % (rank, name))
    in_order(text, "SLURM job %s" % job.id, "rank %d after" % rank, "%s ended with code 3" % name)
    # srun may have stopped listening to rank 0 before its last line.
    if rank and "rank 0: stopped by" in text:
        in_order(text, "rank 0: error: first to fail: rank %d on" % rank, "%s ended with code 3" % name)


@case(3)
def a_crash_of_the_server_of_rank_0_ends_the_job(test):
    crash(test, 0, "prefill-0")


@case(3)
def a_crash_of_the_server_of_rank_1_ends_the_job(test):
    crash(test, 1, "prefill-1")


@case(3)
def a_crash_of_the_server_of_rank_2_ends_the_job(test):
    crash(test, 2, "decode-2")


@case(2)
def a_server_that_dies_at_its_start_ends_the_job_before_anybody_has_waited(test):
    test.tell("crash-server-8020-%s" % test.nodes[1], "4")
    job = test.start(1, 1)
    text = job.end("FAILED", "4:0", AT_ONCE)
    in_order(text, "decode-1 ended with code 4 before it was ready")
    check(not test.heard("workload-began"), "the workload has not begun")


@case(2)
def a_router_that_crashes_ends_the_job(test):
    test.tell("hold-workload")
    job = test.start(1, 1)
    test.until("the workload", lambda: test.heard("workload-began"))
    test.tell("crash-router-%s" % test.nodes[0], "5")
    text = job.end("FAILED", "5:0", AT_ONCE)
    in_order(text, "router ended with code 5 before its time")


@case(2)
def a_server_killed_hard_ends_the_job_and_is_named(test):
    test.tell("hold-workload")
    job = test.start(1, 1)
    test.until("the workload", lambda: test.heard("workload-began"))
    os.kill(int(test.heard("pid-server-8020-%s" % test.nodes[1])), signal.SIGKILL)
    text = job.end("FAILED", "137:0", AT_ONCE)
    in_order(text, "decode-1 was killed by SIGKILL before its time")
    in_order(text, "SLURM job", "rank 1 after", "decode-1 was killed by SIGKILL")


@case(2)
def a_launcher_killed_hard_takes_its_server_with_it_and_ends_the_job(test):
    # Without cgroups SLURM does not find what has left its session and lost its parent.
    test.tell("no-engine")
    test.tell("hold-workload")
    job = test.start(1, 1)
    test.until("the workload", lambda: test.heard("workload-began"))
    os.kill(job.record(1)["launcher_pid"], signal.SIGKILL)
    text = job.end("FAILED", None, AT_ONCE)
    job.ended_with(0, "stopped", "stopped by SIGTERM")
    in_order(text, "rank 1 on", "has recorded no end")


@case(2)
def a_node_set_down_ends_the_job(test):
    test.tell("hold-workload")
    job = test.start(1, 1)
    test.until("the workload", lambda: test.heard("workload-began"))
    must("scontrol", "update", "nodename=" + test.nodes[1], "state=down", "reason=test", env=BED["env"])
    try:
        job.end("NODE_FAIL", None, AT_ONCE)
    finally:
        run("scontrol", "update", "nodename=" + test.nodes[1], "state=resume", env=BED["env"])


@case(2)
def a_rank_that_never_comes_is_named_with_its_address(test):
    test.tell("slow-server-8020-%s" % test.nodes[1])
    test.overdue("decode-1 (%s:8020) HTTP 503" % test.nodes[1])


@case(2)
def of_two_jobs_on_the_same_nodes_the_second_names_the_first(test):
    test.tell("hold-workload")
    first = test.start(1, 1, submit=("--oversubscribe",))
    test.until("the workload", lambda: test.heard("workload-began"))
    second = test.start(1, 1, submit=("--oversubscribe",))
    state = test.until("the end of the second job", lambda: second.state() in STATES_OF_AN_END and second.state(), AT_ONCE)
    check(state == "FAILED", "the second job is %s" % state)
    text = second.output()
    in_order(text, "port 8010 at %s, needed by prefill-0, is in use by process" % test.nodes[0], "(SLURM job %s)" % first.id)
    check(first.state() == "RUNNING", "the first job goes on")
    test.untell("hold-workload")
    first.end("COMPLETED", "0:0")


@case(2)
def two_jobs_on_the_same_nodes_with_ports_of_their_own_run_at_once(test):
    ports = ("--prefill-port", "8110", "--decode-port", "8120", "--router-port", "8100", "--prometheus-port", "29200", "--handshake-port", "6401")
    test.tell("hold-workload")
    jobs = [test.start(1, 1, *more, submit=("--oversubscribe",)) for more in ((), ports)]
    test.until("both workloads", lambda: (test.heard("workload-began") or "").count("\n") == 2)
    check(sorted(test.heard("workload-began").split()) == ["http://%s:%d" % (test.nodes[0], port) for port in (8000, 8100)], "each has a router")
    check([job.state() for job in jobs] == ["RUNNING"] * 2, "both run")
    test.untell("hold-workload")
    for job in jobs:
        job.ended()
    for job in jobs:
        job.end("COMPLETED", "0:0")
