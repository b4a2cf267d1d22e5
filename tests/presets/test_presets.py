"""Presets: facts about models, with their sources.

For: harness.presets.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

import harness
from harness.benchmarks import card as cards
from harness.cli.flags import command_of
from harness.client.address.fields import DROPPABLE
from harness.client.request_builder import Asker, unset_fields
from harness.client.request_fields import RequestTemplate
from harness.core.errors import UsageError
from harness.core.options import options_of
from harness.options.run import RunOptions
from harness.preparing.run_questions import sampling_of
from harness.presets import preset as presets
from harness.presets.preset import Preset, RunProfile, Sourced, SourcedSampling
from harness.presets.sampling import DEFAULT_SAMPLING, SERVER_FILLED, Sampling, sampling_fields
from harness.reports.settings import by_weight
from harness.sweeps.schema import json_schema
from server_launchers.engines import sglang
from server_launchers.engines import table as engines
from tests.presets.every_field import every_field, value_of

FAMILIES: dict[str | None, str] = {
    "qwq-32b": "Qwen/QwQ-32B /models/QwQ-32B",
    "qwen3": "qwen/qwen3-32b Qwen/Qwen3-30B-A3B",
    "qwen3-thinking": "Qwen/Qwen3-30B-A3B-Thinking-2507 Qwen/Qwen3-Next-80B-A3B-Thinking-FP8",
    "qwen3.5": "Qwen/Qwen3.5-397B-A17B",
    "qwen3.6": "Qwen/Qwen3.6-27B",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "deepseek-r1-0528": "deepseek-ai/DeepSeek-R1-0528",
    "deepseek-r1-distill": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-v3.1": "deepseek-ai/DeepSeek-V3.1-Terminus",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "deepseek-v4": "deepseek-ai/DeepSeek-V4-Flash",
    "gpt-oss": "openai/gpt-oss-120b",
    "glm-4.5": "zai-org/GLM-4.5-Air",
    "glm": "zai-org/GLM-5-FP8",
    "kimi-k2-thinking": "moonshotai/Kimi-K2-Thinking",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "kimi-k3": "moonshotai/Kimi-K3",
    "minimax-m2": "MiniMaxAI/MiniMax-M2.5",
    "minimax-m3": "MiniMaxAI/MiniMax-M3",
    "nemotron-3": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "magistral": "mistralai/Magistral-Small-2509",
    "ministral-3-reasoning": "mistralai/Ministral-3-8B-Reasoning-2512",
    "phi-4-reasoning": "microsoft/Phi-4-reasoning-plus",
    "olmo-3-think": "allenai/Olmo-3-32B-Think",
    "gemma-4": "google/gemma-4-31B-it",
    "skywork-or1": "Skywork/Skywork-OR1-32B",
    "openthinker3": "open-thoughts/OpenThinker3-7B",
    "limo": "GAIR/LIMO",
    None: "Qwen/Qwen3-4B-Instruct-2507 Qwen/Qwen2.5-7B zai-org/GLM-4.5V moonshotai/Kimi-K2-Instruct",
}
"""Preset → models that find it, by hub name or folder."""


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_well_formed_and_finds_its_own_models(name: str) -> None:
    preset = presets.load(name)
    for pattern in preset.models:
        found = presets.for_model(pattern.replace("*", "x"))
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_contradicts_itself_in_nothing_but_what_a_run_has_to_say(name: str) -> None:
    """Its own sampling fits its own card, and leaves room for a prompt in its own context."""
    preset = presets.load(name)
    assert preset.sampling is not None
    warnings = preset.contradictions(asked(preset.sampling.plain, system_prompt=own_prompt(preset)))
    assert [one for one in warnings if "max_tokens" in one or "the model card recommends " in one] == []


def own_prompt(preset: presets.Preset) -> str | None:
    return "the model's" if preset.rule("system_prompt") else None


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for name, some in FAMILIES.items() for model in some.split()]
)
def test_a_model_finds_its_preset_by_hub_name_or_folder(model: str, name: str | None) -> None:
    found = presets.for_model(model)
    assert (found.name if found else None) == name


def asked(sampling: Sampling | None = None, **more: Any) -> RunProfile:
    return RunProfile(**{"sampling": sampling or Sampling(), "thinking": "on", **more})


def said(name: str, given: RunProfile) -> list[str]:
    return [str(one) for one in presets.load(name).contradictions(given)]


SOUND = {
    "qwq-32b": asked(Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=32768)),
    "deepseek-r1": asked(Sampling(temperature=0.5, top_p=0.95)),
    "qwen3": asked(Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=32768)),
    "gpt-oss": asked(Sampling(temperature=1.0), thinking="high"),
    "deepseek-v3.2": asked(Sampling(temperature=1.0, top_p=0.95)),
    "magistral": asked(Sampling(temperature=0.7, top_p=0.95), system_prompt="the model's own"),
    "limo": asked(Sampling(temperature=0.9, max_tokens=30720)),
}
"""Runs that no card speaks against. LIMO's has no sampling of its own."""


