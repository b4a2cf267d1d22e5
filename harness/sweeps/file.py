"""Reads and checks a sweep file and the entries of its axes, such as models and servers. Every error states the file,
the line, the key, and what was expected. The folders of cells are named after their entries.

The suites are the files that ship with the harness: sweeps over a named set of benchmarks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.benchmarks.catalog import is_table, suites
from harness.core import yaml_file
from harness.core.errors import UsageError, misspelled, near_names
from harness.core.files import real
from harness.core.sanitize import visible
from harness.core.validation import first_problem, places_in
from harness.runs.layout import run_around
from harness.sweeps import schema
from server_launchers.engines.table import ANY_PROGRAM

Keys = Sequence[str | int]
"""The path to a value in the file, such as `("servers", 0, "engine")`."""

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """The content of a sweep file, checked against the schema, including the keys of the file that it extends.

    where: returns the "file:line" of the value at a path of keys. own: the keys that the file itself contains. Names of
    entries in these keys are checked; names in the extended file may be of entries that this file replaces.
    """

    path: Path
    content: dict[str, Any]
    where: Callable[[Keys], str]
    own: Collection[str] = ()

    @property
    def name(self) -> str:
        """The sweep's name according to the file or, if it has none, the file's own name."""
        return str(self.content.get("name") or self.path.stem.lower())


def read(source: str | Mapping[str, Any], extending: Sequence[Path] = ()) -> SweepFile:
    """Read a sweep file, or check the content of one. source: a file's path, a suite's name, or the content. extending:
    the chain of files that extend it.

    Raises `UsageError`: one sentence with key and, for a file, with file and line.
    """
    if not isinstance(source, str):
        return _check_content(Path(_name_of(source)), dict(source), lambda keys: ".".join(map(str, keys)), extending)
    path = find(source)
    if (run := run_around(path)) is not None and path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path} belongs to the run {run}. A sweep file is a YAML file that lists models and benchmarks; "
            f"copy one from datasets/templates"
        )
    content, line = yaml_file.read_with_lines(path, "a sweep")

    return _check_content(path, content, lambda keys: f"{path}:{line(keys)}", (*extending, real(path)))


def _name_of(content: Mapping[str, Any]) -> str:
    """A name for the content of a sweep file that is not in a file: that of the file that it extends, or those of its
    benchmarks.
    """
    if "extends" in content:
        return Path(content["extends"]).stem
    names = (each if isinstance(each, str) else str(each.get("data") or each) for each in content.get("benchmarks", ()))
    return slug("-".join(Path(name.partition(":")[0]).stem for name in names))


def _check_content(
    path: Path, content: dict[str, Any], position: Callable[[Keys], str], extending: Sequence[Path]
) -> SweepFile:
    """The content of a sweep file, checked and merged with that of the file that it extends."""
    try:
        schema.sweep_model().model_validate(content)
    except ValidationError as error:
        raise UsageError(_sentence(error, content, position)) from None
    except UsageError as error:  # An option's validator has its own message.
        raise UsageError(f"{path}: {error.sentence}") from error
    own = content.keys()
    if "extends" in content:
        content = _extend(content, position, extending)
    if "benchmarks" not in content:
        raise UsageError(f"{position(())}: the key 'benchmarks' is missing")
    return SweepFile(path=path, content=content, where=position, own=own)


def _extend(content: dict[str, Any], where_of: Callable[[Keys], str], extending: Sequence[Path]) -> dict[str, Any]:
    """The content, merged with the keys of the file that it extends; `run`, `score`, `judge` and `table` are merged key
    by key.

    where_of: returns the "file:line" of a key. extending: this file, after those that extend it.
    """
    where = where_of(("extends",))
    try:
        path = find(str(content["extends"]))
        if real(path) in extending:
            shown = visible(str(path), 200)
            raise UsageError(f"{shown} extends itself, directly or through other files; extend a different file")
        base = read(str(path), extending).content
    except UsageError as error:
        raise at_line(where, error) from error
    joined = {key: {**base.get(key, {}), **content.get(key, {})} for key in ("run", "score", "judge", "table")}
    # A file that extends another one is a separate sweep, so it does not inherit the other's name and folder.
    own = {key: value for key, value in base.items() if key not in ("name", "out") or not extending}
    return own | content | {key: value for key, value in joined.items() if value}


def suite_files() -> dict[str, Path]:
    """The files of the suites, by name."""
    return {suite.stem: suite for suite in suites()}


def find(name_or_path: str) -> Path:
    """The given path if it is a YAML file or exists, otherwise the file of the suite with this name. Raises
    `UsageError`.
    """
    path = Path(name_or_path)
    if path.suffix in SUFFIXES or path.exists():
        return path
    shipped = suite_files()
    if name_or_path in shipped:
        return shipped[name_or_path]
    raise UsageError(
        f"no suite is named {visible(name_or_path, 80)!r}. Choose {', '.join(shipped)}, the path of a sweep "
        f"file (.yaml), or benchmarks (`harness benchmarks`).{near_names(name_or_path, shipped)}"
    )


def _sentence(error: ValidationError, content: Mapping[str, Any], where_of: Callable[[Keys], str]) -> str:
    """The sentence for the first mistake in a sweep file, with file and line.

    where_of: returns "file:line" of a key.
    """
    problem = first_problem(error, places_in(schema.sweep_model()), content)
    return f"{where_of(problem.keys)}: {problem.sentence}"


def at_line(where: str, error: UsageError) -> UsageError:
    """The same error, with `where` ("file:line") before its sentence."""
    return UsageError(f"{where}: {error.sentence}")


# ---- entries


_LAUNCHERS = ("port", "host", "model", "served_name")
"""Placeholders in a user's command that the code that starts the server fills in, such as the port."""

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
"""A word in braces in a server's string, such as {port}."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a training run. name: its part of the folder names of its cells. series: name of one curve of
    scores over steps.
    """

    path: Path
    name: str
    series: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One value of an axis, such as a model or a server.

    name: its name in folder names. label: its name in tables. where: "file:line" in the sweep file. options: run
    options that the entry sets. server: fields of the server's spec that it sets. engine: engine of the server to
    start; None on other axes, and if no server is started. checkpoint: the checkpoint, for a model that is one;
    otherwise None.
    """

    name: str
    label: str
    where: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    checkpoint: Checkpoint | None = None


def slug(name: str) -> str:
    """A name in the form used in folder names: `Qwen/Qwen3-8B` becomes qwen3-8b."""
    return re.sub(r"[^a-z0-9._-]+", "-", short_name(str(name)).casefold()).strip("-._")[:80] or "x"


def short_name(model: str) -> str:
    """The last part of a model's path or repository name."""
    return model.rstrip("/").rsplit("/", 1)[-1]


