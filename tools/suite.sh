#!/usr/bin/env bash
# Runs the test suite with plain asserts, which halves the time in which tests are collected; then those that failed again,
# to show the values in their asserts.
#     tools/suite.sh .venv/bin/python --processes 7
set -uo pipefail
python=$1
shift
"$python" -m pytest "$@" --assert plain --durations 20
code=$?
[ "$code" != 1 ] || "$python" -m pytest --last-failed --last-failed-no-failures none --maxfail 20
exit "$code"
