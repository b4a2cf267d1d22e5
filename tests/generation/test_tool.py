"""Samples with a tool: how each conversation ends, what of it is stored, counted and billed, and what no kill loses.

For: harness.generation.network.steps, harness.tools,
harness.scoring.sample_columns, harness.core.reply_notes.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import threading
import time
import zipfile
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
import pytest

import harness
from harness.client.apis.api import Call
from harness.client.protocol.reply import Reply
from harness.client.request_fields import Spelling
from harness.core.errors import HelperFailed, StoppedByRule, StoreError, UsageError
from harness.core.number_text import Prices
from harness.core.records import Sample, Timing, Usage
from harness.generation.network.steps import join_replies
from harness.generation.runner import Outcome
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.scoring.sample_columns import COUNTED, counts_of
from harness.testing import FakeServer, Pause, Request, Said, Step, http
from harness.tools.python import PYTHON
from harness.tools.table import TOOLS, recorded, tool_of
from harness.tools.tool import CallRunner, Ran, Tool, ToolSettings
from reasoning_programs import bubblewrap
from reasoning_programs.cells import START_WAITS
from reasoning_programs.interpreters import LOST, Interpreters
from server_launchers.engines.table import calls_remedy
from tests import warm
from tests.budget import rounds
from tests.generation.called_tools import calling, calls, handed_back, scripted
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, samples_of
from tests.patience import PATIENCE_SECONDS
from tests.programs.sandboxed import needs_packages, needs_sandbox
from tests.system.command import harness as command

pytestmark = needs_sandbox

FACTS = {"packages": {"numpy": "2.0"}}
TOOL = PYTHON.settings(FACTS, seconds=1, steps=4, memory_mb=512)
ANSWER = "So \\boxed{42}"
CODE = '{"code": "print(6*7)"}'
BARE = f'```json\n{{"name": "python", "arguments": {CODE}}}'


def settings_of(
    out: Path,
    url: str,
    api: Any = "chat",
    tool: ToolSettings | None = TOOL,
    samples: int = 1,
    max_tokens: int = 100,
    **more: Any,
) -> RunSettings:
    sampling = Sampling(temperature=0.6, max_tokens=max_tokens)
    benchmarks = {"sums": BenchmarkSettings(samples=samples, sampling=sampling, tool=tool)}
    return run_settings(out, url, benchmarks=benchmarks, spelling=Spelling(api_name=api), canary=False, **more)


def one_sample(folder: Path, *replies: str | Said, **more: Any) -> tuple[Sample, Outcome, list[Request]]:
    """The sample of a conversation with these replies, its session, and the requests for it."""
    with FakeServer(scripted(*replies, faults=more.pop("faults", ()))) as server:
        settings = settings_of(folder / "run", server.base_url, **more)
        outcome = run(settings, question_set(folder, 1))
    (sample,) = samples_of(settings)
    return sample, outcome, server.requests


ENDS: dict[str, tuple[list[str | Said], str, list[list[str]], str]] = {
    # replies, finish reason, how the calls of each step ended, the text
    "no call": ([ANSWER], "stop", [[]], ANSWER),
    "two steps": ([calls("x = 6"), calls("x * 7", "1/0"), ANSWER], "stop", [["ran"], ["ran", "failed"], []], ANSWER),
    "calls decide, not the word": ([calling(CODE, finish="stop"), ANSWER], "stop", [["ran"], []], ANSWER),
    "more calls than run": ([calling(*[CODE] * 102), ANSWER], "stop", [["ran"] * 100 + ["not run"] * 2, []], ANSWER),
    "cut in its call": ([calling(CODE, text="half", finish="length"), ANSWER], "length", [[]], "half"),
    "filtered in its call": ([calling(CODE, finish="content_filter"), ANSWER], "content_filter", [[]], ""),
    "no JSON": ([calling(CODE[:-1]), ANSWER], "stop", [["unreadable"], []], ANSWER),
    "no code": ([calling('{"kode": "1"}', ""), ANSWER], "stop", [["unreadable", "unreadable"], []], ANSWER),
    "bare code": ([calling("print(6*7)"), ANSWER], "stop", [["ran"], []], ANSWER),
    "another tool": ([calling(CODE, name="browser"), ANSWER], "stop", [["unknown tool"], []], ANSWER),
    "stopped": ([calls("while True: pass"), ANSWER], "stop", [["stopped"], []], ANSWER),
    "no step left": ([calls("1", text="On.")], "max_steps", [["ran"]] * 3 + [["not run"]], "On."),
    "lost in its text": (["<tool_call>\n{}</tool_call>"], "stop", [[]], "<tool_call>\n{}</tool_call>"),
    "lost without a mark": ([BARE], "stop", [[]], BARE),
    "lost by its word": ([calling(text="Hm.")], "tool_calls", [[]], "Hm."),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_conversation_ends_and_is_stored_step_by_step(tmp_path: Path, case: str) -> None:
    replies, finish, ends, text = ENDS[case]
    sample, outcome, requests = one_sample(tmp_path, *replies)
    assert sample.steps
    assert (sample.text, sample.finish_reason) == (text, finish)
    assert [[call.end for call in step.calls] for step in sample.steps] == ends
    assert sample.truncated == (finish in ("length", "max_steps"))
    asked = [request.json for request in requests if request.method == "POST"]
    assert len(asked) == len(ends) == len({body["seed"] for body in asked})
    assert all(body["tools"] == asked[0]["tools"] for body in asked)
    counted = counts_of(sample, "python", asks_program=False)
    assert counted[COUNTED.index("lost")] == case.startswith("lost")
    told = {turn["tool_call_id"]: turn["content"] for turn in asked[-1]["messages"] if turn["role"] == "tool"}
    of_last_asked = [call.output for step in sample.steps[: len(asked) - 1] for call in step.calls]
    assert [*told.values()] == of_last_asked[-len(told) or len(of_last_asked) :]
    assert sample.usage.completion_tokens == 3 * len(asked)
    assert outcome.tally.spent.completion_tokens == sample.usage.completion_tokens
    assert outcome.tally.spent.prompt_tokens == sample.usage.prompt_tokens == 9 * len(asked)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_each_api_gets_reasoning_calls_and_results_back_in_its_own_form(tmp_path: Path, api: str) -> None:
    reply = calls("print(2**64)", text="Now.", reasoning="I compute.")
    sample, _, requests = one_sample(tmp_path, reply, ANSWER, api=api)
    first, second = (request.json for request in requests if request.method == "POST")
    turns = "input" if api == "responses" else "messages"
    behind = second[turns][len(first[turns]) :]
    handed = json.dumps(behind)
    for part in ("I compute.", "Now.", "call_0", "print(2**64)", str(2**64)):
        assert part in handed
    assert {"chat": '"reasoning_content"', "responses": '"encrypted_content"', "messages": '"thinking"'}[api] in handed
    bounds = [body.get("max_tokens") or body.get("max_output_tokens") for body in (first, second)]
    assert bounds == [100, 97], "the bound is of all steps together"
    assert sample.text == ANSWER


def test_a_step_has_at_most_the_tokens_that_are_left(tmp_path: Path) -> None:
    sample, _, requests = one_sample(tmp_path, calls("1"), max_tokens=7)
    assert sample.steps
    assert sample.finish_reason == "length"
    assert [r.json["max_tokens"] for r in requests if r.method == "POST"] == [7, 4, 1]
    assert sample.steps[-1].calls[0].end == "not run"


@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize(
    ("output", "tokens_each"),
    [("中" * 700, 0.6), ("中" * 900, 2), ("7" * 4000, 0.3), ("7" * 1400, 1), ("no room", 1000)],
)
def test_no_estimate_halves_the_room_of_a_turn(tmp_path: Path, output: str, tokens_each: float, states: bool) -> None:
    """Refusals of a server with a tokenizer of its own decide, whether or not it states its context. Without room the
    sample ends as it was before."""
    reply = scripted(calls(f"print({output!r})"), calling(text=ANSWER, finish="length"))
    room = 2000 - 12 - int(tokens_each * len(output))

    def answer(request: Request) -> Iterable[Step]:
        if request.method == "POST" and len(request.json["messages"]) > 1 and request.json["max_tokens"] > room:
            return [http(400, {"error": {"message": "maximum context length is 2000 tokens"}})]
        return reply(request)

    with FakeServer(answer) as server:
        settings = settings_of(tmp_path / "run", server.base_url, max_tokens=1000)
        outcome = run(settings, question_set(tmp_path, 1), contexts=[2000] if states else [])
    bounds = [r.json["max_tokens"] for r in server.requests if r.method == "POST"]
    assert bounds == sorted(bounds, reverse=True)
    (sample,) = samples_of(settings)
    assert outcome.tally.spent.completion_tokens == sample.usage.completion_tokens
    if room < 0:
        assert (sample.text, sample.finish_reason, bounds[-1]) == ("", "context", 16)
        assert [len(step.calls) for step in sample.steps or ()] == [1]
        return
    assert min(room, 997) / 2 <= bounds[-1] <= room
    assert (sample.text, sample.finish_reason) == (ANSWER, "length" if bounds[-1] == 997 else "context")


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_broken_arguments_are_stored_verbatim_and_returned_validly(tmp_path: Path, api: str) -> None:
    broken = (CODE[:-1], '["code"]', "print(6*7)", """{"code": "'\\ud800'"}""", '{"code": "\ud800"}')
    sample, _, requests = one_sample(tmp_path, calling(*broken, text="half \ud800"), ANSWER, api=api)
    assert sample.steps
    assert sample.steps[0].text == "half \ud800"
    assert "\\ud800" not in json.dumps(requests[-1].json), "strict servers refuse half a character"
    assert [call.arguments for call in sample.steps[0].calls] == [*broken]
    assert (sample.text, len([r for r in requests if r.method == "POST"])) == (ANSWER, 2)
    raw = {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": CODE[:-1]}}]}]}
    with FakeServer(scripted(ANSWER)) as server:
        strict = httpx.post(f"{server.base_url}/chat/completions", json=raw, timeout=None)
        assert strict.status_code == 400, "the wrong twin"


def test_a_server_that_rejects_a_later_turn_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply, forgotten = scripted(calls("1"), ANSWER), set()
    monkeypatch.setattr(Interpreters, "forget", lambda _, key: forgotten.add(key))

    def answer(request: Request) -> Iterable[Step]:
        if request.method == "POST" and len(request.json["messages"]) > 1:
            return [http(400, {"error": {"message": "no such role"}})]
        return reply(request)

    with FakeServer(answer) as server:
        settings = settings_of(tmp_path / "run", server.base_url)
        outcome = run(settings, question_set(tmp_path, 6))
    assert [(cause.kind, cause.count) for cause in outcome.causes] == [("rejected", 6)]
    assert len(forgotten) == 6, "an interpreter waits for a sample that was given up"


def test_a_budget_counts_each_turn_and_drops_samples_that_do_not_fit(tmp_path: Path) -> None:
    one, questions = calls("'a' * 9000"), question_set(tmp_path, 1)
    prices = Prices(prompt=1000.0, completion=1000.0)
    with FakeServer(scripted(one, one, one, ANSWER)) as server:
        settings = settings_of(tmp_path / "run", server.base_url, budget_usd=5.0, prices=prices)
        with pytest.raises(StoppedByRule, match=r"0 of 1 sample is stored|0 of 1 sample are stored"):
            run(settings, questions)
        assert len([r for r in server.requests if r.method == "POST"]) == 1
        settings = settings_of(tmp_path / "more", server.base_url, budget_usd=50.0, prices=prices)
        outcome = run(settings, questions)
        assert outcome.complete
        assert outcome.tally.spent.completion_tokens == 12
        # The bound is of all steps, so a sample that has begun within the budget ends within it.
        exact = settings_of(tmp_path / "exact", server.base_url, budget_tokens=200, max_tokens=100, samples=2)
        assert run(exact, questions).complete


def test_a_budget_that_the_steps_in_flight_pass_ends_the_run_by_its_rule(tmp_path: Path) -> None:
    reply, prices = scripted(calls("'a' * 9000"), ANSWER), Prices(prompt=1000.0, completion=1000.0)

    def answer(request: Request) -> Iterable[Step]:
        late = request.method == "POST" and request.number > 34
        return (reply if late else scripted(ANSWER))(request)

    with FakeServer(answer) as server:
        settings = settings_of(tmp_path / "run", server.base_url, budget_usd=40.0, prices=prices)
        with pytest.raises(StoppedByRule, match=r"used, and the [1-8] steps? in flight could use up to \d"):
            run(settings, question_set(tmp_path, 40))


def test_killed_interpreters_are_told_and_no_sample_is_missing(tmp_path: Path) -> None:
    slow, ended = calls("import time\ntime.sleep(0.05)\nglobals().setdefault('kept', 6)"), threading.Event()

    def kill() -> None:
        draw, n_left = random.Random(0), len(START_WAITS) - 1
        while n_left and not ended.wait(draw.uniform(0, 0.5)):
            if sandboxes := [child for child in psutil.Process().children() if child.name() == bubblewrap.PROGRAM]:
                draw.choice(sandboxes).kill()
                n_left -= 1

    killer = threading.Thread(target=kill)
    with FakeServer(scripted(*[slow] * 4, ANSWER)) as server:
        settings = settings_of(
            tmp_path / "run",
            server.base_url,
            tool=PYTHON.settings(FACTS, seconds=1, steps=9, memory_mb=512),
            concurrency=4,
        )
        killer.start()
        outcome = run(settings, question_set(tmp_path, 12))
        ended.set()
        killer.join()
    samples = samples_of(settings)
    told = {call.output for sample in samples for step in sample.steps or () for call in step.calls}
    assert (outcome.complete, len(samples)) == (True, 12)
    assert told <= {"6", f"[the interpreter ended; {LOST}]"}
    assert len([r for r in server.requests if r.method == "POST"]) == 12 * 5, "no step is asked twice"


def test_without_a_sandbox_a_run_ends_with_its_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise HelperFailed("could not start a sandbox")

    with FakeServer(scripted(calls("6*7"), ANSWER)) as server:
        settings = settings_of(tmp_path / "run", server.base_url)
        with monkeypatch.context() as patched:
            patched.setattr(Interpreters, "run", failing)
            with pytest.raises(HelperFailed) as failed:
                run(settings, question_set(tmp_path, 2))
        assert failed.value.exit_code == 5
        assert run(settings, question_set(tmp_path, 2)).complete


# ---- by the command


def questions_file(folder: Path) -> str:
    rows = [{"id": f"q{n}", "question": f"What is 3**{n} mod 1009?", "answer": str(3**n % 1009)} for n in (50, 60)]
    (folder / "powers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(folder / "powers.jsonl")


def able(request: Request) -> Iterable[Step]:
    """A model that cannot compute, and puts into the box what its tool has printed."""
    if request.method == "GET":
        return scripted("")(request)
    messages = request.json["messages"]
    power = messages[0]["content"].split("?")[0].removeprefix("What is ").replace(" mod ", "%")
    return scripted(calls(f"print({power})"), f"\\boxed{{{messages[-1]['content'].strip()}}}")(request)


@needs_packages
def test_a_run_with_a_tool_scores_shows_and_exports(tmp_path: Path) -> None:
    data = questions_file(tmp_path)
    with FakeServer(able) as server:
        words = ["run", "--data", data, "--model", "test-model", "--base-url", server.base_url, "--out", "r"]
        words += ["--samples", "2", "--tool", "python,seconds=5"]
        dry = command(tmp_path, *words, "--dry-run")
        assert "seconds 5, total_seconds 3600, characters 10000" in " ".join(dry.out.split())
        assert "mpmath" in dry.out
        assert command(tmp_path, *words).code == 0
        other = command(tmp_path, *words[:-4], "--samples", "3", "--tool", "python,seconds=6")
    assert other.code != 0
    assert "tool.seconds" in other.err
    scored = command(tmp_path, "score", "r", "--json")
    (score,) = (json.loads((tmp_path / "r" / "powers" / "scores.json").read_text()),)
    assert (scored.code, score["accuracy"]["value"]) == (0, 1.0)
    counted = {name: score["tool"][name] for name in ("n_samples", "with_call", "steps", "calls", "failed", "lost")}
    assert counted == {"n_samples": 4, "with_call": 4, "steps": 8, "calls": 4, "failed": 0, "lost": 0}
    assert "python: 4 of 4 samples called it" in command(tmp_path, "score", "r").out
    shown = command(tmp_path, "show", "r", "q50:0").out
    assert "[step 1: call of python]\nprint(3**50%1009)" in shown
    assert f"[step 1: ran, 0.0 s]\n{3**50 % 1009}" in shown
    assert '"name": "python"' in shown, "the request offers the tool"
    assert command(tmp_path, "export", "r", "--to", "inspect", "--out", "x").code == 0
    with zipfile.ZipFile(tmp_path / "x" / "powers.eval") as log:
        first = json.loads(log.read(next(name for name in log.namelist() if name.startswith("samples/"))))
    assert [turn["role"] for turn in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["messages"][1]["tool_calls"][0]["arguments"]["code"].startswith("print(3**")
    assert command(tmp_path, "export", "r", "--to", "csv", "--out", "c").code == 0
    with (tmp_path / "c" / "powers.csv").open(newline="") as table:
        assert json.loads(next(csv.DictReader(table))["steps"])[0]["calls"][0]["end"] == "ran"
    learned = command(tmp_path, "export", "r", "--to", "sharegpt", "--i-know", "--out", "y")
    assert "with tool calls" in learned.err


def addends(arguments: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a call of the calculator."""
    try:
        return {"numbers": [int(number) for number in arguments["numbers"]]}
    except (LookupError, TypeError, ValueError) as why:
        raise ValueError("expected numbers") from why