@pytest.mark.parametrize("name", SOUND)
def test_a_run_as_the_card_asks_is_not_warned_of(name: str) -> None:
    assert said(name, SOUND[name]) == []


NO_ROOM = "`max_tokens` 32768 leaves no room for a prompt in a context of 32768 tokens"


@pytest.mark.parametrize(
    ("name", "change", "begins"),
    [
        ("qwq-32b", {"sampling": Sampling(temperature=0)}, "temperature 0: the model card warns of endless"),
        ("deepseek-r1", {"system_prompt": "You are …"}, "a system prompt: the model card says to put all instructions"),
        ("magistral", {"system_prompt": None}, "no system prompt: the model card recommends the system prompt used"),
        ("gpt-oss", {"templated": False}, "no chat template: the model card says that the model works only with the"),
        ("gpt-oss", {"thinking": None}, "no effort is set: the default effort is medium"),
        (
            "deepseek-v3.2",
            {"thinking": None},
            "no thinking: the model thinks only if its chat template enables thinking",
        ),
        (
            "qwen3",
            {"sampling": Sampling(temperature=0.7, top_p=0.95)},
            "the model card recommends temperature 0.6 (not 0.7), top_k 20 (not sent); `preset=qwen3` applies its "
            "sampling settings",
        ),
        (
            "qwen3",
            {"sampling": Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=4096)},
            "`max_tokens` 4096: the model card recommends 32,768",
        ),
        ("limo", {"sampling": Sampling(max_tokens=32768)}, NO_ROOM),
        ("qwen3", {"context": 32768}, NO_ROOM),
    ],
)
def test_each_rule_of_a_card_is_warned_of_once(name: str, change: dict[str, Any], begins: str) -> None:
    (sentence,) = said(name, dataclasses.replace(SOUND[name], **change))
    assert sentence.startswith(begins)


def test_an_unknown_preset_names_the_near_one() -> None:
    with pytest.raises(UsageError, match=r"preset='qwq-32': unknown preset; .* Did you mean qwq-32b\?"):
        presets.load("qwq-32")
    with pytest.raises(UsageError, match=r"unknown preset; expected one of deepseek-r1"):
        presets.load("../spec")


@pytest.mark.parametrize(
    ("name", "engine", "parser"),
    [
        ("gpt-oss", "vllm", "openai_gptoss"),
        ("gpt-oss", "sglang", "gpt-oss"),
        ("kimi-k2-thinking", "sglang", "kimi_k2"),
        ("deepseek-r1", "sglang", "deepseek_r1"),
        ("olmo-3-think", "sglang", None),
    ],
)
def test_a_parser_has_the_engines_own_name(name: str, engine: str, parser: str | None) -> None:
    found = presets.load(name).reasoning_parser
    assert found is not None
    assert found.name_in(engine) == parser


