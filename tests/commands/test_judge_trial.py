"""A judge is tried before a run's first request, as scoring asks it; a judge without a single verdict shows in the exit
code.

For: harness.judges.judge, harness.commands.run, harness.cli.run, harness.cli.judge, harness.judges.costs.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import api
from harness.api import Judge
from harness.cli.flags import command_of
from harness.core.errors import UsageError
from harness.judges import judge as judging
from harness.runs import Manifest, RunFolder
from harness.scoring.judging import JudgeCost
from harness.scoring.score import Score
from harness.testing import STALL, Answer, FakeServer, Request, Said, Step, delta, event_stream, http, serving
from tests.commands.judged_runs import BAD, GOOD, PROSE, asked_of, ruling_by, shown_to, write_run
from tests.patience import PATIENCE_SECONDS, until
from tests.system.command import harness, start


def saying(text: str) -> Answer:
    return serving(Said(text, 5), "judge")


def refusing(status: int, message: str) -> Answer:
    return serving([http(status, {"error": {"message": message}})], "judge")


def ruling(request: Request) -> Said:
    return Said(f"VERDICT: {'INCORRECT' if 'no such answer' in str(request.json) else 'CORRECT'}", 5)


able = serving(ruling, "judge")
"""A judge that calls every answer correct but the trial's wrong one."""

SERVED = serving(Said(r"\boxed{plants burn sugar}", 5), "able")


def run_words(folder: Path, server: FakeServer, judge: str, *more: str) -> list[str]:
    row = {"problem": "How do plants live?", "answer": "the process by which plants make sugar of light"}
    (folder / "prose.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    words = ["run", "--data", "prose.jsonl", "--samples", "2", "--base-url", server.base_url, "--out", "out"]
    return [*words, "--judge", f"judge@{judge}", *more]


def n_sampled(server: FakeServer) -> int:
    return sum(request.path.endswith("/completions") for request in server.requests)


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (refusing(401, "no such key"), "no such key"),
        (refusing(400, "this template takes no system prompt"), "this template takes no system prompt"),
        (serving("VERDICT: CORRECT", "another"), "another"),
        (None, "127.0.0.1:9"),
    ],
    ids=["key", "request", "model", "down"],
)
def test_a_judge_that_cannot_answer_is_refused_early(answer: Answer | None, refused: str, tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(answer or SERVED) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url if answer else "http://127.0.0.1:9"))
        assert (done.code, n_sampled(server)) == (2, 0), done.err
        assert refused in done.err
        assert not re.search(r"(?<!judge)-base-url", done.err), "the judge's flag, not the run's"


def test_a_key_that_the_run_s_own_server_refuses_is_not_the_judge_s(tmp_path: Path) -> None:
    refuses = serving(lambda _: iter([http(401, {"error": {"message": "no such key"}})]), "able")
    with FakeServer(refuses) as server, FakeServer(able) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
    said = " ".join(done.err.split())
    assert f"{server.base_url} refuses: HTTP 401: no such key; put the correct key, without quotes, into OPENAI" in said


def silent() -> Iterator[Step]:
    yield STALL


