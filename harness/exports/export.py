"""Exports runs: finds the format, selects the samples for it, and refuses to export test data as training data.

The formats themselves are extensions (`harness.extensions.exporters`) or plug-ins, found by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.benchmarks import catalog
from harness.core import plugins
from harness.core.errors import UsageError
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.exports.selection import ENDED, ExportedBenchmark, File, SampleChoice, Take, not_scored_error
from harness.runs import Manifest, RunFolder

Kind = Literal["training", "samples", "results"]
"""The kind of a format. training: training data; by default correct replies that the model ended itself, without
duplicates. samples: any samples; by default all. results: the score in another tool's format; there is nothing to
choose.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A format of exports.

    write: a function that writes the benchmarks' files into a folder and returns them; it raises `UsageError` and
    `StoreError`. withholds: whether a benchmark that may not be published is rejected; False for a format without
    questions, answers and samples. holds_images: whether a training data format can contain images.
    """

    kind: Kind
    write: Callable[[Sequence[ExportedBenchmark], Path], list[File]]
    withholds: bool = True
    holds_images: bool = False


def formats() -> dict[str, Exporter]:
    """Name → format, for all formats that ship with the harness; formats of plug-ins are left out."""
    return {name: plugins.extension("exporter", name) for name in plugins.extensions("exporter")}


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an export: files in `folder` or its subfolders.

    left_out: number of samples that were not exported, by benchmark and reason.
    """

    folder: Path
    files: tuple[File, ...]
    left_out: Mapping[str, Mapping[str, int]]

    @property
    def sentences(self) -> list[str]:
        """One sentence for each benchmark with samples that were not exported."""
        return [_left_out(name, reasons) for name, reasons in self.left_out.items()]


def _left_out(name: str, reasons: Mapping[str, int]) -> str:
    """A sentence about the samples of a benchmark that an export leaves out. reasons: reason → number of samples."""
    counts = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items(), key=lambda item: -item[1]))
    return f"{visible(name, 100)}: {count_noun(sum(reasons.values()), 'sample')} left out: {counts}"


def export(
    folders: Sequence[RunFolder],
    to: str,
    out: Path | None = None,
    *,
    take: Take | None = None,
    shortest: int | None = None,
    finish_reasons: Sequence[str] | None = None,
    distinct: bool | None = None,
    reasoning: bool = True,
    i_know: bool = False,
) -> Written:
    """Write runs of different benchmarks in the format `to`. out: the folder for the files; None: `exports/FORMAT` in
    the folder of the first run.

    take, shortest, finish_reasons, distinct, reasoning: as in `SampleChoice`; None: the default for the format's kind.
    i_know: also export training data from test sets, and questions that may not be published. Raises `UsageError`, also
    if there is no sample to write, and `StoreError`.
    """
    exporter = find_exporter(to)
    given = {"take": take, "shortest": shortest, "finish_reasons": finish_reasons, "distinct": distinct}
    if exporter.kind == "results":
        given["reasoning"] = None if reasoning else False  # True is the default, so it counts as not given.
        choosing = [name for name, value in given.items() if value is not None]
        if choosing:
            raise UsageError(
                f"{choosing[0]} selects samples, but {to} always contains all scored samples; omit this option",
                field="to",
            )
    training = exporter.kind == "training"
    accepted_reasons: Sequence[str] = ENDED if training else ()
    choice = SampleChoice(
        take=take or ("correct" if training else "all"),
        shortest=shortest,
        finish_reasons=tuple(accepted_reasons if finish_reasons is None else finish_reasons),
        distinct=training if distinct is None else distinct,
        reasoning=reasoning,
        # A file with the score contains the verdicts that the score is based on, which are the grader's.
        by_hand=exporter.kind != "results",
        empty=not training,  # an empty reply is useless for training
    )
    benchmarks = _benchmarks(folders, choice)
    if not i_know:
        refuse_test_data(
            benchmarks, to, exporter, chosen_to_learn=training or choice.take == "correct" or shortest is not None
        )
    for benchmark in benchmarks:
        if training and not exporter.holds_images and any(q.images for q in benchmark.questions.values()):
            raise UsageError(
                f"the questions of {visible(benchmark.name, 100)} contain images, which {to} does not support: export "
                "them as sharegpt",
                field="to",
            )
        if (choice.take == "correct" or exporter.kind == "results") and not benchmark.grades:
            raise not_scored_error(benchmark.folder, benchmark.name)
    # A results format always contains the score.
    if exporter.kind != "results" and all(next(benchmark.rows(), None) is None for benchmark in benchmarks):
        named = "; ".join(_left_out(each.name, each.left_out) for each in benchmarks if each.left_out)
        advice = ". `take='all'` and `finish_reasons='any'` include more" if named else ""
        raise UsageError(f"there are no samples to export as {to}: {named or 'the run has none'}{advice}")
    target = (out or folders[0].path / "exports" / to).absolute()
    files = tuple(exporter.write(benchmarks, target))
    return Written(target, files, {each.name: dict(each.left_out) for each in benchmarks if each.left_out})