def test_sglangs_underscored_parsers_keep_their_names_in_either_spelling() -> None:
    for name in sglang.UNDERSCORED:
        assert sglang._parser(name) == sglang._parser(name.replace("_", "-")) == name
    assert sglang._parser("deepseek_r1") == sglang._parser("deepseek-r1") == "deepseek-r1"


def test_a_preset_without_models_is_found_by_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (presets._FOLDER / "r1.yaml").read_text("utf-8").splitlines()
    without = [line for line in lines if not line.startswith("models:")]
    assert len(without) == len(lines) - 1
    (tmp_path / "mine.yaml").write_text("\n".join(without), "utf-8")
    monkeypatch.setattr(presets, "_FOLDER", tmp_path)
    assert presets.for_model("org/m") is None
    assert presets.load("mine").models == ()


# -- sampling fields ---------------------------------------------------------------------------------------------------


FIELDS = every_field()

CARD = {
    "name": "own",
    "title": "Own",
    "prompt": "boxed",
    "source": {"kind": "file", "path": "set.jsonl"},
    "columns": {"question": "problem", "answer": "answer"},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_everywhere(name: str) -> None:
    value = FIELDS[name]
    assert RunOptions(**{name: value}).explicit == {name: value}
    assert name in options_of(RunOptions)
    assert name in inspect.signature(harness.run).parameters
    assert name in {one.name for one in command_of("run").params}
    assert name in json_schema()["$defs"]["SamplingVariant"]["properties"]
    assert name in DROPPABLE
    assert by_weight((name, value)) < by_weight(("unknown", value))
    written = list(value) if isinstance(value, tuple) else value
    card = cards.from_mapping({**CARD, "sampling": {name: written}}, where=Path("own.yaml"))
    assert card.sampling.request_fields() == {name: value}
    assert card.model_dump(mode="json", exclude_defaults=True)["sampling"] == {name: written}
    preset = SourcedSampling.model_validate({"source": "here", "read": "page", name: written})
    assert preset.plain.request_fields() == {name: value}
    if name != "max_tokens":  # which stands for itself in a request
        template = RequestTemplate(model="m", sampling=Sampling(**{name: value}).request_fields())
        assert json.loads(json.dumps(template.spelling.fields("m", template.sampling)))[name] == written


def test_a_field_of_a_new_type_is_given_its_value_in_one_place() -> None:
    assert value_of("effort", Literal["low", "high"]) == "low"
    with pytest.raises(pytest.fail.Exception, match=r"sampling field bias is a .*every_field\.py a value of it"):
        value_of("bias", dict[str, int])


def test_a_card_and_a_run_are_held_to_the_same_bounds() -> None:
    for sampling in ({"temperature": -1}, {"top_p": 0}, {"stop": [""]}, {"top_kk": 1}):
        with pytest.raises(UsageError, match="sampling"):
            cards.from_mapping({**CARD, "sampling": sampling}, where=Path("own.yaml"))
    with pytest.raises(UsageError, match="temperature"):
        cards.from_mapping({**CARD, "sampling": {"temperature": "0.6"}}, where=Path("own.yaml"))
    assert RunOptions.of(temperature="0.6").temperature == 0.6


def test_each_engine_has_a_value_for_each_field_that_servers_fill() -> None:
    assert set(SERVER_FILLED) == {"top_k", "min_p", "repetition_penalty"}, (
        "a field with `filled` needs its neutral value in `Dialect.neutral` of each engine (server_launchers/engines); "
        "then write its name into this test"
    )
    with_neutral = [profile for profile in engines.profiles() if profile.neutral is not None]
    assert with_neutral
    for profile in with_neutral:
        assert unset_fields(Asker(model="m", engine=profile.name).neutral_fields({})) == [], profile.name


def test_an_engines_name_of_a_field_has_the_sent_or_neutral_value() -> None:
    llama = Asker(model="m", engine="llama.cpp")
    assert llama.neutral_fields({"repetition_penalty": 1.2}) == {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.2}
    assert llama.neutral_fields({})["repeat_penalty"] == 1.0
    for given in ("repeat_penalty", "repetition_penalty"):
        assert replace(llama, left_out=frozenset([given])).neutral_fields({"top_k": 5}) == {"min_p": 0.0}
    assert Asker(model="m", engine="unknown").neutral_fields({}) == {}


def test_the_defaults_are_those_that_the_help_states() -> None:
    stated = {name: re.search(r"Default: ([0-9.]+)\.$", field.help) for name, field in sampling_fields().items()}
    assert {name: float(found[1]) for name, found in stated.items() if found} == DEFAULT_SAMPLING.request_fields()


def test_a_text_is_no_number_in_the_sampling() -> None:
    with pytest.raises(UsageError, match=r"temperature='0\.6': expected a valid number"):
        Sampling(temperature="0.6")  # type: ignore[arg-type]


def test_a_stronger_layer_of_sampling_replaces_what_it_sets_and_no_more() -> None:
    weak: dict[str, Any] = {"temperature": 0.9, "top_k": 20}
    strong: dict[str, Any] = {"temperature": 0.2}
    for own, card, sent in ((strong, weak, {"temperature": 0.2, "top_k": 20}), (weak, strong, weak), ({}, {}, {})):
        sampling, origins = sampling_of(RunOptions.of(**own), None, Sampling(**card))
        assert sampling.request_fields() == {**DEFAULT_SAMPLING.request_fields(), **sent}
        assert [name for name, origin in origins.items() if origin == "options"] == [*own]


# -- the page of presets -----------------------------------------------------------------------------------------------


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "presets.md"
READ = {"page": "verified", "quoted": "verified from a quotation", "no": "not verified"}
ADVICE = {"no_greedy": "no greedy decoding"}
BEGIN, END = "<!-- tables made from harness/presets/files -->", "<!-- /tables -->"


def source(fact: Sourced | SourcedSampling) -> str:
    """Where a fact stands, and how it was read."""
    linked = re.sub(r"(https?://[^ ,;)]+)", r"<\1>", fact.source)
    return f"Source ({READ[fact.read]}): {linked}"


def label(names: str) -> str:
    """The engine whose own names of parsers stand under that key, as people write it."""
    summary = next(one.summary for one in engines.engines_by_name().values() if one.parsers == names)
    return summary.removeprefix("Start ").partition(" (")[0]


def section(preset: Preset) -> list[str]:
    """What the page says of one preset."""
    lines = [f"### {preset.name}", ""]
    if preset.models:
        lines.append(f"- models: {', '.join(f'`{pattern}`' for pattern in preset.models)}")
    if (sampling := preset.sampling) is not None:
        sent = ", ".join(f"{name} {value:g}" for name, value in sampling.plain.request_fields().items())
        ranges = ", ".join(f"{name} {least:g} to {most:g}" for name, (least, most) in sampling.range.items())
        allowed = f"; no warning for {ranges}" if ranges else ""
        whose = "" if sampling.card else ", not from a model card"
        lines.append(f"- sampling{whose}: {sent}{allowed}. {source(sampling)}")
    if (context := preset.context) is not None:
        lines.append(f"- context: {context.tokens:,}. {source(context)}")
    if (parser := preset.reasoning_parser) is not None:
        rest = "".join(
            f"; {label(engine)} {f'calls it {name}' if name else 'has none'}" for engine, name in parser.but.items()
        )
        lines.append(f"- reasoning parser: {parser.name}{rest}. {source(parser)}")
    for advice in preset.advice:
        lines.append(f"- {ADVICE.get(advice.rule, advice.rule.replace('_', ' '))}: {advice.text}. {source(advice)}")
    return [*lines, ""]


def tables() -> str:
    """Everything between the two marks of the page."""
    return "\n".join([BEGIN, "", *(line for name in presets.names() for line in section(presets.load(name))), END])


def test_the_page_has_every_preset_as_the_data_have_it() -> None:
    found = re.search(re.escape(BEGIN) + ".*" + re.escape(END), PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    assert found[0] == tables(), "run `python -m tests.presets.test_presets`"


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + tables() + rest.partition(END)[2], "utf-8")
