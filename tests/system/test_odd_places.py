"""Commands in a folder with an odd name, under the C locale, and in one that somebody deleted meanwhile."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from harness.testing import FakeServer, completion, models
from tests.patience import PATIENCE_SECONDS
from tests.system.command import argv, environment, process


@pytest.mark.wide
def test_a_whole_run_in_an_odd_folder_and_the_c_locale(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "größe – 評価 %s {x}" / ("long-" * 30)
    folder.mkdir(parents=True)
    plain = {"LC_ALL": "C", "LANG": "C"}
    rows = [{"id": f"é{i}", "problem": f"Was ist {i} – 0?", "answer": str(i)} for i in range(3)]
    (folder / "sätze.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    with FakeServer(lambda r: [models("m")] if r.method == "GET" else completion("ja: \\boxed{1} ≤ 😀")) as server:
        words = ["run", "--data", "sätze.jsonl", "--id-key", "id", "--base-url", server.base_url, "--samples", "2"]
        for _ in range(2):
            done = process(folder, *words, "--out", "läufe/ein lauf", "--no-canary", extra=plain)
            assert done.code == 0, done.err
    scored = process(folder, "score", "läufe/ein lauf", "--json", extra=plain)
    assert scored.code == 0, scored.err
    (journal,) = folder.glob("läufe/ein lauf/*/samples.jsonl")
    texts = [json.loads(line)["text"] for line in journal.read_bytes().splitlines()]
    assert texts == ["ja: \\boxed{1} ≤ 😀"] * 6
    (scores,) = folder.glob("läufe/ein lauf/*/scores.json")
    assert json.loads(scores.read_bytes())["n_correct"] == 2
    assert process(folder, "report", "läufe/ein lauf", extra=plain).code == 0


@pytest.mark.parametrize("line", ["run --data rows.jsonl --base-url http://127.0.0.1:9/v1 --out run", "score run",
                                  "report run", "serve transformers model"])  # fmt: skip
def test_a_current_folder_that_was_deleted_is_said(tmp_path: Path, line: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"rmdir {shlex.quote(str(gone))} && exec {shlex.join(argv(*line.split()))}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=gone, env=environment(tmp_path), capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in {2, 3}, done.stderr
    assert done.stderr.startswith("harness: "), done.stderr
    assert len(done.stderr.splitlines()) == 1
