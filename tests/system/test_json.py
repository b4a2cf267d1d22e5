"""What `--json` prints is JSON alone, and what docs/json.md promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, promised
from tests.embedded import RunningServer
from tests.system.command import harness

PAGE = (DOCS / "json.md").read_text("utf-8")


def test_a_run_says_how_it_ended(tmp_path: Path, embedded_server: RunningServer) -> None:
    words = ("run", "demo:1", "--base-url", embedded_server.base_urls[0], "--out", "run", "--max-tokens", "4", "--json")
    first = harness(tmp_path, *words, "--limit", "2")
    again = harness(tmp_path, *words, "--limit", "2")
    said, later = json.loads(first.out), json.loads(again.out)
    assert set(said) == promised("`harness run --json`")
    assert (said["exit_code"], first.code, said["complete"]) == (0, 0, True)
    counts = said["samples"]
    assert set(counts) <= set(re.findall(r"`(\w+)`", PAGE))
    assert (counts["expected"], counts["done"], counts["owed"], counts["this_session"]) == (2, 2, 0, 2)
    assert 0 < said["new_tokens"] <= 8
    assert later["samples"]["this_session"] == 0


@pytest.mark.parametrize("flag", ["--dry-run", "--pilot"])
def test_json_goes_without_what_prints_otherwise(tmp_path: Path, flag: str) -> None:
    done = harness(tmp_path, "run", "demo:1", "--base-url", "http://127.0.0.1:9", "--json", flag)
    assert (done.code, done.out) == (2, "")
    assert f"it goes without {flag}" in done.err


def test_lists_are_json_too(tmp_path: Path) -> None:
    for words in (("benchmarks", "--json"), ("benchmarks", "list", "--json")):
        cards = json.loads(harness(tmp_path, *words).out)
        assert {"demo", "aime24"} <= {card["benchmark"] for card in cards}
        assert set(cards[0]) <= set(re.findall(r"`(\w+)`", PAGE))
    servers = harness(tmp_path, "serve", "status", "--json")
    assert json.loads(servers.out) == {"servers": [], "unreadable": []}
