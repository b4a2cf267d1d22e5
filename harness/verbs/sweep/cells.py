"""Makes a sweep's plan from its file: which servers are started, and which runs are made on each server.

Nothing is contacted. A cell is one run: a model, a server, a prompt, a sampling and a benchmark.

Long: reading the entries, checking their placeholders and naming the cells are steps of one conversion.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.asking import servers
from harness.asking.options.judge import JudgeOptions
from harness.asking.options.run import RunOptions
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.options import options_of
from harness.presets.grading import GradingOptions
from harness.runs.sweep_cell import JOIN
from harness.verbs.sweep import checkpoints, schema
from harness.verbs.sweep.entry import Checkpoint, Entry, short_name, slug
from harness.verbs.sweep.file import Keys, SweepFile, at_line
from server_launchers.engines.table import ANY_PROGRAM

AXES = ("models", "servers", "prompts", "sampling", "benchmarks")
"""The axes of a sweep, in the order in which they make a cell's name."""

MAX_CELLS = 10_000
"""Largest number of cells of one sweep; if the axes give more, the file has a mistake."""

MAX_NAME_CHARS = 200
"""Longest name of a cell: file systems limit the names of folders, and of files that add a suffix to it."""

_LAUNCHERS = ("port", "host", "model", "served_name")
"""Placeholders in a user's command that the code that starts the server fills in, such as the port."""

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a sweep. name: names its folder. point: axis → name of the entry, for the axes that the file has.

    options: all options of the run except the server that its group starts. where: file and line of its benchmark.
    """

    name: str
    point: Mapping[str, str]
    options: RunOptions
    benchmark: str
    model: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class ServerGroup:
    """The cells that share one server.

    spec: engine, model and fields of the server that is started for the cells; None: the cells use running servers.
    """

    name: str
    spec: Mapping[str, Any] | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The plan of a sweep.

    file: what the plan was made from. axes: every entry of every axis in the file, in order. slots: one tuple of
    devices for each server that may run at the same time; an empty tuple leaves the devices to the server's own
    entry. suite: the published suite that the sweep repeats; None for a file without one. track: name of each
    tracker that gets each cell's scores → checksum of its destination (`trackers.destination_of`). remarks: what a
    person should know of the plan, such as the paths that match a pattern and are no checkpoints. held: models that
    are not run now, such as a checkpoint that is still being written; their cells keep their rows.
    """

    file: SweepFile
    name: str
    out: Path
    axes: Mapping[str, Sequence[Entry]]
    groups: tuple[ServerGroup, ...]
    score: GradingOptions
    judge: JudgeOptions | None
    table: schema.TableOptions
    slots: tuple[tuple[str, ...], ...]
    suite: schema.Suite | None
    track: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    held: Collection[str] = ()

    @property
    def cells(self) -> list[Cell]:
        """The cells of all groups, in order."""
        return [cell for group in self.groups for cell in group.cells]

    def step_of(self, cell: Cell) -> tuple[str, int] | None:
        """Return the name of the curve (accuracy over steps) and the step of a checkpoint's cell; None for other cells.

        The name consists of the training run and the entries of the other axes, without the benchmark.
        """
        checkpoint = self.checkpoint_of(cell)
        if checkpoint is None:
            return None
        run = checkpoint.series
        rest = [
            self.label(axis, name)
            for axis, name in cell.point.items()
            if axis not in ("models", "benchmarks") and len(self.axes[axis]) > 1
        ]
        return " ".join([*([run] if run else []), *rest]), checkpoint.step

    def conditions(self, cell: Cell) -> dict[str, schema.Scalar]:
        """What the cell's server changes of what is measured, as the suite states it."""
        return self.suite.conditions.get(cell.point.get("servers", ""), {}) if self.suite is not None else {}

    @property
    def averaged(self) -> list[Entry]:
        """The benchmarks that a suite's mean counts."""
        names = self.suite.mean_of if self.suite is not None else None
        return [entry for entry in self.axes["benchmarks"] if names is None or entry.name in names]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints that are models of the sweep."""
        return [entry.checkpoint for entry in self.axes.get("models", ()) if entry.checkpoint is not None]

    def only(self, paths: Collection[Path]) -> Sweep:
        """Return the plan with all other existing checkpoints held."""
        models = {entry.name: entry.checkpoint.path for entry in self.axes.get("models", ()) if entry.checkpoint}
        return replace(self, held={name for name, path in models.items() if path not in paths and path.exists()})

    def is_held(self, cell: Cell) -> bool:
        """Whether the cell is not run now."""
        return cell.point.get("models") in self.held

    def checkpoint_of(self, cell: Cell) -> Checkpoint | None:
        """The checkpoint that the cell runs; None for another model."""
        named = cell.point.get("models", "")
        return next((entry.checkpoint for entry in self.axes.get("models", ()) if entry.name == named), None)

    def folder(self, cell: Cell) -> Path:
        """The cell's run folder."""
        return self.out / cell.name

    def label(self, axis: str, name: str) -> str:
        """The label that tables show for the entry `name` of an axis."""
        return next((entry.label for entry in self.axes.get(axis, ()) if entry.name == name), name)


