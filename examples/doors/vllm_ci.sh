#!/usr/bin/env bash
# A CI step for a change in vLLM: is a model as accurate as before, is the difference significant, and which questions changed?
#     BASE=http://127.0.0.1:8000 CHANGE=http://127.0.0.1:8001 MODEL=Qwen/Qwen3-8B ./vllm_ci.sh
# First start both servers: the released build at BASE, the change at CHANGE. Exit code: 0 not worse by MARGIN points, 1 worse,
# 4 undecided (more samples are needed). After a crash, the step continues where it stopped.
set -euo pipefail
: "${BENCHMARKS:=gsm8k:2,gpqa_diamond:4}" "${MARGIN:=2}"
for build in base change; do
  url=$BASE; [ $build = base ] || url=$CHANGE
  harness run "$BENCHMARKS" --base-url "$url" --model "$MODEL" --out "results/$build" --quiet
done
harness score results/base results/change
harness compare results/base results/change --samples || true # changed questions, and different settings and servers
harness compare results/base results/change --margin "$MARGIN"
