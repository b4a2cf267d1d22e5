"""A run, start to end, against a scripted server on a real socket.

For: harness.core.reply_notes, harness.generation, harness.generation.outcome, harness.generation.session.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness as reasoning_harness
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.codec import sample_seed
from harness.core.contradictions import ARRIVED, CHANGED
from harness.core.errors import Interrupted, ServerError, StoreError
from harness.core.records import Timing, Usage
from harness.generation.context import fitted_max_tokens, may_lower, prompt_tokens
from harness.generation.run_progress import Progress
from harness.generation.settings import RunSettings
from harness.presets.grading import GradingOptions
from harness.runs import questions, read_samples
from harness.runs.layout import RunFolder
from harness.runs.lock import locked
from harness.runs.manifest import Manifest
from harness.scoring.pipeline import score_run
from harness.testing import FakeServer, Said, completion, event, event_stream, http, models, serving
from tests.budget import examples
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, samples_of, well
from tests.runs.recorded import question
from tests.system.command import harness


def test_raised_samples_extend_and_lowered_ones_keep_all(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 3)
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1)
        run(settings, questions)
        again = run(settings, questions, transport_factory=refuse_contact)
        assert (again.complete, again.tally.finished) == (True, 0)
        more = run_settings(tmp_path / "run", server.base_url, samples=4)
        assert run(more, questions).tally.finished == 9
        fewer = run_settings(tmp_path / "run", server.base_url, samples=2)
        outcome = run(fewer, questions)
    assert (outcome.complete, outcome.n_expected, outcome.tally.finished) == (True, 6, 0)
    assert keys_of(settings) == expected_keys(3, 4)
    assert Manifest.load(RunFolder(settings.out)).benchmarks["sums"].plan.samples == 2


def test_samples_that_the_manifest_does_not_know_are_refused(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url)
        run(settings, question_set(tmp_path, 2))
        folder = RunFolder(settings.out)
        replaced = msgspec.structs.replace(Manifest.load(folder), benchmarks={})
        replaced.save(folder)
        with pytest.raises(StoreError, match=r"manifest\.json does not record"):
            run(settings, question_set(tmp_path, 2))


def test_a_sample_says_how_it_came_about(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 2)
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, seed=7)
        run(settings, questions)
    by_id = {q.question_id: q for q in questions.questions}
    for sample in samples_of(settings):
        assert sample.seed == sample_seed(7, sample.question_id, sample.sample_index)
        assert sample.text == f"seed {sample.seed}"
        assert sample.endpoint == server.base_url
        assert sample.attempts == 1
        assert sample.prompt_digest == by_id[sample.question_id].prompt_digest
        assert sample.timing.queued is not None
        assert sample.usage.completion_tokens == 7
    assert all("n" not in r.json for r in server.requests)


def test_a_failing_display_ends_the_run_without_losing_a_sample(tmp_path: Path) -> None:
    def broken(progress: Progress) -> None:
        raise ValueError("no terminal")

    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=50)
        with pytest.raises(ValueError, match="no terminal"):
            run(settings, question_set(tmp_path, 8), on_progress=broken, interval=0.01)
        stored = len(samples_of(settings))
        assert run(settings, question_set(tmp_path, 8)).tally.finished == 400 - stored
    assert keys_of(settings) == expected_keys(8, 50)
    assert threading.active_count() < 40


def test_a_broken_pipe_ends_the_run_like_a_signal(tmp_path: Path) -> None:
    def gone(progress: Progress) -> None:
        raise BrokenPipeError

    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=100)
        with pytest.raises(Interrupted, match="SIGPIPE") as caught:
            run(settings, question_set(tmp_path, 10), on_progress=gone, interval=0.01)
        assert caught.value.exit_code == 128 + signal.SIGPIPE
        assert server.aborted == 0
        assert len(samples_of(settings)) == len(server.requests) < 1000


def test_a_signal_before_the_first_request_ends_the_run_and_frees_it(tmp_path: Path) -> None:
    def contexts() -> Iterator[int]:
        os.kill(os.getpid(), signal.SIGINT)
        yield 5000

    settings = run_settings(tmp_path / "run")
    with pytest.raises(Interrupted, match=r"stopped by SIGINT.*Run the same command to resume") as caught:
        run(settings, question_set(tmp_path, 2), contexts=contexts())
    assert caught.value.exit_code == 130
    with locked(RunFolder(settings.out)):
        pass


def test_a_request_that_has_ended_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    """Else thousands of long replies stay in memory until it runs."""
    requests: list[weakref.ref[asyncio.Task[Any]]] = []
    alive: list[int] = []

    class Quick:
        async def complete(self, *_: object) -> Reply:
            requests.append(weakref.ref(asyncio.current_task()))  # type: ignore[arg-type]  # no local: a frame keeps it
            alive.append(sum(request() is not None for request in requests))
            fails = len(requests) % 3 == 0
            await asyncio.sleep(0)
            if fails:
                raise RequestFailed("connect", "refused")
            return Reply(
                text="4", reasoning=None, finish_reason="stop", usage=Usage(), timing=Timing(started=0, total=0)
            )

        async def close(self) -> None: ...

    settings = run_settings(tmp_path / "run", samples=20, canary=False)
    gc.disable()
    try:
        assert run(settings, question_set(tmp_path, 10), transport_factory=Quick).complete
    finally:
        gc.enable()
    assert max(alive) <= 2 * settings.concurrency < 100 < len(requests)


def refuse_contact(*_: object) -> Any:
    raise AssertionError("the server was contacted")


FORMAT = {"type": "json_schema", "name": "answer", "schema": {"type": "object", "required": ["answer"]}}


@pytest.mark.parametrize(
    ("echo", "arrived", "changed"),
    [
        ({"reasoning": {"effort": "high", "summary": "detailed"}, "text": {"format": FORMAT | {"strict": None}}}, 2, 0),
        ({"reasoning": {"effort": "low"}, "text": {"format": FORMAT}}, 1, 1),
        ({"reasoning": {"effort": None}, "text": {"format": {"type": "text"}}}, 0, 1),
        ({"reasoning": "high", "text": None}, 0, 0),
        ({}, 0, 0),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_settings_echoed_in_a_reply_are_compared_with_those_sent(
    tmp_path: Path, echo: dict[str, Any], arrived: int, changed: int, streamed: bool
) -> None:
    *events, _ = Said("2").events("responses")
    whole = Said("2").whole("responses") | echo
    last = event({"type": "response.completed", "response": whole})
    reply = [*event_stream(*events, last, end=())] if streamed else [http(200, whole)]
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "q", "problem": "1 + 1 = ?", "answer": "2"}) + "\n")
    sent = json.dumps({"reasoning": {"effort": "high"}, "text": {"format": FORMAT}})
    with FakeServer(serving(reply)) as server:
        words = ("run", "--data", "q.jsonl", "--samples", "2", "--base-url", server.base_url, "--out", "run")
        further = ("--no-canary", "--api", "responses", "--extra-body", sent)
        done = harness(tmp_path, *words, *further, *([] if streamed else ["--drop", "stream"]))
    assert done.code == 0, done.err
    shown = " ".join(harness(tmp_path, "score", "run").out.split())
    for told in (done.err, shown):
        assert sum(f"2 {kind}" in told for kind in CHANGED.values()) == changed, told
    harness(tmp_path, "report", "run")
    report = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert sum(f"{path} (2 replies)" in report for path in ARRIVED) == arrived


# -- the stored questions ----------------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    """A finished run of 20 questions."""
    with FakeServer(lambda _: completion(r"\boxed{1}")) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, canary=False)
        assert run(settings, question_set(tmp_path, 20)).complete
    return settings


def test_a_whole_file_is_scored_in_any_order_of_its_lines(settings: RunSettings, tmp_path: Path) -> None:
    path = RunFolder(settings.out).benchmark("sums").questions
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    (score,) = score_run(RunFolder(settings.out), GradingOptions(workers=1))
    assert (score.n_questions, score.n_samples) == (20, 20)
    assert harness(tmp_path, "doctor", "run").code == 0


def test_a_file_cut_at_a_line_border_is_refused_and_can_be_rebuilt(settings: RunSettings, tmp_path: Path) -> None:
    folder = RunFolder(settings.out)
    path = folder.benchmark("sums").questions
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:19]))
    with pytest.raises(StoreError, match=r"its 19 questions differ from those in the manifest\. Delete the file"):
        score_run(folder, GradingOptions(workers=1))
    path.unlink()
    assert run(settings, question_set(tmp_path, 20)).complete
    assert score_run(folder, GradingOptions(workers=1))[0].n_questions == 20


@pytest.mark.parametrize(
    "edit",
    [
        {"references": ["2"]},
        {"rules": {"absolute_tolerance": 5.0}},
        {"rules": {"grader": "os:getcwd"}},
        {"kind": "text"},
        {"choices": ["1", "2"]},
    ],
)
def test_an_edited_reference_or_rule_is_refused(settings: RunSettings, edit: dict[str, Any]) -> None:
    path = RunFolder(settings.out).benchmark("sums").questions
    first, *rest = path.read_bytes().splitlines(keepends=True)
    question = json.loads(first)
    question |= edit
    path.write_bytes(json.dumps(question).encode() + b"\n" + b"".join(rest))
    with pytest.raises(StoreError, match="changed after the run wrote it"):
        score_run(RunFolder(settings.out), GradingOptions(workers=1))


def test_a_run_of_an_older_version_without_a_digest_is_scored(settings: RunSettings) -> None:
    folder = RunFolder(settings.out)
    manifest = Manifest.load(folder)
    record = manifest.benchmarks["sums"]
    older = {name: value for name, value in record.settings.items() if name not in (questions.DIGEST, questions.MADE)}
    assert older != record.settings
    changed = msgspec.structs.replace(record, settings=older)
    msgspec.structs.replace(manifest, benchmarks={"sums": changed}).save(folder)
    assert score_run(folder, GradingOptions(workers=1))[0].n_questions == 20


Row = dict[str, Any]


def edited(rows: list[Row], chance: random.Random) -> list[Row]:
    """The rows after something that a person does to a file of questions between two sessions."""
    at, fresh = chance.randrange(len(rows)), {"problem": f"What is {chance.randrange(100, 999)} + 1?", "answer": "7"}
    row, others = rows[at], [*rows[:at], *rows[at + 1 :]]
    with_id = {"id": f"n{chance.random()}"} if "id" in row else {}
    return chance.choice(
        [
            [*rows, {**fresh, **with_id}],
            [{**fresh, **with_id}, *rows],
            others or rows,
            rows[::-1],
            [*rows[:at], {**row, "answer": "8"}, *rows[at + 1 :]],
            [*rows[:at], {**row, "problem": row["problem"] + " Why?"}, *rows[at + 1 :]],
            [*rows, row] if not with_id else rows,
            [{**each, "level": 1} for each in rows],
            [{**each, "id": f"m{n}"} for n, each in enumerate(rows)],
            [{**fresh, **with_id}],
        ]
    )


def contents(rows: list[Row]) -> Counter[tuple[str, str]]:
    return Counter((row["problem"], row["answer"]) for row in rows)


answer = serving(lambda request: str(request.json["messages"][-1]["content"]).split("\n")[0])
"""The question itself as the reply, so that a reply shows what it answers."""


@pytest.mark.fuzz
def test_a_run_of_edited_data_keeps_what_fits_and_asks_only_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    for number in range(examples(60)):
        chance = random.Random(seed := random.getrandbits(32))
        folder = RunFolder(tmp_path / f"run-{number}")
        rows: list[Row] = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(chance.randint(1, 4))]
        if chance.random() < 0.4:
            rows = [{**row, "id": f"q{n}"} for n, row in enumerate(rows)]
        ever, ids = Counter[tuple[str, str]](), set[str]()
        for _ in range(3):
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            before = Counter(sample.text for sample in read_samples(folder.benchmark("sums"))) if ever else Counter()
            with FakeServer(answer) as server:
                options: Any = {"base_url": server.base_url, "samples": 2, "canary": False}
                try:
                    reasoning_harness.run(data=str(path), out=folder.path, **options)
                except StoreError:
                    assert ids & {row.get("id") for row in rows} or not ever & contents(rows), seed
                    assert not any(request.method == "POST" for request in server.requests), seed
                    break
            stored = {question.question_id: question for question in questions.read(folder.benchmark("sums"))}
            texts = {name: question.last_turn.split("\n")[0] for name, question in stored.items()}
            samples = [*read_samples(folder.benchmark("sums"))]
            assert all(sample.text == texts[sample.question_id] for sample in samples), seed
            new = Counter(sample.text for sample in samples) - before
            assert new.total() <= 2 * (contents(rows) - ever).total(), seed
            planned = Manifest.load(folder).benchmarks["sums"].plan.question_ids or [*stored]
            assert Counter((texts[name], stored[name].references[0]) for name in planned) == contents(rows), seed
            (score,) = score_run(folder, GradingOptions(workers=1))
            assert (score.n_questions, score.n_samples, score.n_missing) == (len(rows), 2 * len(rows), 0), seed
            ever |= contents(rows)
            ids |= {row["id"] for row in rows if "id" in row}
            rows = edited(rows, chance)


def test_more_questions_of_the_same_set_keep_those_that_were_asked(tmp_path: Path) -> None:
    with FakeServer(lambda _: completion(r"\boxed{1}")) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, canary=False)
        for limit in (3, 5, 2):
            assert run(settings, question_set(tmp_path, 9, limit=limit)).complete
            assert score_run(RunFolder(settings.out), GradingOptions(workers=1))[0].n_questions == limit
    assert len(questions.read(RunFolder(settings.out).benchmark("sums"))) == 5


# -- fitting max_tokens to the context of the server -------------------------------------------------------------------


@given(text=st.text(max_size=400), max_tokens=st.integers(1, 5000), context=st.integers(200, 6000))
def test_what_is_fitted_never_exceeds_the_context_or_what_was_asked(text: str, max_tokens: int, context: int) -> None:
    long_question = question(text=text)
    try:
        fitted = fitted_max_tokens("b", [long_question], max_tokens, context, fit=True)
    except ServerError:
        assert context - prompt_tokens(long_question).most < 16
        return
    assert fitted is not None
    assert 0 < fitted <= max_tokens
    assert fitted + prompt_tokens(long_question).most <= context


def test_what_may_fit_is_not_refused() -> None:
    assert fitted_max_tokens("b", [question(text="x" * 600)], 32000, 32768, fit=False) == 32000
    assert fitted_max_tokens("b", [question(text="x")], None, 10, fit=False) is None


@pytest.mark.parametrize(
    ("who", "fit_context", "lowered"),
    [("default", False, True), ("default", True, True), ("card", True, True)]
    + [(who, False, False) for who in ("options", "preset r1", "card")],
)
def test_defaults_may_be_lowered_and_given_values_on_request(who: str, fit_context: bool, lowered: bool) -> None:
    assert may_lower({"temperature": "default", "max_tokens": who}, fit_context=fit_context) is lowered
    assert not may_lower({"temperature": "default"}, fit_context=False)


def server_with(context: int, model: str = "test-model") -> FakeServer:
    return FakeServer(serving(well, model, max_model_len=context))


def own_questions(folder: Path, base_url: str, *more: str) -> tuple[str, ...]:
    """The words of a run of one's own file of questions, of samples in the folder `run`."""
    (folder / "sums.csv").write_text("question,answer\nWhat is 1 + 1?,2\n", encoding="utf-8")
    return "run", "--data", "sums.csv", "--out", "run", "--no-canary", "--base-url", base_url, *more


