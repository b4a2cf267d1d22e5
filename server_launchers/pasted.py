"""Reads an engine's own command line, as its documentation gives it: `vllm serve MODEL --tensor-parallel-size 8 …`.

Options that `ServerSpec` has become ours, and the rest is passed on. Which are which stands in the engine's file.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import UsageError
from server_launchers.engines import table
from server_launchers.spec import ENGINES, OPTIONS, EngineName, ServerSpec

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
"""The beginning of a word that sets a variable."""


class PastedCommand(NamedTuple):
    """A command line of an engine. fields: those of the spec that it sets. passed: words for the engine as they are."""

    engine: EngineName
    model: str
    fields: dict[str, Any]
    passed: list[str]


def read(words: Sequence[str]) -> PastedCommand | None:
    """The command line in these words; None if they start no engine known here.

    A flag that `pasted` of the engine lists sets its field; any other goes to the engine as it is, with its values.
    Raises `UsageError` where a key stands in them, which everybody on the machine could read, or an option of a router.
    """
    settings: dict[str, Any] = {}
    rest = list(words)
    while rest and _ASSIGNMENT.match(rest[0]):
        variable, _, value = rest.pop(0).partition("=")
        settings.setdefault("environment", {})[variable] = value
    # Of two engines with one command line, the first of the list has it.
    calls = {call: engine for engine in reversed(ENGINES) for call in _calls(engine, rest)}
    call = next((call for call in calls if tuple(rest[1 : len(call)]) == call[1:]), None)
    if call is None:
        return None
    engine = calls[call]
    if is_routed := call[-1].endswith(_WITH_ROUTER):
        settings["dp_mode"] = "router"
    if "/" in rest[0]:
        program = Path(rest[0])
        settings["python"] = str(program if program.name.startswith("python") else program.with_name("python"))
    # The engine's own flag → the field that it sets; `!` before a field that it switches off.
    fields = {flag: field for field, flags in table.by_name(engine).pasted.items() for flag in flags.split()}
    model, passed, rest = "", [], rest[len(call) :]
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        field = fields.get(name.lstrip("-").replace("_", "-")) if word.startswith("-") else None
        option = OPTIONS.get((field or "").removeprefix("!"))
        if not word.startswith("-") and not model:
            model = word
        elif field == "api_key":
            raise UsageError(
                f"{name} shows the key to everybody on this machine: put it into a variable, leave the flag out, and "
                "name the variable with api_key_env"
            )
        elif is_routed and name.startswith("--router-"):
            raise UsageError(f"{name}: a router is started here with settings of its own; leave this option of it out")
        elif field is None or (field == "served_name" and not equals and len(_values(rest)) > 1):
            passed += [word, *(values := _values(rest))]
            del rest[: len(values)]
        elif option is not None and option.type is bool:
            settings[option.name] = not field.startswith("!")
        else:
            value = value if equals else rest.pop(0) if rest else ""
            if option is None:  # the model: an argument of `harness serve`, no option
                model = value
            elif field == "chat_template" and not Path(value).is_file():
                passed += [name, value]  # a template's text or name, which only the engine understands
            else:
                settings[field] = _number(value, option.type)
                if field == "dp":  # In its own command, the engine itself spreads requests over the replicas.
                    settings.setdefault("dp_mode", "engine")
    if not model:
        raise UsageError("the command names no model: put it behind the engine's name, or give it by --model")
    return PastedCommand(engine, model, settings, passed)


def _number(text: str, kind: Any) -> Any:
    """The number in a text for an option of a number; any other text as it is, which the spec then refuses."""
    with contextlib.suppress(ValueError):
        return kind(text) if kind in (int, float) else text
    return text


def _values(words: Sequence[str]) -> list[str]:
    """The words up to the next flag."""
    return [*itertools.takewhile(lambda word: not word.startswith("-"), words)]


_WITH_ROUTER = "_router.launch_server"
"""End of the module that starts replicas of an engine and a router before them."""


def _calls(engine: EngineName, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The words that call the engine, by the name of the first of `words`: `vllm serve`, `python3 -m MODULE`."""
    owner = table.by_name(engine)
    program = owner.program(ServerSpec(engine=engine)) if owner.pasted else None
    if program is None or not words:
        return
    name, script = Path(words[0]).name, program.script or program.package
    if name == script:
        yield name, *(program.subcommand or ("serve",))
    if name.startswith("python"):
        yield name, *program.module
        yield name, "-m", owner.router.module.removesuffix("_router") + _WITH_ROUTER
