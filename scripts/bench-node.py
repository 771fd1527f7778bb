"""The measuring part of bench-node.sh, and the stand-ins of its jobs: the same ones for the launcher and for the old loops.

bench-node.py --binary PATH --work DIR [--runs N] [--watch SECONDS] [--skip-old] [--check]
bench-node.py stand-in NAME WORDS…       a server or the router, its port among the words
bench-node.py listener FOLDER PORTS      answers 503 at every address of the file `endpoints`

A stand-in opens its port when the file `go-NAME` is there and ends with code 3 when `die-NAME` is; it notes both moments.
"""

import argparse
import os
import pathlib
import random
import selectors
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

# Limits that the project set itself.
READY_SECONDS = 1.5
DEATH_SECONDS = 1.0
GONE_SECONDS = 1.0
# Endpoints, percent of a core, megabytes.
WATCHING = [(8, 1.0, 15.0), (1000, 10.0, 40.0)]

PATIENCE = 60
# The old loops wait this long for a server that died, instead of 2,500 s.
OLD_WAIT_SERVER = 20
# Longer than rank 0 keeps the router for ranks that poll it (three polls), so that this is not measured.
WORKLOAD_SECONDS = 4.5
MARK = "BENCH_NODE_FOLDER"
PREFILL, DECODE, ROUTER, METRICS, HANDSHAKE = 18010, 18020, 18000, 18100, 18301
OWN = [sys.executable, "-IS", os.path.abspath(__file__)]


def note(path):
    """Write the time of day, whole or not at all."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="ascii") as file:
        file.write(repr(time.time()))
    os.rename(part, path)


def stand_in(name):
    folder = os.environ[MARK]
    address = "127.0.0.3" if name == "decode" else "127.0.0.2"
    port = {"prefill": PREFILL, "decode": DECODE, "router": ROUTER}[name]
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.settimeout(0.005)
    opens_at = time.monotonic() + (0.1 if name == "router" else 0)
    listening = False
    while True:
        if os.path.exists(f"{folder}/die-{name}"):
            note(f"{folder}/died-{name}")
            os._exit(3)
        if not listening:
            if time.monotonic() >= opens_at and (name == "router" or os.path.exists(f"{folder}/go-{name}")):
                sock.listen(64)
                note(f"{folder}/ready-{name}")
                listening = True
            time.sleep(0.005)
            continue
        try:
            connection, _ = sock.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(1)
            try:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            except OSError:
                pass


def listener(folder):
    """One process for all servers of a large job: they load for ever."""
    answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    selector = selectors.DefaultSelector()
    for line in pathlib.Path(folder, "endpoints").read_text(encoding="ascii").splitlines():
        address, port = line.split()
        sock = socket.create_server((address, int(port)), backlog=16)
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_READ, True)
    note(f"{folder}/listening")
    while True:
        for key, _ in selector.select():
            if key.data:
                connection, _ = key.fileobj.accept()
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ, False)
                continue
            selector.unregister(key.fileobj)
            with key.fileobj as connection:
                try:
                    if connection.recv(4096):
                        connection.sendall(answer)
                except OSError:
                    pass


class Job:
    """Two ranks on loopback addresses, in a folder of their own."""

    def __init__(self, binary, work, old=False, wait_server=None):
        self.binary, self.old = binary, old
        self.folder = work / "job"
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "model").mkdir(parents=True)
        # What passes for a model: a configuration and an empty file of weights.
        (self.folder / "model/config.json").write_text("{}\n", encoding="ascii")
        (self.folder / "model/model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
        for name in ("prefill", "decode", "router"):
            path = self.folder / f"{name}-command"
            path.write_text(f'#!/bin/sh\nexec {shlex.join(OWN)} stand-in {name} "$@"\n', encoding="utf-8")
            path.chmod(0o755)
        (self.folder / "workload").write_text(
            '#!/bin/sh\nd=$BENCH_NODE_FOLDER\ndate +%s.%N >"$d/workload-began"\n'
            'while [ ! -e "$d/stop" ]; do sleep 0.01; done\ndate +%s.%N >"$d/workload-ended"\n',
            encoding="ascii",
        )
        (self.folder / "workload").chmod(0o755)
        self.environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), MARK: str(self.folder)}
        if wait_server:
            self.environment["WAIT_SERVER_TIMEOUT"] = str(wait_server)
        self.ranks = []

    def __enter__(self):
        for rank in (0, 1):
            self.ranks.append(self.start(rank))
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.terminate()
        end = time.monotonic() + PATIENCE
        while (left := self.living()) and time.monotonic() < end:
            if self.old or time.monotonic() > end - 20:
                # The end of the container, so to speak; by id, and only what has our mark.
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            time.sleep(0.02)
        for rank in self.ranks:
            rank.wait()

    def start(self, rank):
        server = self.folder / ("prefill-command", "decode-command")[rank]
        more = {}
        if self.old:
            words = [os.path.join(os.path.dirname(OWN[-1]), "bench-node-old.sh"), str(server)]
            if rank == 0:
                words += [str(self.folder / "router-command"), str(self.folder / "workload")]
            more = {
                "RANK": str(rank),
                "SERVER_URLS": f"http://127.0.0.2:{PREFILL} http://127.0.0.3:{DECODE}",
                "ROUTER_URL": f"http://127.0.0.2:{ROUTER}",
                "LOGS": str(self.folder),
            }
        else:
            words = [self.binary, "node", "--model", "DeepSeek-V4-Pro", "--model-path", self.folder / "model"]
            words += ["--prefill-workers", 1, "--decode-workers", 1, "--nodes", "127.0.0.2,127.0.0.3", "--rank", rank]
            words += ["--prefill-port", PREFILL, "--decode-port", DECODE, "--router-port", ROUTER, "--prometheus-port", METRICS]
            words += ["--handshake-port", HANDSHAKE, "--log-dir", self.folder / "logs"]
            words += ["--python", server, "--router-bin", self.folder / "router-command", "--", self.folder / "workload"]
        with open(self.folder / f"output-{rank}", "wb") as output:
            return subprocess.Popen(
                [str(word) for word in words],
                env={**self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def living(self):
        """Processes of this job, by the mark in their environment."""
        return living(f"{MARK}={self.folder}")

    def make(self, name):
        (self.folder / name).touch()

    def moment(self, name, patience=PATIENCE):
        """The time that was noted in a file, once it is there."""
        path = self.folder / name
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if path.exists() and (text := path.read_text(encoding="ascii").strip()):
                return float(text)
            time.sleep(0.002)
        output = "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("output-*")))
        sys.exit(f"bench: {name} does not come within {patience} s; the ranks said:\n{output}")

    def end_of(self, rank, patience=PATIENCE):
        self.ranks[rank].wait(timeout=patience)
        return time.time()

    def end_of_all(self, patience=PATIENCE):
        """When nothing of the job lives any more."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if all(rank.poll() is not None for rank in self.ranks) and not self.living():
                return time.time()
            time.sleep(0.005)
        sys.exit(f"bench: still there after {patience} s: {self.living()}")

    def serve(self, pause):
        """Let the servers become ready, the last one after a pause, and the workload start; seconds between the two."""
        self.make("go-prefill")
        self.moment("ready-prefill")
        time.sleep(pause)
        self.make("go-decode")
        ready = self.moment("ready-decode")
        return self.moment("workload-began") - ready


