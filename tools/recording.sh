#!/usr/bin/env bash
# docs/images/demo.svg: `harness doctor --demo` as a terminal shows it, in 30 seconds at most. A run that takes longer is played
# faster, and the script says how much. Needs asciinema 2 (`pip install asciinema`), and npx for svg-term-cli.
set -euo pipefail
cd "$(dirname "$0")/.."
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
export LC_ALL=C.UTF-8
rm -rf results/demo
asciinema rec --quiet --overwrite --cols 110 --rows 40 --idle-time-limit 2 \
  --command ".venv/bin/harness doctor --demo" "$kept/demo.cast"
python3 - "$kept/demo.cast" <<'END'
import json, os, sys
from pathlib import Path

head, *events = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
faster = max(1.0, events[-1][0] / 25)
frames = []  # four a second: the file holds every frame whole
for moment, _, text in events:
    text = text.replace(os.getcwd() + "/", "")
    if frames and moment / faster - frames[-1][0] < 0.25:
        frames[-1][2] += text
    else:
        frames.append([moment / faster, "o", text])
frames.append([frames[-1][0] + 4, "o", " "])  # the end stays to be read
# A picture that does not move shows its first frame: it begins with the end, for two seconds.
end = "".join(text for _, _, text in frames)
frames = [[0.0, "o", end], [2.0, "o", "\x1bc"], *([moment + 2, *rest] for moment, *rest in frames)]
Path(sys.argv[1]).write_text("".join(json.dumps(one) + "\n" for one in [head, *frames]), "utf-8")
print(f"{events[-1][0]:.0f} s, played {faster:.1f} times as fast")
END
npx --yes svg-term-cli@2.1.1 --in "$kept/demo.cast" --out docs/images/demo.svg --window --no-cursor