# The field of an entry that a bare string sets: `- qwen` under `models` means `- model: qwen`.
_SHORT = {"models": "model", "servers": "engine", "prompts": "prompt", "sampling": "preset", "benchmarks": "benchmark"}


def read_entry(file: SweepFile, axis: str, keys: Keys, given: Any) -> Entry:
    """The entry `given` of an axis, such as "servers", as it appears in the file.

    keys: the path of keys to the entry in the file.
    """
    fields: dict[str, Any] = {_SHORT[axis]: given} if isinstance(given, str) else dict(given)
    where = file.where(keys)
    name = fields.pop("name", None) or fields.get(_SHORT[axis]) or (ANY_PROGRAM if ANY_PROGRAM in fields else None)
    name = name or _describe(axis, fields, where)
    if axis == "servers":
        return _server_entry(name, fields, where)
    if axis == "benchmarks" and "benchmark" in fields:
        return _benchmark_entry(name, fields, where)
    if axis == "models":
        server = fields.pop("server", None)
        spec = _spec(server) if isinstance(server, Mapping) else {}
        return Entry(name=slug(name), label=short_name(name), where=where, options=fields, server=spec)
    return Entry(name=slug(name), label=name, where=where, options=fields)


def _server_entry(name: str, fields: dict[str, Any], where: str) -> Entry:
    """The entry for a server with these fields. where: its file and line, for the `UsageError`."""
    _check_placeholders(fields, where)
    engine, options = fields.pop("engine", None), fields.pop("run", {})
    if ANY_PROGRAM in fields:
        if engine is not None or "extra_flags" in fields:
            raise UsageError(
                f"{where}: `command` replaces `engine` and `extra_flags`; specify either `command` or the other two"
            )
        engine, fields["extra_flags"] = ANY_PROGRAM, fields.pop(ANY_PROGRAM)
    if engine is None and fields:
        raise UsageError(f"{where}: {next(iter(fields))} describes a server to start; specify its `engine`")
    try:
        server = _spec(fields)
    except ValueError as error:
        raise UsageError(f"{where}: not a valid command line: {error}") from error
    return Entry(name=slug(name), label=name, where=where, options=options, server=server, engine=engine)


