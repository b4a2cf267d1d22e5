#!/usr/bin/env bash
# Runs the sandbox's tests as root, with the code, its tests and the environment below a folder that only root may enter, as
# root's home is in most containers: the user of the sandbox can read none of them.
set -euo pipefail
cd "$(dirname "$0")/.."
closed=$(mktemp -d) # mode 0700
trap 'rm -rf "$closed"' EXIT
tar -C packages --exclude __pycache__ -c programs | tar -x -C "$closed"
"${PYTHON:-python3}" tools/bootstrap.py "$closed/venv" "$closed/programs[test]"
"$closed/venv/bin/python" -m pytest -q "$closed"/programs/tests/test_program_{sandboxes,interpreters}.py
