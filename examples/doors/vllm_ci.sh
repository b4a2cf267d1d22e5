#!/usr/bin/env bash
# A CI step for a change of vLLM: does a model answer as well as before, is the difference more than chance, and where is it?
#     BASE=http://127.0.0.1:8000 CHANGE=http://127.0.0.1:8001 MODEL=Qwen/Qwen3-8B ./vllm_ci.sh
# Both servers run: the released build at BASE, the change at CHANGE. Exit code: 0 surely not worse by MARGIN points, 4 surely
# worse, 1 open (more samples decide). A step that was killed goes on where it stopped.
set -euo pipefail
: "${BENCHMARKS:=gsm8k:2,gpqa_diamond:4}" "${MARGIN:=2}"
for build in base change; do
  url=$BASE; [ $build = base ] || url=$CHANGE
  harness run "$BENCHMARKS" --base-url "$url" --model "$MODEL" --out "results/$build" --quiet
done
harness score results/base results/change
harness compare results/base results/change --samples || true # the questions that moved, settings and servers that differ
harness compare results/base results/change --margin "$MARGIN"
