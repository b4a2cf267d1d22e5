"""From a sweep's file to its plan: which servers are started, and which run is made on each of them. Nothing is
contacted. A cell is one run: a model, a server, a prompt, a sampling and a benchmark.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.asking import servers
from harness.asking.options import GradingOptions, JudgeOptions, RunOptions
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.wording import option
from harness.verbs.sweep import schema
from harness.verbs.sweep.file import Keys, SweepFile, refused
from server_launchers.engines.table import ANY_PROGRAM

AXES = ("models", "servers", "prompts", "sampling", "benchmarks")
"""In the order in which they make a cell's name."""

JOIN = "+"
"""Between the parts of a cell's name; no entry's name holds it."""

MOST_CELLS = 10_000

MOST_NAME_CHARS = 200
"""Longest name of a cell: it is a folder's, and a file's with a suffix."""

_LAUNCHERS = ("port", "host", "model", "served_name")
"""Placeholders that the launcher of a command fills in."""

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_STEP = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A point of an axis. options: of the run; server: what it says of the server's spec; at: where it stands.

    engine: of a server that is started; None on other axes, and where none is started. step: of a checkpoint.
    """

    name: str
    label: str
    at: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run. name: its folder's. point: axis → the entry's name, for the axes that the file has.

    options: all that its run is to ask, but for the server that its group starts.
    """

    name: str
    point: Mapping[str, str]
    options: RunOptions
    benchmark: str
    model: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """The cells of one server. spec: engine, model and the fields of the server that is started for them; None: none
    is."""

    name: str
    spec: Mapping[str, Any] | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The plan. axes: every entry of every axis that the file has, in order. slots: devices of each server that runs at
    once; an empty list: whatever the file says. suite: what it repeats; None for a file of the user's."""

    name: str
    out: Path
    axes: Mapping[str, Sequence[Entry]]
    groups: tuple[Group, ...]
    score: GradingOptions
    judge: JudgeOptions | None
    table: schema.TableOptions
    slots: tuple[tuple[str, ...], ...]
    suite: schema.Suite | None

    @property
    def cells(self) -> list[Cell]:
        """All of them, in order."""
        return [cell for group in self.groups for cell in group.cells]

    def folder(self, cell: Cell) -> Path:
        """Its run folder."""
        return self.out / cell.name

    def label(self, axis: str, name: str) -> str:
        """How a point of an axis is called in a table."""
        return next((one.label for one in self.axes.get(axis, ()) if one.name == name), name)


def plan(
    file: SweepFile,
    over: Mapping[str, Any] | None = None,
    serve: Mapping[str, Any] | None = None,
    judge: Mapping[str, Any] | None = None,
) -> Sweep:
    """over: options of a run that stand above the file's (`model` and `out` in the place of its models and folder).

    serve: engine and spec of the server, for a file without servers. judge: of its options, what stands above the
    file's. Raises `UsageError` with file and line.
    """
    content, over = file.content, dict(over or {})
    out = Path(over.pop("out", None) or content.get("out") or Path("results") / file.name)
    axes = {axis: _axis(file, axis, over, serve) for axis in AXES}
    n_cells = 1
    for entries in axes.values():
        n_cells *= len(entries) or 1
    if n_cells > MOST_CELLS:
        raise UsageError(f"{file.path}: {n_cells:,} cells; a sweep has at most {MOST_CELLS:,}")
    told = _judge(content.get("judge", {})) | dict(judge or {})
    groups = []
    common = content.get("run", {})
    for model, server in itertools.product(axes["models"] or (None,), axes["servers"] or (None,)):
        groups.append(_group(file, axes, model, server, common, over, out))
    table = schema.TableOptions(**content.get("table", {}))
    _check_base(file, table, axes)
    return Sweep(
        name=file.name,
        out=out,
        axes={axis: entries for axis, entries in axes.items() if entries},
        groups=tuple(groups),
        score=_made(GradingOptions, content.get("score", {}), file.at(("score",))),
        judge=_made(JudgeOptions, told, file.at(("judge",)))
        if told and (judge or told.get("model") or "suite" not in content)
        else None,
        table=table,
        slots=_slots(content.get("slots", 1)),
        suite=schema.Suite(**content["suite"]) if "suite" in content else None,
    )