def _benchmark_entry(name: str, fields: dict[str, Any], where: str) -> Entry:
    """The entry for a card with these fields, whose `benchmark` may end with a number of samples, as in `aime24:64`."""
    benchmark = fields["benchmark"]
    card, colon, number = benchmark.rpartition(":")
    if colon and number.isdigit():
        fields = {"samples": int(number)} | fields | {"benchmark": card}
    # An entry without a name is named after its card, without the number of samples and the folder.
    if slug(name) == slug(benchmark):
        name = fields["benchmark"]
        name = Path(name).stem if "/" in benchmark or is_table(name) else name
    return Entry(name=slug(name), label=name, where=where, options=fields)


def _check_placeholders(fields: Any, where: str) -> None:
    """Raise `UsageError` for a misspelled placeholder in any of a server's strings."""
    if isinstance(fields, str):
        if unknown := sorted({*_PLACEHOLDER.findall(fields)} - {*_LAUNCHERS}):
            near = misspelled(unknown[0], _LAUNCHERS) or f" Known placeholders: {', '.join(_LAUNCHERS)}."
            raise UsageError(f"{where}: unknown placeholder {{{unknown[0]}}}.{near}")
    elif isinstance(fields, Mapping | list):
        for inner in fields.values() if isinstance(fields, Mapping) else fields:
            _check_placeholders(inner, where)


def _describe(axis: str, fields: Mapping[str, Any], where: str) -> str:
    """A name for an entry without a name: its file of questions, or its prompt or sampling settings (`top_k-20`).

    axis: the key under which the file lists the entry, such as "prompts". fields: fields of the entry. where: its file
    and line. Raises `UsageError` if the entry has no file of questions and a setting that is neither a string nor a
    number.
    """
    if axis == "benchmarks" and "data" in fields:
        return Path(str(fields["data"])).name.split(".")[0]
    plain = [f"{key}-{value}" for key, value in fields.items() if isinstance(value, str | int | float)]
    if axis in ("prompts", "sampling") and plain and len(plain) == len(fields):
        return "-".join(plain)
    raise UsageError(f"{where}: give this entry of {axis} a `name`, which is needed for its folder and the tables")


def _spec(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a server's spec, converted to the types of the spec."""
    spec = {schema.SPELLED.get(key, key): value for key, value in fields.items()}
    if isinstance(words := spec.get("extra_flags"), str):
        spec["extra_flags"] = shlex.split(words)
    if isinstance(devices := spec.get("devices"), list):
        spec["devices"] = [str(device) for device in devices]
    if "environment" in spec:
        spec["environment"] = {key: str(value) for key, value in spec["environment"].items()}
    return spec
