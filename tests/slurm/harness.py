"""What the cases of scripts/test-slurm are made of: a case, its jobs, and checks.

A case is a function in one of the cases_*.py beside this file, marked with the number of nodes that it needs; it gets a `Test`.
"""

import collections
import json
import os
import subprocess
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Nobody waits this long when all is well; a busy machine may need much of it.
PATIENCE = 150
# From a failure to the end of its job. A few seconds when the machine is not busy; a job that nobody ends has five minutes.
AT_ONCE = 90
STATES_OF_AN_END = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED", "BOOT_FAIL"}
# Every `Case`, in the order of the files and in them.
CASES = []
# The testbed, filled by scripts/test-slurm before the first case runs.
BED = {}
FREE_NODES = threading.Condition()
Case = collections.namedtuple("Case", "name nodes function slow")


def case(nodes, slow=False, name=None):
    """Register a test that needs so many nodes for itself; slow ones start first."""

    def register(function):
        CASES.append(Case(name or function.__name__.replace("_", " "), nodes, function, slow))
        return function

    return register


class Failed(Exception):
    """A check that did not hold."""


class Skipped(Exception):
    """What a case needs and this machine cannot have."""


def check(good, text):
    if not good:
        raise Failed(text)


def run(*words, **more):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=PATIENCE, **more)
    return done.returncode, done.stdout


def must(*words, patience=PATIENCE, **more):
    """Standard output of a command that must end with 0."""
    more.setdefault("input", "")
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=patience, **more)
    check(done.returncode == 0, "%s: code %d: %s" % (" ".join(words[:4]), done.returncode, done.stdout + done.stderr))
    return done.stdout


def edit(path, *changes):
    """Change a file as a person would: each pair is what stands there and what takes its place."""
    with open(path) as handle:
        text = handle.read()
    for old, new in changes:
        check(old in text, "`%s` is not in %s" % (old, path))
        text = text.replace(old, new)
    with open(path, "w") as handle:
        handle.write(text)
    return path