def plan(
    file: SweepFile,
    over: Mapping[str, Any] | None = None,
    serve: Mapping[str, Any] | None = None,
    judge: Mapping[str, Any] | None = None,
) -> Sweep:
    """Make the plan of a sweep's file.

    over: options of a run that override the file's (`model` and `out` replace its models and folder). serve: engine and
    fields of the server to start, for a file without servers. judge: options of the judge that override the file's.
    Raises `UsageError` with file and line.
    """
    content, over, judge = file.content, dict(over or {}), judge or {}
    out = Path(over.pop("out", None) or content.get("out") or Path("results") / file.name)
    remarks: list[str] = []
    axes = {axis: _axis(file, axis, over, serve, out, remarks) for axis in AXES}
    n_cells = 1
    for entries in axes.values():
        n_cells *= len(entries) or 1
    if n_cells > MAX_CELLS:
        raise UsageError(f"{file.path}: {n_cells:,} cells; a sweep has at most {MAX_CELLS:,}")
    judge_options = dict(content.get("judge", {})) | dict(judge)
    # A suite may say how to judge and leave the judge to the user: it has a judge only once a model is named.
    has_judge = bool(judge_options) and bool(judge or judge_options.get("model") or "suite" not in content)
    groups = []
    common = content.get("run", {})
    for model, server in itertools.product(axes["models"] or (None,), axes["servers"] or (None,)):
        group = _group(file, axes, model, server, common, over, out)
        groups += [group] if group.cells else []
    table = schema.TableOptions(**content.get("table", {}))
    suite = schema.Suite(**content["suite"]) if "suite" in content else None
    for name in (suite and suite.mean_of) or ():
        if name not in (names := [entry.name for entry in axes["benchmarks"]]):
            shown = f"no benchmark is called {visible(name, 80)!r}.{near_names(name, names)}"
            raise UsageError(f"{file.where(('suite', 'mean_of'))}: {shown}")
    remarks += _check_base(file, table, axes)
    return Sweep(
        file=file,
        name=file.name,
        out=out,
        axes={axis: entries for axis, entries in axes.items() if entries},
        groups=tuple(groups),
        score=_make(GradingOptions, content.get("score", {}), file.where(("score",))),
        judge=_make(JudgeOptions, judge_options, file.where(("judge",)), judge, "judge") if has_judge else None,
        table=table,
        slots=_slots(content.get("slots", 1)),
        suite=suite,
        remarks=remarks,
    )


def before_checkpoints(file: SweepFile) -> SweepFile:
    """Return the file with two made-up models in place of its checkpoints, for a plan before any checkpoint exists.

    They are two since some mistakes show only between the servers of two checkpoints. The table's base may be one that
    comes.
    """
    content = {key: value for key, value in file.content.items() if key != "checkpoints"}
    table = {key: value for key, value in content.get("table", {}).items() if key != "base"}
    return replace(file, content=content | {"models": ["step_0", "step_1"], "table": table})