class Adding(CallRunner):
    """The runner of the calculator, which has no state."""

    def __init__(self, _: ToolSettings) -> None: ...

    def run(self, key: Hashable, /, numbers: list[int]) -> Ran:  # type: ignore[override]
        return Ran(str(sum(numbers)), "ran")


CALCULATOR = Tool(
    name="calculator",
    parameters={"type": "object"},
    description=lambda _: "Adds numbers.",
    checked=addends,
    runner=Adding,
)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_second_tools_calls_run_and_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    monkeypatch.setitem(TOOLS, "calculator", CALCULATOR)
    add = partial(calling, name="calculator")
    replies = [calls("x = 6"), add('{"numbers": [1, 2]}', '{"numbers": "a"}'), add("1 + 2", ""), ANSWER]
    tool = CALCULATOR.settings()
    sample, outcome, requests = one_sample(tmp_path, *replies, tool=tool, api=api)
    no_object = "the arguments are not a JSON object: Extra data: line 1 column 3 (char 2)"
    assert [[call.output for call in step.calls] for step in sample.steps or ()] == [
        ["there is no tool 'python', only calculator"],
        ["3", "expected numbers"],
        [no_object, "expected numbers"],
        [],
    ]
    arguments = [{"code": "x = 6"}, {"numbers": [1, 2]}, {"numbers": "a"}, {"arguments": "1 + 2"}, {}]
    assert handed_back(requests[-1].json) == arguments
    assert outcome.complete
    lost = '<tool_call>{"name": "calculator", "arguments": {"numbers": [1]}}</tool_call>'
    (tmp_path / "lost").mkdir()
    assert counts_of(one_sample(tmp_path / "lost", lost, tool=tool)[0], "calculator", asks_program=False)[5] == 1
    assert command(tmp_path, "score", "run").code == 0
    assert "calculator: 1 of 1 sample called it" in command(tmp_path, "score", "run").out
    shown = command(tmp_path, "show", "run", f"{sample.question_id}:0").out
    assert '[step 2: call of calculator]\n{"numbers": [1, 2]}\n[step 2: ran' in shown
    assert '"description": "Adds numbers."' in shown, "the request offers it"
    with pytest.raises(StoreError, match="tool"):
        run(settings_of(tmp_path / "run", "http://127.0.0.1:1", api=api, samples=2), question_set(tmp_path, 1))
    assert command(tmp_path, "export", "run", "--to", "inspect", "--out", "x").code == 0
    (log,) = (tmp_path / "x").glob("*.eval")
    with zipfile.ZipFile(log) as file:
        first = json.loads(file.read(next(name for name in file.namelist() if name.startswith("samples/"))))
    called = [call["arguments"] for turn in first["messages"] for call in turn.get("tool_calls") or ()]
    assert called == arguments