def test_a_judge_that_stays_silent_is_refused_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "TRIAL_SECONDS", 5.0)
    with FakeServer(SERVED) as server, FakeServer(serving(lambda _: silent(), "judge")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
        assert (done.code, n_sampled(server), n_sampled(judge)) == (2, 0, 2), done.err
    said = " ".join(done.err.split())
    assert "testing the judge judge on two answers" in said
    assert re.search(r"harness: the judge judge: no token within 5 s of the request", said), said
    assert "resume" not in said
    assert not re.search(r"/trial\b", said), "the folder of the trial is temporary"


def test_a_signal_ends_the_trial_at_once_and_nothing_is_to_resume(tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(serving(lambda _: silent(), "judge")) as judge:
        running = start(tmp_path, run_words(tmp_path, server, judge.base_url))
        until(lambda: n_sampled(judge) == 2, "the trial's two requests")
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE_SECONDS)
        assert time.monotonic() - began < 30, "the grace of a run"
        assert (running.returncode, n_sampled(server)) == (130, 0), err
    said = " ".join(err.split())
    assert "stopped by SIGINT while the judge was being tested, before any samples were generated" in said, said
    assert "resume" not in said


def test_a_judge_that_answers_is_tried_and_the_printed_command_asks_it(tmp_path: Path) -> None:
    loading = iter([http(503), http(503), http(504)])  # These are asked again, as docs/judge.md says.

    def waking(request: Request) -> Iterator[Step]:
        refusal = next(loading, None) if request.method == "POST" else None
        return able(request) if refusal is None else iter([refusal])

    with FakeServer(SERVED) as server, FakeServer(waking) as judge:
        url = f"{judge.base_url},concurrency=1"  # a refusal that is read after a reply would be the last word
        words = run_words(tmp_path, server, url)
        done = harness(tmp_path, *words)
        assert (done.code, n_sampled(server), n_sampled(judge)) == (0, 2, 5), done.err
        assert "warning: the judge" not in done.err
        assert "testing the judge judge on two answers" in done.err
        for which, called in (("right", "correct"), ("wrong", "incorrect")):
            assert re.search(rf"the judge judge called the {which} answer {called} after [0-9.]+ s", done.err)
        line = next(line for line in done.err.splitlines() if "score them with" in line)
        command = shlex.split(line.partition("score them with: harness ")[2])
        assert command[command.index("--judge") + 1] == f"judge@{url}"
        scored = harness(tmp_path, *command)
        assert scored.code == 0, scored.err
        assert "2 samples decided by the judge" in scored.out


def test_a_judge_without_verdicts_warns_before_the_run_and_fails_after(tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(saying("I am not sure.")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
        assert (done.code, n_sampled(server)) == (0, 2), done.err
        assert "the judge judge gave no verdict when it was tested on the right answer" in done.err
        scored = harness(tmp_path, "score", "out", "--judge", f"judge@{judge.base_url}")
        assert scored.code == 4
        assert "was asked about 1 answer and gave no verdicts at all" in scored.err
        folder = scored.err.partition("to read its replies, run `harness show ")[2].partition(
            "`. To ask it again, delete "
        )[0]
        assert "prose: 1 question" in harness(tmp_path, "show", folder).out


@pytest.mark.parametrize(
    ("word", "rubric", "warned"),
    [("CORRECT", False, "wrong"), ("INCORRECT", False, "right"), ("CORRECT", True, "wrong"), ("INCORRECT", True, "")],
)
def test_a_judge_with_one_word_for_all_gets_a_warning(tmp_path: Path, word: str, rubric: bool, warned: str) -> None:
    (tmp_path / "rubric.txt").write_text("It is correct if it is a palindrome of ten letters.")
    with FakeServer(SERVED) as server, FakeServer(saying(f"VERDICT: {word}")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url + ",prompt=./rubric.txt" * rubric))
    assert done.code == 0, done.err
    said, verdict = " ".join(done.err.split()), word.lower()
    assert all(f"the judge judge called the {which} answer {verdict} after" in said for which in ("right", "wrong"))
    for which, answer in (("wrong", "no such answer"), ("right", "5")):
        sentence = (
            f'the judge judge was tested on the {which} answer "{answer}" to the question "What is 2 + 3?" and called '
            f"it {verdict}: it may call every answer {verdict}"
        )
        assert (sentence in said) == (which == warned)


@pytest.mark.parametrize(
    ("prompt", "text", "line", "form"),
    [
        ("./rubric.txt", "Short.\nyes", "yes", "VERDICT: CORRECT or "),
        ("limo", "WRONG", "WRONG", "the heading ## Correctness, then CORRECT or WRONG alone"),
    ],
)
def test_other_verdict_formats_show_in_the_trial(tmp_path: Path, prompt: str, text: str, line: str, form: str) -> None:
    (tmp_path / "rubric.txt").write_text("It is correct if it is short. Reply with yes or no only.")
    with FakeServer(SERVED) as server, FakeServer(saying(text)) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, f"{judge.base_url},prompt={prompt}"))
    told = " ".join(done.err.split())
    assert f"the last line of its reply is '{line}', but the prompt asks for {form}" in told
    assert ("a rubric must not ask for any other format" in told) == ("rubric" in prompt)


