# vLLM's perf-eval (https://github.com/vllm-project/perf-eval): copy this file over its `lib/run_lm_eval.sh`. The tasks
# of a workload are then benchmarks of the harness (`gsm8k`, or `gsm8k:4` for four samples per question), and `ingest.py`
# posts the results and samples as before. After a crash, a job continues where it stopped.
#
# Usage: run_lm_eval <model> <base_url> <task> <num_fewshot> <model_args> <output_dir>
run_lm_eval() {
  local model=$1 base_url=$2 task=$3 model_args=$5 outdir=$6 run="$6/runs/$3" pair
  local options=(--temperature 0 --top-p 1 --fit-context)
  case $task,$4 in gsm8k*,5) options+=(--prompt lm_eval) ;; esac # send lm-eval's examples as chat messages
  for pair in ${model_args//,/ }; do
    case $pair in
      num_concurrent=*) options+=(--concurrency "${pair#*=}") ;;
      max_gen_toks=*) options+=(--max-tokens "${pair#*=}") ;;
    esac
  done
  harness run "$task" --model "$model" --base-url "$base_url" "${options[@]}" --out "$run" --quiet &&
    harness score "$run" &&
    harness export "$run" --to lm_eval --out "$outdir/$task"
}