def test_shards_with_other_prompt_lengths_share_max_tokens_and_merge(tmp_path: Path) -> None:
    with server_with(32768) as server:
        words = [*own_questions(tmp_path, server.base_url)]
        lines = (f"What is 1 + 1?{' really' * 400 * n},2\n" for n in range(8))
        (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(lines), encoding="utf-8")
        for shard in ("1/2", "2/2"):
            words[words.index("--out") + 1] = shard[0]
            done = harness(tmp_path, *words, "--shard", shard)
            assert done.code == 0, done.err
    assert harness(tmp_path, "merge", "1", "2", "--out", "both").code == 0


def test_own_questions_fit_max_tokens_to_the_context_and_resumes_keep_it(tmp_path: Path) -> None:
    with server_with(32768) as server:
        done = harness(tmp_path, *own_questions(tmp_path, server.base_url))
        assert done.code == 0, done.err
        line = "sums: --max-tokens is lowered from its default 32768 to 30720, because the server's context length is "
        line += "32768."
        assert done.err.count(line) == 1
    record = Manifest.load(RunFolder(tmp_path / "run")).benchmarks["sums"]
    assert (record.identity["sampling"]["max_tokens"], record.identity["fitted_max_tokens"]) == (32768, 30720)
    assert record.settings["sampling_from"]["max_tokens"] == "default"
    with server_with(40960) as larger:
        more = harness(tmp_path, *own_questions(tmp_path, larger.base_url, "--samples", "2"))
        assert more.code == 0, more.err
        assert {r.json["max_tokens"] for r in larger.requests if r.method == "POST"} == {30720}
    with server_with(16384) as smaller:
        refused = harness(tmp_path, *own_questions(tmp_path, smaller.base_url, "--samples", "3"))
        assert (refused.code, "the server's context length is 16384" in refused.err) == (2, True)
        assert not [r for r in smaller.requests if r.method == "POST"]