@pytest.mark.parametrize(
    ("answers", "warned"),
    [
        (["they make sugar of sunlight and air"], "the answers of 1 of 1 question are sentences"),
        (["因为空气散射短波长的光更强烈。"], "the answers of 1 of 1 question are sentences"),
        (["they make sugar of sunlight and air", "carbon dioxide", "42"], ""),
        (["the line y = 2x + 1 through the origin"], ""),
        (["carbon dioxide"], ""),
    ],
)
def test_sentence_references_without_a_judge_get_a_warning(answers: list[str], warned: str, tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(saying("VERDICT: CORRECT")) as judge:
        words = run_words(tmp_path, server, judge.base_url)
        rows = [json.dumps({"problem": f"Why {n}?", "answer": answer}) for n, answer in enumerate(answers)]
        (tmp_path / "prose.jsonl").write_text("\n".join(rows), encoding="utf-8")
        alone = harness(tmp_path, *words[: words.index("--judge")])
        judged = harness(tmp_path, *words)
        looked = harness(tmp_path, "doctor", "--benchmark", "./prose.jsonl")
        assert ("are sentences" in looked.out) == ("are sentences" in alone.err) == bool(warned)
        assert warned in looked.out
        assert warned in alone.err
        assert "are sentences" not in judged.err


def test_a_judges_key_variable_that_is_not_set_is_refused_by_run_and_score(tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(saying("VERDICT: CORRECT")) as judge:
        words = run_words(tmp_path, server, f"{judge.base_url},api_key_env=NOT_SET_ANYWHERE")
        refused = harness(tmp_path, *words)
        assert (refused.code, n_sampled(server), n_sampled(judge)) == (2, 0, 0), refused.err
        sentence = "judge: api_key_env: the environment variable NOT_SET_ANYWHERE is missing or empty: set it"
        assert sentence in refused.err
        harness(tmp_path, *words[: words.index("--judge")])
        scored = harness(tmp_path, "score", "out", *words[words.index("--judge") :])
        assert (scored.code, n_sampled(judge), sentence in scored.err) == (2, 0, True), scored.err


# ----
# What a judge would be asked is said before it is asked, and holds against the requests that are then sent.

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


@pytest.mark.parametrize(("keys", "n"), [("", 3), (",scope=all", 4), (",max_tokens=7", 3)])
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
    """Also those without a verdict; an answer whose request failed is asked again."""

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "POST" and "burning" in shown_to(request)[1]:
            return iter([http(400, b"{}")])
        return ruling_by({})(request)

    folder = write_run(tmp_path / "run", ROWS).path
    with FakeServer(answer) as server:
        judged(server, folder)
    output = output_of(folder, "--dry-run", "--prices", "1000,2000")
    requests, prompt, new = promised(output)
    assert (requests, "3 distinct answers − 2 stored replies" in output) == (1, True)
    assert f" per reply), {(prompt * 1000 + new * 2000) / 1e6:,.4f} USD\n" in output
    with FakeServer(ruling_by({})) as server:
        judged(server, folder)
    output = output_of(folder, "--dry-run")
    assert (promised(output), "USD" in output) == ((0, 0, 0), False)
    shutil.rmtree(folder / "judge")
    assert promised(output_of(folder, "--dry-run"))[0] == 3


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
    left = "there is nothing to judge: 1 sample decided by the rules (scope=open). To ask about these as well, add"
    assert left in output_of(decided.path, "--dry-run")
    assert promised(output_of(decided.path, "--dry-run", keys=",scope=all"))[0] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--dry-run",), "specify the judge with --judge MODEL"),
        (("--judge", "m", "--dry-run", "--json"), "--dry-run: it does not work with --json"),
        (
            ("--judge", "m", "--dry-run", "--also", "math-verify"),
            "--also: omit this option: --dry-run does not send or store anything",
        ),
        (("--judge", "m", "--dry-run", "--prices", "1,-2"), "expected two or three prices, each 0 or more"),
        (("--prices", "1,2"), "prices: they are the judge's prices: specify the judge with --judge"),
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
    return score.judging.cost


def test_the_money_is_said_by_score_json_and_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    with FakeServer(ruling_by(RULING)) as server:
        at = f"@{server.base_url}"
        first = output_of(folder, "--prices", "1000,2000", keys=at)
        assert "cost in all sessions: 3 requests, 27 prompt tokens, 33 completion tokens, 0.0930 USD" in first
        again = output_of(folder, keys=at)
        assert "cost in all sessions: 3 requests, 27 prompt tokens, 33 completion tokens\n" in again
    (row,) = json.loads(harness(tmp_path, "score", "run", "--judge", "judge", "--prices", "1000,2000", "--json").out)
    assert row["judging"]["cost"] == {
        "replies": 3,
        "requests": 3,
        "n_stated": 3,
        "prompt_tokens": 27,
        "completion_tokens": 33,
        "usd": pytest.approx(0.093),
    }
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
def test_uncounted_replies_are_in_no_sum(tmp_path: Path, usage: dict[str, int] | None, n_unstated: int) -> None:
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
        ({"prices": (1, 2)}, r"prices: they are the judge's prices: .*judge=harness.Judge\(model=…\)"),
        ({"judge": Judge(model="m"), "prices": (-1, 2)}, "expected two or three prices, each 0 or more"),
    ],
)
def test_prices_without_a_judge_are_refused_in_python(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    folder = write_run(tmp_path / "run", ROWS).path
    before = files_in(folder)
    with pytest.raises(UsageError, match=sentence):
        api.score(folder, **options)
    assert files_in(folder) == before
