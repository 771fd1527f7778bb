#!/usr/bin/env python3
"""Write tests/data/inferencex-jobs.json: whole jobs of InferenceX's scripts as recorded, in a form that a repository can carry.

    scripts/compact-jobs.py JOBS CASES > tests/data/inferencex-jobs.json

JOBS has whole jobs (what submit.sh was given, its arguments to sbatch, and what each rank got and ran), CASES single ranks of server_atom.sh, of which a
few rank 0s are taken whose benchmark differs. Environments are differences from "base"; null takes a variable away.
"""

import json
import sys

CASES = """grid/DeepSeek-V4-Pro/tp/prefill0/mtp1
grid/DeepSeek-V4-Pro/ep-dp/prefill0/mtp3
grid/MiniMax-M3-MXFP4/tp/prefill0/mtp3
grid/MiniMax-M3-MXFP8/tp-dp/prefill0/mtp3
grid/Kimi-K2.5-MXFP4/tp/prefill0/mtp0
mixed/DeepSeek-V4-Pro/prefill-tp+decode-ep-dp/prefill0
tp/p8-d4/rank0
conc/'4x2048x64'/prefill0
conc/8192-1024/prefill0
modeldir/trailing-slash/prefill0
exit/eval-ok/prefill0""".splitlines()


def difference(base, one):
    """What to change in the base to get the other."""
    gone = {name: None for name in base if name not in one}
    return {**{name: value for name, value in one.items() if base.get(name) != value}, **gone}


def ran(one):
    """What a rank executed."""
    return {key: one["argv_" + key] for key in ("server", "router", "bench") if one.get("argv_" + key)}


def main():
    """Read both, print one."""
    with open(sys.argv[1], encoding="utf-8") as source:
        jobs = json.load(source)["jobs"]
    with open(sys.argv[2], encoding="utf-8") as source:
        cases = {case["name"]: case for case in json.load(source)["cases"] if case["script_version"] == "843c6254f"}
    base = jobs[0]["ranks"][0]["container_env"]
    out = []
    for job in jobs:
        ranks = [{"env": difference(base, rank["container_env"]), **ran(rank)} for rank in job["ranks"]]
        out.append({"name": job["name"], "submit_env": job["submit_env"], "sbatch": job["sbatch_args"], "ranks": ranks})
    for name in CASES:
        case = cases[name]
        out.append({"name": name, "ranks": [{"env": difference(base, case["env"]), **ran(case)}]})
    lines = ",\n".join(json.dumps(job, ensure_ascii=False, separators=(",", ":")) for job in out)
    print('{"about":"made by scripts/compact-jobs.py","base":%s,"jobs":[\n%s\n]}' % (json.dumps(base, separators=(",", ":")), lines))


main()