def _benchmarks(folders: Sequence[RunFolder], choice: SampleChoice) -> list[ExportedBenchmark]:
    """The benchmarks of the runs. Raises `UsageError` for a benchmark in two runs, because its files would have the
    same name.
    """
    found: dict[str, ExportedBenchmark] = {}
    for folder in folders:
        manifest = Manifest.load(folder)
        for name in manifest.benchmarks:
            if name in found:
                runs = f"{visible(str(found[name].folder.path), 200)} and {visible(str(folder.path), 200)}"
                raise UsageError(f"{visible(name, 100)} is in both {runs}: export one run at a time", field="runs")
            found[name] = ExportedBenchmark(folder, manifest, name, choice)
    return [*found.values()]


def find_exporter(name: str) -> Exporter:
    """The format with this name, shipped or from a plug-in. Raises `UsageError` that suggests similar names."""
    exporter: Exporter | None = plugins.extension("exporter", name)
    if exporter is not None:
        return exporter
    if (offered := plugins.load("exporter", name)) is not None:
        return _of_plugin(name, offered)
    if name.replace("_", "-") == "every-eval-ever":
        raise UsageError(
            "this format is no longer written; export `lm-eval`, and convert it with `every_eval_ever convert lm_eval` "
            "(docs/exports.md)",
            field="to",
        )
    raise plugins.unknown_name_error("exporter", "format", name, field="to")


def _of_plugin(name: str, offered: object) -> Exporter:
    """The exporter that a plug-in provides. Errors in the plug-in's code are raised as `UsageError`.

    offered: an `Exporter`, or a function that writes samples.
    """
    if isinstance(offered, Exporter):
        exporter = offered
    elif callable(offered):
        exporter = Exporter(kind="samples", write=offered)
    else:
        raise plugins.wrong_kind_error("exporter", name, offered)

    def written(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
        files = plugins.call("exporter", name, exporter.write, benchmarks, out)
        return [file if isinstance(file, File) else File(Path(file)) for file in files]

    return replace(exporter, write=written)


def refuse_test_data(
    benchmarks: Sequence[ExportedBenchmark], to: str, exporter: Exporter, *, chosen_to_learn: bool
) -> None:
    """Raise `UsageError` if test data would become training data, or if a benchmark would be published against its
    authors' wishes.

    chosen_to_learn: whether the export can serve as training data: because of its format, or because it contains only
    correct or only short replies. to: name of the export's format.
    """
    for benchmark in benchmarks:
        name = visible(benchmark.name, 100)
        if chosen_to_learn and catalog.is_test_set(benchmark.name, benchmark.record.settings):
            raise UsageError(
                f"{name} is a benchmark: a model trained on its questions can no longer be tested on them. "
                "Export a run on a training set (limo or your own), or set `i_know=True` to export it anyway"
            )
        if exporter.withholds and not catalog.may_publish(benchmark.name, benchmark.record.settings):
            raise UsageError(
                f"the authors of {name} ask that its questions not be published, and {to} contains them; to "
                "export them "
                f"for private use only, set `i_know=True`"
            )
