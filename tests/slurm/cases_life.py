"""The ordinary life of a job: layouts, its end, scancel, time limit, requeue, late ranks."""

import json
import os
import re

from harness import AT_ONCE, BED, PATIENCE, case, check, in_order, must, succeed


@case(2)
def one_prefill_and_one_decode_worker_run_a_workload(test):
    job, _ = succeed(test, 1, 1, 2)
    argv = json.loads(test.heard("argv-router-%s" % test.nodes[0] + ".json"))
    check("http://%s:8010" % test.nodes[0] in argv and "http://%s:8020" % test.nodes[1] in argv, "router: %s" % argv)
    check(sorted(os.listdir(job.logs())) == ["decode-1.log", "launch-rank0.json", "launch-rank1.json", "plan.txt", "prefill-0.log", "router-0.log", "workload-0.log"],
          "logs: %s" % os.listdir(job.logs()))


@case(3)
def two_prefill_workers_and_one_decode_worker(test):
    succeed(test, 2, 1, 3)


@case(3)
def one_prefill_worker_and_two_decode_workers(test):
    succeed(test, 1, 2, 3)


@case(1)
def workers_packed_on_one_node(test):
    succeed(test, 1, 1, 1, "--layout", "packed", "--prefill-tp", "4", "--decode-tp", "4")


@case(2)
def the_code_of_the_workload_is_the_code_of_the_job(test):
    job = test.start(1, 1, workload=("7",))
    text = job.end("FAILED", "7:0")
    in_order(text, "failed in phase workload: the workload ended with code 7", "rank 0 after", "the workload ended with code 7")


@case(2)
def scancel_stops_every_rank_in_order_and_the_script_still_reports(test):
    job = test.start(1, 1, workload=None)
    job.says("serving until a signal")
    job.says("serving until it is gone")
    must("scancel", job.id, env=BED["env"])
    text = job.end("CANCELLED", None, AT_ONCE)
    for rank in (0, 1):
        check(job.record(rank)["outcome"] in ("stopped", "done"), "rank %d: %s" % (rank, job.record(rank)))
    job.ended_with(0, "stopped", "stopped by SIGTERM")
    in_order(text, "SIGTERM: ending everything", "SLURM job %s" % job.id, "stopped in serving")


@case(2)
def scancel_while_servers_load(test):
    test.tell("slow-server-8020-%s" % test.nodes[1])
    job = test.start(1, 1)
    job.says("prefill-0 is ready")
    must("scancel", job.id, env=BED["env"])
    job.end("CANCELLED", None, AT_ONCE)


@case(2, slow=True)
def before_the_time_limit_every_rank_is_told_to_end(test):
    # SLURM looks at time limits twice a minute; with two minutes the signal is due at once.
    job = test.start(1, 1, "--poll-interval", "0.2", "--grace", "5", "--time", "2", workload=None, standard=False)
    job.says("serving until a signal")
    text = job.end("FAILED", "143:0", PATIENCE)
    job.ended_with(0, "stopped", "stopped by SIGTERM")
    in_order(text, "SIGTERM: ending everything", "SLURM job %s" % job.id, "143  stopped in serving")


@case(2, slow=True)
def a_requeued_job_keeps_the_logs_of_its_first_attempt(test):
    test.tell("hold-workload")
    job = test.start(1, 1, "--requeue")
    test.until("the workload", lambda: test.heard("workload-began"))
    must("scontrol", "requeue", job.id, env=BED["env"])
    test.until("the second attempt", lambda: (test.heard("workload-began") or "").count("\n") == 2)
    test.untell("hold-workload")
    text = job.end("COMPLETED", "0:0")
    first, second = job.record(0), job.record(0, "-restart1")
    check(first["slurm"]["restart"] == 0 and first["outcome"] == "stopped", "first attempt: %s" % first["outcome"])
    check(second["slurm"]["restart"] == 1 and second["outcome"] == "done", "second attempt: %s" % second["outcome"])
    in_order(text, "SIGTERM: ending everything", "started again 1×")


def starts_late(test, rank):
    """Environment of a job in which this rank's task begins only when `go` is told."""
    prolog = test.path("prolog")
    with open(prolog, "w") as handle:
        handle.write('#!/bin/sh\n[ "$SLURM_PROCID" != %d ] || while [ ! -e "$STANDIN_DIR/go" ]; do sleep 0.05; done\n' % rank)
    os.chmod(prolog, 0o755)
    return {"SLURM_TASK_PROLOG": prolog}


@case(2, slow=True)
def a_rank_that_starts_late_is_waited_for_and_named_while_it_is_missing(test):
    job = test.start(1, 1, env=starts_late(test, 1))
    job.says("prefill-0 is ready")
    check("decode-1" not in "".join(os.listdir(job.logs())), "the late rank has not begun")
    # Every half minute: whom, where, and since when.
    missing = r"rank 0: waiting for 1 of 2 servers, (3\d) s so far: decode-1 \(%s:8020\) connection refused for (\d+) s\n" % test.nodes[1]
    found = test.until("the name of the late rank", lambda: re.search(missing, job.output()))
    check(int(found[1]) - int(found[2]) <= 1, "it is missing from the beginning: %s" % found[0])
    test.tell("go")
    job.end("COMPLETED", "0:0")


@case(2)
def a_first_rank_that_starts_late_is_waited_for(test):
    job = test.start(1, 1, env=starts_late(test, 0))
    job.says("decode-1 is ready")
    test.tell("go")
    job.end("COMPLETED", "0:0")