def only_run(sweep: Sweep) -> RunOptions:
    """The options of a sweep's only cell, with the server to start. Raises `UsageError` if it has several cells."""
    if len(sweep.cells) != 1:
        raise UsageError(f"{visible(sweep.name, 80)} has {len(sweep.cells)} cells: give it to `harness sweep`")
    (group,), (cell,) = sweep.groups, sweep.cells
    if group.spec is None:
        return cell.options
    wish = {name: value for name, value in group.spec.items() if value is not None}
    return cell.options.but(serve=wish, model=cell.options.model or wish["model"])


# ---- axes


def _axis(
    file: SweepFile,
    axis: str,
    over: dict[str, Any],
    serve: Mapping[str, Any] | None,
    out: Path,
    remarks: list[str],
) -> list[Entry]:
    """The entries of one axis, from the file or from the options that override it. Raises `UsageError`.

    over: options from the command line; `model` is removed from them when it replaces the file's models. serve: the
    server from the command line; None: the file's. out: the sweep's folder. remarks: gets what is left out.
    """
    content = file.content
    if axis == "models":
        if (model := over.pop("model", None)) is not None:
            return [Entry(name=slug(model), label=short_name(model), options={"model": model})]
        if "checkpoints" in content:
            if "models" in content:
                raise UsageError(
                    f"{file.where(('checkpoints',))}: `checkpoints` and `models` exclude each other: give one of them"
                )
            steps, left_out = checkpoints.entries(file, out)
            remarks += [f"{visible(path, 200)} is left out: {reason}" for path, reason in left_out.items()]
            return steps
    if axis == "servers" and serve is not None:
        if "servers" in content:
            raise UsageError(f"{file.where(('servers',))}: the file names servers, so `serve` cannot name another")
        fields = dict(serve)
        return [Entry(name=slug(fields["engine"]), label=fields["engine"], engine=fields.pop("engine"), server=fields)]
    entries: list[Entry] = []
    for index, given in enumerate(content.get(axis, ())):
        entries += _entries(file, axis, (axis, index), given)
    if axis == "sampling":
        entries = _repeated(file, entries, over)
    names: dict[str, str] = {}
    for entry in entries:
        if entry.name in names:
            raise UsageError(
                f"{entry.where}: the entry at {names[entry.name]} also has the name {entry.name}; give one of them "
                f"another `name`"
            )
        names[entry.name] = entry.where
    return entries


_REPEATED = {"samples": "samples", "repeat": "seed"}
"""Key of the file that repeats each run → the option that it sets."""


def _repeated(file: SweepFile, entries: list[Entry], over: Collection[str]) -> list[Entry]:
    """The entries of the sampling, each with every number of the file's `samples` and every seed of its `repeat`.

    over: names of the options from the command line. Raises `UsageError` if one of them or an entry sets the same.
    """
    content = file.content
    by_key = {"samples": content.get("samples"), "repeat": range(1, content.get("repeat", 0) + 1)}
    axes = [[(_REPEATED[key], value) for value in values] for key, values in by_key.items() if values]
    if not axes:
        return entries
    if clash := [option for key, option in _REPEATED.items() if by_key[key] and option in over]:
        raise UsageError("the file sets it for each of its repeats: leave it out", field=clash[0])
    where = file.where((next(key for key in by_key if key in content),))
    if len({*(numbers := content.get("samples") or ())}) < len(numbers):
        raise UsageError(f"{where}: a number of samples stands twice")
    repeated = []
    for entry in entries or [Entry(name="", label="", where=where)]:
        for values in itertools.product(*axes):
            if own := [option for option, _ in values if option in entry.options]:
                raise UsageError(f"{entry.where}: {_SET_BY_FILE.format(own[0])}")
            name = "-".join(filter(None, [entry.name, *(f"{option}-{value}" for option, value in values)]))
            label = " ".join(filter(None, [entry.label, *(f"{option} {value}" for option, value in values)]))
            repeated.append(replace(entry, name=name, label=label, options={**entry.options, **dict(values)}))
    return repeated


_SET_BY_FILE = "the file's `samples` and `repeat` set samples and seed of each run: leave {} out"


# The field of an entry that a bare text stands for: `- qwen` under `models` means `- model: qwen`.
_SHORT = {"models": "model", "servers": "engine", "prompts": "prompt", "sampling": "preset", "benchmarks": "benchmark"}