def test_the_advice_of_a_preset_is_about_the_max_tokens_that_is_sent(tmp_path: Path) -> None:
    with server_with(32768, "Qwen/QwQ-32B") as server:
        words = own_questions(tmp_path, server.base_url, "--dry-run")
        fitted, given = (harness(tmp_path, *words, *more) for more in ((), ("--max-tokens", "32768")))
    assert fitted.code == 0, fitted.err
    assert "--max-tokens 30720: the model card recommends 32,768" in fitted.err
    assert "leaves no room" not in fitted.err
    assert "leaves no room" in given.err


def test_a_refusal_for_good_is_not_met_by_the_same_command_again(tmp_path: Path) -> None:
    words = "This model's maximum context length is 8192 tokens. However, you requested 8230 tokens."
    for code, again in (("context_length_exceeded", False), ("server_error", True)):
        refusal = http(500 if again else 400, {"error": {"message": words, "code": code}})
        with FakeServer(lambda asked, reply=refusal: [models("m") if asked.method == "GET" else reply]) as server:
            (folder := tmp_path / code).mkdir()
            more = ("--max-tokens", "8192", "--attempts", "1", "--wait", "1")
            done = harness(folder, *own_questions(folder, server.base_url, *more))
        assert done.code == 4
        assert words in done.err
        assert ("the same command again" in done.err) == again, done.err
