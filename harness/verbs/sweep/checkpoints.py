"""Reads the training step of a checkpoint, and the series that it belongs to, from its path.

A step is read only if the name leaves no doubt, since a wrong step draws a wrong curve:

    step_500, iter500, checkpoint-500, global_step500   the number after a word for steps; the last if there are several
    epoch3                                              the number after "epoch", if there is no word for steps
    qwen3-8b-500, ck/500                                the only part of the name that is a number, at its end

The number must be a whole part of the name: `step_2k`, `step_1e3`, the 95 of `loss2.95` and the 0 of `Q8_0` are no
steps. The path's last part is read first, then its folder: `checkpoint-500/model.gguf` is step 500. A folder further up
is read only if the pattern spells out everything behind it, as `global_step_*/actor/huggingface` does: in `iter3/*/*`
the 3 may be part of a training's name. The series, which is one line of a plot, is named by the folder that holds the
part with the step, and by the text before the step without the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.core.inert import visible

_ENDS = r"(?=$|[-_=])"
_BEHIND_WORD = re.compile(
    rf"(?i)(?<![a-z])(?:(?:global[-_]?)?steps?|iter(?:ation)?s?|checkpoint|ckpt|ck|update)[-_=]?(\d+){_ENDS}"
)
_BEHIND_EPOCH = re.compile(rf"(?i)(?<![a-z])ep(?:och)?[-_=]?(\d+){_ENDS}")
_AT_THE_END = re.compile(r"(?:^|[-_=])[A-Za-z]*(\d+)$")
_NUMBER_ALONE = re.compile(r"(?:^|[-_=])\d+(?=$|[-_=])")
_NO_STEP = re.compile(r"(?i)(?:q\d+[-_]?|\d+e-)\d*$")
"""Matches an end of a name that is a quantisation (Q8_0) or a number such as 1e-4, and so no step."""

NO_STEP = (
    "its name has no training step, or several numbers that may be one; rename it, or make a link to it, called "
    "step_500 for instance"
)
"""The reason why a path that matches a pattern of checkpoints is no checkpoint; `why_no_step` adds a remedy."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint: its path, the name of its series and its training step.

    name: its part of its cells' folder names. series: names one curve of scores over steps. pattern: the pattern of the
    sweep's file that the path matches; empty if unknown. word: stands before the number in the name, such as
    "global_step" or "epoch", in lower case; empty without one.
    """

    path: Path
    name: str
    series: str
    step: int
    pattern: str = ""
    word: str = ""


def checkpoint_at(path: Path, pattern: str = "") -> Checkpoint | None:
    """Read the step of a checkpoint from its path; None if the path does not show the step without doubt.

    pattern: the pattern that the path matches, as of the sweep's file. Without it, any folder above may give the step:
    for a path that is known to be a checkpoint.
    """
    last = path.name[: -len(".gguf")] if path.name.lower().endswith(".gguf") else path.name
    read = _behind_word(last) or _at_the_end(last)
    folder, names = path.parent, [path.name]
    while read is None and folder.name:
        if pattern and len(names) > 1 and [*Path(pattern).parts[-len(names) :]] != names:
            return None
        read = _behind_word(folder.name)
        folder, names = folder.parent, [folder.name, *names]
    if read is None:
        return None
    before, step, word = read
    series = "-".join(filter(None, (folder.name, before)))
    name = "-".join(filter(None, (folder.name, *names)))
    return Checkpoint(path=path, name=name, series=series, step=step, pattern=pattern, word=word)


def in_different_words(checkpoints: Iterable[Checkpoint]) -> list[str]:
    """A sentence for each series whose names count in different words, such as epochs beside steps."""
    first_of: dict[str, dict[str, Checkpoint]] = {}
    for checkpoint in checkpoints:
        first_of.setdefault(checkpoint.series, {}).setdefault(checkpoint.word, checkpoint)
    sentences = []
    for series, by_word in first_of.items():
        if len(by_word) > 1:
            read = (
                f"{visible(str(checkpoint.path), 100)} is step {checkpoint.step}" for checkpoint in by_word.values()
            )
            curve = visible(series, 100) or "the training"
            sentences.append(
                f"the checkpoints of {curve} are counted in different words: {', '.join(read)}. If one of them counts "
                "epochs and another steps, give each a folder of its own"
            )
    return sentences


def why_no_step(path: Path) -> str:
    """The sentence about a path that matches a pattern of checkpoints but is no checkpoint.

    If a folder further up may give the step, the sentence has the pattern that spells out what is behind the folder.
    """
    for folder in path.parents:
        if (word := _step_word(folder.name)) is not None:
            steps = folder.with_name(f"{folder.name[: word.start(1)]}*{folder.name[word.end(1) :]}")
            pattern = visible(str(steps / path.relative_to(folder)), 200)
            return f"{NO_STEP}; if its step is {int(word[1])}, write the pattern {pattern}"
    return NO_STEP


def _behind_word(name: str) -> tuple[str, int, str] | None:
    """Return the text before the step in one part of a path, the step, and the word that marks it, such as "step" or
    "epoch"; None without such a word.
    """
    match = _step_word(name)
    if match is None:
        return None
    word = name[match.start() : match.start(1)].strip("-_=").lower()
    return _without_epoch(name[: match.start()]), int(match[1]), word


def _step_word(name: str) -> re.Match[str] | None:
    """The word that marks the step in one part of a path, with the number behind it as group 1; None without one."""
    for pattern in (_BEHIND_WORD, _BEHIND_EPOCH):
        if matches := [*pattern.finditer(name)]:
            return matches[-1]
    return None


def _at_the_end(name: str) -> tuple[str, int, str] | None:
    """Return the text before the step in a name, the step, and the letters that touch it, if the name ends with it and
    has no other number that may be a step; else None.
    """
    number = _AT_THE_END.search(name)
    alone = len(re.findall(r"\d+", name)) == 1 or (
        number is not None and number[0].lstrip("-_=").isdigit() and len(_NUMBER_ALONE.findall(name)) == 1
    )
    if number is None or not alone or _NO_STEP.search(name):
        return None
    letters = name[number.start() : number.start(1)].strip("-_=").lower()
    return _without_epoch(name[: number.start()]), int(number[1]), letters


def _without_epoch(before: str) -> str:
    """Return the beginning of a name without its epoch, which differs from step to step and so cannot name a series."""
    return _BEHIND_EPOCH.sub("", before).strip("-_=. ")
