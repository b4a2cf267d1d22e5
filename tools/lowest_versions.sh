#!/usr/bin/env bash
# Runs the demo and the given tests with the lowest version of each dependency that the pyproject.toml files allow; without the tests
# of benchmarks, which write tables with a newer pyarrow.
#     tools/lowest_versions.sh tests/core tests/runs
set -euo pipefail
mkdir -p build
# The packages of this checkout have its version, not the lowest one.
{
  sed -n '/^dependencies/,/^]/p; /^llama-cpp/p; /^report/p' pyproject.toml
  grep -h '^dependencies' packages/*/pyproject.toml
} | grep -o '"[a-z][a-z0-9.-]*>=[0-9.]*' | grep -v '"reasoning-' | sed 's/"//; s/>=/==/' | sort -u > build/lowest.txt
tests=$(printf '%s\n' "$@" | grep -v benchmarks | tr '\n' ' ')
PIP_CONSTRAINT=build/lowest.txt make VENV=build/lowest QUICK="$tests" demo test-quick