def only_run(sweep: Sweep) -> RunOptions:
    """What the only cell of a sweep asks, with the server to start for it. Raises `UsageError` where several are."""
    if len(sweep.cells) != 1:
        raise UsageError(f"{visible(sweep.name, 80)} has {len(sweep.cells)} cells: give it to `harness sweep`")
    (group,), (cell,) = sweep.groups, sweep.cells
    if group.spec is None:
        return cell.options
    wish = {name: value for name, value in group.spec.items() if value is not None}
    return cell.options.but(serve=wish, model=cell.options.model or wish["model"])


# ---- axes


def _axis(file: SweepFile, axis: str, over: dict[str, Any], serve: Mapping[str, Any] | None) -> list[Entry]:
    content = file.content
    if axis == "models":
        if (model := over.pop("model", None)) is not None:
            return [Entry(name=_slug(model), label=_short(model), options={"model": model})]
        if "checkpoints" in content:
            if "models" in content:
                raise UsageError(
                    f"{file.at(('checkpoints',))}: checkpoints stand in the place of models: give one of them"
                )
            return _checkpoints(file)
    if axis == "servers" and serve is not None:
        if "servers" in content:
            raise UsageError(f"{file.at(('servers',))}: the file names servers, and {option('serve')} another")
        fields = dict(serve)
        return [Entry(name=_slug(fields["engine"]), label=fields["engine"], engine=fields.pop("engine"), server=fields)]
    found: list[Entry] = []
    for place, given in enumerate(content.get(axis, ())):
        found += _entries(file, axis, (axis, place), given)
    names: dict[str, str] = {}
    for one in found:
        if one.name in names:
            raise UsageError(
                f"{one.at}: the name {one.name} is taken by the entry at {names[one.name]}; give one of them "
                "another `name`"
            )
        names[one.name] = one.at
    return found


_SHORT = {"models": "model", "servers": "engine", "prompts": "prompt", "sampling": "preset", "benchmarks": "benchmark"}


def _entries(file: SweepFile, axis: str, keys: Keys, given: Any) -> Iterator[Entry]:
    """The entry, or all of its variants."""
    fields: dict[str, Any] = {_SHORT[axis]: given} if isinstance(given, str) else dict(given)
    at = file.at(keys)
    values = fields.pop("values", {})
    _check_placeholders(fields if axis == "servers" else {}, values, at)
    for chosen in itertools.product(*values.values()):
        filled = _filled(fields, dict(zip(values, chosen, strict=True)))
        name, main = filled.pop("name", None), filled.get(_SHORT[axis])
        main = main or (ANY_PROGRAM if ANY_PROGRAM in filled else None)
        if name is None:
            parts = [main or _described(axis, filled, at), *map(str, chosen)]
            name = "-".join(parts)
        elif chosen and not _PLACEHOLDER.search(str(fields["name"])):
            name = "-".join([name, *map(str, chosen)])
        yield _entry(axis, name, filled, at)


def _entry(axis: str, name: str, fields: dict[str, Any], at: str) -> Entry:
    slug = _slug(name)
    if axis == "servers":
        engine, options = fields.pop("engine", None), fields.pop("run", {})
        if ANY_PROGRAM in fields:
            if engine is not None or "extra_flags" in fields:
                raise UsageError(f"{at}: `command` stands in the place of `engine` and `extra_flags`: give one of them")
            engine, fields["extra_flags"] = ANY_PROGRAM, fields.pop(ANY_PROGRAM)
        if engine is None and fields:
            raise UsageError(f"{at}: {next(iter(fields))} describes a server that is started: say which `engine` it is")
        return Entry(name=slug, label=name, at=at, options=options, server=_spec(fields), engine=engine)
    if axis == "models":
        server = _spec(fields.pop("server", {})) if isinstance(fields.get("server"), Mapping) else {}
        return Entry(name=slug, label=_short(name), at=at, options=fields, server=server)
    if axis == "benchmarks" and (benchmark := fields.get("benchmark")) is not None:
        card, colon, number = benchmark.rpartition(":")
        if colon and number.isdigit():
            fields = {"samples": int(number)} | fields | {"benchmark": card}
        if slug == _slug(benchmark):
            slug = name = _slug(Path(fields["benchmark"]).stem if "/" in benchmark else fields["benchmark"])
    return Entry(name=slug, label=name, at=at, options=fields)


