"""What a server states of a reply is held against itself, the text and the request; sound replies show nothing.

For: harness.core.contradictions, harness.core.hidden_limit.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.contradictions import CHECKS, PROMPT_VARIES, UNSTATED, Claims, contradictions
from harness.core.contradictions import sentence as sentence_of
from harness.core.hidden_limit import Cuts, ReplyLengths, cut_prompts, cut_tokens, reply_checksum
from harness.core.records import Question, Usage
from harness.testing import Answer, FakeServer, Reply, Request, delta, event_stream, serving
from tests.system.command import harness

SOUND: dict[str, Any] = {
    "prompt": 20,
    "completion": 100,
    "reasoning": None,
    "total": None,
    "finish": "stop",
    "n_bytes": 400,
    "has_reasoning": False,
    "n_events": 100,
    "has_other": False,
    "is_open": False,
    "max_tokens": 256,
}


def kinds(**given: Any) -> set[int]:
    """The numbers of the checks that a sound reply shows that is changed so."""
    of = {**SOUND, **given}
    usage = Usage(prompt_tokens=of["prompt"], completion_tokens=of["completion"], reasoning_tokens=of["reasoning"])
    rest = (of[name] for name in ("n_bytes", "has_reasoning", "n_events", "has_other", "is_open", "max_tokens"))
    shown = contradictions(Claims(usage, of["total"], of["finish"], *rest))
    return {[*CHECKS].index(kind) for kind in shown}


CASES: list[tuple[int, dict[str, Any], list[dict[str, Any]]]] = [
    (0, {"completion": 256, "n_bytes": 999}, [{"completion": 256, "finish": "length"}, {"completion": 255}]),
    (
        0,
        {"completion": None, "n_events": 256, "n_bytes": 999},
        [{"completion": 8, "n_bytes": 9, "n_events": 8, "max_tokens": 8}],
    ),
    (
        1,
        {"completion": 300, "n_bytes": 999, "finish": "length"},
        [{"completion": 300, "n_bytes": 999, "max_tokens": None}],
    ),
    (2, {"finish": "length"}, [{"finish": "length", "completion": 128}, {"finish": "length", "n_bytes": 1201}]),
    (3, {"n_bytes": 67}, [{"n_bytes": 68}, {"n_bytes": 9, "reasoning": 90}, {"n_bytes": 9, "has_other": True}]),
    (4, {"n_events": 126, "completion": 100}, [{"n_events": 125}, {"n_events": 25, "completion": 10, "n_bytes": 90}]),
    (4, {"n_bytes": 3201, "n_events": 1}, [{"n_bytes": 3200, "n_events": 1}, {"completion": None, "n_bytes": 9999}]),
    (5, {"completion": 0}, [{"completion": 0, "n_bytes": 0, "n_events": 0}]),
    (6, {"reasoning": 101}, [{"reasoning": 100}, {"reasoning": None, "total": 1020}]),
    (7, {"total": 119}, [{"total": 120}, {"total": 900}]),
    (8, {"finish": "tool_calls"}, [{"finish": "tool_calls", "has_other": True}]),
    (9, {"is_open": True}, [{"is_open": True, "finish": "length", "completion": 256, "n_bytes": 999}]),
]
"""The number of a check, a reply that shows it and nothing else, and sound replies beside it."""


@pytest.mark.parametrize(("check", "shows", "sound"), CASES)
def test_each_contradiction_is_found_alone(check: int, shows: dict[str, Any], sound: list[dict[str, Any]]) -> None:
    assert {check} == kinds(**shows)
    assert [kinds(**twin) for twin in [{}, *sound]] == [set()] * (1 + len(sound))


def test_every_check_has_a_case() -> None:
    assert {check for check, *_ in CASES} == {*range(len(CHECKS))}


def test_few_odd_replies_or_a_server_without_usage_cause_no_warning() -> None:
    kind = next(iter(CHECKS))
    assert sentence_of({kind: 1}, 1000) == ""
    assert f"2 {kind}" in sentence_of({kind: 2}, 1000)
    assert sentence_of({UNSTATED: 24, "no [DONE]": 24}, 24) == ""
    both = sentence_of({UNSTATED: 3, PROMPT_VARIES: 4}, 24)
    assert f"of 24 replies 4 {PROMPT_VARIES}; 3 {UNSTATED}" in both


# -- hidden length limits ----------------------------------------------------------------------------------------------


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


# -- prompts that the server cuts ------------------------------------------------------------------------------------


def prompt(rng: random.Random, n_chars: int) -> str:
    """A text of mixed words of about this length."""
    return " ".join(rng.choice(WORDS) for _ in range(n_chars // 5))


def noted(prompts: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """The note on questions with these counts and texts, and on how many."""
    blank = Question(benchmark="b", question_id="q", references=(), kind="text", row_digest="", prompt_digest="")
    return cut_prompts((n, msgspec.structs.replace(blank, prompt=text)) for n, text in prompts)


def measured(rng: random.Random, texts: Iterable[str], chars_per_token: float) -> list[tuple[int, str]]:
    """Each text with a sound count: its own density, as of a vocabulary."""
    return [(int(len(text) / chars_per_token / rng.uniform(0.9, 1.1)) + 9, text) for text in texts]


@pytest.mark.parametrize("chars_per_token", [1.5, 3.0, 4.5, 6.0, 9.0])
def test_prompts_that_a_server_cuts_are_told_with_both_numbers(chars_per_token: float) -> None:
    rng = random.Random(chars_per_token)
    for _ in range(200):
        texts = [prompt(rng, n) for n in (8_000, 60_000, *rng.sample(range(8_000, 60_000), rng.randint(1, 9)))]
        sound = measured(rng, texts, chars_per_token)
        assert noted(sound) == ("", 0)
        most = sorted(n for n, _ in sound)[0]
        at_most = [(min(most, n), text) for n, text in sound]  # the shortest prompt fits exactly
        note, n = noted(at_most)
        assert n == len(texts)
        assert (f"{most:,} tokens" in note, note.count(",") >= 2) == (True, True), note
        share = [(max(1, int(n * chars_per_token / 30)), text) for n, text in sound]  # a share of each prompt
        note, n = noted(share)
        assert (n, f"{sum(n for n, _ in share):,} tokens for" in note) == (len(texts), True)


def test_texts_that_compress_well_and_equal_prompts_are_not_told() -> None:
    rng = random.Random(4)
    base64 = ["".join(rng.choice("ABCDEFGHabcdefgh0123456789+/") for _ in range(n)) for n in (9_000, 20_000, 40_000)]
    runs = ["=" * n + " end" for n in (9_000, 20_000, 40_000)]
    equal = [(2_051, prompt(rng, 9_000)) for _ in range(9)]  # as in RULER: padded to one length
    short = [(12, prompt(rng, n)) for n in (200, 400, 1_000)]
    few = [(2_051, prompt(rng, n)) for n in (9_000, 12_000)]
    for texts in ([(len(t) // 30, t) for t in base64], [(len(t) // 60, t) for t in runs], equal, short, few, []):
        assert noted(texts) == ("", 0)


@pytest.mark.parametrize(("share", "told"), [(1.0, False), (0.1, True)])
def test_a_run_and_its_score_tell_of_noted(tmp_path: Path, share: float, told: bool) -> None:
    rng, rows = random.Random(5), []
    for n in range(4):
        rows.append(json.dumps({"id": f"q{n}", "question": prompt(rng, 9_000 + n), "answer": str(n)}))
    (tmp_path / "long.jsonl").write_text("\n".join(rows))

    def answer(request: Request) -> Reply:
        usage = {"prompt_tokens": int(share * len(request.body) / 4), "completion_tokens": 3}
        return event_stream(delta("It is 5.", finish="stop", usage=usage))

    with FakeServer(serving(answer)) as server:
        words = "run --data long.jsonl --samples 1 --no-canary --out r --base-url"
        ran = harness(tmp_path, *words.split(), server.base_url)
        scored = harness(tmp_path, "score", "r")
    for said in (ran.err, scored.out + scored.err):
        assert ("prompt was probably truncated by the server" in " ".join(said.split())) is told, said


def early(lengths: Iterable[tuple[int | None, int | None]], max_tokens: int | None = 2000) -> str:
    """The sentence about cut replies of these lengths, (stated, token events), among 20; empty for none."""
    cuts = Cuts()
    for stated, events in lengths:
        cuts.observe("tokens", cut_tokens(stated, events), max_tokens)
    limit = cuts.early_cut(20)
    return limit.sentence if limit else ""


def test_replies_cut_at_one_length_below_max_tokens_show_a_server_limit() -> None:
    said = early([(100, 100)] * 6)
    assert said.startswith(
        "6 of 20 samples (30.0%) were truncated by the server at 100 tokens although `max_tokens` was 2,000"
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
    "length": "were truncated by the server at 40 tokens although `max_tokens` was 8,000",
}


@pytest.mark.parametrize("reason", LIMITS)
def test_score_and_compare_say_that_the_server_may_have_a_limit(tmp_path: Path, reason: str) -> None:
    rows = ({"id": f"q{n}", "problem": f"{n} + 1 = ?", "answer": str(n + 1)} for n in range(20))
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ends = {}
    for name, most, seed in (("cut", 40, "1"), ("whole", 4000, "2")):
        with FakeServer(of_lengths(most, reason)) as server:
            words = ("run", "--data", "q.jsonl", "--samples", "2", "--max-tokens", "8000", "--base-url")
            more = ("--no-canary", "--seed", seed, "--out", name)
            ends[name] = harness(tmp_path, *words, server.base_url, *more)
        assert ends[name].code == 0, ends[name].err
    limit = LIMITS[reason]
    named = re.compile(r"(?<![\d,])40 tokens(?!/s)")  # not the speed of the run, "3,440 tokens/s"
    # A command that takes the option spells it.
    assert (limit in ends["cut"].err.replace("although --max-tokens", "although `max_tokens`")) == (reason == "length")
    assert not named.search(ends["whole"].err)
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
