"""One road: both doors send the same bodies, servers are looked at once, the manifest says what happened.

For: harness.asking, harness.asking.session, harness.asking.options, harness.verbs.run, harness.verbs.probe.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import harness
from harness.asking import prepare as preparing
from harness.asking.options import RunOptions
from harness.asking.prepare import Prepared, prepare
from harness.benchmarks import catalogue, data
from harness.cli import terminal
from harness.cli.help import spell
from harness.cli.main import main
from harness.cli.probe import command as probe_command
from harness.cli.run import command as run_command
from harness.client.address import providers
from harness.core.codec import sample_seed
from harness.presets import preset as presets
from harness.presets.sampling import sampling_fields
from harness.reports.scored import read_without_grades
from harness.reports.settings import decided_table
from harness.runs import RunFolder
from tests.budget import thinned
from tests.faults.server import FaultServer, Request, Step, completion, http, models
from tests.verbs.toy_model import Fault, Toy, answering

SLOTS = {"total_slots": 3, "default_generation_settings": {"n_ctx": 40960}}
CARDS = catalogue.cards()
ABSENT = {card.name for card in CARDS if data.status(card) == "absent"}

SAMPLING = sampling_fields().keys()


def as_llama_cpp(request: Request) -> Iterator[Step]:
    """Lists one model of llama.cpp's kind, states its slots, answers."""
    path = urlsplit(request.path).path
    if path.endswith("/models"):
        yield http(200, {"data": [{"id": "m", "meta": {"n_ctx_train": 1}}]})
    elif path == "/props":
        yield http(200, SLOTS)
    elif request.method == "GET":
        yield http(404, {})
    else:
        yield from completion(r"so \boxed{2}", tokens=5)


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(3)))
    return path


def command(monkeypatch: pytest.MonkeyPatch, *words: str, verb: str = "run") -> int:
    """`harness VERB WORDS` in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["harness", verb, *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def posted(server: FaultServer) -> list[Any]:
    """What was asked, in an order of its own."""
    return sorted((r.json for r in server.requests if r.method == "POST"), key=json.dumps)


# ---- Python = command


def from_python(given: Mapping[str, Any]) -> Prepared | str:
    """What `harness.run(**given)` samples, or the refusal in the command's words."""
    try:
        with prepare(RunOptions.of(**given)) as prepared:
            return prepared
    except harness.UsageError as error:
        return spell(error.sentence, run_command)


