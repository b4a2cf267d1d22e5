"""A judge is tried before a run's first request, as scoring asks it; a judge without a single verdict shows in the exit
code.

For: harness.verbs.judge, harness.verbs.run, harness.cli.run, harness.cli.judge.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import harness as reasoning_harness
from harness.core.errors import HarnessError
from harness.testing import STALL, FakeServer, Request, Step, completion, http, models
from harness.verbs import judge as judging
from tests.patience import until
from tests.system.command import harness, start

Answer = Callable[[Request], Iterator[Step]]


def listing(model: str, reply: Callable[[], Iterator[Step]]) -> Answer:
    return lambda request: iter([models(model)]) if request.method == "GET" else reply()


def saying(text: str) -> Answer:
    return listing("judge", lambda: completion(text, tokens=5))


def refusing(status: int, message: str) -> Answer:
    return listing("judge", lambda: iter([http(status, {"error": {"message": message}})]))


def able(request: Request) -> Iterator[Step]:
    """A judge that calls every answer correct but the trial's wrong one."""
    if request.method == "GET":
        return iter([models("judge")])
    return completion(f"VERDICT: {'INCORRECT' if 'no such answer' in str(request.json) else 'CORRECT'}", tokens=5)


SERVED = listing("able", lambda: completion(r"\boxed{plants burn sugar}", tokens=5))


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
        (listing("another", lambda: completion("VERDICT: CORRECT")), "another"),
        (None, "127.0.0.1:9"),
    ],
    ids=["key", "request", "model", "down"],
)
def test_a_judge_that_cannot_be_asked_is_refused_before_the_first_sample(
    answer: Answer | None, refused: str, tmp_path: Path
) -> None:
    with FakeServer(SERVED) as server, FakeServer(answer or SERVED) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url if answer else "http://127.0.0.1:9"))
        assert (done.code, n_sampled(server)) == (2, 0), done.err
        assert refused in done.err
        assert not re.search(r"(?<!judge)-base-url", done.err), "the judge's flag, not the run's"


def test_a_key_that_the_run_s_own_server_refuses_is_not_the_judge_s(tmp_path: Path) -> None:
    refuses = listing("able", lambda: iter([http(401, {"error": {"message": "no such key"}})]))
    with FakeServer(refuses) as server, FakeServer(able) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
    said = " ".join(done.err.split())
    assert f"{server.base_url} refuses: HTTP 401: no such key; put the right key, without quotes, into OPENAI" in said


def silent() -> Iterator[Step]:
    yield STALL


def test_a_judge_that_stays_silent_is_refused_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "TRIAL_SECONDS", 2.0)
    with FakeServer(SERVED) as server, FakeServer(listing("judge", silent)) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
        assert (done.code, n_sampled(server), n_sampled(judge)) == (2, 0, 2), done.err
    said = " ".join(done.err.split())
    assert "trying the judge judge on two answers" in said
    assert re.search(r"harness: the judge judge: no token within 2 s of the request", said), said
    assert "resume" not in said
    assert not re.search(r"/trial\b", said), "the folder of the trial is temporary"


def test_a_signal_ends_the_trial_at_once_and_nothing_is_to_resume(tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(listing("judge", silent)) as judge:
        running = start(tmp_path, run_words(tmp_path, server, judge.base_url))
        until(lambda: n_sampled(judge) == 2, "the trial's two requests")
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert time.monotonic() - began < 15, "the grace of a run is 30 s"
        assert (running.returncode, n_sampled(server)) == (130, 0), err
    said = " ".join(err.split())
    assert "stopped by SIGINT while the judge was tried; nothing was sampled" in said, said
    assert "resume" not in said


def test_a_judge_that_answers_is_tried_and_the_printed_command_asks_it(tmp_path: Path) -> None:
    loading = iter([http(503), http(503), http(504)])  # These are asked again, as docs/judge.md says.

    def waking(request: Request) -> Iterator[Step]:
        refusal = next(loading, None) if request.method == "POST" else None
        return able(request) if refusal is None else iter([refusal])

    with FakeServer(SERVED) as server, FakeServer(waking) as judge:
        words = run_words(tmp_path, server, judge.base_url)
        done = harness(tmp_path, *words)
        assert (done.code, n_sampled(server), n_sampled(judge)) == (0, 2, 5), done.err
        assert "warning: the judge" not in done.err
        assert "trying the judge judge on two answers" in done.err
        for which, called in (("right", "correct"), ("wrong", "incorrect")):
            assert re.search(rf"the judge judge called the {which} answer {called} after [0-9.]+ s", done.err)
        line = next(line for line in done.err.splitlines() if "score them with" in line)
        command = shlex.split(line.partition("score them with: harness ")[2])
        assert command[command.index("--judge") + 1] == f"judge@{judge.base_url}"
        scored = harness(tmp_path, *command)
        assert scored.code == 0, scored.err
        assert "2 samples decided by the judge" in scored.out


def test_a_judge_without_a_verdict_is_a_warning_before_the_run_and_an_exit_code_after(tmp_path: Path) -> None:
    with FakeServer(SERVED) as server, FakeServer(saying("I am not sure.")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url))
        assert (done.code, n_sampled(server)) == (0, 2), done.err
        assert "the judge judge gave no verdict when it was tried on the right answer" in done.err
        scored = harness(tmp_path, "score", "out", "--judge", f"judge@{judge.base_url}")
        assert scored.code == 1
        assert "was asked about 1 answer and gave no verdict at all" in scored.err
        folder = scored.err.partition("its replies: harness show ")[2].partition(". To ask it again, delete ")[0]
        assert "prose: 1 question" in harness(tmp_path, "show", folder).out


