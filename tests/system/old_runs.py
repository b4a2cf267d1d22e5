"""Interrupted runs as an older version left them, and the commands that made them.

Each folder of `run_folders/VERSION/` was written by that version of `harness run` with the words below, against
a server that rejected every odd seed (`half`), so that about half of the run is missing. To add the folders of
the present version: `python -m tests.system.old_runs`.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.testing import FakeServer, Request, Said, Step, http, serving

FOLDERS = Path(__file__).with_name("run_folders")
MODEL = "test-model"
QUESTIONS = "".join(
    json.dumps({"id": f"r{i}", "problem": f"What is {i} + {i}?", "answer": str(2 * i), "level": i % 2}) + "\n"
    for i in range(4)
)

COMMANDS: dict[str, str] = {
    "card": "demo:4 --limit 3",
    "every-field": (
        "demo:4 --ids demo-01,demo-03 --temperature 0.7 --top-p 0.9 --top-k 20 --min-p 0.05 --max-tokens 512"
        " --repetition-penalty 1.05 --presence-penalty 0.5 --frequency-penalty 0.25 --stop END --stop STOP --seed 7"
        " --system-prompt 'Answer briefly.'"
        """ --extra-body '{"logit_bias": {"5": -1}, "chat_template_kwargs": {"enable_thinking": true}}'"""
    ),
    "own-file": (
        "--data questions.jsonl --question-key problem --answer-key answer --id-key id"
        " --samples 4 --filter level=1 --preset qwq-32b --thinking on --max-tokens 2048"
    ),
    "completions": "demo:4 --limit 2 --api completions --preset greedy --temperature 0.5 --fit-context",
    "whole-replies": "demo:4 --limit 2 --drop top_p --drop=stream --fit-context",
}
"""Words of `harness run` by the name of the folder; the address, the model and the folder are added."""

SAMPLES = 4


answer = serving(lambda request: Said(f"The answer is {request.json.get('seed')}.", 7), MODEL, max_model_len=8192)
"""An answer that differs from sample to sample."""


def half(request: Request) -> Iterator[Step]:
    """`answer` to even seeds; the others are rejected."""
    if request.method == "POST" and request.json["seed"] % 2:
        yield http(400, {"error": {"message": "no odd seeds today", "type": "invalid_request_error"}})
    else:
        yield from answer(request)


def words(name: str, url: str, run: str, **changed: str) -> list[str]:
    """The whole command line that makes or resumes the run folder `run`. changed: option → its other value."""
    typed = ["run", *shlex.split(COMMANDS[name]), "--base-url", url, "--model", MODEL, "--out", run, "--no-canary"]
    for option, value in changed.items():
        at = typed.index(f"--{option}") if f"--{option}" in typed else len(typed)
        typed[at : at + 2] = [f"--{option}", value]
    return typed


def make(version: str) -> None:
    """Write the folders of the installed version."""
    from tests.system.command import harness

    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as place, FakeServer(half) as server:
            folder = Path(place)
            (folder / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
            done = harness(folder, *words(name, server.base_url, name))
            assert done.code == 4, (name, done)
            target = FOLDERS / version / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder / name, target, ignore=shutil.ignore_patterns("*.lock", "lock*", "control*"))
            sys.stdout.write(f"{target.relative_to(FOLDERS)}: {done.err.splitlines()[-1]}\n")


if __name__ == "__main__":
    from harness import __version__

    make(__version__)