def _described(axis: str, fields: Mapping[str, Any], at: str) -> str:
    """A name for an entry without one: what it sets, where that is one thing."""
    if axis == "benchmarks" and "data" in fields:
        return Path(str(fields["data"])).name.split(".")[0]
    plain = [f"{key}-{value}" for key, value in fields.items() if isinstance(value, str | int | float)]
    if axis in ("prompts", "sampling") and plain and len(plain) == len(fields):
        return "-".join(plain)
    raise UsageError(f"{at}: give this entry of {axis} a `name`: folders and tables are called by it")


def _checkpoints(file: SweepFile) -> list[Entry]:
    """One model a match, by step."""
    patterns = file.content["checkpoints"]
    found = []
    for place, pattern in enumerate([patterns] if isinstance(patterns, str) else patterns):
        at = file.at(("checkpoints", place))
        anchor = Path(pattern).anchor
        matches = sorted(Path(anchor or ".").glob(pattern[len(anchor) :]))
        if not matches:
            raise UsageError(f"{at}: no folder fits {visible(pattern, 200)} (looked at from {Path.cwd()})")
        for path in matches:
            step = _STEP.search(path.name)
            if step is None:
                raise UsageError(f"{at}: {visible(str(path), 200)} has no number in its name that says its step")
            name = f"{path.parent.name}-{path.name}" if path.parent.name else path.name
            found.append(Entry(name=_slug(name), label=name, at=at, options={"model": str(path)}, step=int(step[1])))
    if len({one.name for one in found}) < len(found):
        raise UsageError(
            f"{file.at(('checkpoints',))}: two checkpoints have one name: keep their folders apart by name"
        )
    return sorted(found, key=lambda one: (one.name.rsplit("-", 1)[0], one.step or 0))


# ---- cells


def _group(
    file: SweepFile,
    axes: Mapping[str, Sequence[Entry]],
    model: Entry | None,
    server: Entry | None,
    common: Mapping[str, Any],
    over: Mapping[str, Any],
    out: Path,
) -> Group:
    shared = {**common, **(model.options if model else {}), **(server.options if server else {})}
    spec = None
    if server is not None and server.engine is not None:
        spec = {"model": {**shared, **over}.get("model"), **server.server, **(model.server if model else {})}
        spec["engine"] = server.engine
        if not spec["model"]:
            at = server.at or str(file.path)
            raise UsageError(f"{at}: the server needs a model: give `models` in the file, or {option('model')}")
        try:
            fields = {key: value for key, value in spec.items() if key not in ("engine", "model")}
            servers.described(spec["engine"], spec["model"], **fields)
        except UsageError as error:
            raise refused(server.at or str(file.path), error) from error
    cells = []
    for rest in itertools.product(*(axes[axis] or (None,) for axis in ("prompts", "sampling", "benchmarks"))):
        entries = dict(zip(AXES, (model, server, *rest), strict=True))
        point = {axis: one.name for axis, one in entries.items() if one is not None}
        merged = dict(shared)
        for one in rest:
            merged |= dict(one.options) if one is not None else {}
        cells.append(_cell(point, merged | dict(over), out, entries, spec, file))
    names = [point for point in (model and model.name, server and server.name) if point]
    return Group(name=JOIN.join(names) or file.name, spec=spec, cells=tuple(cells))


