"""A hidden length limit of the server: found by the lengths of replies, beside lengths that only look like one.

For: harness.core.hidden_limit.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.core.hidden_limit import Cuts, ReplyLengths, cut_tokens, reply_checksum
from harness.testing import Answer, FakeServer, Reply, Request, delta, event_stream, serving
from tests.system.command import harness

WORDS = ["let", "the", "number", "of", "ways", "be", "counted", "by", "cases", "prime", "factor", "divides", "one"]
RNG = random.Random(1)

Replies = list[tuple[int, str]]


def free(tokens: Iterable[int]) -> Replies:
    """Free texts of these lengths in tokens, all different."""
    return [(n, " ".join(RNG.choices(WORDS, k=n)) + f" {i}") for i, n in enumerate(tokens)]


def limited(n: int, most: int) -> Replies:
    """n free texts of mean length 60, cut at `most` tokens."""
    return free(min(most, 1 + int(RNG.expovariate(1 / 60))) for _ in range(n))


def sentence(replies: Replies, reasons: Iterable[str] = itertools.repeat("stop")) -> str:
    """The warning about these replies; empty for none."""
    lengths = ReplyLengths()
    for (tokens, text), reason in zip(replies, reasons, strict=False):
        lengths.observe(tokens, reply_checksum(text), stopped=reason == "stop")
    return lengths.limit.sentence if lengths.limit else ""


def test_replies_that_end_at_one_length_and_say_stop_suggest_a_limit() -> None:
    assert sentence(free([35, *[40] * 19])).startswith("19 of 20 replies end at exactly 40 tokens but report `stop`: ")
    assert "end at exactly 100 tokens" in sentence(limited(400, 100))
    assert "end at exactly 2,048 tokens" in sentence(free([*range(40, 2000, 20), *[2048] * 6]))


@pytest.mark.parametrize(
    "replies",
    [
        [],
        free([40]),
        free(1 + int(RNG.expovariate(1 / 60)) for _ in range(400)),
        free([35, *[40] * 4]),
        [(RNG.randint(1, 3), letter) for letter in "ABCDEFGH" * 40],
        [(2, word) for word in WORDS],
        [(40, "The answer is the same text each time, word for word.")] * 40,
        [(40, f'{{"explanation": "none", "answer": "{number}"}}') for number in range(100, 200)],
        free([*[40] * 19, 41, 45]),
        free([*range(30, 41)] * 3),
    ],
    ids=["none", "one", "free lengths", "few", "letters", "words", "one text", "one form", "longer ones", "even"],
)
def test_lengths_of_replies_that_really_stopped_suggest_none(replies: Replies) -> None:
    assert sentence(replies) == ""


def early(lengths: Iterable[tuple[int | None, int | None]], max_tokens: int | None = 2000) -> str:
    """The sentence about cut replies of these lengths, (stated, token events), among 20; empty for none."""
    cuts = Cuts()
    for stated, events in lengths:
        cuts.observe("tokens", cut_tokens(stated, events), max_tokens)
    limit = cuts.early(20)
    return limit.sentence if limit else ""


def test_cut_replies_of_one_length_below_max_tokens_show_a_limit_of_the_server() -> None:
    said = early([(100, 100)] * 6)
    assert said.startswith(
        "6 of 20 samples (30.0%) were truncated by the server at 100 tokens although max_tokens was 2,000"
    )
    assert early([(100, 60)] * 6, 116) != ""


@pytest.mark.parametrize(
    ("lengths", "max_tokens"),
    [
        ([], 2000),
        ([(2000, 2000)] * 6, 2000),
        ([(100, 100)] * 4, 2000),
        ([(100, 100)] * 6, 115),
        ([(100, 100)] * 6, None),
        ([(None, 100)] * 6, 2000),
        ([(1000, 2000)] * 6, 2000),
        ([(100, 100)] * 5 + [(2000, 2000)], 2000),
        ([(n, n) for n in range(100, 106)], 2000),
    ],
    ids=["none", "all of it", "few", "nearly", "no bound", "no usage", "false usage", "one whole", "other lengths"],
)
def test_other_cut_replies_show_none(lengths: list[tuple[int | None, int | None]], max_tokens: int | None) -> None:
    assert early(lengths, max_tokens) == ""


def of_lengths(most: int, reason: str) -> Answer:
    """A server whose replies have the lengths that free text has, up to `most` tokens, and say `reason` there."""
    replies = itertools.cycle(limited(40, most))

    def reply(_: Request) -> Reply:
        tokens, text = next(replies)
        usage = {"prompt_tokens": 9, "completion_tokens": tokens}
        finish = delta(finish=reason if tokens == most else "stop", usage=usage)
        return event_stream(delta(role="assistant"), *(delta(f"{word} ") for word in text.split()[:tokens]), finish)

    return serving(reply)


LIMITS = {
    "stop": "replies end at exactly 40 tokens but report `stop`: the server may be truncating replies at its own limit",
    "length": "were truncated by the server at 40 tokens although max_tokens was 8,000",
}


@pytest.mark.parametrize("reason", LIMITS)
def test_score_and_compare_say_that_the_server_may_have_a_limit(tmp_path: Path, reason: str) -> None:
    rows = ({"id": f"q{n}", "problem": f"{n} + 1 = ?", "answer": str(n + 1)} for n in range(20))
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ends = {}
    for name, most, seed in (("cut", 40, "1"), ("whole", 4000, "2")):
        with FakeServer(of_lengths(most, reason)) as server:
            words = ("run", "--data", "q.jsonl", "--samples", "2", "--max-tokens", "8000", "--base-url")
            more = ("--no-canary", "--no-fingerprint", "--seed", seed, "--out", name)
            ends[name] = harness(tmp_path, *words, server.base_url, *more)
        assert ends[name].code == 0, ends[name].err
    limit = LIMITS[reason]
    named = re.compile(r"(?<![\d,])40 tokens(?!/s)")  # not the speed of the run, "3,440 tokens/s"
    # A command that takes the option spells it.
    assert (
        limit in ends["cut"].err.replace("although --max-tokens", "although max_tokens"),
        bool(named.search(ends["whole"].err)),
    ) == (reason == "length", False)
    assert "raise --max-tokens" not in ends["cut"].err
    scored = {name: harness(tmp_path, "score", name) for name in ends}
    assert (limit in scored["cut"].out.replace("\n", " "), bool(named.search(scored["whole"].out))) == (True, False)
    assert "truncated by max_tokens" not in scored["cut"].out
    compared = harness(tmp_path, "compare", "whole", "cut")
    assert "the run: " in compared.out + compared.err
    assert limit in (compared.out + compared.err).replace("\n", " ")
    (stored,) = (json.loads(path.read_text()) for path in (tmp_path / "whole").glob("*/scores.json"))
    assert (stored["hidden_limit"], stored["early_cut"]) == (None, None)
    (stored,) = (json.loads(path.read_text()) for path in (tmp_path / "cut").glob("*/scores.json"))
    if reason == "length":
        early_cut = {"tokens": 40, "max_tokens": 8000, "n_at": stored["n_truncated"], "n_samples": 40}
        assert (stored["early_cut"], stored["hidden_limit"]) == (early_cut, None)
