"""`--json`: the option, how the value is printed, and the schema of the output."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_type_hints

import click

from harness.cli.help import Flag
from harness.core.field_docs import record_docs
from harness.core.options import options_of
from harness.options.commands import COMMANDS, options_class

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def printed_type(name: str) -> Any:
    """The type of an output. name: MODULE:TYPE or list[MODULE:TYPE]; the module is imported only here."""
    module, _, record = name.removeprefix("list[").removesuffix("]").partition(":")
    printed: Any = getattr(importlib.import_module(module), record)
    return types.GenericAlias(list, printed) if name.startswith("list[") else printed


def schema_flag() -> click.Option:
    """The flag that prints the schema of a command's JSON output."""
    return click.Option(
        ["--json-schema"],
        is_flag=True,
        is_eager=True,  # so that it works even if required arguments are missing
        expose_value=False,
        hidden=True,
        callback=_print_schema,
    )


def json_flags(prints: str) -> list[click.Parameter]:
    """The `--json` and `--json-schema` flags of a command that prints a list. prints: its type."""
    shown = "Print the list as JSON (docs/json.md)."
    return [Flag(["--json", "as_json"], prints=prints, is_flag=True, help=shown), schema_flag()]


def _print_schema(ctx: click.Context, _parameter: click.Parameter, typed: bool) -> None:
    """If `--json-schema` was typed, print the schema of what this command prints with `--json`, and exit."""
    if typed and not ctx.resilient_parsing:
        print_json(schema(ctx.command_path.partition(" ")[2]))
        ctx.exit()


def print_json(value: Any) -> None:
    """Print `value`, which has the type that the option declares, on standard output."""
    from harness.core import codec

    click.echo(codec.pretty(value).decode(), nl=False)


def output_types() -> dict[str, str]:
    """Command → the type of what it prints with `--json` (`Option.prints`), in the order of `harness --help`."""
    printed: dict[str, str] = {}
    for name, command in COMMANDS.items():
        if command.options:
            flags = [(name, option.prints) for option in options_of(options_class(name)).values()]
        else:
            group: click.Group = importlib.import_module(f"harness.cli.{name}").command
            flags = [
                (f"{name} {inner}", parameter.prints)
                for inner in sorted(group.commands)
                for parameter in group.commands[inner].params
                if isinstance(parameter, Flag)
            ]
        printed |= {title: prints for title, prints in flags if prints}
    return printed


def schemas(types: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the JSON schemas of these types, under the same keys, and of the records they contain, by name.

    A field is required if it is always printed. A later version may print more properties.
    """
    import msgspec

    shapes, records = msgspec.json.schema_components(types.values())
    classes = _records(tuple(types.values()), {})
    printed = {name: _as_printed(record, record_docs(classes[name])) for name, record in records.items()}
    return dict(zip(types, shapes, strict=True)), printed


def _records(shapes: Iterable[Any], found: dict[str, type]) -> dict[str, type]:
    """Add the records in these types and their fields to `found`, by name."""
    for shape in shapes:
        _records(get_args(shape), found)
        if hasattr(shape, "__annotations__") and shape.__name__ not in found:
            found[shape.__name__] = shape
            _records(get_type_hints(shape).values(), found)
    return found


def schema(command: str) -> dict[str, Any]:
    """The JSON schema of what `harness COMMAND --json` prints."""
    shapes, records = schemas({command: printed_type(output_types()[command])})
    return {"$schema": DIALECT, "title": f"harness {command} --json", **shapes[command], "$defs": records}


def _as_printed(record: dict[str, Any], docs: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of one record, with a description of each field; fields that are always printed are required.

    msgspec's schema describes input, where a field with a default may be missing. Output always contains it: only
    fields that may be unset are omitted.
    """
    fields = record.get("properties", {})
    required = {*record.get("required", ()), *(name for name, field in fields.items() if "default" in field)}
    shown = dict(record)
    if fields:
        shown["properties"] = {
            name: {key: value for key, value in field.items() if key != "default"} | _description(docs.get(name, ""))
            for name, field in fields.items()
        }
        shown["required"] = [name for name in fields if name in required]
    if places := record.get("prefixItems"):  # a record that is printed as a list
        shown["prefixItems"] = [kind | _description(text) for kind, text in zip(places, docs.values(), strict=True)]
    return shown | _description(record.get("description", ""))


def _description(docstring: str) -> dict[str, str]:
    """The `description` of a schema, made from a docstring's first paragraph, with JSON terms in place of Python
    terms.
    """
    return {"description": " ".join(docstring.partition("\n\n")[0].split()).replace("None", "null")}
