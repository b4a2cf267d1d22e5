"""Reads and checks a sweep's file: every error names file, line, key, and what was expected.

The shipped files are the suites: sweeps of a named set of benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.benchmarks.catalogue import suites
from harness.core import yaml_file
from harness.core.errors import UsageError, misspelt, near_names
from harness.core.inert import visible
from harness.core.validation import first_of, located, problem_of
from harness.runs.layout import run_around
from harness.sweeps import schema

Keys = Sequence[str | int]
"""The path to a value in the file, such as `("servers", 0, "engine")`."""

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """The content of a sweep's file, checked against the schema, with the keys of the file that it extends.

    where: returns "file:line" of the value that a path of keys leads to. own: the keys that the file itself holds. The
    names of entries in them are checked; those of the file that it extends may be of entries that this one replaces.
    """

    path: Path
    content: dict[str, Any]
    where: Callable[[Keys], str]
    own: Collection[str] = ()

    @property
    def name(self) -> str:
        """The name that the file gives the sweep; without one, the file's own name."""
        return str(self.content.get("name") or self.path.stem.lower())


def read(path: Path, extending: Sequence[Path] = ()) -> SweepFile:
    """Read a sweep's file. extending: the files that extend it, in turn.

    Raises `UsageError`: one sentence with file, line and key.
    """
    if (run := run_around(path)) is not None and path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path} is a file of the run {run}. A sweep's file is YAML that lists models and benchmarks: "
            f"datasets/templates has some to copy"
        )
    content, line = yaml_file.read_with_lines(path, "a sweep")

    def position(keys: Keys) -> str:
        return f"{path}:{line(keys)}"

    try:
        schema.sweep_model().model_validate(content)
    except ValidationError as error:
        raise UsageError(_sentence(error, content, position)) from None
    except UsageError as error:  # The validator of an option has its own message.
        raise UsageError(f"{path}: {error.sentence}") from error
    own = content.keys()
    if "extends" in content:
        content = _extend(content, position, (*extending, path.resolve()))
    if "benchmarks" not in content:
        raise UsageError(f"{position(())}: the key 'benchmarks' is missing")
    return SweepFile(path=path, content=content, where=position, own=own)


def _extend(content: dict[str, Any], where_of: Callable[[Keys], str], extending: Sequence[Path]) -> dict[str, Any]:
    """The content with the keys of the file that it extends added; for `run`, `score`, `judge` and `table`, key by key.

    where_of: returns "file:line" of a key. extending: this file, behind those that extend it.
    """
    where = where_of(("extends",))
    try:
        path = find(str(content["extends"]))
        if path.resolve() in extending:
            raise UsageError(
                f"{visible(str(path), 200)} extends itself, directly or through other files; name a file that does not"
            )
        base = read(path, extending).content
    except UsageError as error:
        raise at_line(where, error) from error
    joined = {key: {**base.get(key, {}), **content.get(key, {})} for key in ("run", "score", "judge", "table")}
    # A file that extends another one is a sweep of its own, so it does not take over the other's name and folder.
    own = {key: value for key, value in base.items() if key not in ("name", "out")}
    return own | content | {key: value for key, value in joined.items() if value}


def find(name_or_path: str) -> Path:
    """The given path if it is a YAML file or exists, else the file of the suite of this name. Raises `UsageError`."""
    path = Path(name_or_path)
    if path.suffix in SUFFIXES or path.exists():
        return path
    shipped = {suite.stem: suite for suite in suites()}
    if name_or_path in shipped:
        return shipped[name_or_path]
    raise UsageError(
        f"there is no suite {visible(name_or_path, 80)!r}; choose {', '.join(shipped)}, or give the path of a sweep's "
        f"file (.yaml).{near_names(name_or_path, shipped)}"
    )


def _sentence(error: ValidationError, content: Mapping[str, Any], where_of: Callable[[Keys], str]) -> str:
    """The sentence for the first mistake in a sweep's file, with file and line.

    where_of: returns "file:line" of a key.
    """
    problems = located(error.errors(include_url=False, include_context=False), content)
    first = first_of(problems)
    keys = first["loc"]
    beside = _keys_beside(keys)
    sentence = problem_of(first, beside).sentence
    if first["type"] == "extra_forbidden" and not misspelt(str(keys[-1]), beside):
        sentence = f"{sentence.removesuffix('.')}. The keys there are {', '.join(beside)}."
    return f"{where_of(keys)}: {sentence}"


def _keys_beside(keys: Keys) -> list[str]:
    """All keys that the schema allows in the part of the file where the last of `keys` was found."""
    part: Any = schema.json_schema()
    whole = part
    for key in keys[:-1]:
        part = part.get("items", {}) if isinstance(key, int) else part.get("properties", {}).get(key, {})
        # The definition of a mapping stands apart (`$ref`); an entry may also be a text, so it has several forms.
        for option in (part, *part.get("anyOf", ())):
            if "$ref" in option:
                part = whole["$defs"][option["$ref"].rpartition("/")[2]]
                break
    return list(part.get("properties", ()))


def at_line(where: str, error: UsageError) -> UsageError:
    """The same error, with `where` ("file:line") before its sentence."""
    return UsageError(f"{where}: {error.sentence}")
