"""A secret goes out by its name alone: not as text, not in what holds it, not as JSON, not by pickle or a copy."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import pickle  # noqa: TID251 - what is tried is that it refuses
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, TypeAdapter

import harness
from harness.core import codec
from harness.core.secret import HIDDEN, Secret

KEY = "sk-secret-type-0123456789"


class Struct(msgspec.Struct):
    key: Any


@dataclasses.dataclass
class Data:
    key: Any
    others: tuple[Any, ...] = ()


class Model(BaseModel):
    key: Secret
    others: tuple[tuple[str, Secret], ...] = ()


HOLDERS: dict[str, Callable[[Secret], Any]] = {
    "itself": lambda one: one,
    "a tuple": lambda one: ("name", one),
    "a mapping": lambda one: {"key": one},
    "a key of a mapping": lambda one: {one: 1},
    "a struct": Struct,
    "a dataclass": lambda one: Data(one, (one,)),
    "a model": lambda one: Model(key=one, others=(("X", one),)),
}

WAYS_OUT: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "repr": repr,
    "format": lambda one: f"{one} {one!s} {one!r}",
    "percent": lambda one: "%s %r" % (one, one),  # noqa: UP031
    "an exception": lambda one: str(ValueError(one)),
    "a traceback": lambda one: _traceback(one),
    "json": lambda one: json.dumps(one, default=str),
    "msgspec": msgspec.json.encode,
    "to builtins": msgspec.to_builtins,
    "msgspec, with str": lambda one: msgspec.json.encode(one, enc_hook=str),
    "the codec": codec.encode,
    "pydantic": lambda one: TypeAdapter(type(one)).dump_json(one),
    "a model's JSON": lambda one: one.model_dump_json() if isinstance(one, Model) else "",
    "a model's mapping": lambda one: one.model_dump() if isinstance(one, Model) else "",
    "asdict": lambda one: dataclasses.asdict(one) if isinstance(one, Data) else "",
    "pickle": pickle.dumps,
    "an old pickle": lambda one: pickle.dumps(one, protocol=0),
    "its state": lambda one: one.__reduce_ex__(2),
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
}


def _traceback(one: Any) -> str:
    local = one
    try:
        raise ValueError(local)
    except ValueError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def shown(way: Callable[[Any], Any], value: Any) -> str:
    """What comes out, or the words of the refusal."""
    try:
        out = way(value)
    except Exception as error:  # noqa: BLE001 - a refusal of whatever kind
        return f"{type(error).__name__}: {error}"
    return out.decode("latin-1") if isinstance(out, bytes) else str(out)


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_way_out_shows_it(holder: str, way: str) -> None:
    assert KEY not in shown(WAYS_OUT[way], HOLDERS[holder](Secret(KEY)))


@pytest.mark.parametrize("way", [name for name in WAYS_OUT if not name.startswith(("a model", "asdict", "its state"))])
def test_a_plain_text_would_be_seen(way: str) -> None:
    """The wrong twin: what is held is no secret."""
    assert KEY in shown(WAYS_OUT[way], KEY if way in ("str", "repr", "an exception") else ["x", KEY]), way


def test_it_is_itself_where_it_is_compared_and_revealed_by_name() -> None:
    assert Secret(KEY) == Secret(KEY) != Secret("other")
    assert Secret(KEY) != KEY
    assert {Secret(KEY): 1}[Secret(KEY)] == 1
    assert (bool(Secret(KEY)), bool(Secret(""))) == (True, False)
    assert Secret.of(Secret.of(KEY)).reveal() == KEY
    assert copy.deepcopy(Data(Secret(KEY))).key.reveal() == KEY
    assert Model.model_validate({"key": KEY}).key == Model.model_validate_json(f'{{"key": "{KEY}"}}').key == Secret(KEY)
    assert Model(key=Secret(KEY)).model_dump_json() == f'{{"key":"{HIDDEN}","others":[]}}'


REVEALING = {"client/address/endpoint.py", "client/openai_sdk.py", "core/secret.py"}
"""Modules that reveal a secret: into headers and the query of an address, to be looked for in the texts of others, into
a request, and to a worker of ours on another machine."""


def revealed(source: str) -> bool:
    if "reveal" not in source and not ("_value" in source and "Secret" in source):
        return False  # at once: most files name neither
    names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    return "reveal" in names or ("_value" in names and "Secret" in source)


def test_it_is_revealed_in_these_places_only() -> None:
    root = Path(harness.__file__).parent
    sources = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")}
    modules = {name for name, text in sources.items() if revealed(text)}
    assert modules == REVEALING
    assert revealed("show(endpoint.api_key.reveal())")
    assert revealed("from harness.core.secret import Secret\nprint(key._value)")
    writing = {name for name, text in sources.items() if "Bearer {" in text}
    assert writing - {"viewer/request.py"} == {"core/secret.py"}, "one place writes the header"
