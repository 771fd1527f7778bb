#!/bin/bash
#
# Drop-in for InferenceX's benchmarks/multi_node/amd_utils/server_atom.sh: same variables, same roles by rank, other engine.
# Copy it and workload.sh over there; docs/migrating.md has the switch, the way back, and every difference.
#
# job.slurm's server.sh may call or source it. It becomes the launcher, so that signals reach the one process that minds them.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# A program beside this script goes before one on PATH: job.slurm mounts this folder, and an image need not have it.
[[ ! -x $here/atom-launch ]] || ATOM_LAUNCH=${ATOM_LAUNCH:-$here/atom-launch}
# What the job scripts leave to the default; more workers and addresses come from them.
export xP=${xP:-1} yD=${yD:-1} ATOM_WS_PATH=${ATOM_WS_PATH:-$here} ATOM_LAUNCH=${ATOM_LAUNCH:-atom-launch}
run_logs=${RUN_LOGS:-/run_logs}/slurm_job-${SLURM_JOB_ID:-}
# The image's own preparation, as before. env_atom.sh is not needed: the launcher sets what a server needs.
if [[ -r $ATOM_WS_PATH/setup_deps.sh ]]; then
    # shellcheck source=/dev/null
    source "$ATOM_WS_PATH/setup_deps.sh"
fi
options=(--log-dir "$run_logs" --collect-logs "${BENCHMARK_LOGS_DIR:-${RUN_LOGS:-/run_logs}}/logs/slurm_job-${SLURM_JOB_ID:-}")
case ${DRY_RUN:-0} in 0 | false) ;; *) options+=(--dry-run) ;; esac
exec "$ATOM_LAUNCH" node "${options[@]}" -- bash "$here/workload.sh"