class Test:
    """One case: a folder, nodes of its own, at most a few jobs."""

    def __init__(self, name, nodes):
        self.name, self.nodes = name, nodes
        self.addresses = [BED["address"][node] for node in nodes]
        self.folder = tempfile.mkdtemp(prefix="case.", dir=BED["folder"])
        os.chmod(self.folder, 0o755)
        self.mark = os.path.basename(self.folder)
        self.standin = self.sub("standin")
        self.jobs = []
        model = os.path.join(self.sub("models"), "DeepSeek-V4-Pro")
        os.mkdir(model)
        for name in ("config.json", "model.safetensors"):
            open(os.path.join(model, name), "w").close()
        # Nothing of ours may need scontrol: it is not there in a container.
        shim = os.path.join(self.sub("bin"), "scontrol")
        with open(shim, "w") as handle:
            handle.write('#!/bin/sh\necho "$@" >>"%s/scontrol-was-called"\nexit 1\n' % self.folder)
        os.chmod(shim, 0o755)
        names = ("PATH", "SLURM_CONF", "SLURM_TESTBED_DIR", "LANG", "TMPDIR")
        self.env = {name: BED["env"][name] for name in names if name in BED["env"]}
        self.env.update(HOME=self.folder, ATOM_TEST_MARK=self.mark, STANDIN_DIR=self.standin, ATOM_LAUNCH=BED["program"],
                        PATH="%s:%s:%s" % (self.sub("bin"), os.path.dirname(BED["program"]), self.env["PATH"]))

    def sub(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def path(self, name):
        return os.path.join(self.folder, name)

    def tell(self, name, text=""):
        # Whole or not at all: a stand-in may look at any moment.
        part = os.path.join(self.folder, ".part")
        with open(part, "w") as handle:
            handle.write(text)
        os.rename(part, os.path.join(self.standin, name))

    def untell(self, name):
        os.unlink(os.path.join(self.standin, name))

    def read(self, name):
        """A file in the case's folder; nothing when it is not there."""
        try:
            with open(self.path(name)) as handle:
                return handle.read()
        except FileNotFoundError:
            return None

    def heard(self, name):
        return self.read("standin/" + name)

    def until(self, what, condition, limit=PATIENCE, pause=0.05):
        end = time.monotonic() + limit
        while True:
            value = condition()
            if value:
                return value
            check(time.monotonic() < end, "%s does not come within %d s" % (what, limit))
            time.sleep(pause)

    def script(self, prefill, decode, *more, workload=("0",), standard=True):
        """Print a job script for these options and keep it."""
        words = [BED["program"], "sbatch", "--model", "DeepSeek-V4-Pro", "--model-dir", self.path("models"),
                 "--prefill-workers", str(prefill), "--decode-workers", str(decode), "--max-concurrency", "8",
                 "--python", BED["standin"], "--router-bin", BED["standin"]]
        if standard:
            words += ["--poll-interval", "0.2", "--grace", "5", "--time", "5"]
        words += list(more)
        if workload is not None:
            words += ["--", os.path.join(ROOT, "tests/slurm/workload.sh"), *workload]
        text = must(*words, env=self.env)
        path = self.path("job%d.sbatch" % len(os.listdir(self.folder)))
        with open(path, "w") as handle:
            handle.write(text)
        return path

    def submit(self, script, *options, env=None):
        words = ["sbatch", "--parsable", "--output=%s/%%x-%%j.out" % self.folder, "--nodelist=" + ",".join(self.nodes),
                 *options, script]
        environment = dict(self.env, **(env or {}))
        job = Job(self, must(*words, env=environment, cwd=self.folder).strip().splitlines()[-1])
        self.jobs.append(job)
        return job

    def start(self, prefill, decode, *more, submit=(), env=None, **kinds):
        return self.submit(self.script(prefill, decode, *more, **kinds), *submit, env=env)

    def overdue(self, part):
        """The output of a job whose wait for its servers runs out, once this part was there before: it gets more and more time."""
        for limit in (5, 20, 60):
            text = self.start(1, 1, "--wait-server-timeout", str(limit)).end("FAILED", "69:0")
            if part in text:
                break
        in_order(text, part, "not all servers became ready within ")
        return text

    def living(self):
        """Processes that carry this case's mark, SLURM's own excepted."""
        mark = ("ATOM_TEST_MARK=" + self.mark).encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as handle:
                    marked = mark in handle.read().split(b"\0")
                with open("/proc/%s/stat" % pid) as handle:
                    state = handle.read().rpartition(")")[2].split()[0]
                with open("/proc/%s/cmdline" % pid, "rb") as handle:
                    words = handle.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if marked and state not in "ZX":
                found.append("%s %s" % (pid, words[:120]))
        return found

    def listening(self):
        """Ports of this case's addresses that somebody listens on."""
        hosts = {"".join("%02X" % int(part) for part in reversed(one.split("."))) for one in self.addresses}
        found = []
        with open("/proc/net/tcp") as handle:
            for line in list(handle)[1:]:
                host, port = line.split()[1].split(":")
                if line.split()[3] == "0A" and host in hosts:
                    found.append(int(port, 16))
        return found

    def nothing_is_left(self):
        self.until("the end of the last process (%s)" % self.living(), lambda: not self.living(), AT_ONCE)
        check(not self.listening(), "ports are still listened on: %s" % self.listening())
        check(not os.path.exists(self.path("scontrol-was-called")), "scontrol was called")

    def show(self):
        text = []
        for job in self.jobs:
            text.append("--- output of job %s\n%s" % (job.id, job.output()[-6000:]))
        return "\n".join(text)


class Job:
    """One job of SLURM."""

    def __init__(self, test, number):
        self.test, self.id = test, number

    def shown(self):
        code, text = run("scontrol", "-o", "show", "job", self.id, env=BED["env"])
        return dict(word.split("=", 1) for word in text.split() if "=" in word) if code == 0 else {}

    def state(self):
        return self.shown().get("JobState", "?").split(",")[0]

    def output(self):
        text = ""
        for name in sorted(os.listdir(self.test.folder)):
            if name.endswith("-%s.out" % self.id):
                with open(self.test.path(name), errors="replace") as handle:
                    text += handle.read()
        return text

    def says(self, part, limit=PATIENCE):
        self.test.until("`%s` in the output" % part, lambda: part in self.output(), limit)

    def ended(self, limit=PATIENCE):
        """Wait until SLURM says that it is over."""
        def over():
            shown = self.shown()
            return shown if shown.get("JobState") in STATES_OF_AN_END else None
        # Each look is a process, and many cases look at once.
        return self.test.until("the end of job %s" % self.id, over, limit, pause=0.2)

    def accounted(self):
        """State of the job in what SLURM writes for `sacct -c`."""
        code, text = run("sacct", "-c", "-n", "-P", "-j", self.id, "-o", "State", env=BED["env"])
        return text.strip().splitlines()[-1:] if code == 0 else [text]

    def end(self, state, code, limit=PATIENCE):
        """Wait for the end, and check what holds for every end."""
        shown = self.ended(limit)
        self.test.nothing_is_left()
        check(shown["JobState"] == state, "state %s, not %s" % (shown["JobState"], state))
        if code is not None:
            check(shown["ExitCode"] == code, "ExitCode=%s, not %s" % (shown["ExitCode"], code))
        self.test.until("the state %s in sacct, which has %s" % (state, self.accounted()), lambda: self.accounted() == [state])
        return self.output()

    def logs(self, attempt=""):
        return self.test.path("atom-launch-logs/slurm_job-%s%s" % (self.id, attempt))

    def record(self, rank, attempt=""):
        with open(os.path.join(self.logs(attempt), "launch-rank%d.json" % rank)) as handle:
            return json.load(handle)

    def ended_with(self, rank, outcome, reason, attempt=""):
        """What a rank's record says of its end. Its lines need not all be in the output: srun stops listening to ranks that it ends."""
        self.test.until("the end of rank %d" % rank, lambda: self.record(rank, attempt)["outcome"] != "running")
        record = self.record(rank, attempt)
        check((record["outcome"], record["reason"]) == (outcome, reason), "rank %d: %s, %s" % (rank, record["outcome"], record["reason"]))

    def report(self):
        return must(BED["program"], "report", self.logs())


def in_order(text, *parts):
    at = 0
    for part in parts:
        found = text.find(part, at)
        check(found >= 0, "`%s` is not in the output, or not there" % part)
        at = found + len(part)


def succeed(test, prefill, decode, ranks, *more, **kinds):
    job = test.start(prefill, decode, *more, **kinds)
    text = job.end("COMPLETED", "0:0")
    check(test.heard("workload-began").count("\n") == 1, "the workload ran once")
    for rank in range(ranks):
        record = job.record(rank)
        check(record["outcome"] == "done" and record["exit_code"] == 0, "rank %d: %s" % (rank, record["reason"]))
        check(record["slurm"] == {"id": job.id, "restart": 0}, "the record names the job: %s" % record["slurm"])
    check(not os.path.exists(os.path.join(job.logs(), "launch-rank%d.json" % ranks)), "no rank too many")
    in_order(text, "prefill-0", "workload: ROUTER_URL=http://", "SLURM job %s" % job.id)
    return job, text


def free_nodes(count):
    """Nodes for a case, from low to high; waits until there are so many."""
    with FREE_NODES:
        FREE_NODES.wait_for(lambda: len(BED["free"]) >= count)
        taken = sorted(BED["free"])[:count]
        BED["free"] -= set(taken)
        return ["n%d" % number for number in taken]


def one(which):
    """Run a case and print its line; true when it passed, nothing when it was skipped."""
    nodes = free_nodes(which.nodes)
    began = time.monotonic()
    test = Test(which.name, nodes)
    problem = skipped = ""
    try:
        which.function(test)
    except Skipped as why:
        skipped = str(why)
    except Exception as error:  # pylint: disable=broad-except
        problem = str(error) if isinstance(error, Failed) else traceback.format_exc()
        problem += "\n" + test.show()
    finally:
        for job in test.jobs:
            if job.state() not in STATES_OF_AN_END:
                run("scancel", "--full", "--signal=KILL", job.id, env=BED["env"])
                run("scancel", job.id, env=BED["env"])
        with FREE_NODES:
            BED["free"] |= {int(node[1:]) for node in nodes}
            FREE_NODES.notify_all()
    word = "FAIL" if problem else "skip" if skipped else "ok"
    print("%-4s %5.1f s  %s" % (word, time.monotonic() - began, which.name + (": " + skipped if skipped else "")), flush=True)
    if problem:
        print("     " + problem.strip().replace("\n", "\n     "), flush=True)
    return None if skipped else not problem
