#!/usr/bin/env bash
# Runs the demo and the given tests with the lowest version of each dependency that pyproject.toml allows; without the tests
# of benchmarks, which write tables with a newer pyarrow.
#     tools/lowest_versions.sh tests/core tests/runs
set -euo pipefail
mkdir -p build
sed -n '/^dependencies/,/^]/p; /^llama-cpp/p; /^report/p' pyproject.toml | grep -o '"[a-z][a-z0-9.-]*>=[0-9.]*' |
  sed 's/"//; s/>=/==/' > build/lowest.txt
tests=$(printf '%s\n' "$@" | grep -v benchmarks | tr '\n' ' ')
PIP_CONSTRAINT=build/lowest.txt make VENV=build/lowest QUICK="$tests" demo test-quick
