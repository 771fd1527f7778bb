"""Jobs whose ranks run in containers: what `atom-launch sbatch --docker-image` prints, with a real docker on each node."""

import glob
import json
import os
import shutil
import stat

from containers import IMAGE, daemons
from harness import AT_ONCE, BED, ROOT, case, check, in_order, must

# Long and like nothing else, to be looked for in every command line of the machine.
TOKEN = "hf_dockerSecretThatNobodyMaySee"


def start(test, *more, image=IMAGE, **kinds):
    """Submit the job script for containers; the machine's programs and the stand-in are mounted into them."""
    mounts = ["--mount", "/usr:/usr:ro", "--mount", os.path.join(ROOT, "tests/slurm")]
    return test.start(1, 1, "--docker-image", image, *mounts, *more, **kinds)


def held(test, **kinds):
    """A job whose workload runs until it is told to end."""
    test.tell("hold-workload")
    job = start(test, **kinds)
    test.until("the workload", lambda: test.heard("workload-began"))
    return job


def end(job, nodes, state, code, limit=AT_ONCE):
    """The end of a job, of which no container is left either."""
    text = job.end(state, code, limit)
    for node, daemon in nodes.items():
        # docker removes what has ended on its own time.
        job.test.until("%s without containers" % node, lambda one=daemon: not one.containers(), AT_ONCE)
    return text


def command_lines():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as handle:
                yield handle.read().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue


@case(2)
def a_job_in_containers_runs_with_the_job_s_variables(test):
    with daemons(test) as nodes:
        # Named from the folder of submission; docker mounts whole paths alone.
        shutil.copy(BED["program"], test.path("launcher"))
        job = held(test, env={"ATOM_LAUNCH": "./launcher", "HF_TOKEN": TOKEN, "PYTHONPATH": "/of/the/node", "AITER_LOG_LEVEL": "two\nlines"})
        first, second = test.nodes
        for node, daemon in nodes.items():
            here = [line.split()[0] for line in daemon.containers()]
            check(here == ["atom-" + job.id], "%s: %s" % (node, here))
        shown, = json.loads(nodes[first].docker("inspect", "atom-" + job.id))
        check([each["PathOnHost"] for each in shown["HostConfig"]["Devices"]] == ["/dev/kfd", "/dev/dri", "/dev/infiniband"], "devices: %s" % shown["HostConfig"])
        told = [words for words in command_lines() if TOKEN in words]
        check(not told, "a command line has the token: %s" % told)
        check(any(" run --rm --name" in words and "--env HF_TOKEN" in words for words in command_lines()), "docker's client is seen at all")
        test.untell("hold-workload")
        text = end(job, nodes, "COMPLETED", "0:0")
        env = json.loads(test.heard("env-server-8010-%s.json" % first))
        check(env["HF_TOKEN"] == TOKEN and env["AITER_LOG_LEVEL"] == "two\nlines" and env["SLURM_PROCID"] == "0", "variables: %s" % env)
        check(json.loads(test.heard("env-server-8020-%s.json" % second))["SLURM_PROCID"] == "1", "the number of rank 1")
        check(env["HOME"] == "/root" and "PYTHONPATH" not in env, "what is the node's own stays there: %s" % env)
        in_order(text, "prefill-0", "workload: ROUTER_URL=http://%s" % first, "SLURM job %s" % job.id)
        check(TOKEN not in text, "the output has the token")
        for name in os.listdir(job.logs()):
            with open(os.path.join(job.logs(), name)) as handle:
                check(TOKEN not in handle.read(), "%s has the token" % name)


@case(2)
def what_a_user_s_containers_write_is_the_user_s_to_read_and_to_remove(test):
    user = 65534
    with daemons(test) as nodes:
        for daemon in nodes.values():
            # As for a member of the group docker.
            os.chmod(daemon.socket, 0o666)
        for path in (test.folder, test.standin):
            os.chown(path, user, user)
        job = start(test, submit=("--uid=%d" % user,))
        end(job, nodes, "COMPLETED", "0:0")
        check(os.stat(job.logs()).st_uid == user, "the log folder is the user's")
        names = os.listdir(job.logs())
        check({"prefill-0.log", "decode-1.log", "launch-rank0.json", "launch-rank1.json"} <= set(names), "logs: %s" % names)
        as_user = ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
        for name in names:
            path = os.path.join(job.logs(), name)
            check(not os.stat(path).st_mode & stat.S_IWOTH, "anybody can write %s" % name)
            must(*as_user, "cat", path)
        must(*as_user, "rm", "-r", job.logs())


@case(2)
def the_code_of_a_workload_in_a_container_is_the_code_of_the_job(test):
    with daemons(test) as nodes:
        text = end(start(test, workload=("7",)), nodes, "FAILED", "7:0")
        in_order(text, "rank 0 after", "the workload ended with code 7")


@case(2)
def a_crash_of_a_server_in_a_container_ends_the_job(test):
    with daemons(test) as nodes:
        job = held(test)
        test.tell("crash-server-8020-%s" % test.nodes[1], "3")
        text = end(job, nodes, "FAILED", "3:0")
        in_order(text, "rank 1: error: decode-1 ended with code 3 before its time", "rank 1 after")


@case(2)
def scancel_ends_containers_in_good_order(test):
    with daemons(test) as nodes:
        job = held(test)
        must("scancel", job.id, env=test.env)
        end(job, nodes, "CANCELLED", None)
        for rank in range(2):
            check(job.record(rank)["exit_code"] == 143, "rank %d: %s" % (rank, job.record(rank)["reason"]))


@case(2)
def scancel_while_containers_start_leaves_none(test):
    with daemons(test) as nodes:
        for daemon in nodes.values():
            daemon.hold_start()
        test.tell("hold-workload")
        job = start(test)
        for daemon in nodes.values():
            test.until("a container to start", daemon.held.is_set)
        must("scancel", job.id, env=test.env)
        for daemon in nodes.values():
            test.until("the signal that docker hands on", daemon.told.is_set)
            daemon.released.set()
        end(job, nodes, "CANCELLED", None)
        check(not test.heard("workload-began"), "the workload has begun in spite of it")


@case(2)
def containers_that_lose_their_client_are_removed(test):
    with daemons(test) as nodes:
        job = held(test)
        # As when a step is killed hard: the batch script lives on.
        must("scancel", "--signal=KILL", job.id + ".0", env=test.env)
        text = end(job, nodes, "FAILED", "137:0")
        # At least of one: srun may tell the other to end before its KILL comes.
        in_order(text, "no end recorded")


@case(2)
def an_image_that_is_not_there_ends_the_job_and_says_so(test):
    with daemons(test) as nodes:
        text = end(start(test, image="localhost:1/none:1"), nodes, "FAILED", "125:0")
        in_order(text, "Unable to find image 'localhost:1/none:1' locally")


@case(2)
def a_container_that_an_attempt_before_has_left_is_removed(test):
    with daemons(test) as nodes:
        job = start(test, submit=("--hold",))
        # It has the name, and on a cluster the GPUs and the ports.
        nodes[test.nodes[0]].docker("run", "--detach", "--name", "atom-" + job.id, "--network", "host", "--volume", "/usr:/usr:ro", IMAGE, "sleep", "300")
        must("scontrol", "release", job.id, env=BED["env"])
        end(job, nodes, "COMPLETED", "0:0")
