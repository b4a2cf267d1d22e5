"""What progress looks like: several lines on a terminal, one in a log; whatever servers say, inert.

For: harness.progress.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.terminal import Terminal
from harness.core import number_text
from harness.core.sanitize import visible
from harness.generation.run_progress import (
    BenchmarkProgress,
    EndpointProgress,
    FailureProgress,
    OldestInFlight,
    Progress,
)
from harness.progress import display
from harness.progress.display import ProgressDisplay
from harness.progress.events import Collecting
from harness.progress.lines import line, panel, score_text
from harness.progress.running_score import RunningEstimate, RunningScore, UndecidedBounds

HOSTILE = "\x1b[2J\x1b]0;owned\x07‮abc\nrm -rf"


def progress(**changes: Any) -> Progress:
    return msgspec.structs.replace(
        Progress(
            elapsed_s=724.0, done=141, total=740, in_flight=64, waiting=533, given_up=1, failures=23, retries=22,
            finished=141, truncated=2, tokens=1_500_000, arrived=1_812_400, tokens_per_s=2503.3,
            tokens_per_s_now=2913.4, concurrency=64, eta=540.0,
            benchmarks=(
                BenchmarkProgress(name="aime24", done=121, total=240, in_flight=16, retrying=0, given_up=0),
                BenchmarkProgress(name="math500", done=20, total=500, in_flight=48, retrying=2, given_up=1),
            ),
            endpoints=(
                EndpointProgress(base_url="http://node1:8000/v1", state="open", in_flight=64, limit=64, done=9, failed=0),
                EndpointProgress(
                    base_url="http://node2:8000/v1", state="set aside", in_flight=0, limit=1, done=9, failed=20,
                    why="cannot connect to node2:8000: Connection refused", wait_s=12.0,
                ),
            ),
            failed=(
                FailureProgress(kind="server", count=3, latest="HTTP 500: overloaded", ago_s=2),
                FailureProgress(kind="connect", count=20, latest="cannot connect to node2:8000", ago_s=40),
            ),
            oldest=OldestInFlight(benchmark="aime24", question_id="q-17", sample_index=3, seconds=552, tokens=21044),
        ),
        **changes,
    )  # fmt: skip


def text(lines: Any) -> str:
    return "\n".join("".join(span.text for span in one) for one in lines)


SCORES = {"aime24": RunningScore(RunningEstimate(0.567, (0.512, 0.62)), 120)}

# ruff: noqa: E501
WIDE = """
aime24  ██████████████████████████████▓▓▓▓··························  121/240  50%  16 in flight
math500 ██▓▓▓▓▓▓▒×··················································   20/500   4%  48 in flight  2 to retry  1 given up
tokens    1,812,400 · 2,913/s now · 2,503/s mean · 1.4% truncated · 64/64 in flight
time      12 min · about 9 min left
oldest    9 min in flight, 21,044 tokens: q-17:3 of aime24
accuracy  aime24 56.7% correct so far (51.2 to 62.0), 120 of 121 graded
failures  3 × server, latest 2 s ago: HTTP 500: overloaded
failures  20 × connect, latest 40 s ago: cannot connect to node2:8000
endpoint  http://node2:8000/v1 set aside, retry in 12 s: cannot connect to node2:8000: Connection refused
"""


@pytest.mark.parametrize(
    ("n_undecided", "bounds", "stored", "words"),
    [
        (0, None, None, "25.0% correct so far (10.0 to 40.0), 24 graded"),
        (14, UndecidedBounds(0.25, 0.8333), None, "25.0 to 83.3% correct so far, 24 graded, 14 undecided"),
        (14, UndecidedBounds(0.25, 0.8333), 48, "25.0 to 83.3% correct so far, 24 of 48 graded, 14 undecided"),
        (24, UndecidedBounds(0.0, 1.0), None, "24 graded, all undecided"),
    ],
)
def test_undecided_samples_are_no_wrong_ones(
    n_undecided: int, bounds: UndecidedBounds | None, stored: int | None, words: str
) -> None:
    score = RunningScore(RunningEstimate(0.25, (0.1, 0.4)), 24, n_undecided, bounds)
    assert score_text(score, stored) == words


def test_two_hundred_columns_show_everything() -> None:
    assert text(panel(progress(), 199, 40, SCORES)).replace("·  1", "·  1") == WIDE.strip().replace("··  ", "·· ")


def test_eighty_columns_keep_a_bar() -> None:
    shown = text(panel(progress(), 79, 21, SCORES)).split("\n")
    assert "█" in shown[0]
    assert "121/240  50%  16 in flight" in shown[0]
    assert "1 given up" in shown[1]
    assert shown[2].startswith("tokens    1,812,400 · 2,913/s now · 2,503/s mean · 1.4% truncated")


def test_a_low_terminal_keeps_bars_and_the_weightiest_facts() -> None:
    many = tuple(
        BenchmarkProgress(name=f"b{n}", done=100 if n < 12 else 0, total=100, in_flight=4 * (n in (12, 13)))
        for n in range(20)
    )
    shown = text(panel(progress(benchmarks=many), 79, 8, {})).split("\n")
    assert len(shown) == 8
    assert [row.split()[0] for row in shown] == ["b12", "b13", "b0", "b1", "tokens", "time", "oldest", "failures"]


@given(
    parts=st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.integers(0, 500),
            st.integers(0, 500),
            st.integers(0, 500),
            st.integers(0, 10**6),
            st.text(max_size=40),
        ),
        min_size=1,
        max_size=12,
    ),
    width=st.integers(20, 250),
    height=st.integers(3, 60),
)
def test_no_line_is_too_long_and_no_bar_full_before_the_end(parts: list[Any], width: int, height: int) -> None:
    benchmarks = tuple(
        BenchmarkProgress(
            name=name,
            done=done,
            total=done + flying + retrying + given_up + rest,
            in_flight=flying,
            retrying=retrying,
            given_up=given_up,
        )
        for done, flying, retrying, given_up, rest, name in parts
    )
    shown = panel(progress(benchmarks=benchmarks), width, height, SCORES)
    assert len(shown) <= height
    for one in shown:
        assert visible(text([one])) == text([one])
    for bar, benchmark in zip(shown, benchmarks, strict=False):
        kinds = {span.kind for span in bar}
        if len(benchmarks) < height - 4 and "done" in kinds and benchmark.done < benchmark.total:
            assert kinds & {"in flight", "retrying", "given up", "rest"}


def test_a_log_gets_one_line_that_stands_alone() -> None:
    assert line(progress(), SCORES) == (
        "141/740 samples (19%) · 1,812,400 tokens, 2,913/s · 64 in flight · 2 to retry · 2 (1.4%) truncated · "
        "23 failed requests · 1 given up · 1 of 2 endpoints waiting, retry in 12 s "
        "(cannot connect to node2:8000: Connection refused) · "
        "aime24 56.7% correct so far (51.2 to 62.0), 120 of 121 graded · 12 min so far · about 9 min left"
    )
    assert line(progress(waiting=0), SCORES).endswith("at least 9 min left"), "the last replies are the longest"


ENDING = {"stopping": True, "why": "stopped by SIGINT"}
WAITING = tuple(msgspec.structs.replace(one, state="set aside") for one in progress().endpoints)
GIVES_UP = "gives up if there is no response within 6 min; press Ctrl-C to end it now without losing replies"


@pytest.mark.parametrize(
    ("changes", "says", "not_said"),
    [
        ({"endpoints": WAITING}, "", "left"),
        ({"finished": 48, "truncated": 13}, " · 13 of this session's 48 (27.1%) truncated · ", ""),
        (
            {**ENDING, "grace_s": 28.4, "in_flight": 12},
            "ending: 12 requests may take 28 s to finish; press Ctrl-C again to cancel",
            "",
        ),
        ({**ENDING, "grace_s": 28.4, "in_flight": 1024}, "ending: 1,024 requests may take 28 s to finish", ""),
        ({**ENDING, "grace_s": 7.0, "in_flight": 1}, "ending: 1 request may take 7 s to finish;", ""),
        (
            {**ENDING, "grace_s": None, "in_flight": 1},
            "ending: 1 request will be allowed to finish, with no time limit",
            "",
        ),
        ({"patience_s": 360.0}, GIVES_UP, ""),
        ({}, "", "gives up"),
        ({"patience_s": 360.0, "stopping": True}, "", "gives up"),
        ({"arrived": 1, "failures": 1}, "1 token,", "failed requests"),
    ],
)
def test_a_line_and_a_panel_say_what_is_wrong(changes: dict[str, Any], says: str, not_said: str) -> None:
    shown, drawn = line(progress(**changes)), text(panel(progress(**changes), 120, 30))
    assert says in shown
    assert not not_said or not_said not in shown + drawn
    if "ending" in says or says == GIVES_UP:
        assert says in drawn
    elif "endpoints" in changes:
        assert "no endpoint is in use" in drawn
    elif "finished" in changes:
        assert " · 27.1% of this session's 48 truncated · " in drawn


def test_the_progress_of_a_sweep_names_its_cell() -> None:
    assert line(progress(), SCORES, "ck-step_100+words").startswith("ck-step_100+words: 141/740 samples (19%) · ")
    shown = text(panel(progress(), 79, 8, SCORES, "ck-step_100+words")).split("\n")
    assert [row.split()[0] for row in shown[:3]] == ["ck-step_100+words", "aime24", "math500"]
    assert len(shown) == 8, "a run of its own has no such line"
    assert text(panel(progress(), 79, 8, SCORES))[:7] == "aime24 ", "a run of its own has no such line"


def test_foreign_words_reach_the_terminal_inert() -> None:
    endpoint = msgspec.structs.replace(progress().endpoints[1], base_url=HOSTILE, why=HOSTILE)
    hostile = progress(
        benchmarks=(BenchmarkProgress(name=HOSTILE, done=1, total=3),),
        endpoints=(endpoint,),
        failed=(FailureProgress(kind="server", count=1, latest=HOSTILE, ago_s=1),),
        oldest=OldestInFlight(benchmark=HOSTILE, question_id=HOSTILE, sample_index=0, seconds=1, tokens=1),
    )
    scores = {HOSTILE: RunningScore(RunningEstimate(0.5), 2)}
    shown = [text([one]) for width in (80, 200) for one in panel(hostile, width, 30, scores)] + [line(hostile, scores)]
    assert any(r"\x1b" in one for one in shown)
    assert [one for one in shown if not one.isprintable()] == []


class Screen(StringIO):
    """Standard error that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Screen]:
    """Call it in the test itself: between fixture and test, pytest puts its own standard error back."""

    def opened() -> Screen:
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    for name in ("NO_COLOR", "TTY_COMPATIBLE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "30")
    return opened


def test_a_terminal_is_redrawn_and_keeps_the_last_state(terminal: Callable[[], Screen]) -> None:
    screen = terminal()
    shown = ProgressDisplay()
    shown(progress())
    assert "121/240" in screen.getvalue()
    assert "\x1b[32m" in screen.getvalue()
    shown(progress(arrived=2_000_000))
    shown.close()
    assert "\x1b[1A" in screen.getvalue()  # drawn over what stood there
    assert screen.getvalue().rindex("2,000,000") > screen.getvalue().rindex("1,812,400")
    assert "\x1b[?25h" in screen.getvalue()  # the cursor is back


def test_the_cursor_waits_where_an_echo_of_the_keyboard_breaks_no_line(terminal: Callable[[], Screen]) -> None:
    screen = terminal()

    def drawn() -> str:
        return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", screen.getvalue())

    shown = ProgressDisplay()
    shown(progress())
    assert re.search(r"endpoint  http://node2.*…\n $", drawn())  # 99 of 100 columns: ^C would go over the edge
    assert max(len(one) for one in drawn().split("\n")) == 99
    shown.close()
    assert re.search(r"endpoint  http://node2.*…\n$", drawn())  # no empty line is left behind


def test_dumb_terminals_and_logs_get_few_lines(terminal: Callable[[], Screen], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal()
    monkeypatch.setenv("TERM", "dumb")
    now = 0.0
    monkeypatch.setattr(display.time, "monotonic", lambda: now)
    shown = ProgressDisplay()
    for now in (1.0, 5.0, 11.5, 20.0, 41.0, 42.0, 72.0):
        shown(progress(done=int(now)))
    shown(progress(done=73, stopping=True, grace_s=30.0))  # said at once
    shown(progress(done=74, stopping=True, grace_s=30.0))
    shown.close()
    lines = screen.getvalue().splitlines()
    assert [one.split("/")[0] for one in lines] == ["11", "42", "72", "73", "74"]
    assert "\x1b" not in screen.getvalue()


def test_wide_characters_take_two_columns_and_the_columns_stay_aligned() -> None:
    two = tuple(BenchmarkProgress(name=name, done=1, total=4, in_flight=1) for name in ("数学竞赛题", "math"))
    first, second = (text([one]) for one in panel(progress(benchmarks=two), 60, 30)[:2])
    assert first.startswith("数学竞赛题 █")
    assert second.startswith("math       █")


@pytest.mark.parametrize(("shown", "says_something"), [(False, False), (True, True)])
def test_unwanted_progress_is_not_shown(terminal: Callable[[], Screen], shown: bool, says_something: bool) -> None:
    screen = terminal()
    for watcher in (Terminal(progress=shown), Collecting(shown=shown)):
        watcher.progressed(progress())
        watcher.close()
        assert (screen.getvalue() != "") is says_something


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (99.4, "99 s"),
        (100.0, "2 min"),
        (5_999.0, "1 h 40 min"),
        (11_100.0, "3 h 05 min"),
        (190_000.0, "2 d 4 h"),
        (number_text.MAX_SHOWN_SECONDS, "365000 d 0 h"),
        (number_text.MAX_SHOWN_SECONDS * 1.01, "more than 1,000 years"),
        (math.inf, "more than 1,000 years"),
        (math.nan, "an unknown time"),
    ],
)
def test_a_duration_of_any_size_is_words(seconds: float, words: str) -> None:
    assert number_text.duration(seconds) == words