def _entries(file: SweepFile, axis: str, keys: Keys, given: Any) -> Iterator[Entry]:
    """Yield the entry `given`; if it has `values`, yield a variant of it for each combination of these values.

    axis: the axis of the entry, such as "servers". keys: the path of keys in the file that leads to the entry. given:
    the entry as the file has it.
    """
    fields: dict[str, Any] = {_SHORT[axis]: given} if isinstance(given, str) else dict(given)
    where = file.where(keys)
    values = fields.pop("values", {})
    _check_placeholders(fields if axis == "servers" else {}, values, where)
    for variant in itertools.product(*values.values()):
        filled = _fill(fields, dict(zip(values, variant, strict=True)))
        name = filled.pop("name", None)
        # A variant's values are added to its name, unless the name has a placeholder for them.
        name_has_values = name is not None and _PLACEHOLDER.search(str(fields["name"])) is not None
        if name is None:
            main = filled.get(_SHORT[axis]) or (ANY_PROGRAM if ANY_PROGRAM in filled else None)
            name = main or _describe(axis, filled, where)
        if variant and not name_has_values:
            name = "-".join([name, *map(str, variant)])
        yield _entry(axis, name, filled, where)


def _entry(axis: str, name: str, fields: dict[str, Any], where: str) -> Entry:
    """Check the fields of one entry of a sweep's axis (a model, a server …), and make the entry.

    where: its file and line, for the `UsageError`.
    """
    folder_name = slug(name)
    if axis == "servers":
        engine, options = fields.pop("engine", None), fields.pop("run", {})
        if ANY_PROGRAM in fields:
            if engine is not None or "extra_flags" in fields:
                raise UsageError(
                    f"{where}: `command` replaces `engine` and `extra_flags`: give `command` or these two, not both"
                )
            engine, described = _read_command(fields.pop(ANY_PROGRAM), where)
            if "environment" in described:
                fields["environment"] = described["environment"] | fields.get("environment", {})
            fields = described | fields
        if engine is None and fields:
            raise UsageError(f"{where}: {next(iter(fields))} describes a server to start: add its `engine`")
        return Entry(name=folder_name, label=name, where=where, options=options, server=_spec(fields), engine=engine)
    if axis == "models":
        server = _spec(fields.pop("server", {})) if isinstance(fields.get("server"), Mapping) else {}
        return Entry(name=folder_name, label=short_name(name), where=where, options=fields, server=server)
    if axis == "benchmarks" and (benchmark := fields.get("benchmark")) is not None:
        card, colon, number = benchmark.rpartition(":")
        if colon and number.isdigit():  # NAME:SAMPLES
            fields = {"samples": int(number)} | fields | {"benchmark": card}
        # An entry without a name of its own is named by its card, without the number of samples and the folder.
        if folder_name == slug(benchmark):
            folder_name = name = slug(Path(fields["benchmark"]).stem if "/" in benchmark else fields["benchmark"])
    return Entry(name=folder_name, label=name, where=where, options=fields)


def _read_command(words: str | Sequence[str], where: str) -> tuple[str, dict[str, Any]]:
    """The engine of a `command`, and the fields of a server's spec that it states.

    An engine's own command line, such as `vllm serve MODEL …`, is read as the engine's, unless it places the port
    itself. where: its file and line, for the `UsageError`.
    """
    from server_launchers import pasted  # few sweeps have such a line

    try:
        words = shlex.split(words) if isinstance(words, str) else list(words)
    except ValueError as error:
        raise UsageError(f"{where}: `command` is no command line: {error}") from error
    try:
        command = None if any("{port}" in word for word in words) else pasted.read(words)
    except UsageError as error:
        raise at_line(where, error) from error
    if command is None:
        return ANY_PROGRAM, {"extra_flags": words}
    model = {} if command.model == "{model}" else {"model": command.model}
    return command.engine, model | command.fields | ({"extra_flags": command.passed} if command.passed else {})


