# InferenceX (https://github.com/SemiAnalysisAI/InferenceX): source this file after `benchmarks/benchmark_lib.sh`.
# `run_eval` then samples with the harness, once for each concurrency. The suffix `_concN` of the results, `meta_env.json`
# and `validate_scores.py` do not change. The run folders are in `harness_runs`.
#
#     source benchmarks/benchmark_lib.sh && source inferencex_run_lm_eval.sh
#     run_eval --port "$PORT" && append_lm_eval_summary
run_lm_eval() {
  local port=${PORT:-8888} task=${EVAL_TASKS_DIR:-gsm8k} temperature=0 top_p=1 tokens=16384
  local out=${EVAL_RESULT_DIR:-$(mktemp -d)} concurrency=${EVAL_CONCURRENT_REQUESTS:-${CONC:-64}}
  while [ $# -gt 1 ]; do
    case $1 in
      --port) port=$2 ;;
      --task) task=$2 ;;
      --results-dir) out=$2 ;;
      --gen-max-tokens) tokens=$2 ;;
      --temperature) temperature=$2 ;;
      --top-p) top_p=$2 ;;
    esac
    shift 2
  done
  export EVAL_RESULT_DIR=$out
  local benchmark run prompt=()
  benchmark=$(basename "$task" .yaml) # InferenceX passes a file, such as utils/evals/gsm8k.yaml
  case $benchmark in gsm8k | gpqa_diamond) prompt=(--prompt inferencex) ;; esac
  run="$PWD/harness_runs/${benchmark}_conc$concurrency"
  harness run "$benchmark" "${prompt[@]}" --base-url "http://127.0.0.1:$port" --model "${MODEL_NAME:-$MODEL}" \
    --temperature "$temperature" --top-p "$top_p" --max-tokens "$tokens" --fit-context \
    --concurrency "$concurrency" --out "$run" --quiet &&
    harness score "$run" &&
    harness export "$run" --to lm_eval --out "$out"
}
