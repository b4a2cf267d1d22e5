#!/usr/bin/env bash
# Runs `make test-quick` with each Python from 3.11 to 3.13 that is on the path or is the system's, but for the one given.
#     tools/other_pythons.sh .venv/bin/python
set -uo pipefail
tried=" $("$1" -V) "
for python in python3.11 python3.12 python3.13 /usr/bin/python3; do
  version=$("$python" -c 'import ssl, venv' 2>/dev/null && "$python" -V) || continue
  case "$tried" in *" $version "*) continue ;; esac
  tried="$tried $version "
  case "$version" in "Python 3.1"[123].*) echo "$version" ;; *) continue ;; esac
  PIP_COMPILE=0 make VENV="build/${version#Python }" PYTHON="$python" test-quick || exit
done