def living(mark):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


class Report:
    """Prints measurements and remembers missed targets."""

    def __init__(self):
        self.missed = []

    def target(self, what, values, unit, limit):
        worst, middle = max(values), statistics.median(values)
        good = middle < limit
        more = f"  worst {worst:.2f} of {len(values)}" if len(values) > 1 else ""
        print(f"  {what:<58} {middle:8.2f} {unit:<10} target: below {limit:g}  {'PASS' if good else 'OVER TARGET'}{more}", flush=True)
        if not good:
            self.missed.append(what)

    def plain(self, what, values, unit="s", more=""):
        print(f"  {what:<58} {statistics.median(values):8.2f} {unit:<10} {more}".rstrip(), flush=True)


READY = "last server ready → workload starts"
DIED_LOADING = "server dies while another one loads → rank ends"
DIED_SERVING = "server dies during the workload → rank ends"
GONE = "workload ends → its rank and all that it started are gone"
ALL_GONE = "workload ends → the other rank is gone as well"


def times(report, binary, work, runs):
    shift = random.Random(1).uniform
    ready, gone, all_gone, loading, serving = [], [], [], [], []
    for _ in range(runs):
        with Job(binary, work) as job:
            ready.append(job.serve(shift(0.5, 1.5)))
            time.sleep(WORKLOAD_SECONDS)
            job.make("stop")
            rank0 = job.end_of(0)
            ended = job.moment("workload-ended")
            gone.append(rank0 - ended)
            all_gone.append(job.end_of_all() - ended)
        with Job(binary, work) as job:
            job.make("go-decode")
            job.moment("ready-decode")
            time.sleep(shift(0.2, 1.2))
            job.make("die-prefill")
            loading.append(job.end_of(0) - job.moment("died-prefill"))
        with Job(binary, work) as job:
            job.serve(0)
            time.sleep(shift(0.2, 1.2))
            job.make("die-prefill")
            serving.append(job.end_of(0) - job.moment("died-prefill"))
    report.target(READY, ready, "s", READY_SECONDS)
    report.target(DIED_LOADING, loading, "s", DEATH_SECONDS)
    report.target(DIED_SERVING, serving, "s", DEATH_SECONDS)
    report.target(GONE, gone, "s", GONE_SECONDS)
    report.plain(ALL_GONE, all_gone, more="(two refused polls of the router, one a second)")


