"""Published scores of a place: a file of any of the forms, or a folder of such."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path

from harness.core import about
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.scoring.published.value import PublishedScore

MAX_FILES = 10_000
"""Files of a folder and of those below it; a folder of more is not one of published scores."""


def published_folder() -> Path:
    """The scores shipped with the project: in the checkout, or inside the installed package."""
    return about.shipped_folder("published", "results/published")


def load_published(place: Path | None = None, models: Iterable[str] | None = None) -> list[PublishedScore]:
    """The scores of a file (.yaml, or .json of Every Eval Ever), or of those in a folder and below it in order of
    name; of these models only, where they are given.

    place: None = those shipped. Raises `UsageError` naming file and field.
    """
    names = None if models is None else {short_name(model) for model in models}
    found = [score for path in _files(place or published_folder()) for score in _read(path, names)]
    return [score for score in found if names is None or short_name(score.model) in names]


def matching(scores: Iterable[PublishedScore], model: str, benchmark: str) -> list[PublishedScore]:
    """The scores of this benchmark and this model; `org/name`, `name` and a path that ends in it are the same model."""
    name = short_name(model)
    return [score for score in scores if score.benchmark == benchmark and short_name(score.model) == name]


def short_name(model: str) -> str:
    """What is compared of a model's name: its last part, without case."""
    return model.rstrip("/").rsplit("/", 1)[-1].casefold()


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    named = (path for path in place.rglob("*") if path.suffix in (".yaml", ".json") and path.is_file())
    paths = sorted(islice(named, MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise UsageError(f"{visible(str(place), 200)} holds more than {MAX_FILES:,} files; give a folder inside it")
    if not paths:
        raise UsageError(
            f"expected a file of published scores (.yaml, or .json of Every Eval Ever), or a folder of such; "
            f"{visible(str(place), 200)} {'holds none' if place.is_dir() else 'is not there'}"
        )
    return paths


def _read(path: Path, names: Collection[str] | None) -> list[PublishedScore]:
    # Each form with what it needs: pydantic for what people write, msgspec for records.
    if path.suffix == ".json":
        from harness.scoring.published import every_eval_ever

        return every_eval_ever.read(path)
    from harness.scoring.published import tables

    return tables.read(path, names)