def _describe(axis: str, fields: Mapping[str, Any], where: str) -> str:
    """A name for an entry without a name: its file of questions, or its prompt or sampling settings (`top_k-20`).

    axis: the key under which the file lists the entry, such as "prompts". fields: of the entry. where: its file and
    line.
    Raises `UsageError` if the entry has no such file and a setting that is no text and no number.
    """
    if axis == "benchmarks" and "data" in fields:
        return Path(str(fields["data"])).name.split(".")[0]
    plain = [f"{key}-{value}" for key, value in fields.items() if isinstance(value, str | int | float)]
    if axis in ("prompts", "sampling") and plain and len(plain) == len(fields):
        return "-".join(plain)
    raise UsageError(f"{where}: give this entry of {axis} a `name`: its folder and the tables need a name")


# ---- cells


def _group(
    file: SweepFile,
    axes: Mapping[str, Sequence[Entry]],
    model: Entry | None,
    server: Entry | None,
    common: Mapping[str, Any],
    over: Mapping[str, Any],
    out: Path,
) -> ServerGroup:
    """The cells of one model on one server: all combinations of prompts, sampling and benchmarks, but those that the
    file leaves out. Raises `UsageError`.

    axes: the entries of each axis. common: options of all runs. over: options from the command line, which override
    all others. out: the sweep's folder.
    """
    shared = {**common, **(model.options if model else {}), **(server.options if server else {})}
    spec = None
    if server is not None and server.engine is not None:
        spec = {"model": {**shared, **over}.get("model"), **server.server, **(model.server if model else {})}
        spec["engine"] = server.engine
        if not spec["model"]:
            where = server.where or str(file.path)
            raise UsageError(f"{where}: the server needs a model: give `models` in the file, or `model`")
        try:
            fields = {key: value for key, value in spec.items() if key not in ("engine", "model")}
            servers.spec_without_download(spec["engine"], spec["model"], **fields)
        except UsageError as error:
            if not server.where:  # The command line gave the server.
                raise
            raise at_line(server.where, error) from error
    cells = []
    for rest in itertools.product(*(axes[axis] or (None,) for axis in ("prompts", "sampling", "benchmarks"))):
        entries = dict(zip(AXES, (model, server, *rest), strict=True))
        point = {axis: entry.name for axis, entry in entries.items() if entry is not None}
        if _is_left_out(file, point):
            continue
        merged = dict(shared)
        for entry in rest:
            merged |= dict(entry.options) if entry is not None else {}
        cells.append(_cell(point, merged, over, out, entries, spec, file))
    names = [point for point in (model and model.name, server and server.name) if point]
    return ServerGroup(name=JOIN.join(names) or file.name, spec=spec, cells=tuple(cells))


def _is_left_out(file: SweepFile, point: Mapping[str, str]) -> bool:
    """Whether an entry of the file's `except` means this cell. point: axis → name of the entry."""
    return any(
        all(point.get(axis) in ([names] if isinstance(names, str) else names) for axis, names in left_out.items())
        for left_out in file.content.get("except", ())
    )


def _cell(
    point: Mapping[str, str],
    merged: dict[str, Any],
    over: Mapping[str, Any],
    out: Path,
    entries: Mapping[str, Entry | None],
    spec: Mapping[str, Any] | None,
    file: SweepFile,
) -> Cell:
    """Make one cell from its merged options. Raises `UsageError`.

    point: axis → name of the entry. merged: options of the file and of the cell's entries; the benchmark is among them.
    over: options of the command line, which override these. out: the sweep's folder. entries: axis → its entry. spec:
    the server to start; None: no server.
    """
    name = JOIN.join(point.values())
    if len(name) > MAX_NAME_CHARS:
        raise UsageError(
            f"{file.path}: {visible(name, 80)}: the name of the cell's folder would have {len(name)} characters; at "
            f"most {MAX_NAME_CHARS} are allowed: give the entries that make up this cell a shorter `name`"
        )
    given = merged | dict(over)
    benchmark = given.pop("benchmark", None)
    where = entries["benchmarks"].where if entries["benchmarks"] is not None else str(file.path)
    sampling = entries["sampling"]
    for key, option in _REPEATED.items():
        if file.content.get(key) and sampling is not None and given[option] != sampling.options[option]:
            raise UsageError(f"{where}: {_SET_BY_FILE.format(option)}")
    if spec is not None and (twice := [key for key in ("base_url", "provider") if given.get(key)]):
        raise UsageError(
            f"{where}: {name}: {twice[0]} names a running server, but the cell starts its own; remove one of the two"
        )
    options = _make(
        RunOptions,
        {**given, "benchmarks": [benchmark] if benchmark else [], "out": str(out / name)},
        f"{where}: {name}",
        over,
    )
    if not options.benchmarks and not options.data:
        raise UsageError(f"{where}: name a `benchmark`, or a file of questions with `data`")
    return Cell(
        name=name,
        point=point,
        options=options,
        benchmark=point["benchmarks"],
        model=options.model or (str(spec.get("model") or "") if spec else ""),
        where=where,
    )


