"""Plans a sweep from its file: which servers are started, and which runs use each server.

No server is contacted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.commands.score import trackers_named
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.options import options_of
from harness.core.sanitize import visible
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.options.server import SERVED
from harness.preparing.server_start import spec_without_download
from harness.presets.grading import GradingOptions
from harness.runs.sweep_cell import JOIN
from harness.sweeps import checkpoints, schema
from harness.sweeps import file as files
from harness.sweeps.file import Entry, SweepFile, at_line, read_entry, short_name, slug
from harness.sweeps.plan import AXES, LOADS, Cell, Sweep
from server_launchers.engines.table import ANY_PROGRAM

MAX_CELLS = 10_000
"""Maximum number of cells in one sweep; if the axes produce more, the file contains a mistake."""

MAX_NAME_CHARS = 200
"""Maximum length of a cell's name: file systems limit the names of folders, and of files that append a suffix to it."""


def plan_of(
    source: str | Mapping[str, Any],
    given: Mapping[str, Any],
    judge: Mapping[str, Any],
    k: int | None = None,
    track: Sequence[str] = (),
    limits: str | Mapping[str, Any] | None = None,
) -> Sweep:
    """The plan of a sweep file or a suite.

    source: path of the file, name of a suite, or content of a file. given: run options that override those in the
    file; `model` and `out` replace its models and folder, and `serve` is the server if the file lists no servers.
    judge: judge options that override those in the file. In `given` and `judge`, None keeps the file's value, except
    for a seed. k: k of pass@k in the tables, replacing the file's value. track: names of the trackers that receive each
    cell's scores. limits: time limits for the scores, replacing the file's. Raises `UsageError` with file and line,
    or with the option.
    """
    over, judge = RunOptions.without_unset(given), JudgeOptions.without_unset(judge)
    names_model = over.get("model") is not None
    try:
        serve = SERVED.parse(over.pop("serve", None))
    except ValueError as error:
        raise UsageError(str(error), field="serve") from error
    file = files.read(source)
    content, remarks = file.content, list[str]()
    out = Path(over.pop("out", None) or content.get("out") or Path("results") / file.name)
    read = {axis: _axis(file, axis, over, serve, out, remarks) for axis in AXES}
    axes = {axis: entries for axis, entries in read.items() if entries}
    n_cells = math.prod(map(len, axes.values()))
    if n_cells > MAX_CELLS:
        raise UsageError(f"{file.path}: the sweep has {n_cells:,} cells; the maximum is {MAX_CELLS:,}")
    if "except" in file.own:
        _check_left_out(file, axes, open_axis="models" if names_model or "checkpoints" in content else "")
    trackers_named(track)  # An unknown name is rejected now, not after the first cell.
    judge_options = dict(content.get("judge", {})) | dict(judge)
    # A suite may specify how to judge but leave the choice of judge to the user: it has a judge only once a model is
    # named.
    has_judge = bool(judge_options) and bool(judge or judge_options.get("model") or "suite" not in content)
    pairs = itertools.product(axes.get("models") or (None,), axes.get("servers") or (None,))
    making = _Making(file, axes, over, out)
    planned_cells = tuple(cell for model, server in pairs for cell in making.cells(model, server))
    if not planned_cells:
        raise UsageError(f"{file.where(('except',))}: `except` excludes every cell")
    _refuse_one_program(planned_cells, axes.get("servers", ()))
    table = schema.TableOptions(**content.get("table", {}))
    suite = schema.Suite(**content["suite"]) if "suite" in content else None
    for name in (suite and "suite" in file.own and suite.mean_of) or ():
        _check_name(name, "benchmark", axes["benchmarks"], file.where(("suite", "mean_of")))
    if table.base is not None:
        _check_name(table.base, "entry", itertools.chain(*axes.values()), file.where(("table", "base")))
    planned = Sweep(
        file=file,
        name=file.name,
        out=out,
        axes=axes,
        cells=planned_cells,
        score=_make(
            GradingOptions, content.get("score", {}) | ({"limits": limits} if limits else {}), file.where(("score",))
        ),
        judge=_make(JudgeOptions, judge_options, file.where(("judge",)), judge, "judge") if has_judge else None,
        table=table if k is None else table.model_copy(update={"k": k}),
        likelihood=content.get("likelihood"),
        suite=suite,
        track=tuple(track),
    )
    return replace(planned, remarks=[*remarks, *_nested(planned)])


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
    server from the command line; None means the file's. out: the sweep's folder. remarks: receives remarks on what is
    left out.
    """
    content = file.content
    if axis == "models":
        if (model := over.pop("model", None)) is not None:
            return [Entry(name=slug(model), label=short_name(model), options={"model": model})]
        if "checkpoints" in content:
            if "models" in content:
                where = file.where(("checkpoints",))
                raise UsageError(f"{where}: `checkpoints` and `models` are mutually exclusive; use only one")
            steps, left_out = checkpoints.entries(file, out)
            remarks += [f"{visible(path, 200)} is skipped: {reason}" for path, reason in left_out.items()]
            return steps
    if axis == "servers" and serve is not None:
        if "servers" in content:
            raise UsageError(f"{file.where(('servers',))}: the file already lists servers, so `serve` cannot add one")
        fields = dict(serve)
        return [Entry(name=slug(fields["engine"]), label=fields["engine"], engine=fields.pop("engine"), server=fields)]
    entries = [read_entry(file, axis, (axis, index), given) for index, given in enumerate(content.get(axis, ()))]
    if axis == "sampling":
        entries = _repeated(file, entries, over)
    names: dict[str, str] = {}
    for entry in entries:
        if entry.name in names:
            raise UsageError(
                f"{entry.where}: the entry at {names[entry.name]} is also named {entry.name}; give one of them "
                f"a different `name`"
            )
        names[entry.name] = entry.where
    return entries


def _check_name(name: str, kind: str, entries: Iterable[Entry], where: str) -> None:
    """Raise `UsageError` if no entry has this name. kind: what the entries are. where: file and line of the name."""
    if name not in (names := [entry.name for entry in entries]):
        near = near_names(name, names) or (f" The entries are {', '.join(names)}." if names else "")
        raise UsageError(f"{where}: no {kind} is named {visible(name, 80)!r}.{near}")


def _check_left_out(file: SweepFile, axes: Mapping[str, Sequence[Entry]], open_axis: str) -> None:
    """Raise `UsageError` if the file's `except` contains a name that is not an entry of its axis: a misspelled name
    would exclude nothing.

    open_axis: an axis whose entries do not come from the file; empty if there is none.
    """
    for number, left_out in enumerate(file.content.get("except", ())):
        for axis, names in left_out.items():
            # A suite excludes servers of its source that the user may not have.
            if axis == open_axis or (axis not in file.content and "suite" in file.content):
                continue
            for name in [names] if isinstance(names, str) else names:
                _check_name(name, f"entry in {axis}", axes.get(axis, ()), file.where(("except", number, axis)))


def _repeats(file: SweepFile) -> dict[str, Sequence[int]]:
    """Option of a run → the values that it takes in turn, from the file's `samples`, `repeat` (seeds 1, 2 …) and
    `concurrency` or `rate`; empty if the file has none of these keys.
    """
    content = file.content
    numbers = {"samples": content.get("samples", ()), "seed": range(1, content.get("repeat", 0) + 1)}
    if all(name in content for name in LOADS):
        raise UsageError(f"{file.where(('rate',))}: list either `rate` or `concurrency`, not both")
    # Last, as `Sweep.configuration` expects.
    numbers |= {"concurrency": content.get("concurrency", ()), "rate": [float(n) for n in content.get("rate", ())]}
    return {option: values for option, values in numbers.items() if values}


def _repeated(file: SweepFile, entries: list[Entry], over: Collection[str]) -> list[Entry]:
    """The entries of the axis `sampling`, each combined with every value of the file's `samples` and loads and every
    seed of its `repeat`.

    over: names of the options from the command line. Raises `UsageError` if one of them or an entry sets the same
    option.
    """
    repeats = _repeats(file)
    if not repeats:
        return entries
    if typed := [option for option in repeats if option in over]:
        raise UsageError("the file sets this option for each repeat; omit it", field=typed[0])
    where = file.where((next((name for name in (*LOADS, "samples") if name in repeats), "repeat"),))
    for name, values in repeats.items():
        if len({*values}) < len(values):
            raise UsageError(f"{file.where((name,))}: the same number is listed twice")
    repeated = []
    for entry in entries or [Entry(name="", label="", where=where)]:
        if twice := [option for option in repeats if option in entry.options]:
            raise UsageError(f"{entry.where}: {_SET_BY_FILE.format(twice[0])}")
        for numbers in itertools.product(*repeats.values()):
            options = dict(zip(repeats, numbers, strict=True))
            name = "-".join(filter(None, [entry.name, *(f"{option}-{n}" for option, n in options.items())]))
            label = " ".join(filter(None, [entry.label, *(f"{option} {n}" for option, n in options.items())]))
            repeated.append(replace(entry, name=name, label=label, options={**entry.options, **options}))
    return repeated


_SET_BY_FILE = "the file's `samples`, `repeat`, `concurrency` and `rate` set this option for each run; omit {}"
"""The error for an option that is given although the file already runs several values of it."""


# ---- cells


@dataclass(frozen=True)
class _Making:
    """Makes the cells from the entries of each axis. over: options from the command line, which override all others.
    out: the sweep's folder. The methods raise `UsageError`.
    """

    file: SweepFile
    axes: Mapping[str, Sequence[Entry]]
    over: Mapping[str, Any]
    out: Path

    def cells(self, model: Entry | None, server: Entry | None) -> Iterator[Cell]:
        """Yield the cells of one model on one server: all combinations of prompts, sampling and benchmarks, except
        those that the file excludes.
        """
        named = {axis: entry for axis, entry in (("models", model), ("servers", server)) if entry is not None}
        spec = self._spec(model, server) if server is not None and server.engine is not None else None
        for combination in itertools.product(*(self.axes.get(axis, (None,)) for axis in AXES[2:])):
            of_axes = zip(AXES[2:], combination, strict=True)
            entries = named | {axis: entry for axis, entry in of_axes if entry is not None}
            point = {axis: entry.name for axis, entry in entries.items()}
            if not self._is_left_out(point):
                yield self._cell(entries, point, spec)

    def _spec(self, model: Entry | None, server: Entry) -> dict[str, Any]:
        """The fields of the server to start for a model, with its engine and model.

        An entry's `options` apply to runs, and its `server` fields to the server; a model's fields override a server's.
        """
        options = {**self.file.content.get("run", {}), **(model.options if model else {}), **server.options}
        spec = {"model": {**options, **self.over}.get("model"), **server.server, **(model.server if model else {})}
        spec["engine"] = server.engine
        if not spec["model"]:
            where = server.where or str(self.file.path)
            raise UsageError(f"{where}: the server needs a model: set `models` in the file, or the option `model`")
        try:
            fields = {key: value for key, value in spec.items() if key not in ("engine", "model")}
            spec_without_download(spec["engine"], spec["model"], **fields)
        except UsageError as error:
            if not server.where:  # The server comes from the command line.
                raise
            raise at_line(server.where, error) from error
        return {name: value for name, value in spec.items() if value is not None}

    def _is_left_out(self, point: Mapping[str, str]) -> bool:
        """Whether an entry of the file's `except` matches this cell. point: axis → name of the entry."""
        return any(
            all(point.get(axis) in ([names] if isinstance(names, str) else names) for axis, names in left_out.items())
            for left_out in self.file.content.get("except", ())
        )

    def _cell(self, entries: Mapping[str, Entry], point: Mapping[str, str], spec: Mapping[str, Any] | None) -> Cell:
        """Make one cell. entries: axis → its entry. point: axis → the entry's name. spec: the server to start; None if
        none is started.
        """
        name = JOIN.join(point.values())
        if len(name) > MAX_NAME_CHARS:
            why = f"the cell's folder name would have {len(name)} characters, but only {MAX_NAME_CHARS} are"
            shown = visible(name, 80)
            raise UsageError(f"{self.file.path}: {shown}: {why} allowed; give its entries a shorter `name`")
        checkpoint = entries["models"].checkpoint if "models" in entries else None
        # The checkpoints are the points of a curve, and each benchmark has its own curves, so the other axes name it.
        varied = [axis for axis in ("servers", "prompts", "sampling") if len(self.axes.get(axis, ())) > 1]
        curve = [] if checkpoint is None else [checkpoint.series, *(entries[axis].label for axis in varied)]
        return Cell(
            name=name,
            point=point,
            options=self._options(entries, name, spec),
            where=entries["benchmarks"].where,
            checkpoint=checkpoint,
            curve=" ".join(filter(None, curve)),
        )

    def _options(self, entries: Mapping[str, Entry], name: str, spec: Mapping[str, Any] | None) -> RunOptions:
        """The options of a cell's run, with the server to start and the cell's folder. The command line overrides the
        entries, and the entries override the rest of the file. name: name of the cell. entries, spec: as in `_cell`.
        """
        where = entries["benchmarks"].where
        fields = dict(self.file.content.get("run", {}))
        for entry in entries.values():
            fields |= entry.options
        fields |= self.over
        benchmark = fields.pop("benchmark", None)
        for option in _repeats(self.file):  # a benchmark's entry, which comes last, must not undo them
            if fields[option] != entries["sampling"].options[option]:
                raise UsageError(f"{where}: {_SET_BY_FILE.format(option)}")
        if spec is not None:
            if twice := [key for key in ("base_url", "provider") if fields.get(key)]:
                why = f"{twice[0]} specifies a running server, but the cell starts its own; remove one of the two"
                raise UsageError(f"{where}: {name}: {why}")
            fields |= {"serve": spec, "model": fields.get("model") or spec["model"]}
        fields |= {"benchmarks": [benchmark] if benchmark else [], "out": str(self.out / name)}
        options: RunOptions = _make(RunOptions, fields, f"{where}: {name}", self.over)
        if not options.benchmarks and not options.data:
            raise UsageError(f"{where}: specify a `benchmark`, or a file of questions with `data`")
        return options