@needs_packages
def test_samples_without_a_step_left_are_not_told_to_raise_max_tokens(tmp_path: Path) -> None:
    given = {"data": questions_file(tmp_path), "model": "test-model", "samples": 10, "tool": "python,steps=2"}
    with FakeServer(scripted(calls("1"))) as server:
        run_of = partial(harness.run, base_url=server.base_url, out=str(tmp_path / "r"), **given)
        with pytest.raises(StoppedByRule, match=r"by the tool's step limit .* Allow more tool steps"):
            run_of()
        warned = run_of(canary=False).outcome.warnings
    (score,) = harness.score(tmp_path / "r")
    assert "20 of 20 samples (100.0%) were truncated by the tool's step limit" in score.sentences
    assert "allow more tool steps" in " ".join(warned)
    assert "raise `max_tokens`" not in " ".join(warned).lower()


@needs_packages
def test_lost_calls_are_told_beside_the_score_with_the_parser(tmp_path: Path) -> None:
    data = questions_file(tmp_path)
    with FakeServer(scripted('[TOOL_CALLS]{"code": "1"} \\boxed{1}', model="Qwen/Qwen3-8B")) as server:
        harness.run(data=data, model="Qwen/Qwen3-8B", base_url=server.base_url, out=str(tmp_path / "r"), tool="python")
    (score,) = harness.score(tmp_path / "r")
    assert score.tool
    assert (score.tool.lost, score.tool.with_call) == (2, 0)
    assert [w.text for w in score.warnings if w.kind == "calls"] == [
        "2 of 2 samples (100.0%) contain a call that the server did not parse, so it was not run: start the "
        "server with its tool-call parser (llama.cpp: a chat template that supports tools; vLLM: "
        "--enable-auto-tool-choice --tool-call-parser hermes; SGLang: --tool-call-parser qwen25)"
    ]
    parsers = {"openai/gpt-oss-120b": "openai", "Qwen/Qwen3-Coder-30B": "qwen3_coder", "x/unknown": "the model's"}
    for model, parser in parsers.items():
        assert f"--tool-call-parser {parser}" in calls_remedy(model)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "completions": ({"api": "completions"}, "does not support tool calls"),
    "batch": ({"batch": True}, "does not work with `batch`"),
    "stop": ({"stop": "END"}, "does not work with `stop`"),
    "tools of the user": ({"extra_body": {"tools": []}}, "remove tools from `extra_body`"),
    "budget": ({"budget_usd": 1, "prices": "1,1", "drop": "max_tokens"}, "needs `max_tokens`"),
    "another tool": ({"tool": "search"}, "expected python"),
    "sandbox": ({"tool": "python,sandbox=chroot"}, "unknown sandbox"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_before_the_first_request(tmp_path: Path, case: str) -> None:
    options, why = REFUSED[case]
    with FakeServer(able) as server:
        given = {"data": questions_file(tmp_path), "model": "test-model", "base_url": server.base_url}
        with pytest.raises(UsageError, match=why):
            harness.run(**{**given, "out": str(tmp_path / "r"), "tool": "python", **options})
    assert not [request for request in server.requests if request.method == "POST"]


# ---- kills


def killed_at(number: int, phase: str, kill: threading.Event) -> Any:
    """The conversation of three steps; request `number` asks for the kill before, in or behind its reply."""
    reply = scripted(calls("x = 6\nimport time; time.sleep(0.02)"), calls("x * 7"), ANSWER)

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "GET" or request.number != number:
            yield from reply(request)
            return
        if phase == "before":
            kill.set()
        for n, step in enumerate(reply(request)):
            yield step
            if phase == "inside" and n == 1:
                kill.set()
                yield Pause(0.2)
        if phase == "behind":
            kill.set()

    return answer


@pytest.mark.fuzz
def test_no_kill_loses_a_sample_or_leaves_an_interpreter(tmp_path: Path) -> None:
    draw, n = random.Random(80), 6
    for number in range(rounds(12)):
        folder = tmp_path / str(number // 12)  # twelve kills a run
        folder.mkdir(exist_ok=True)
        kill = threading.Event()
        with FakeServer(killed_at(draw.randrange(1, 10), draw.choice(["before", "inside", "behind"]), kill)) as server:
            child = warm.started(["tests.generation.test_tool", str(folder), server.base_url], cwd=Path.cwd())
            while not kill.wait(0.01) and child.poll() is None:
                pass
            time.sleep(draw.choice([0.0, 0.0, 0.02, 0.1]))
            started = psutil.Process(child.pid).children(recursive=True) if child.poll() is None else []
            child.kill()
            child.wait(PATIENCE_SECONDS)
        _, left = psutil.wait_procs(started, timeout=PATIENCE_SECONDS)
        assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
        settings = settings_of(folder / "run", server.base_url, samples=2)
        if (folder / "run" / "sums" / "samples.jsonl").exists():
            samples_of(settings)
    for folder in tmp_path.iterdir():
        with FakeServer(killed_at(0, "", threading.Event())) as server:
            settings = settings_of(folder / "run", server.base_url, samples=2)
            assert run(settings, question_set(folder, n)).complete
        assert keys_of(settings) == expected_keys(n, 2)
        for sample in samples_of(settings):
            assert [[call.output for call in step.calls] for step in sample.steps or ()] == [
                ["[no output]"],
                ["42"],
                [],
            ]


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    run(settings_of(folder / "run", url, samples=2, concurrency=2), question_set(folder, 6))


if __name__ == "__main__":
    main()


def test_every_field_of_a_reply_survives_a_join() -> None:
    usage = Usage(
        prompt_tokens=1, completion_tokens=2, reasoning_tokens=3, cached_tokens=4, spec_tokens=5, spec_steps=6
    )
    timing = Timing(
        started=9.0,
        queued=1.0,
        first_token=1.0,
        last_token=2.0,
        total=3.0,
        gap_p50=0.1,
        gap_p99=0.2,
        events=7,
        gaps={100: 1},
        clock="kernel",
        late=0.25,
        lag=0.5,
    )
    reply = Reply(text="t", reasoning="r", refusal="f", finish_reason="stop", usage=usage, timing=timing,
                  server_model="m", fingerprint="p", request_id="i", provider="o", stated=usage, stated_total=8,
                  notes=("n",), calls=(Call("c", "python", "1"),), carry=("x",), echo={"top_p": 1},
                  stamps=(1.0, 1.25))  # fmt: skip
    for value in (usage, timing, reply):
        assert all(getattr(value, name) for name in value.__struct_fields__), "a new field needs a value here"
    assert join_replies([reply]) == reply
    later = msgspec.structs.replace(timing, started=19.0)
    two = join_replies([reply, msgspec.structs.replace(reply, text="u", timing=later, notes=("n", "o"))])
    twice = Usage(**{name: 2 * getattr(usage, name) for name in usage.__struct_fields__})
    assert (two.text, two.usage, two.notes) == ("u", twice, ("n", "o"))
    spanned = msgspec.structs.replace(timing, total=13.0, last_token=12.0, gap_p50=None, gap_p99=None, events=14)
    assert two.timing == msgspec.structs.replace(spanned, gaps=msgspec.UNSET)
    assert (reply.gaps, two.gaps) == ({250: 1}, msgspec.UNSET)
    unknown = join_replies([reply, msgspec.structs.replace(reply, usage=Usage(prompt_tokens=1))]).usage
    assert unknown == Usage(prompt_tokens=2)


def test_the_option_says_the_limits_and_refuses_all_else() -> None:
    tool = tool_of("python, steps=8,seconds=10,sandbox=docker:my/image:1")
    assert tool == PYTHON.settings(steps=8, seconds=10, sandbox="docker:my/image:1")
    assert recorded({"tool": tool.identity}) == PYTHON.settings(steps=8, seconds=10)
    assert (tool_of(None), tool_of("none"), recorded({})) == (None, None, None)
    for text in ("", "perl", "python,8", "python,steps=0", "python,steps=1e3", "python,second=1", "python;steps=1"):
        with pytest.raises(ValueError, match=r"expected|unknown setting|must be"):
            tool_of(text)
    assert [PYTHON.parsed(text)["code"] for text in ('{"code": "1"}', "print(1)")] == ["1", "print(1)"]
    for text in ("", " ", "{", '{"code": 1}', '{"kode": "1"}', '{"code":"print(6*7)"'):
        with pytest.raises(ValueError):
            PYTHON.parsed(text)
