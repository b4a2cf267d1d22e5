"""Loads published scores from a YAML file, or from a folder of such files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path

from harness.core import files
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.scoring.published.value import PublishedScore

SUFFIXES = (".yaml", ".yml")
"""Suffixes of the files of published scores."""

MAX_FILES = 10_000
"""Largest number of files in a folder of published scores, subfolders included; a folder with more is refused as
another folder.
"""


def published_folder() -> Path:
    """The scores shipped with the project: in the checkout, or inside the installed package."""
    return files.shipped_folder("published", "results/published")


def load_published(path: Path | None = None, models: Iterable[str] | None = None) -> list[PublishedScore]:
    """The scores of a file, or of all such files of a folder tree, sorted by name.

    path: None = the shipped folder. models: names of the models whose scores are wanted; None = all. Raises
    `UsageError` naming file and field.
    """
    names = None if models is None else frozenset(short_name(model) for model in models)
    return list(_shipped_scores(published_folder(), names)) if path is None else _scores_in(path, names)


def matching(scores: Iterable[PublishedScore], model: str, benchmark: str) -> list[PublishedScore]:
    """The scores of this benchmark and this model; `org/name`, `name` and a path that ends in it are the same model."""
    name = short_name(model)
    return [score for score in scores if score.benchmark == benchmark and short_name(score.model) == name]


def short_name(model: str) -> str:
    """The part of a model's name that is compared: after the last slash, in lower case."""
    return model.rstrip("/").rsplit("/", 1)[-1].casefold()


@lru_cache(maxsize=64)
def _shipped_scores(folder: Path, names: frozenset[str] | None) -> tuple[PublishedScore, ...]:
    """The scores of these models in the shipped folder; None: all. Read once in a process, for all runs of a sweep or a
    report: the YAML takes a hundredth of a second, that of all models a tenth.
    """
    return tuple(_scores_in(folder, names))


def _scores_in(path: Path, names: frozenset[str] | None) -> list[PublishedScore]:
    """The scores of these models in a file or a folder tree. names: as `short_name` returns them; None: all models."""
    from harness.scoring.published import tables  # Imported late: it needs pydantic.

    # `read` only skips lines without any of the names, which may stand in a longer name; here they must be equal.
    loaded = [score for file in _files(path) for score in tables.read(file, names)]
    return [score for score in loaded if names is None or short_name(score.model) in names]


def _files(path: Path) -> list[Path]:
    """The files of published scores at this path. Raises `UsageError`."""
    if path.is_file() and path.suffix in SUFFIXES:
        return [path]
    named = (file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    # The list is bounded before it is sorted, because the folder may be a whole disk.
    paths = sorted(islice(named, MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise UsageError(f"{visible(str(path), 200)} holds more than {MAX_FILES:,} files; give a folder inside it")
    if not paths:
        what = "is another file" if path.exists() else "is not there"
        if path.is_dir():
            what = "holds none"
        raise UsageError(
            f"expected a file of published scores (.yaml), or a folder of such; {visible(str(path), 200)} {what}. "
            "docs/deciding.md shows such a file, and how a record of Every Eval Ever (.json) becomes one"
        )
    return paths
