#!/usr/bin/env bash
# How time and memory grow with the ranks of a job: `plan` for 2 to 64 ranks, `rehearse` for 2 to 16, all on this machine.
#
# usage: scripts/bench-ranks.sh [--binary PATH] [--most RANKS]      default: a release build of its own, 16 ranks
#
# Processor time is that of the whole rehearsal, stand-ins included; memory is the largest launcher of a rank (VmHWM). The ratios say how
# much more the larger job costs than the one before it, of twice as many ranks at most.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

binary=
most=16
while (($#)); do
    case $1 in
    --binary) binary=$2 && shift 2 ;;
    --most) most=$2 && shift 2 ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 2 ;;
    esac
done
if [[ -z $binary ]]; then
    cargo build --release --locked --quiet
    binary=${CARGO_TARGET_DIR:-target}/release/atom-launch
fi

exec python3 - "$(realpath "$binary")" "$most" <<'PYTHON'
import os
import sys
import tempfile
import threading
import time

binary, most = sys.argv[1], int(sys.argv[2])
folder = tempfile.TemporaryDirectory()
base = {"PATH": os.environ["PATH"], "HOME": folder.name, "TMPDIR": folder.name}


def job(ranks):
    nodes = ",".join(f"10.0.{rank // 250}.{rank % 250 + 1}" for rank in range(ranks))
    return ["--model", "DeepSeek-V4-Pro", "--mode", "ep-dp", "--prefill-workers", str(ranks // 2), "--decode-workers", str(ranks - ranks // 2)], nodes


def launchers(home):
    """Ids of the ranks' launchers: processes with our HOME that were called `node`."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\0")
            if b"node" in words[:3] and b"HOME=" + home.encode() in open(f"/proc/{name}/environ", "rb").read():
                yield name
        except OSError:
            pass


def watch(done, peak):
    while not done.wait(0.1):
        for pid in launchers(folder.name):
            try:
                for line in open(f"/proc/{pid}/status"):
                    if line.startswith("VmHWM:"):
                        peak[0] = max(peak[0], int(line.split()[1]))
            except OSError:
                pass


def run(words, sample):
    done, peak = threading.Event(), [0]
    watcher = threading.Thread(target=watch, args=(done, peak))
    if sample:
        watcher.start()
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.chdir(folder.name)
        os.execve(binary, [binary, *words], base)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    done.set()
    if sample:
        watcher.join()
    if status:
        sys.exit(f"{' '.join(words)}: exit {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, peak[0] if sample else usage.ru_maxrss


def table(title, counts, words, sample):
    print(title)
    before = None
    for ranks in counts:
        wall, processor, memory = run(words(ranks), sample)
        growth = f"   × {wall / before[0]:.1f} time, × {processor / before[1]:.1f} processor" if before else ""
        print(f"  {ranks:3} ranks  {wall:7.3f} s   processor {processor:7.3f} s   memory {memory / 1024:6.1f} MB{growth}")
        before = wall, processor


def plan(ranks):
    words, nodes = job(ranks)
    return ["plan", *words, "--nodes", nodes, "--model-dir", "/models", "--format", "json", "-q"]


def rehearse(ranks):
    words, _ = job(ranks)
    return ["rehearse", *words, "-q"]


table("plan, all commands as JSON", [2, 4, 8, 16, 32, 64], plan, sample=False)
table("rehearse: every rank a real `node`, stand-in servers and router", [ranks for ranks in (2, 4, 8, 16) if ranks <= most], rehearse, sample=True)
PYTHON
