"""What a judge would be asked is said before it is asked, and holds against the requests that are then sent.

For: harness.verbs.judging_costs.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import api
from harness.api import Judge
from harness.cli.flags import command_of
from harness.core.errors import UsageError
from harness.runs import Manifest, RunFolder
from harness.scoring.judging import JudgeCost
from harness.scoring.score import Score
from harness.testing import FakeServer, Request, Step, delta, event_stream, http
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, asked_of, ruling_by, shown_to, write_run

GOOD = r"So \boxed{\text{plants making sugar from light}}"
BAD = r"So \boxed{\text{plants burning sugar at night}}"
RULING = {"making": True, "burning": False}
RIGHT = rf"\boxed{{\text{{{PROSE}}}}}"
ROWS = {"q1": (PROSE, [GOOD, BAD, GOOD, GOOD]), "q2": (PROSE, [GOOD, GOOD, "", RIGHT])}
"""Three distinct answers to judge, as equal answers to one question count once; the rules decide two samples."""


def output_of(folder: Path, *words: str, keys: str = "") -> str:
    done = CliRunner().invoke(command_of("score"), [str(folder), "--judge", f"judge{keys}", "--workers", "1", *words])
    assert done.exit_code == 0, done.output
    return done.output


def promised(output: str) -> tuple[int, int, int]:
    """(requests, prompt tokens at most, new tokens at most) that a dry run names."""
    match = re.search(
        r"asked ([\d,]+) times? \(.*\n(?:  .*\n)*?  at most ([\d,]+) prompt tokens? and ([\d,]+) new tokens", output
    )
    assert match is not None, output
    requests, prompt, new = (int(number.replace(",", "")) for number in match.groups())
    return requests, prompt, new


def files_in(folder: Path) -> dict[Path, bytes]:
    """All files but the grades of a grading that takes long, which a later one takes over."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "grades.partial.jsonl")
    return {path: path.read_bytes() for path in files}


def judged(server: FakeServer, folder: Path, *words: str, keys: str = "") -> list[Request]:
    """The requests for verdicts that scoring sends."""
    before = len(asked_of(server))
    CliRunner().invoke(
        command_of("score"), [str(folder), "--judge", f"judge@{server.base_url}{keys}", "--workers", "1", *words]
    )
    return [request for request in server.requests if request.method == "POST"][before:]


@pytest.mark.parametrize(
    ("keys", "n"),
    [("", 3), (",scope=all", 4), (",max_tokens=7", 3)],
)
def test_the_requests_and_their_bounds_hold_against_what_is_sent(tmp_path: Path, keys: str, n: int) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    before = files_in(folder)
    with FakeServer(ruling_by(RULING)) as server:
        output = output_of(folder, "--dry-run", keys=f"@{server.base_url}{keys}")
        assert not server.requests
        assert files_in(folder) == before
        sent = judged(server, folder, keys=keys)
    requests, prompt, new = promised(output)
    assert requests == len(sent) == n
    # A token has at least one byte, so no server can count more tokens than the messages have bytes and its marks.
    n_bytes = sum(len(message["content"].encode()) for request in sent for message in request.json["messages"])
    assert n_bytes <= prompt <= n_bytes + 200 * n
    assert new == sum(request.json["max_tokens"] for request in sent)


def test_stored_replies_are_not_paid_twice(tmp_path: Path) -> None:
    """Also those without a verdict."""
    folder = write_run(tmp_path / "run", ROWS).path
    with FakeServer(ruling_by({"burning": False})) as server:
        judged(server, folder)
    output = output_of(folder, "--dry-run")
    assert promised(output) == (0, 0, 0)
    assert "3 distinct answers − 3 stored replies" in output
    shutil.rmtree(folder / "judge")
    assert promised(output_of(folder, "--dry-run"))[0] == 3


def test_an_answer_whose_request_failed_is_asked_again(tmp_path: Path) -> None:
    def answer(request: Request) -> Iterator[Step]:
        if request.method == "POST" and "burning" in shown_to(request)[1]:
            return iter([http(400, b"{}")])
        return ruling_by(RULING)(request)

    folder = write_run(tmp_path / "run", ROWS).path
    with FakeServer(answer) as server:
        judged(server, folder)
        assert promised(output_of(folder, "--dry-run"))[0] == 1


