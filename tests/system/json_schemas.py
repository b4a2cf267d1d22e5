"""What `--json` prints, held to the command's schema; strictly, so that a field that no schema has is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from harness.cli.json_output import output_types, schema


def hold_to_schema(words: Sequence[str], out: str, code: int) -> None:
    """A command's whole standard output: of its schema; or empty, where it failed."""
    if out or code == 0:
        strict(command_of(words)).validate(json.loads(out))


def command_of(words: Sequence[str]) -> str:
    """`serve status` of `serve status --json`; `show` may be left out behind `published`."""
    spellings = (" ".join(words[:2]), words[0], f"{words[0]} show")
    return next(spelling for spelling in spellings if spelling in output_types())


@cache
def strict(command: str) -> Draft202012Validator:
    """The schema, with every field that it does not have forbidden."""
    found = copy.deepcopy(published(command).schema)
    for record in found["$defs"].values():
        if record["type"] == "object":
            record["additionalProperties"] = False
    return Draft202012Validator(found)


@cache
def published(command: str) -> Draft202012Validator:
    """The schema as it is printed: a later version's fields are welcome."""
    found = schema(command)
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def valid(command: str, value: Any) -> bool:
    """By the schema as it is printed."""
    return published(command).is_valid(value)
