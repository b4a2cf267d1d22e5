"""`--json`: the option, how its value is printed, and the schema of what is printed."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class JsonOption(click.Option):
    """The option `--json` of a command. prints: MODULE:TYPE of its output; many: it prints a list of such values."""

    def __init__(self, *args: Any, prints: str, many: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prints, self._many = prints, many

    @property
    def prints(self) -> Any:
        """The type of the output. Its module is imported only here: most commands never show their schema."""
        module, _, name = self._prints.partition(":")
        one: Any = getattr(importlib.import_module(module), name)
        return types.GenericAlias(list, one) if self._many else one


def json_option(prints: str, what: str, *, many: bool = False) -> Callable[[F], F]:
    """The options `--json` and `--json-schema` of a command; prints, many: as in `JsonOption`."""
    as_json = click.option(
        "--json",
        "as_json",
        cls=JsonOption,
        prints=prints,
        many=many,
        is_flag=True,
        help=f"Print {what} as JSON (docs/json.md).",
    )
    its_schema = click.option(
        "--json-schema",
        is_flag=True,
        is_eager=True,  # It works although required arguments are missing.
        expose_value=False,
        hidden=True,
        callback=_say_schema,
    )
    return lambda function: as_json(its_schema(function))


def _say_schema(ctx: click.Context, _parameter: click.Parameter, typed: bool) -> None:
    """Print the schema of what this command prints with `--json`, and exit, if `--json-schema` was typed."""
    if typed and not ctx.resilient_parsing:
        say(schema(ctx.command_path.partition(" ")[2]))
        ctx.exit()


def say(value: Any) -> None:
    """Print `value`, of the type that the option declares, on standard output."""
    from harness.core import codec

    click.echo(codec.pretty(value).decode(), nl=False)


def printing() -> dict[str, JsonOption]:
    """The `--json` options by command, in the order of `harness --help`."""
    from harness.cli.main import COMMANDS, LazyGroup

    top = LazyGroup("harness")
    options: dict[str, JsonOption] = {}
    for name in COMMANDS:
        command = top.get_command(click.Context(top), name)
        assert command is not None
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        titled = [(name, command), *((f"{name} {key}", action) for key, action in sorted(inner))]
        for title, action in titled:
            for option in action.params:
                if isinstance(option, JsonOption):
                    options[title] = option
    return options


def schemas(types: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Make the JSON schemas of these types, under the same keys, and of the records in them, by name.

    A field is required if it is always printed. A later version may print more properties.
    """
    import msgspec

    shapes, records = msgspec.json.schema_components(types.values())
    return dict(zip(types, shapes, strict=True)), {name: _as_printed(record) for name, record in records.items()}


def schema(command: str) -> dict[str, Any]:
    """The JSON schema of what `harness COMMAND --json` prints."""
    shapes, records = schemas({command: printing()[command].prints})
    return {"$schema": DIALECT, "title": f"harness {command} --json", **shapes[command], "$defs": records}


def _as_printed(record: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of one record, with the fields that are always printed marked as required.

    msgspec's schema describes input, in which a field with a default may be missing. Output always has it: only fields
    that may be unset are left out.
    """
    fields = record.get("properties", {})
    required = {*record.get("required", ()), *(name for name, field in fields.items() if "default" in field)}
    shown = dict(record)
    if fields:
        shown["properties"] = {
            name: {key: value for key, value in field.items() if key != "default"} for name, field in fields.items()
        }
        shown["required"] = [name for name in fields if name in required]
    if "description" in record:  # The description is a docstring, with indentation and Python's terms.
        shown["description"] = " ".join(record["description"].split()).replace("None", "null")
    return shown