def test_the_cost_follows_from_the_prices(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    output = output_of(folder, "--dry-run", "--prices", "1000,2000")
    _, prompt, new = promised(output)
    assert f"  at most {(prompt * 1000 + new * 2000) / 1e6:,.4f} USD" in output
    assert "USD" not in output_of(folder, "--dry-run")


def test_a_dry_run_names_what_each_benchmark_would_cost(tmp_path: Path) -> None:
    """A rubric for one benchmark rules on the answers of the other, too: nobody should learn that from the bill."""
    folder = write_run(tmp_path / "run", ROWS)
    more = write_run(tmp_path / "more", {"q": (PROSE, [GOOD, BAD])}, benchmark="essays")
    decided = write_run(tmp_path / "decided", {"q": ("4", [r"\boxed{4}"])}, benchmark="sums")
    manifest = Manifest.load(folder)
    for other, name in ((more, "essays"), (decided, "sums")):
        shutil.copytree(other.benchmark(name).path, folder.benchmark(name).path)
        manifest = manifest.extend(name, Manifest.load(other).benchmarks[name])
    manifest.save(folder)
    output = output_of(folder.path, "--dry-run")
    assert promised(output)[0] == 5
    lines = ["prose: 3 times, about 3 distinct answers", "essays: 2 times, about 2 distinct answers"]
    assert "".join(f"  {line}\n" for line in [*lines, "all by the prompt verdict"]) in output
    assert "sums" not in output
    alone = output_of(more.path, "--dry-run")
    assert "essays" not in alone
    assert promised(alone)[0] == 2


def test_a_run_without_anything_to_judge_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"q": ("4", [r"\boxed{4}"])}).path
    assert "the judge has nothing to rule on" in output_of(folder, "--dry-run")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--dry-run",), "name the judge with --judge MODEL"),
        (("--judge", "m", "--dry-run", "--json"), "leave out --json"),
        (("--judge", "m", "--dry-run", "--also", "math-verify"), "also: dry_run sends and stores nothing"),
        (("--judge", "m", "--dry-run", "--prices", "1,-2"), "expected two prices of 0 or more"),
        (("--prices", "1,2"), "prices: they are prices of the judge: name the judge with --judge"),
    ],
)
def test_what_a_dry_run_cannot_do_is_refused(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    folder = write_run(tmp_path / "run", {"q": ("4", [r"\boxed{4}"])}).path
    done = harness(tmp_path, "score", str(folder), *words)
    assert done.code == 2
    assert sentence in done.err, done.err


TOKENS_IN, TOKENS_OUT = 9, 11
"""What the judge of these tests states for each reply."""


PRICES = ("--prices", "1000,2000")
A_REPLY_USD = (1000 * TOKENS_IN + 2000 * TOKENS_OUT) / 1e6


def accounted(folder: Path) -> JudgeCost:
    score = Score.load(RunFolder(folder).benchmark("prose"))
    assert score is not None
    assert score.judging
    assert score.judging.cost is not None
    return score.judging.cost


def test_the_money_is_said_by_score_json_and_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    with FakeServer(ruling_by(RULING)) as server:
        address = ("--judge", f"judge@{server.base_url}")
        first = output_of(folder, *address, "--prices", "1000,2000")
        assert "cost in all sessions: 3 requests, 27 prompt tokens, 33 completion tokens, 0.0930 USD" in first
        again = output_of(folder, *address)
        assert "cost in all sessions: 3 requests, 27 prompt tokens, 33 completion tokens\n" in again
    (row,) = json.loads(harness(tmp_path, "score", "run", "--judge", "judge", "--prices", "1000,2000", "--json").out)
    assert row["judging"]["cost"] == {
        "replies": 3, "requests": 3, "n_stated": 3, "prompt_tokens": 27, "completion_tokens": 33,
        "usd": pytest.approx(0.093),
    }  # fmt: skip
    reported = harness(tmp_path, "report", "run", "--out", "reported")
    assert "the judge of run: 0.0930 USD" in reported.out.splitlines(), "and no line on the model, which has no prices"
    assert "all sessions of run" not in reported.out
    row = "<td>judge:judge@verdict of prose</td><td>3 requests, 27 prompt tokens, 33 completion tokens, 0.0930 USD</td>"
    assert row in (tmp_path / "reported" / "report.html").read_text("utf-8")
    without = output_of(folder, "--prices", "1,0")
    assert "33 completion tokens, 0.000027 USD" in without


@pytest.mark.parametrize(
    ("usage", "n_unstated"), [(None, 1), ({"prompt_tokens": 9}, 2), ({"completion_tokens": 11}, 3)]
)
def test_a_reply_without_both_numbers_of_tokens_is_in_no_tokens_and_no_money(
    tmp_path: Path, usage: dict[str, int] | None, n_unstated: int
) -> None:
    """Three replies, of which the server states the tokens of some: a reply of unknown length was not free."""
    folder = write_run(tmp_path / "run", ROWS).path
    n_asked = 0

    def answer(request: Request) -> Iterator[Step]:
        nonlocal n_asked
        if request.method != "POST":
            return ruling_by(RULING)(request)
        n_asked += 1
        if n_asked > n_unstated:
            return ruling_by(RULING)(request)
        return event_stream(delta(role="assistant"), delta("**VERDICT: CORRECT**"), delta(finish="stop", usage=usage))

    with FakeServer(answer) as server:
        judged(server, folder, *PRICES)
    n = 3 - n_unstated
    money = pytest.approx(n * A_REPLY_USD) if n else None
    assert accounted(folder) == JudgeCost(3, 3, n, n * TOKENS_IN, n * TOKENS_OUT, money)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"prices": (1, 2)}, r"prices: they are prices of the judge: .*judge=harness.Judge\(model=…\)"),
        ({"judge": Judge(model="m"), "prices": (-1, 2)}, "expected two prices of 0 or more"),
        ({"dry_run": True}, "dry_run: this function grades; only the command line can say beforehand"),
    ],
)
def test_prices_that_are_no_judges_are_refused_in_python(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    before = files_in(folder)
    with pytest.raises(UsageError, match=sentence):
        api.score(folder, **options)
    assert files_in(folder) == before
