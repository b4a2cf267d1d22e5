#!/usr/bin/env bash
# Runs a command as somebody else would, somewhere else: on a copy of this tree in a path with a blank, in a fresh home, with
# caches, language and time zone of its own; as root, as an ordinary user, since what fails for others passes for root. What
# the product does and what the suite finds depends on the tree and the command, never on the path, the home, the user, the
# environment, the machine's load or the Python.
# BARE=1: on a PATH without the programs that a fresh machine lacks. ROOM=DIR: in this folder, which is kept for a next call.
# Exit code 3: root finds no ordinary user here, or no Python that this user may run.
#     BARE=1 tools/elsewhere.sh make test
set -euo pipefail
cd "$(dirname "$0")/.."
room=${ROOM:-$(mktemp -d)}
[ -n "${ROOM:-}" ] || trap 'rm -rf "$room"' EXIT
tree="$room/a tree" home=$room/home
chmod 755 "$room" && mkdir -p "$home/.config" "$tree"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -c | tar -x -C "$tree"
[ ! -d ~/.config/pip ] || cp -r ~/.config/pip "$home/.config"
shared=$(realpath -m "${HARNESS_SHARED:-../shared}") become=()
if [ "$(id -u)" = 0 ]; then
  become=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${become[@]}" true 2>/dev/null || exit 3
  # The folders above the data may be closed to this user.
  if [ -d "$shared" ] && ! "${become[@]}" test -r "$shared/data"; then
    [ -d "$room/shared" ] || { cp -r "$shared" "$room/shared" && chmod -R a+rX "$room/shared"; }
    shared=$room/shared
  fi
  chown -R 65534:65534 "$home" "$tree"
fi
cd "$tree"
# Its path holds folders of root's: this user's programs stand behind them.
path=$PATH:/usr/local/bin:/usr/bin:/bin
if [ -n "${BARE:-}" ]; then
  absent="bwrap docker podman node npm npx jq uv uvx chromium chromium-browser google-chrome chromedriver git-lfs nvidia-smi
    npu-smi rocm-smi sbatch srun"
  rm -rf "$room/bin" && mkdir "$room/bin"
  IFS=: read -ra folders <<< "$path"
  for folder in "${folders[@]}"; do # as on PATH, the first of a name is the one
    "${become[@]}" test -r "$folder" && ln -s -t "$room/bin" "$folder"/* 2>/dev/null || true
  done
  (cd "$room/bin" && rm -f $absent)
  path=$room/bin
fi
as=("${become[@]}" env -u LC_ALL -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME="$home" HF_HOME="$home/hub" LANG=de_DE.UTF-8
  PATH="$path" HARNESS_SHARED="$shared" TZ=Asia/Kathmandu XDG_CACHE_HOME="$home/other cache"
  PIP_CONSTRAINT="file://$room/a%20tree/.ci/constraints.txt") # pip splits paths at blanks
PYTHON=$("${as[@]}" bash -c 'for python in "${PYTHON:-python3}" /usr/bin/python3 python3.1{4,3,2,1}; do
  "$python" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && command -v "$python" && exit; done; exit 3')
export PYTHON
"${as[@]}" "$@"
