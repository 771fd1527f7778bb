#!/usr/bin/env bash
# Time and memory of `check` (the shipped file, 1,000 and 10,000 models) and of `plan` (2, 64 and 1,024 ranks).
#
#   scripts/bench-check.sh [--binary PATH]
#
#   --binary PATH  measure this binary; without it the release binary is built first
#
# Each command runs five times; the best wall time counts, the largest memory. Ratios are to the line before.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

binary=
while (($#)); do
    case $1 in
    --binary)
        binary=${2:?--binary needs a path}
        shift
        ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        printf 'scripts/bench-check.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done
if [[ -z $binary ]]; then
    cargo build --release --locked
    binary=${CARGO_TARGET_DIR:-target}/release/atom-launch
fi
binary=$(realpath "$binary")
shipped=$(realpath models_atom.yaml)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Two kinds of entries: as large as the shipped ones with fields by role, and small ones, so that 10,000 fit into 4 MiB.
python3 - "$folder" <<'PYTHON'
import sys

large = '''  env: "AITER_QUICK_REDUCE_QUANTIZATION=INT4 ATOM_FORCE_ATTN_TRITON=1"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  prefill_tp_dp_flags: "--enable-dp-attention --enable-tbo prefill"
  decode_tp_dp_flags: "--enable-dp-attention"
  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"
  mtp_flags: "--method eagle3 --draft-model Org/Draft-{n} --num-speculative-tokens"
  online_quant_config: '{{"global_quant_config":"ptpc_fp8","exclude_layer":["lm_head","model.embed_tokens"]}}'
  block_size: "128"
  max_model_len: "32768"
'''
small = '''  env: "ATOM_MOE_GU_ITLV=1 AITER_BF16_FP8_MOE_BOUND=0"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"
  mtp_flags: "--method mtp --num-speculative-tokens"
  hf_overrides: '{{"use_index_cache":true}}'
  block_size: "16"
'''
for name, entry, count in [("large-1000", large, 1000), ("small-1000", small, 1000), ("small-10000", small, 10000)]:
    with open(f"{sys.argv[1]}/{name}.yaml", "w") as file:
        for n in range(count):
            file.write(f"Model-{n}:\n" + entry.format(n=n))
PYTHON

python3 - "$binary" "$shipped" "$folder" <<'PYTHON'
import os
import sys
import time

binary, shipped, folder = sys.argv[1:]


def measure(words, env):
    best, memory = None, 0
    for _ in range(5):
        begin = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.execve(binary, [binary, *words], env)
        _, status, usage = os.wait4(pid, 0)
        took = time.perf_counter() - begin
        assert os.waitstatus_to_exitcode(status) == 0, words
        best = took if best is None else min(best, took)
        memory = max(memory, usage.ru_maxrss)
    return best, memory


def series(title, runs):
    print(f"\n{title:<36}{'wall ms':>10}{'ratio':>8}{'RSS MB':>9}")
    before = None
    for name, words, env in runs:
        took, memory = measure(words, env)
        ratio = "" if before is None else f"{took / before:.1f}"
        print(f"{name:<36}{took * 1000:>10.1f}{ratio:>8}{memory / 1024:>9.1f}")
        before = took


series("check", [
    ("shipped file", ["check", shipped], {}),
    ("1,000 models with fields by role", ["check", f"{folder}/large-1000.yaml"], {}),
    ("1,000 small models", ["check", f"{folder}/small-1000.yaml"], {}),
    ("10,000 small models", ["check", f"{folder}/small-10000.yaml"], {}),
])


def job(ranks):
    half = str(ranks // 2)
    return {"MODEL_NAME": "DeepSeek-V4-Pro", "xP": half, "yD": half, "SLURM_JOB_NODELIST": f"n[0001-{ranks:04}]"}


series("plan --format json", [(f"{ranks:,} ranks", ["plan", "--format", "json"], job(ranks)) for ranks in (2, 64, 1024)])
series("plan", [("one standalone worker", ["plan"], {"MODEL_NAME": "DeepSeek-V4-Pro"}), ("1,024 ranks", ["plan"], job(1024))])
PYTHON
