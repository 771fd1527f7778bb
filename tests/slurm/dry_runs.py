#!/usr/bin/env python3
"""Run the recorded environments of tests/data/recorded.json, one after the other, and write what each run gave.

    dry_runs.py drop-in|launch OUT PART PARTS

`drop-in` is server_atom.sh with DRY_RUN=1, on top of SLURM's variables where there are some; `launch` is what tests/it/recorded
compares with the record, and the plan for the router. Every PARTS-th case from PART on; to be run in container.sh, whose models
file it replaces for each case.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORKSPACE = "/workspace/benchmarks/multi_node/amd_utils"
LAUNCH = ["atom-launch", "--quiet", "--dry-run", "--format", "json"]
PLAN = ["atom-launch", "plan", "--quiet", "--no-check", "--format", "json"]


def run(words, env, folder):
    done = subprocess.run(words, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def main():
    way, out, part, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open(os.path.join(HERE, "../data/recorded.json")) as source:
        data = json.load(source)
    below = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    of_slurm = {name: value for name, value in os.environ.items() if name.startswith("SLURM")}
    results = {}
    for number, one in enumerate(data["cases"][part::parts]):
        recorded = {name: value for name, value in {**data["base"]["env"], **one["env"]}.items() if value is not None}
        env = {**below, **recorded}
        folder = "/run_logs/%d" % number
        os.mkdir(folder)
        for name in one.get("cwd_files", []):
            with open(os.path.join(folder, name), "w"):
                pass
        models = WORKSPACE + "/models_atom.yaml"
        if one["name"].startswith("yaml/missing-file/"):
            if os.path.exists(models):
                os.unlink(models)
        else:
            with open(models, "w") as handle:
                handle.write(one.get("models_yaml") or json.dumps(data["tables"][one.get("table", "current")]))
        if way == "launch":
            # The drop-in's defaults; the rest is the environment's.
            for name, value in (("xP", "1"), ("yD", "1"), ("ATOM_WS_PATH", WORKSPACE)):
                env[name] = env.get(name) or value
            results[one["name"]] = {"launch": run(LAUNCH, env, folder)}
            if (env.get("NODE_RANK") or env.get("SLURM_PROCID", "0")) == "0":
                results[one["name"]]["plan"] = run(PLAN, env, folder)
        else:
            # Without a rank or addresses the launcher is to take SLURM's, which are not the recorded ones.
            if recorded.get("NODE_RANK") and recorded.get("IPADDRS"):
                env = {**of_slurm, **env}
            results[one["name"]] = run(["bash", WORKSPACE + "/server_atom.sh"], {**env, "DRY_RUN": "1"}, folder)
    with open(out, "w") as handle:
        json.dump(results, handle)


main()