@pytest.mark.parametrize(
    ("word", "rubric", "warned"),
    [("CORRECT", False, "wrong"), ("INCORRECT", False, "right"), ("CORRECT", True, "wrong"), ("INCORRECT", True, "")],
)
def test_a_judge_that_says_one_word_to_both_answers_is_warned_of_unless_a_rubric_may_reject_the_right_one(
    tmp_path: Path, word: str, rubric: bool, warned: str
) -> None:
    (tmp_path / "rubric.txt").write_text("It is correct if it is a palindrome of ten letters.")
    with FakeServer(SERVED) as server, FakeServer(saying(f"VERDICT: {word}")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, judge.base_url + ",prompt=./rubric.txt" * rubric))
    assert done.code == 0, done.err
    said, verdict = " ".join(done.err.split()), word.lower()
    assert all(f"the judge judge called the {which} answer {verdict} after" in said for which in ("right", "wrong"))
    for which, answer in (("wrong", "no such answer"), ("right", "5")):
        sentence = (
            f'the judge judge was tried on the {which} answer "{answer}" to the question "What is 2 + 3?" and called '
            f"it {verdict}: it may call every answer {verdict}"
        )
        assert (sentence in said) == (which == warned)


def test_a_rubric_that_asks_for_another_form_shows_in_the_trial(tmp_path: Path) -> None:
    (tmp_path / "rubric.txt").write_text("It is correct if it is short. Reply with yes or no only.")
    with FakeServer(SERVED) as server, FakeServer(saying("Short.\nyes")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, f"{judge.base_url},prompt=./rubric.txt"))
    assert "the last line of its reply is 'yes', and the prompt asks for VERDICT: CORRECT or " in done.err
    assert "a rubric must not ask for another" in done.err
    with FakeServer(SERVED) as server, FakeServer(saying("WRONG")) as judge:
        done = harness(tmp_path, *run_words(tmp_path, server, f"{judge.base_url},prompt=limo", "--out", "limo"))
    assert (
        "the last line of its reply is 'WRONG', and the prompt asks for the heading ## Correctness, then CORRECT or "
        "WRONG alone"
    ) in " ".join(done.err.split())


def test_python_refuses_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeServer(SERVED) as server, FakeServer(refusing(401, "no such key")) as judge:
        run_words(tmp_path, server, judge.base_url)
        who = reasoning_harness.Judge(model="judge", base_url=(judge.base_url,))
        with pytest.raises(HarnessError, match="no such key"):
            reasoning_harness.run(data="prose.jsonl", base_url=server.base_url, out="out", judge=who)
        assert n_sampled(server) == 0


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
def test_references_in_sentences_are_warned_of_before_sampling_without_a_judge(
    answers: list[str], warned: str, tmp_path: Path
) -> None:
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
        sentence = (
            "judge: api_key_env: the environment variable NOT_SET_ANYWHERE is not set or empty: set it to the key"
        )
        assert sentence in refused.err
        harness(tmp_path, *words[: words.index("--judge")])
        scored = harness(tmp_path, "score", "out", *words[words.index("--judge") :])
        assert (scored.code, n_sampled(judge)) == (2, 0), scored.err
        assert sentence in scored.err
