"""A field of the sampling is declared once, and is then everywhere: each is followed to every place that names it."""

from __future__ import annotations

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
from harness.client.asker import Asker, unset_fields
from harness.client.spelling import RequestTemplate
from harness.core.errors import UsageError
from harness.core.options import options_of
from harness.generation.network.continuing import objection
from harness.options.run import RunOptions
from harness.preparing.run_questions import sampling_of
from harness.presets.preset import SourcedSampling
from harness.presets.sampling import DEFAULT_SAMPLING, SERVER_FILLED, Sampling, sampling_fields
from harness.reports.settings import by_weight
from harness.sweeps.schema import json_schema
from server_launchers.engines import table as engines
from tests.presets.every_field import every_field, value_of

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
    assert RunOptions(**{name: value}).given == {name: value}
    assert name in options_of(RunOptions)
    assert name in inspect.signature(harness.run).parameters
    assert name in {one.name for one in command_of("run").params}
    assert name in json_schema()["$defs"]["SamplingVariant"]["properties"]
    assert name in DROPPABLE
    assert by_weight((name, value)) < by_weight(("unknown", value))
    written = list(value) if isinstance(value, tuple) else value
    card = cards.from_mapping({**CARD, "sampling": {name: written}}, where=Path("own.yaml"))
    assert card.sampling.sent() == {name: value}
    assert card.model_dump(mode="json", exclude_defaults=True)["sampling"] == {name: written}
    preset = SourcedSampling.model_validate({"source": "here", "read": "page", name: written})
    assert preset.plain.sent() == {name: value}
    if name != "max_tokens":  # which stands for itself in a request
        template = RequestTemplate(model="m", sampling=Sampling(**{name: value}).sent())
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


@pytest.mark.parametrize("name", FIELDS)
def test_what_a_continuation_makes_of_a_field_is_what_it_declares(name: str) -> None:
    sampling = {name: FIELDS[name]} if name != "max_tokens" else {}
    why = objection(RequestTemplate(model="m", sampling=sampling), "exact")
    assert bool(why) == (sampling_fields()[name].continued not in ("same", "the rest")), why


def test_an_engines_own_name_of_a_field_has_the_value_that_is_sent_or_the_neutral_one() -> None:
    llama = Asker(model="m", engine="llama.cpp")
    assert llama.neutral_fields({"repetition_penalty": 1.2}) == {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.2}
    assert llama.neutral_fields({})["repeat_penalty"] == 1.0
    for given in ("repeat_penalty", "repetition_penalty"):
        assert replace(llama, left_out=frozenset([given])).neutral_fields({"top_k": 5}) == {"min_p": 0.0}
    assert Asker(model="m", engine="unknown").neutral_fields({}) == {}


def test_the_defaults_are_those_that_the_help_states() -> None:
    stated = {name: re.search(r"Default: ([0-9.]+)\.$", field.help) for name, field in sampling_fields().items()}
    assert {name: float(found[1]) for name, found in stated.items() if found} == DEFAULT_SAMPLING.sent()


def test_a_text_is_no_number_in_the_sampling() -> None:
    with pytest.raises(UsageError, match=r"temperature='0\.6': expected a valid number"):
        Sampling(temperature="0.6")  # type: ignore[arg-type]


def test_a_stronger_layer_of_sampling_replaces_what_it_sets_and_no_more() -> None:
    weak: dict[str, Any] = {"temperature": 0.9, "top_k": 20}
    strong: dict[str, Any] = {"temperature": 0.2}
    for own, card, sent in ((strong, weak, {"temperature": 0.2, "top_k": 20}), (weak, strong, weak), ({}, {}, {})):
        sampling, origins = sampling_of(RunOptions.of(**own), None, Sampling(**card))
        assert sampling.sent() == {**DEFAULT_SAMPLING.sent(), **sent}
        assert [name for name, origin in origins.items() if origin == "options"] == [*own]
