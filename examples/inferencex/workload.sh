#!/bin/bash
#
# The benchmark and the evaluation of an InferenceX job, run by rank 0 once the router is ready: the same steps in the same
# order, with the same arguments and results, as in server_atom.sh. MODEL_PATH, IS_MTP, ROUTER_URL and ROUTER_PORT come from
# the launcher. The exit code is that of the first step that failed.

run_logs=${RUN_LOGS:-/run_logs}/slurm_job-${SLURM_JOB_ID:-}
workspace=${WORKSPACE:-/workspace}
results=${BENCHMARK_LOGS_DIR:-${RUN_LOGS:-/run_logs}}/logs

on() { [[ ${1,,} =~ ^(true|1|yes|on)$ ]]; }

xP=${xP:-1} yD=${yD:-1}

# After a failure as well, and after TERM: a job that broke off has the most interesting results.
# shellcheck disable=SC2317  # the trap calls it
copy_results() {
    mkdir -p "$results" && cp -r "$run_logs" "$results/" && echo "Copied results to $results/$(basename "$run_logs")"
}
trap copy_results EXIT
trap 'exit 143' TERM

benchmark() {
    cd "$ATOM_WS_PATH" || return
    bash "$ATOM_WS_PATH/bench.sh" "$xP" "$yD" "$((${PREFILL_TP_SIZE:-8} * xP))" "$((${DECODE_TP_SIZE:-8} * yD))" \
        "${MODEL_DIR:-}" "$MODEL_NAME" "$run_logs" "${BENCH_INPUT_LEN:-1024}" "${BENCH_OUTPUT_LEN:-1024}" \
        "${BENCH_MAX_CONCURRENCY:-512}" "${BENCH_REQUEST_RATE:-inf}" "${BENCH_RANDOM_RANGE_RATIO:-1}" \
        "${BENCH_NUM_PROMPTS_MULTIPLIER:-10}"
}

evaluate() {
    "${ATOM_LAUNCH:-atom-launch}" wait --timeout 30 "$ROUTER_URL/health" || return
    cd "$workspace" || return
    # shellcheck source=/dev/null
    source "$workspace/benchmarks/benchmark_lib.sh" || return
    EVAL_CONCURRENT_REQUESTS=${EVAL_CONC:-$(tr -s 'x,' '\n' <<<"${BENCH_MAX_CONCURRENCY:-512}" | sort -n | tail -n 1)}
    export EVAL_CONCURRENT_REQUESTS
    MODEL_NAME=$MODEL_PATH run_eval --framework lm-eval --port "$ROUTER_PORT" || return
    export TP=${PREFILL_TP_SIZE:-8} CONC=$EVAL_CONCURRENT_REQUESTS ISL=${BENCH_INPUT_LEN:-1024} OSL=${BENCH_OUTPUT_LEN:-1024}
    export PREFILL_TP=${PREFILL_TP_SIZE:-8} PREFILL_EP=1 PREFILL_NUM_WORKERS=$xP
    export DECODE_TP=${DECODE_TP_SIZE:-8} DECODE_EP=1 DECODE_NUM_WORKERS=$yD
    MODEL_NAME=$MODEL_PATH append_lm_eval_summary
    mkdir -p "$run_logs/eval_results"
    find "$workspace" -maxdepth 1 \( -name meta_env.json -o -name 'results*.json' -o -name 'sample*.jsonl' \) \
        -exec cp -f {} "$run_logs/eval_results/" \;
}

code=0
if on "${EVAL_ONLY:-false}"; then
    echo "EVAL_ONLY: no throughput benchmark"
else
    # In the background, so that TERM is heeded at once; bash is told of it together with its children.
    benchmark &
    wait "$!" || code=$?
fi
if on "${RUN_EVAL:-false}"; then
    evaluate || {
        failed=$?
        echo "the evaluation failed with code $failed" >&2
        code=$((code ? code : failed))
    }
fi
exit "$code"