def _make(kind: Any, given: Mapping[str, Any], where: str, typed: Collection[str] = (), scope: str = "") -> Any:
    """Make options of the class `kind` from values of the file and of the command line.

    Raises `UsageError` that begins with `where`, or that names a refused option of `typed` as its flag. typed: the
    options of the command line. scope: `judge` for the judge's.
    """
    try:
        return kind.of(**given)
    except UsageError as error:
        if error.field in typed or not options_of(kind).keys() >= {*typed}:
            if scope:
                raise UsageError(f"{scope}: {error.sentence}") from error
            raise
        raise at_line(where, error) from error


def _spec(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a server's spec, converted to the types of the spec."""
    spec = {schema.field_of(key): value for key, value in fields.items()}
    if isinstance(words := spec.get("extra_flags"), str):
        spec["extra_flags"] = shlex.split(words)
    devices = spec.get("devices")
    if isinstance(devices, str):
        spec["devices"] = [part.strip() for part in devices.split(",") if part.strip()]
    elif devices is not None:
        spec["devices"] = [str(device) for device in devices]
    if "environment" in spec:
        spec["environment"] = {key: str(value) for key, value in spec["environment"].items()}
    return spec


def _slots(given: Any) -> tuple[tuple[str, ...], ...]:
    """The devices of each slot (a place for one of the servers that run at once).

    A number in the file means that many slots without devices of their own.
    """
    if isinstance(given, int):
        return ((),) * given
    parts = [slot.split(",") if isinstance(slot, str) else slot for slot in given]
    return tuple(tuple(str(device).strip() for device in slot) for slot in parts)


def _check_base(file: SweepFile, table: schema.TableOptions, axes: Mapping[str, Sequence[Entry]]) -> list[str]:
    """A remark if the table's `base` is no entry and may be a checkpoint to come. Raises `UsageError` if it cannot."""
    names = [entry.name for entries in axes.values() for entry in entries]
    if table.base is None or table.base in names:
        return []
    shown = f"no entry is called {visible(table.base, 80)!r}.{near_names(table.base, names)}"
    if "checkpoints" not in file.content:
        raise UsageError(f"{file.where(('table', 'base'))}: {shown}")
    return [f"{shown} Until a checkpoint with this name comes, nothing is compared with a base"]


# ---- placeholders and names


def _check_placeholders(fields: Any, values: Mapping[str, Any], where: str) -> None:
    """Raise `UsageError` for values that no placeholder uses, and for a placeholder that has no values and is not
    filled in by the launcher.

    A misspelt placeholder would otherwise start the same server twice under two names. fields: of one server, as the
    file has them. values: placeholder → its values.
    """
    used = {name for text in _texts(fields) for name in _PLACEHOLDER.findall(text)}
    for name in values:
        if name not in used:
            raise UsageError(f"{where}: `values` lists {{{name}}}, but no word of this server contains it")
    if unknown := sorted(used - set(values) - set(_LAUNCHERS)):
        near = near_names(unknown[0], [*values, *_LAUNCHERS])
        raise UsageError(f"{where}: {{{unknown[0]}}} has no `values`.{near}")


def _texts(value: Any) -> Iterator[str]:
    """All texts inside a value of lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    """`value` with its placeholders replaced by their `values`; a text that consists of one placeholder becomes that
    value, with its type.
    """
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is not None and whole[1] in values:
            return values[whole[1]]
        return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), value)
    if isinstance(value, Mapping):
        return {key: _fill(member, values) for key, member in value.items()}
    if isinstance(value, list):
        # The words of a command line stay texts, whatever type the value has.
        return [str(_fill(member, values)) if isinstance(member, str) else _fill(member, values) for member in value]
    return value
