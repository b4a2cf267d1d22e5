#!/usr/bin/env bash
# The tests that need no server, by each Python with the newest dependencies, and by the first one with the oldest that are
# allowed, too: they are older than the Pythons after it, and have no wheels for them.
# An interpreter that uv neither finds nor can download is named, not passed over.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$1
shift
failed=() absent=() oldest=lowest-direct
for python in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
  for resolution in highest $oldest; do
    place=$(mktemp -d)
    if ! "$uv" venv --quiet --python "$python" "$place/env" 2>"$place/why"; then
      absent+=("$python")
      rm -r "$place"
      break
    fi
    echo "== Python $python, $resolution"
    if ! "$uv" pip install --quiet --python "$place/env/bin/python" --resolution "$resolution" -e '.[test]' ||
      ! "$place/env/bin/python" -m pytest -q -p no:cacheprovider --processes 4 \
        "${@:-tests/core}"; then
      failed+=("$python/$resolution")
    fi
    rm -r "$place"
    [ "$resolution" = highest ] || oldest=
  done
done
for one in "${absent[@]}"; do echo "not tried: no Python $one is here, and none could be downloaded"; done
if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