def old_times(report, binary, work):
    patience = 300
    with Job(binary, work, old=True) as job:
        # Half a poll after a poll: what it costs on average.
        time.sleep(5)
        report.plain(READY, [job.serve(0)])
        time.sleep(1)
        job.make("stop")
        ended = job.moment("workload-ended")
        rank0 = job.end_of(0, patience)
        left = len(job.living())
        report.plain(GONE, [rank0 - ended], more=f"and {left} processes are left to the container's end")
    with Job(binary, work, old=True, wait_server=OLD_WAIT_SERVER) as job:
        job.make("go-decode")
        job.moment("ready-decode")
        time.sleep(1)
        job.make("die-prefill")
        died = job.moment("died-prefill")
        report.plain(DIED_LOADING, [job.end_of(0, patience) - died], more=f"with a limit of {OLD_WAIT_SERVER} s; the default is 2500")
    with Job(binary, work, old=True) as job:
        job.serve(0)
        job.make("die-prefill")
        died = job.moment("died-prefill")
        time.sleep(WORKLOAD_SECONDS)
        job.make("stop")
        more = f"never seen: the workload's {WORKLOAD_SECONDS} s and the pause, exit code {{}}"
        took = job.end_of(0, patience) - died
        report.plain(DIED_SERVING, [took], more=more.format(job.ranks[0].returncode))


def processor_seconds(pid):
    """Time of all threads in the kernel's own unit."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        except FileNotFoundError:
            pass
    return total / 1e9


def peak_megabytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def addresses(count):
    return [f"127.1.{1 + index // 250}.{1 + index % 250}" for index in range(count)]


def watching(report, binary, work, seconds, count, percent, megabytes):
    """Rank 0 of a job of so many servers that load for ever."""
    with Job(binary, work) as job:
        for rank in job.ranks:
            rank.terminate()
            rank.wait()
        nodes = addresses(count)
        ports = [PREFILL] * (count // 2) + [DECODE] * (count - count // 2)
        # The rank's own server does not open its port, as one that loads.
        places = [f"{node} {port}\n" for node, port in list(zip(nodes, ports))[1:]]
        (job.folder / "endpoints").write_text("".join(places), encoding="ascii")
        (job.folder / "prefill-command").write_text("#!/bin/sh\nexec sleep 300\n", encoding="ascii")
        environment = job.environment
        job.ranks.append(subprocess.Popen([*OWN, "listener", str(job.folder)], env=environment, start_new_session=True))
        job.moment("listening")
        words = [binary, "node", "--model", "DeepSeek-V4-Pro", "--model-path", job.folder / "model"]
        words += ["--prefill-workers", count // 2, "--decode-workers", count - count // 2, "--nodes", ",".join(nodes), "--rank", 0]
        words += ["--prefill-port", PREFILL, "--decode-port", DECODE, "--router-port", ROUTER, "--prometheus-port", METRICS]
        words += ["--handshake-port", HANDSHAKE, "--log-dir", job.folder / "logs", "--python", job.folder / "prefill-command"]
        words += ["--router-bin", job.folder / "router-command", "--", "true"]
        with open(job.folder / "output-0", "wb") as output:
            launcher = subprocess.Popen(
                [str(word) for word in words], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        job.ranks.append(launcher)
        time.sleep(3)
        began, before = time.monotonic(), processor_seconds(launcher.pid)
        time.sleep(seconds)
        used = (processor_seconds(launcher.pid) - before) / (time.monotonic() - began)
        if launcher.poll() is not None:
            sys.exit(f"bench: the launcher has ended:\n{(job.folder / 'output-0').read_text(errors='replace')}")
        peak = peak_megabytes(launcher.pid)
        report.target(f"{count} endpoints, polled every second: processor", [used * 100], "% of core", percent)
        report.target(f"{count} endpoints: peak memory", [peak], "MB", megabytes)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True, type=pathlib.Path)
    options.add_argument("--work", required=True, type=pathlib.Path)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--watch", type=float, default=20)
    options.add_argument("--skip-old", action="store_true")
    options.add_argument("--check", action="store_true")
    options = options.parse_args()
    if options.runs < 1:
        sys.exit("bench: --runs must be at least 1")
    binary = options.binary.resolve()
    work = options.work.resolve()
    report = Report()
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores / 2:
        print(f"note: others use this machine (load {load:.1f} on {cores} cores); times are too long\n")
    print(f"atom-launch node, two ranks, median of {options.runs}")
    times(report, binary, work, options.runs)
    print("\natom-launch node, rank 0 while it waits for servers that load")
    for count, percent, megabytes in WATCHING:
        watching(report, binary, work, options.watch, count, percent, megabytes)
    if options.skip_old:
        print("\nthe old loops: left out")
    elif not shutil.which("curl"):
        print("\nthe old loops: left out, they need curl")
    else:
        print("\nthe old loops, same stand-ins (poll every 10 s, one address after the other, 60 s at the end)", flush=True)
        old_times(report, binary, work)
    print(f"\nover target: {'; '.join(report.missed)}" if report.missed else "\nall targets met")
    return 1 if report.missed and options.check else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stand-in", name, *_]:
            stand_in(name)
        case ["listener", folder]:
            listener(folder)
        case _:
            sys.exit(main())
