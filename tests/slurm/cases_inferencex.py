"""Whole jobs of InferenceX through the drop-in."""

import json
import os
import shutil

from harness import BED, ROOT, case, check


@case(2)
def a_whole_job_of_inferencex_runs_through_the_drop_in(test):
    # What job.slurm does: one container a node, with the job's variables and nothing of SLURM's steps but the node's number.
    with open(os.path.join(ROOT, "tests/data/inferencex-jobs.json")) as handle:
        base = json.load(handle)["base"]
    work = test.sub("ws")
    with open(os.path.join(work, "bench.sh"), "w") as handle:
        handle.write('echo "$@" >"$STANDIN_DIR/workload-began"\necho done >"$7/result.json"\n')
    for name in ("server_atom.sh", "workload.sh"):
        shutil.copy(os.path.join(ROOT, "examples/inferencex", name), work)
    env = {**base, "IPADDRS": ",".join(test.addresses), "NODE0_ADDR": test.addresses[0], "MODEL_DIR": test.path("models"), "ATOM_WS_PATH": work,
           "ATOM_PYTHON": BED["standin"], "ATOM_ROUTER": BED["standin"], "RUN_LOGS": test.sub("run_logs"), "BENCHMARK_LOGS_DIR": test.sub("logs")}
    for name in [name for name in env if name.startswith("SLURM") or name in ("NODE_RANK", "NNODES")]:
        del env[name]
    script = test.path("job.slurm")
    with open(script, "w") as handle:
        handle.write("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --exclusive\n"
                     "srun --kill-on-bad-exit=1 bash -c 'export NODE_RANK=$SLURM_PROCID; unset SLURM_STEP_ID SLURM_STEP_NODELIST SLURM_NODEID; source \"$ATOM_WS_PATH/server_atom.sh\"'\n")
    job = test.submit(script, env=env)
    job.end("COMPLETED", "0:0")
    words = test.heard("workload-began").split()
    check(words[:4] == ["1", "1", "8", "8"] and words[7:] == ["1024", "1024", "8x16x32", "inf", "0.8", "10"], "benchmark: %s" % words)
    left = set(os.listdir(test.path("logs/logs/slurm_job-%s" % job.id)))
    check({"result.json", "prefill-0.log", "decode-1.log", "router-0.log", "launch-rank0.json", "launch-rank1.json"} <= left, "results: %s" % left)