def _cell(
    point: Mapping[str, str],
    given: dict[str, Any],
    out: Path,
    entries: Mapping[str, Entry | None],
    spec: Mapping[str, Any] | None,
    file: SweepFile,
) -> Cell:
    name = JOIN.join(point.values())
    if len(name) > MOST_NAME_CHARS:
        raise UsageError(
            f"{file.path}: {visible(name, 80)}: the name of this cell's folder would be {len(name)} characters long, "
            f"and {MOST_NAME_CHARS} are the most; give its entries a shorter `name`"
        )
    benchmark = given.pop("benchmark", None)
    at = entries["benchmarks"].at if entries["benchmarks"] is not None else str(file.path)
    if spec is not None and (twice := [key for key in ("base_url", "server", "provider") if given.get(key)]):
        raise UsageError(f"{at}: {name}: {twice[0]} names a server that runs, and the cell starts one")
    options = _made(
        RunOptions, {**given, "benchmarks": [benchmark] if benchmark else [], "out": str(out / name)}, f"{at}: {name}"
    )
    if not options.benchmarks and not options.data:
        raise UsageError(f"{at}: name a `benchmark`, or a file of questions with `data`")
    return Cell(
        name=name,
        point=point,
        options=options,
        benchmark=point["benchmarks"],
        model=options.model or (str(spec.get("model") or "") if spec else ""),
    )


def _made(kind: Any, given: Mapping[str, Any], where: str) -> Any:
    try:
        return kind.of(**given)
    except UsageError as error:
        raise refused(where, error) from error


def _spec(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a server's spec, as the spec wants them."""
    made = {schema.field_of(key): value for key, value in fields.items()}
    if isinstance(words := made.get("extra_flags"), str):
        made["extra_flags"] = shlex.split(words)
    devices = made.get("devices")
    if isinstance(devices, str):
        made["devices"] = [part.strip() for part in devices.split(",") if part.strip()]
    elif devices is not None:
        made["devices"] = [str(one) for one in devices]
    if "environment" in made:
        made["environment"] = {key: str(value) for key, value in made["environment"].items()}
    return made


def _judge(given: Mapping[str, Any]) -> dict[str, Any]:
    serve = given.get("serve")
    if isinstance(serve, Mapping):
        return {**given, "serve": _spec(serve)}
    return dict(given)


def _slots(given: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(given, int):
        return ((),) * given
    parts = [one.split(",") if isinstance(one, str) else one for one in given]
    return tuple(tuple(str(device).strip() for device in one) for one in parts)


def _check_base(file: SweepFile, table: schema.TableOptions, axes: Mapping[str, Sequence[Entry]]) -> None:
    names = [one.name for entries in axes.values() for one in entries]
    if table.base is not None and table.base not in names:
        at = file.at(("table", "base"))
        raise UsageError(f"{at}: there is no entry {visible(table.base, 80)!r}.{near_names(table.base, names)}")


# ---- placeholders and names


def _check_placeholders(fields: Any, values: Mapping[str, Any], at: str) -> None:
    """Every placeholder has values or is the launcher's, and all values are used: a misspelt one would start the same
    server twice under two names."""
    used = {name for text in _texts(fields) for name in _PLACEHOLDER.findall(text)}
    for name in values:
        if name not in used:
            raise UsageError(f"{at}: no word of this server holds {{{name}}}, of which `values` speaks")
    if unknown := sorted(used - set(values) - set(_LAUNCHERS)):
        near = near_names(unknown[0], [*values, *_LAUNCHERS])
        raise UsageError(f"{at}: {{{unknown[0]}}} has no `values`.{near}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """`value` with the placeholders of `values` filled in; a text that is only one becomes the value itself."""
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), value)
    if isinstance(value, Mapping):
        return {key: _filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        # Words of a command line are texts, whatever was filled in.
        return [str(made) if isinstance(one, str) else made for one in value for made in (_filled(one, values),)]
    return value


def _slug(name: str) -> str:
    """A part of a folder's name: `Qwen/Qwen3-8B` is qwen3-8b."""
    short = _short(str(name)).casefold()
    return re.sub(r"[^a-z0-9._-]+", "-", short).strip("-._")[:80] or "x"


def _short(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1] if "/" in model else model
