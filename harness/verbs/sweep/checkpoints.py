"""The checkpoints of a training: which paths fit the patterns of a sweep's file, and the training step of each.

A step is read only where the name leaves no doubt, since a wrong one draws a wrong curve:

    step_500, iter500, checkpoint-500, global_step500   the number behind a word for steps; the last of several
    epoch3                                              the number behind "epoch", without such a word
    qwen3-8b-500, ck/500                                the only part of the name that is a number, at its end

The number must end there: `step_2k`, `step_1e3`, the 95 of `loss2.95` and the 0 of `Q8_0` are no steps. The path's last
part is read first, then its folder: `checkpoint-500/model.gguf` is step 500. The folder around it and what stands
before the step, without the epoch, name the series, which is one line of a plot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ENDS = r"(?=$|[-_=])"
_BEHIND_WORD = re.compile(
    rf"(?i)(?<![a-z])(?:(?:global[-_]?)?steps?|iter(?:ation)?s?|checkpoint|ckpt|ck|update)[-_=]?(\d+){_ENDS}"
)
_BEHIND_EPOCH = re.compile(rf"(?i)(?<![a-z])ep(?:och)?[-_=]?(\d+){_ENDS}")
_AT_THE_END = re.compile(r"(?:^|[-_=])[A-Za-z]*(\d+)$")
_NUMBER_ALONE = re.compile(r"(?:^|[-_=])\d+(?=$|[-_=])")
_NO_STEP = re.compile(r"(?i)(?:q\d+[-_]?|\d+e-)\d*$")
"""The end of a quantisation, Q8_0, or of a small number, 1e-4."""

NO_STEP = "its name has no training step, or several numbers that may be one; rename it, to step_500 for instance"
"""The sentence about a path that fits the pattern and is no checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint: its path, the name of its series and its training step.

    name: of its cells' folders. pattern: of the sweep's file, which the path matches; empty if there is none.
    """

    path: Path
    name: str
    series: str
    step: int
    pattern: str = ""


def checkpoint_at(path: Path) -> Checkpoint | None:
    """Read the step of a checkpoint from its path; None if the name leaves it open."""
    last = path.name[: -len(".gguf")] if path.name.lower().endswith(".gguf") else path.name
    folder, parts = path.parent, [path.parent.name, path.name]
    read = _behind_word(last) or _at_the_end(last)
    if read is None:
        folder, parts = folder.parent, [folder.parent.name, *parts]
        read = _behind_word(path.parent.name)
    if read is None:
        return None
    before, step = read
    series = "-".join(filter(None, (folder.name, before)))
    return Checkpoint(path=path, name="-".join(filter(None, parts)), series=series, step=step)


def _behind_word(name: str) -> tuple[str, int] | None:
    """Return what stands before the step in one part of a path, and the step, which a word names; None without one."""
    for pattern in (_BEHIND_WORD, _BEHIND_EPOCH):
        if matches := [*pattern.finditer(name)]:
            return _without_epoch(name[: matches[-1].start()]), int(matches[-1][1])
    return None


def _at_the_end(name: str) -> tuple[str, int] | None:
    """Return what stands before the step in a name, and the step, if it is the name's only number; else None."""
    number = _AT_THE_END.search(name)
    alone = len(re.findall(r"\d+", name)) == 1 or (
        number is not None and number[0].lstrip("-_=").isdigit() and len(_NUMBER_ALONE.findall(name)) == 1
    )
    if number is None or not alone or _NO_STEP.search(name):
        return None
    return _without_epoch(name[: number.start()]), int(number[1])


def _without_epoch(before: str) -> str:
    """Return the beginning of a name without its epoch, which counts up as the step does."""
    return _BEHIND_EPOCH.sub("", before).strip("-_=. ")