def _make(kind: Any, given: Mapping[str, Any], where: str, typed: Collection[str] = (), scope: str = "") -> Any:
    """Make options of the class `kind` from values in the file and on the command line.

    Raises a `UsageError` that begins with `where`, or that names a rejected option in `typed` by its flag. typed: the
    options from the command line. scope: `judge` for the judge's options.
    """
    try:
        return kind.of(**given)
    except UsageError as error:
        # The command line is to blame for its own rejected values, and for an option that does not exist, which the
        # error names only in its sentence.
        if error.field in typed or not options_of(kind).keys() >= {*typed}:
            if scope:
                raise UsageError(f"{scope}: {error.sentence}") from error
            raise
        raise at_line(where, error) from error


def _refuse_one_program(cells: Iterable[Cell], servers: Sequence[Entry]) -> None:
    """Raise `UsageError` if two models would be started with the same command: its weights would have both names."""
    started: dict[str, str] = {}
    for cell in cells:
        spec = cell.options.serve
        if spec is None or spec["engine"] != ANY_PROGRAM or "{model}" in str(spec["extra_flags"]):
            continue
        first = started.setdefault(digest({**spec, "model": ""}), model := str(spec["model"]))
        if first != model:
            where = next((entry.where for entry in servers if entry.name == cell.point.get("servers")), "")
            both = f"{visible(short_name(first), 80)} and {visible(short_name(model), 80)}"
            why = f"the same `command` would serve {both}; use {{model}} in the command, or give each model a `server`"
            raise UsageError(f"{where}: {why}" if where else why)


# ---- remarks


def _nested(sweep: Sweep) -> list[str]:
    """A remark if runs with more samples request all samples of runs with fewer again, since they share a seed."""
    if len(sweep.file.content.get("samples", ())) < 2 or all(cell.options.seed is None for cell in sweep.cells):
        return []
    return [
        "runs with more samples repeat the requests of runs with fewer samples because they use the same seeds. "
        "This costs extra tokens, and the points are not independent. To avoid this, set `run: {seed: null}`"
    ]