def from_command(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Prepared | str:
    """What `harness run WORDS` samples, caught before it does, or its refusal."""
    caught: list[Prepared] = []

    def instead(prepared: Prepared, _watcher: terminal.Terminal) -> None:
        caught.append(prepared)
        raise SystemExit(0)

    monkeypatch.setattr("harness.verbs.run.sample", instead)
    code = command(monkeypatch, *words)
    refusal = capsys.readouterr().err.strip().splitlines()
    assert code == (0 if caught else 2), refusal
    return caught[0] if caught else refusal[-1].removeprefix("harness: ")


def bodies(prepared: Prepared) -> dict[str, Any]:
    """The body of the first request of each benchmark, where it goes, and how many samples are asked."""
    settings, found = prepared.settings, {}
    urls = [endpoint.base_url + settings.spelling.path for endpoint in settings.endpoints]
    for chosen in prepared.sets:
        first = chosen.questions[0]
        body = settings.template(chosen.name).body(first, sample_seed(settings.seed or 0, first.question_id, 0))
        found[chosen.name] = json.loads(body), urls, settings.benchmarks[chosen.name].samples
    return found


BUILT: dict[str, Any] = {}
build = preparing.questions.build


def built(card: Any, **how: Any) -> Any:
    """`questions.build`, each card once for both doors; of a card whose data are not here, with a question of ours."""
    how.pop("stored_by")  # of an earlier run, and there is none: it names the options, which differ with every test
    key = f"{card.name} {how}"
    if key not in BUILT and card.name not in ABSENT:
        BUILT[key] = build(card, **how)
    elif key not in BUILT:
        demo = build(catalogue.load("demo"), limit=1)
        BUILT[key] = dataclasses.replace(demo, name=card.name, samples=card.samples, sampling=card.sampling)
    return BUILT[key]


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> Callable[[providers.Provider], None]:
    """Servers are not looked at: each is taken to serve the model."""

    def taken(found: Any, options: RunOptions, watcher: Any) -> preparing.Looks:
        looks = tuple(preparing.servers.Look(endpoint=endpoint) for endpoint in found.endpoints)
        return preparing.Looks(options.model or "m", looks)

    monkeypatch.setattr(preparing.servers, "look", taken)
    monkeypatch.setattr(preparing.questions, "build", built)
    monkeypatch.setattr(preparing.catalogue, "load", {card.name: card for card in CARDS}.__getitem__)
    return lambda provider: monkeypatch.setenv(provider.address.key_variable, "sk-0123456789")


PAIRS = [
    (provider, preset)
    for row, provider in enumerate(providers.names())
    for column, preset in enumerate([None, *presets.names()])
    if preset is None or (row + column) % 4 == 0
]
"""Each provider alone, and each preset with a quarter of the providers: a preset sets values, a provider spells."""


@pytest.mark.parametrize(("provider", "preset"), thinned(PAIRS))
def test_every_card_preset_and_provider_is_asked_alike_from_both_doors(
    preset: str | None,
    provider: str,
    unasked: Callable[[providers.Provider], None],
    questions: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = providers.load(provider)
    unasked(known)
    names = ",".join(card.name for card in CARDS)
    model = "some/model"
    url = str(known.address.base_url or f"https://own.example{known.address.path}")
    given: dict[str, Any] = {"benchmarks": names, "limit": 1, "base_url": url, "provider": provider, "model": model}
    given |= {"drop": "stream_options", "out": "run"}
    words = [names, "--limit", "1", "--base-url", url, "--provider", provider, "--model", model]
    words += ["--drop", "stream_options", "--out", "run"]
    if known.seed.support == "refused":
        given["seed"] = None
        words += ["--seed", "none"]
    if preset is not None:
        given["preset"] = preset
        words += ["--preset", preset]
    python, line = from_python(given), from_command(words, monkeypatch, capsys)
    if isinstance(python, str) or isinstance(line, str):
        assert python == line
        assert preset is not None
        assert "--drop" in line
        return
    by_python = bodies(python)
    assert by_python == bodies(line)
    assert python.settings == line.settings
    for card in CARDS:
        body, _, samples = by_python[card.name]
        named = presets.load(preset).sampling if preset is not None else None
        wanted = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768, **card.sampling.sent()}
        wanted |= named.plain.sent() if named is not None else {}
        wanted[python.settings.spelling.max_tokens_field] = wanted.pop("max_tokens")
        assert {name: body.get(name) for name in wanted} == json.loads(json.dumps(wanted))
        assert not {"stream_options", *SAMPLING} - wanted.keys() & body.keys()
        assert samples == card.samples


def test_what_really_arrives_is_the_same_from_both_doors(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(as_llama_cpp) as python:
        harness.run(
            data=questions, base_url=python.base_url, samples=2, out="a", canary=False, preset="qwen3", thinking="off",
            fingerprint=False,
            stop=["END", "STOP"], extra_body={"top_a": 1}, presence_penalty=0.5, system_prompt="Be brief.",
        )  # fmt: skip
    with FaultServer(as_llama_cpp) as line:
        words = (
            "--data",
            str(questions),
            "--base-url",
            line.base_url,
            "--samples",
            "2",
            "--out",
            "b",
            "--no-canary",
            "--no-fingerprint",
        )
        words += ("--preset", "qwen3", "--thinking", "off", "--stop", "END", "--stop", "STOP", "--extra-body")
        words += ('{"top_a": 1}', "--presence-penalty", "0.5", "--system-prompt", "Be brief.")
        assert command(monkeypatch, *words) == 0
    assert posted(python) == posted(line)
    assert len(posted(line)) == 6
    assert posted(line)[0]["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_probe_is_the_same_from_both_doors(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--checks", "streaming,length", "--context", "2048", "--seed", "3", "--header", "X: y")
    options = {"checks": ["streaming", "length"], "context": 2048, "seed": 3, "header": {"X": "y"}}
    with FaultServer(answering(Toy(), Fault())) as python, FaultServer(answering(Toy(), Fault())) as line:
        by_python = harness.probe(python.base_url, save_reference="a.json", quick=True, **options)
        words = (line.base_url, *words, "--quick", "--save-reference", "b.json", "--json")
        code = command(monkeypatch, *words, verb="probe")
    by_line = json.loads(capsys.readouterr().out)
    shown = json.loads(msgspec.json.encode(by_python))
    for report in (shown, by_line):
        del report["seconds"], report["address"]
    assert shown == by_line
    assert code == (0 if by_python.sound else 4)
    assert [finding["check"] for finding in by_line["findings"]] == ["streaming", "length"]
    assert posted(python) == posted(line) != []
    assert {r.headers["x"] for server in (python, line) for r in server.requests if r.method == "POST"} == {"y"}
    assert Path("a.json").is_file()
    assert Path("b.json").is_file()


@pytest.mark.parametrize(
    ("options", "words", "sentence"),
    [
        ({"context": 5}, ("--context", "5"), "greater than or equal to 1024"),
        ({"save_reference": "."}, ("--save-reference", "."), "it is a folder"),
        ({"server": "mine"}, ("--server", "mine"), "both name the server"),
        ({"serve": "vllm"}, ("--serve", "vllm"), "`harness probe` does not take it; `harness run` does"),
    ],
)
def test_a_probe_refuses_in_one_sentence_from_both_doors(
    options: dict[str, Any],
    words: tuple[str, ...],
    sentence: str,
    questions: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(harness.UsageError) as error:
        harness.probe("http://127.0.0.1:9", **options)
    assert sentence in error.value.sentence
    assert command(monkeypatch, "http://127.0.0.1:9", *words, verb="probe") == 2
    assert spell(error.value.sentence, probe_command) in capsys.readouterr().err


@pytest.mark.parametrize(("name", "sent"), [("top_k", True), ("temperature", True), ("max_tokens", False)])
def test_a_probe_names_the_road_of_a_sampling_field_that_it_does_not_take(
    name: str, sent: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """max_tokens is no such field: each check sends its own."""
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(harness.UsageError) as error:
        harness.probe("http://127.0.0.1:9", **{name: 1})
    assert command(monkeypatch, "http://127.0.0.1:9", flag, "1", verb="probe") == 2
    printed = capsys.readouterr().err
    for text, door in ((str(error.value), "extra_body"), (printed, "--extra-body")):
        assert "`harness probe` does not take it; `harness run` does" in text
        road = f"To send the field with each request, give {door} '{{\"{name}\": VALUE}}'"
        assert (road in text) == sent


def test_the_front_doors_sampling_is_the_fields_own(questions: Path) -> None:
    """A card without sampling of its own is asked with the defaults, also from Python."""
    with FaultServer(as_llama_cpp) as server:
        harness.run(data=questions, base_url=server.base_url, out="run", canary=False, fingerprint=False)
    assert {(b["temperature"], b["top_p"], b["max_tokens"]) for b in posted(server)} == {(0.6, 0.95, 32768)}


# ---- one look


def test_each_server_is_looked_at_once(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(as_llama_cpp) as one, FaultServer(as_llama_cpp) as other:
        words = ("--data", str(questions), "--base-url", one.base_url, "--base-url", other.base_url, "--no-canary")
        assert command(monkeypatch, *words, "--out", "run") == 0
        for server in (one, other):
            looked = [r.path for r in server.requests if r.method == "GET"]
            assert looked == ["/v1/models", "/props"]
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    assert manifest["benchmarks"]["sums"]["settings"]["concurrency"] == 6


def test_a_server_that_is_down_is_no_error_where_nothing_is_owed(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--data", str(questions), "--no-canary", "--out", "run", "--model", "m")
    with FaultServer(as_llama_cpp) as server:
        assert command(monkeypatch, *words, "--base-url", server.base_url) == 0
    assert command(monkeypatch, *words, "--base-url", server.base_url) == 0
    assert "no sample is missing" in capfd.readouterr().err
    assert command(monkeypatch, *words, "--base-url", server.base_url, "--samples", "2") == 2
    assert f"127.0.0.1:{server.port}" in capfd.readouterr().err
    assert command(monkeypatch, *words, "--base-url", server.base_url, "--dry-run") == 2


# ---- the manifest says what happened


def recorded(run: harness.Run, name: str = "sums") -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes())["benchmarks"][name]["settings"])


@pytest.mark.parametrize("asked", ["http", "openai"])
def test_the_transport_of_the_options_is_obeyed_and_recorded(questions: Path, asked: Any) -> None:
    with FaultServer(as_llama_cpp) as server:
        run = harness.run(data=questions, base_url=server.base_url, out="run", canary=False, transport=asked)
    said = recorded(run)
    (endpoint,) = said["endpoints"]
    assert (said["transport"], endpoint["transport"], endpoint["proxy"]) == (asked, asked, None)
    by_sdk = {"x-stainless-lang" in r.headers for r in server.requests if r.method == "POST"}
    assert by_sdk == {asked == "openai"}


def test_the_record_is_what_the_server_saw(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-groq-0123456789")
    listed = lambda r: iter([models("qwen/qwen3-32b")]) if r.method == "GET" else completion("2", tokens=1)  # noqa: E731
    with FaultServer(listed) as server:
        run = harness.run(
            data=questions, base_url=server.base_url, provider="groq", model="qwen/qwen3-32b", out="run", canary=False,
            thinking="off", preset="r1", top_k=5, samples=1, extra_body={"service_tier": "auto"},
        )  # fmt: skip
    said = recorded(run)
    for body in posted(server):
        assert body["stream"] is said["stream"] is True
        assert ("stream_options" in body) is said["stream_usage"]
        assert {said["max_tokens_field"], said["seed_field"], "service_tier", "reasoning_effort"} <= body.keys()
        assert set(said["sampling_from"]) - {"max_tokens"} <= body.keys()
    assert said["sampling_from"] == {
        "temperature": "preset r1", "top_p": "preset r1", "top_k": "options", "max_tokens": "default"
    }  # fmt: skip
    chosen_by = {
        "prompt": "default",
        "questions": "default",
        "api": "default",
        "model": "options",
        "endpoints": "options",
    }
    assert chosen_by.items() <= said["chosen_by"].items()
    assert [said["chosen_by"][name] for name in ("samples", "canary")] == ["options"] * 2
    read = read_without_grades(RunFolder(run.path))
    rows = {setting: who for setting, _, who in decided_table(read, "sums").rows}
    assert rows["extra_body.service_tier"] == "options"
    assert rows["extra_body.reasoning_effort"] == "provider groq"
    assert rows["canary"] == "options"
    assert rows["salvage"] == "default"
    assert {"", "not recorded"}.isdisjoint(rows.values()), "a setting that nobody decided"
    assert said["spelt_by"] == {
        "max_tokens_field": "provider groq",
        "seed_field": "provider groq",
        "stream_usage": "provider groq",
        "thinking": "provider groq",
        "extra_body.service_tier": "options",
        "extra_body.reasoning_effort": "provider groq",
    }
    manifest = (run.path / "manifest.json").read_text("utf-8")
    assert json.loads(manifest)["environment"]["provider"] == "groq"
    assert "sk-groq" not in manifest


def test_a_proxy_is_recorded_without_its_password(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FaultServer(as_llama_cpp) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pa%3Ass@127.0.0.1:{proxy.port}")
        run = harness.run(data=questions, base_url="http://api.example.test/v1", out="run", canary=False)
    assert {r.path for r in proxy.requests if r.method == "POST"} == {"http://api.example.test/v1/chat/completions"}
    (said,) = recorded(run)["endpoints"]
    assert (said["transport"], said["proxy"]) == ("http", f"127.0.0.1:{proxy.port}")
    manifest = (run.path / "manifest.json").read_text("utf-8")
    assert "pa:ss" not in manifest
    assert "pa%3Ass" not in manifest
