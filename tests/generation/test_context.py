"""Prompt + max_tokens against the server's context, before the first sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ServerError
from harness.generation.context import fitted_max_tokens, may_lower, prompt_tokens
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest
from harness.testing import FakeServer, http, models, serving
from tests.generation.small_runs import question_set, run, run_settings, well
from tests.runs.recorded import question
from tests.system.command import harness


def with_max_tokens(settings: RunSettings, n: int) -> RunSettings:
    return replace(settings, benchmarks={"sums": BenchmarkSettings(samples=2, sampling=Sampling(max_tokens=n))})


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


def test_what_cannot_fit_is_one_sentence_with_both_ways_out() -> None:
    with pytest.raises(ServerError) as refused:
        fitted_max_tokens("aime24", [question(text="x" * 600)], 32768, 32768, fit=False)
    message = str(refused.value)
    assert "aime24" in message
    assert "max_tokens 32768" in message
    assert "context length is 32768" in message
    assert "Increase the server's context length" in message
    assert "the longest prompt (100 to 365 tokens)" in message
    # The advice is what fit_context sends, so that it is not refused in its turn.
    fitted = fitted_max_tokens("aime24", [question(text="x" * 600)], 32768, 32768, fit=True)
    assert f"set max_tokens={fitted}" in message
    assert "fit_context" in message
    assert "\n" not in message


def test_what_may_fit_is_not_refused() -> None:
    assert fitted_max_tokens("b", [question(text="x" * 600)], 32000, 32768, fit=False) == 32000
    assert fitted_max_tokens("b", [question(text="x")], None, 10, fit=False) is None


@pytest.mark.parametrize(
    ("who", "fit_context", "lowered"),
    [("default", False, True), ("default", True, True), ("card", True, True)]
    + [(who, False, False) for who in ("options", "preset r1", "card")],
)
def test_what_nobody_gave_may_be_lowered_and_what_was_given_only_by_the_option(
    who: str, fit_context: bool, lowered: bool
) -> None:
    assert may_lower({"temperature": "default", "max_tokens": who}, fit_context=fit_context) is lowered
    assert not may_lower({"temperature": "default"}, fit_context=False)


def server_with(context: int, model: str = "test-model") -> FakeServer:
    return FakeServer(serving(well, model, max_model_len=context))


def test_a_run_that_cannot_fit_ends_before_its_first_sample_and_binds_nothing(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 3)
    with server_with(2048) as server:
        settings = run_settings(tmp_path / "run", server.base_url)
        with pytest.raises(ServerError, match="context length is 2048"):
            run(with_max_tokens(settings, 2048), questions, contexts=[2048])
        assert all(r.method == "GET" for r in server.requests)
        assert run(with_max_tokens(settings, 1024), questions, contexts=[2048]).complete


def own_questions(folder: Path, base_url: str, *more: str) -> tuple[str, ...]:
    """The words of a run of one's own file of questions, of samples in the folder `run`."""
    (folder / "sums.csv").write_text("question,answer\nWhat is 1 + 1?,2\n", encoding="utf-8")
    return "run", "--data", "sums.csv", "--out", "run", "--no-fingerprint", "--no-canary", "--base-url", base_url, *more


def test_shards_with_prompts_of_other_lengths_fit_one_max_tokens_and_are_joined(tmp_path: Path) -> None:
    with server_with(32768) as server:
        words = [*own_questions(tmp_path, server.base_url)]
        lines = (f"What is 1 + 1?{' really' * 400 * n},2\n" for n in range(8))
        (tmp_path / "sums.csv").write_text("question,answer\n" + "".join(lines), encoding="utf-8")
        for shard in ("1/2", "2/2"):
            words[words.index("--out") + 1] = shard[0]
            done = harness(tmp_path, *words, "--shard", shard)
            assert done.code == 0, done.err
    assert harness(tmp_path, "merge", "1", "2", "--out", "both").code == 0


def test_a_run_of_own_questions_fits_the_default_to_the_context_and_its_resume_keeps_it(tmp_path: Path) -> None:
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
            more = ("--max-tokens", "8192", "--attempts", "1", "--out", str(tmp_path / code))
            done = harness(tmp_path, *own_questions(tmp_path, server.base_url, *more))
        assert done.code == 1
        assert words in done.err
        assert ("the same command again" in done.err) == again, done.err
