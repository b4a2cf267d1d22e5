"""The checkpoints of a training run as the models of a sweep.

Patterns in the file locate the checkpoints. The step is the number at the end of the last path part that contains a
`*`, without the text after that `*`:

    ck/step_*                                 ck/step_500, ck/epoch3-step500
    runs/*/global_step_*/actor/huggingface    runs/math/global_step_500/actor/huggingface
    ck/*-Q8_0.gguf                            ck/500-Q8_0.gguf

The number must follow the start of the text, a separator (-, _ or =), letters after a separator, or a word for steps,
so the 95 in `loss2.95` is not a step. A curve is named after the folder that contains this part, and the text before
the step.

Training often deletes older checkpoints. A deleted checkpoint stays in the sweep if it has a run whose record contains
its path.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.core.errors import UsageError
from harness.core.sanitize import visible
from harness.sweeps import record
from harness.sweeps.file import Checkpoint, Entry, SweepFile, slug

_STEP = re.compile(
    r"(?i)(?:(.*?)[-_=])??(?:(?:global[-_]?)?(?:steps?|iter(?:ation)?s?|checkpoint|ckpt|ck|update|ep(?:och)?)[-_=]?"
    r"|[a-z]*)(\d+)"
)
"""Matches a text that ends with a step: group 1 is the text before the step, group 2 the step."""

_EPOCH = re.compile(r"(?i)[-_=]*(?<![a-z])ep(?:och)?[-_=]?\d+")
"""Matches an epoch, which differs from step to step and so cannot be part of a curve's name."""

NO_STEP = "its name has no training step where the pattern has *; rename it or correct the pattern"
"""The reason why a path that matches a pattern is not a checkpoint."""


def checkpoint_at(path: Path, pattern: str) -> Checkpoint | None:
    """Read the step of a checkpoint from its path; None if the path has no step where the pattern has a `*`.

    A pattern without a `*` is the path of one checkpoint, whose step may be in any part.
    """
    names: list[str] = []
    # The parts of the path from last to first, each paired with the part of the pattern that it matches.
    for folder, part in zip((path, *path.parents), reversed(Path(pattern).parts), strict=False):
        names.insert(0, folder.name)
        if part == "**":  # it matches any number of parts, so those before it have no counterpart
            break
        with_step = folder.name
        if "*" in part:
            behind = part.rpartition("*")[2]  # the "-Q8_0.gguf" of "*-Q8_0.gguf"; "step_*00": 00 is part of the step
            with_step = with_step if behind[:1].isdigit() else with_step.removesuffix(behind)
        elif "*" in pattern:
            continue
        if (match := _STEP.fullmatch(with_step.removesuffix(".gguf"))) is not None:
            series = "-".join(filter(None, (folder.parent.name, _EPOCH.sub("", match[1] or "").strip("-_=. "))))
            name = "-".join(filter(None, (folder.parent.name, *names)))
            return Checkpoint(path=path, name=name, series=series, step=int(match[2]))
    return None


def entries(file: SweepFile, out: Path) -> tuple[list[Entry], dict[str, str]]:
    """The checkpoints as entries of a sweep in the folder `out`, ordered by curve and step; and, for each path or
    pattern that is left out, the reason.

    Of two checkpoints with the same step or name, the one with a run is used, otherwise the first. Raises `UsageError`
    if there are no checkpoints.
    """
    # The models that have a run, according to the records of the cells.
    stored = record.read_all(out)
    with_run = dict.fromkeys(each.model for each in stored if (out / each.cell / "manifest.json").is_file())
    by_step: dict[tuple[str, int], Entry] = {}
    by_name: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    given = file.content.get("checkpoints", [])
    for number, pattern in enumerate(patterns := [given] if isinstance(given, str) else given):
        where = file.where(("checkpoints", number))
        anchor = Path(pattern).anchor  # `Path.glob` does not accept absolute patterns
        found = Path(anchor or ".").glob(pattern[len(anchor) :])
        matches = sorted(found, key=lambda path: (str(path) not in with_run, path))
        deleted = [path for path in map(Path, with_run) if not path.exists() and path.match(pattern)]
        if not matches and not deleted:
            left_out[pattern] = f"no file or folder relative to {Path.cwd()} matches it"
        for path in [*matches, *deleted]:
            checkpoint = checkpoint_at(path, pattern)
            if checkpoint is None:
                left_out[str(path)] = NO_STEP
                continue
            name, step = slug(checkpoint.name), (checkpoint.series, checkpoint.step)
            twin = by_step.get(step) or by_name.get(name)
            if twin is None:
                options = {"model": str(path)}
                entry = Entry(name=name, label=checkpoint.name, where=where, options=options, checkpoint=checkpoint)
                by_step[step] = by_name[name] = entry
            elif twin.options["model"] != str(path) and path.exists():
                left_out[str(path)] = (
                    f"{visible(twin.options['model'], 200)} has the same step or name; rename one of them"
                )
    if not by_step:
        which, reason = next(iter(left_out.items()), (", ".join(patterns), "no file or folder matches it"))
        raise UsageError(f"{file.where(('checkpoints',))}: no checkpoint found: {visible(which, 200)}: {reason}")
    return [by_step[step] for step in sorted(by_step)], left_out
