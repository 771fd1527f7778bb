"""The measuring part of bench-exec.sh: one process spawns all candidates in turn, so that drift of the machine hits all alike."""

import argparse
import gc
import os
import pathlib
import random
import statistics
import sys
import time

# Limits that the project set itself.
OVER_TRUE_MS = 2.5
PYTHON_RATIO = 25.0
LARGE_SECONDS = 0.5
LARGE_MEGABYTES = 150.0

SMALL, LARGE = 100, 10_000
JOB = ["--model", "DeepSeek-V4-Pro", "--mode", "ep-dp"]
TRUE = "/bin/true"

# As many variables as a batch job inside a container has, none of them the launcher's own: each is looked at and handed on.
JOB_VARIABLES = {f"SLURM_{name}": "node[01-04]" for name in "JOB_ID JOB_NAME NODELIST NNODES NTASKS PROCID LOCALID NODEID CONF".split()}
JOB_VARIABLES |= {f"JOB_SETTING_{index:03}": f"value {index} of a job script" for index in range(110)}


class Candidate:
    """A command, what its runs took (wall and processor, ms) and the most memory one of them had (MB)."""

    def __init__(self, name, argv):
        self.name = name
        self.argv = [str(word) for word in argv]
        self.times = []
        self.processor = []
        self.peak = 0.0

    def run(self, environment, keep=True):
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        start = time.perf_counter_ns()
        pid = os.posix_spawn(self.argv[0], self.argv, environment, file_actions=null)
        _, status, usage = os.wait4(pid, 0)
        end = time.perf_counter_ns()
        if status != 0:
            sys.exit(f"bench: exit status {os.waitstatus_to_exitcode(status)} of: {' '.join(self.argv)}")
        if keep:
            self.times.append((end - start) / 1e6)
            self.processor.append((usage.ru_utime + usage.ru_stime) * 1e3)
            self.peak = max(self.peak, usage.ru_maxrss / 1024)

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def p90(self):
        return statistics.quantiles(self.times, n=10, method="inclusive")[8]


def interleave(candidates, rounds, environment):
    """Run all candidates once a round, each time in another order."""
    for candidate in candidates * 3:
        candidate.run(environment, keep=False)
    order = list(candidates)
    shuffle = random.Random(1).shuffle
    gc.disable()
    for _ in range(rounds):
        shuffle(order)
        for candidate in order:
            candidate.run(environment)
    gc.enable()


def models_file(path, count):
    """A file of `count` models that differ as real ones do."""
    with open(path, "w", encoding="utf-8") as file:
        for index in range(count):
            file.write(
                f"Model-{index:05}:\n"
                f'  env: "ATOM_MOE_GU_ITLV=1 AITER_SEED={index}"\n'
                '  kv_cache_flags: "--kv_cache_dtype fp8"\n'
                '  tp_dp_flags: "--enable-dp-attention --enable-tbo"\n'
                '  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"\n'
                '  mtp_flags: "--method mtp --num-speculative-tokens"\n'
                f"  hf_overrides: '{{\"index_topk_freq\":{index % 7 + 1}}}'\n"
                f"  block_size: {16 << index % 4}\n"
                f"  mem_frac_static: 0.{80 + index % 15}\n"
            )
    return path.stat().st_size


class Report:
    """Prints measurements and remembers missed targets."""

    def __init__(self):
        self.missed = []

    def times(self, candidate):
        processor = statistics.median(candidate.processor)
        print(
            f"  {candidate.name:<44} median {candidate.median:8.3f} ms   p90 {candidate.p90:8.3f} ms"
            f"   processor {processor:8.3f} ms   n={len(candidate.times)}"
        )

    def target(self, what, value, unit, limit, at_least=False):
        good = value >= limit if at_least else value <= limit
        bound = "at least" if at_least else "at most"
        print(f"  {what:<44} {value:10.2f} {unit:<3} target: {bound} {limit:g} {unit}  {'PASS' if good else 'OVER TARGET'}".rstrip())
        if not good:
            self.missed.append(what)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--binary", required=True, type=pathlib.Path)
    options.add_argument("--work", required=True, type=pathlib.Path)
    options.add_argument("--yaml-python", default="")
    options.add_argument("--runs", type=int, default=300)
    options.add_argument("--check", action="store_true")
    options = options.parse_args()
    if options.runs < 1:
        sys.exit("bench: --runs must be at least 1")
    rounds = options.runs

    options.work.mkdir(parents=True, exist_ok=True)
    binary = options.binary.resolve()
    # No variable of the caller's may change the job.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/"), **JOB_VARIABLES}
    report = Report()
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores / 2:
        print(f"note: others use this machine (load {load:.1f} on {cores} cores); wall times are too long, processor times are not\n")

    print(f"time to exec, {rounds} rounds; what is exec'd is {TRUE}, in an environment of {len(environment)} variables")
    bare = Candidate("true", [TRUE])
    silent = Candidate("atom-launch -q, then true", [binary, *JOB, "--python", TRUE, "-q"])
    banner = Candidate("atom-launch with banner, then true", [binary, *JOB, "--python", TRUE])
    interleave([bare, silent, banner], rounds, environment)
    for candidate in (bare, silent, banner):
        report.times(candidate)
    report.target("over true, -q", silent.median - bare.median, "ms", OVER_TRUE_MS)
    report.target("over true, with banner", banner.median - bare.median, "ms", OVER_TRUE_MS)

    table = pathlib.Path("models_atom.yaml").resolve()
    print(f"\nagainst the Python step, same file ({table.name}, {table.stat().st_size} bytes)")
    if options.yaml_python:
        step = Candidate(
            "python3 -c 'import yaml; yaml.safe_load(…)'",
            [options.yaml_python, "-c", f"import yaml; yaml.safe_load(open({str(table)!r}))"],
        )
        same = Candidate("atom-launch --models-file, then true", [binary, *JOB, "--models-file", table, "--python", TRUE, "-q"])
        interleave([step, same], max(rounds // 5, 10), environment)
        report.times(step)
        report.times(same)
        report.target("times faster than the Python step", step.median / same.median, "x", PYTHON_RATIO, at_least=True)
    else:
        print("  skipped: no interpreter here has PyYAML, and it could not be installed into a virtual environment")

    print(f"\nlarge files, --dry-run -q of the last model (memory below {bare.peak:.0f} MB cannot be told from this harness's own)")
    sized = []
    for count in (SMALL, LARGE):
        path = options.work / f"models-{count}.yaml"
        size = models_file(path, count)
        argv = [binary, "--models-file", path, "--model", f"Model-{count - 1:05}", "--mode", "ep-dp", "--dry-run", "-q"]
        sized.append((Candidate(f"{count} models, {size} bytes", argv), size))
    (small, small_size), (large, large_size) = sized
    interleave([small, large], max(rounds // 15, 5), environment)
    for candidate in (small, large):
        report.times(candidate)
    report.target(f"{LARGE} models, time", large.median / 1e3, "s", LARGE_SECONDS)
    report.target(f"{LARGE} models, peak memory", large.peak, "MB", LARGE_MEGABYTES)
    report.target("growth of time", large.median / small.median, "x", round(large_size / small_size, 1))

    if report.missed:
        print(f"\nover target: {'; '.join(report.missed)}")
    else:
        print("\nall targets met")
    return 1 if report.missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
