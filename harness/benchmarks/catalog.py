"""Find a benchmark's card by name among the shipped cards and the cards in the user's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from harness.benchmarks import card
from harness.benchmarks.card import Card
from harness.benchmarks.sources import tables
from harness.core import files, yaml_file
from harness.core.errors import UsageError, near_names
from harness.core.files import real
from harness.core.records import GradeRules, Question
from harness.core.sanitize import visible

USER_FOLDER_VARIABLE = "HARNESS_DATASETS"
"""Environment variable with the folder of the user's own cards, or several folders as in PATH; these cards hide shipped
ones."""


CARD_SUFFIXES = (".yaml", ".yml")
"""The suffixes of card files."""

CARD = "card"
"""The key in a run's recorded settings for the file of a user's card."""

DATA = "data"
"""The key in a run's recorded settings for the address of the user's own data."""

WITHOUT_CARD = "without_card"
"""The key in a run's recorded settings that is True if the user's own data replaced a card."""


def load(name_or_path: str, **of_data: Any) -> Card:
    """The card that the user asks for. Raises a `UsageError` that lists the cards and suggests similar names.

    of_data: options of a file of questions, as in `card.from_file`.

    NAME or an alias              a card
    NAME@RELEASE, NAME@FROM..TO   a card, restricted to a release or a date range
    PATH.yaml                     a card's file
    PATH                          a file of questions, with a default card
    hf://datasets/OWNER/NAME      a data set with an `eval.yaml`; with `#TASK` at the end if the file has several tasks
    """
    if name_or_path.startswith("hf://"):
        from harness.benchmarks import eval_yaml  # few runs need it

        return eval_yaml.of_hub(name_or_path)
    if name_or_path.startswith("gym:"):
        raise UsageError("gym:TASK no longer exists: write the questions of reasoning-gym to a file for --data")
    whole, *arguments = name_or_path.split("@")
    # A path may itself contain an @.
    if arguments and not Path(name_or_path).exists():
        return load(whole).restrict_to(arguments)
    path = Path(name_or_path)
    if path.suffix in CARD_SUFFIXES:
        return load_file(path)
    file = _file_named(name_or_path)
    if file is not None:
        return load_file(file)
    if is_table(name_or_path):
        return card.from_file(name_or_path, **of_data)
    raise _unknown_error(name_or_path)


def _file_named(name: str) -> Path | None:
    """The file of the card that has this name or alias; None if there is none."""
    folded, files = fold_name(name), _card_files()
    # File names are compared first, because parsing every card for its aliases takes longer.
    by_stem = (file for file in files if fold_name(file.stem) == folded)
    by_alias = (file for file in files if (card := _card_or_none(file)) and folded in _names_of(card))
    return next(chain(by_stem, by_alias), None)


def _unknown_error(name_or_path: str) -> UsageError:
    """The error for a name without a card; it says whether the name is a file, a suite, or a misspelled name."""
    path, shown = Path(name_or_path), visible(name_or_path, 100)
    if tables.is_named_as_data(path):
        return UsageError(f"file {shown} does not exist")
    if suite := next((file for file in suites() if fold_name(file.stem) == fold_name(name_or_path)), None):
        return UsageError(f"{shown} is a benchmark suite: run it with `harness sweep {suite.stem}`")
    known, colon, number = name_or_path.rpartition(":")
    if colon and _file_named(known) is not None:
        found, sample = visible(number, 80), visible(known, 80)
        return UsageError(
            f"{shown}: expected a number of samples after the colon, as in {sample}:4, but found {found!r}"
        )
    words = name_or_path.replace(",", " ").split()
    if len(words) > 1 and all(_file_named(word) for word in words):
        return UsageError(f"{shown!r}: separate multiple benchmarks with commas, as in {visible(','.join(words), 100)}")
    near = near_to(name_or_path)
    if not near and "/" in name_or_path:
        return UsageError(f"{shown} is neither a file nor a benchmark name")
    return UsageError(
        f"unknown benchmark {shown!r}.{near} Run `harness benchmarks` to list them all. You can also give the path to "
        "a benchmark card (.yaml) or to a question file"
    )


def near_to(name: str) -> str:
    """The end of a message about an unknown card name: similar names, or empty."""
    return near_names(name, names(), {alias: card.name for card in cards() for alias in card.aliases})


def suites() -> list[Path]:
    """The files of the shipped suites: sweeps over a named set of benchmarks."""
    return sorted((shipped_folder() / "suites").glob("*.yaml"))


def is_table(name_or_path: str) -> bool:
    """Whether this is a file of questions. A card's name is none, even if a file has it, too."""
    path = Path(name_or_path)
    return path.is_file() and path.suffix not in CARD_SUFFIXES and not knows(name_or_path)


def knows(name: str) -> bool:
    """Whether a card has this name or alias."""
    return _file_named(name) is not None


def load_file(path: Path) -> Card:
    """The card in a YAML file. Raises `UsageError` that names the file and the field."""
    value = yaml_file.read_mapping(path, "a card")
    if "tasks" in value and "source" not in value:
        raise UsageError(f"{path}: eval.yaml files can only be read from the Hub: use hf://datasets/OWNER/NAME")
    value.setdefault("name", path.stem)
    folder = real(path).parent
    users_file = None if folder == real(shipped_folder()) else real(path)
    return card.from_mapping(value, where=str(path), folder=folder, file=users_file)


def file_of(name: str, settings: Mapping[str, object]) -> Path | None:
    """The file of the card that a run used for the benchmark `name`; None if that file is not on this machine.

    settings: the settings that the run recorded. If they contain no user's card, the card of that name is used.
    """
    recorded = settings.get(CARD)
    if isinstance(recorded, str):
        return Path(recorded) if Path(recorded).is_file() else None
    return next((path for path in _card_files() if fold_name(path.stem) == fold_name(base_name(name))), None)


def apply_card_rules(
    name: str, settings: Mapping[str, object], questions: Sequence[Question]
) -> tuple[Sequence[Question], str | None]:
    """Apply the card's current grading rules to a run's questions, so that a corrected card can grade an old run.

    Returns (questions, a warning if the rules differ from the run's). Messages and reference answers stay as the run
    stored them. The questions are returned unchanged if the run used the user's own data without a user's card, or if
    the card is missing or cannot be read. settings: the settings that the run recorded for the benchmark.
    """
    if DATA in settings and CARD not in settings:
        return questions, None  # the user's file may have a card's name by chance
    try:
        file = file_of(name, settings)
        card_now = None if file is None else load_file(file)
    except UsageError as error:
        return (
            questions,
            f"graded by the rules that applied when the run started, because its card cannot be read: {error}",
        )
    if card_now is None:
        return questions, None

    def rules_for(question: Question) -> GradeRules:
        """The card's current rules, with the stored tolerance where the data specify one per question."""
        if not card_now.columns.tolerance:
            return card_now.rules
        return msgspec.structs.replace(card_now.rules, absolute_tolerance=question.rules.absolute_tolerance)

    if all(rules_for(question) == question.rules for question in questions):
        return questions, None
    regraded = [msgspec.structs.replace(question, rules=rules_for(question)) for question in questions]
    warning = f"graded by the card's current rules ({file}), which differ from the rules at the start of the run"
    return regraded, warning


def names() -> list[str]:
    """The sorted names of all cards; a user's card hides a shipped card of the same name."""
    return sorted({path.stem for path in _card_files()})


def cards() -> list[Card]:
    """All cards, sorted by name. A user's card that is broken is skipped; `load` reports what is wrong with it."""
    return sorted(filter(None, map(_card_or_none, _card_files())), key=lambda c: c.name)


def may_publish(name: str, settings: Mapping[str, object]) -> bool:
    """Whether a run's questions, answers and samples of this benchmark may be shown in public.

    settings: the settings that the run recorded. Both the run's settings and the current cards of that name must allow
    it, because earlier versions recorded nothing.
    """
    if settings.get("publish_questions") is False:
        return False
    named = [_card_or_none(path) for path in _card_files() if fold_name(path.stem) == fold_name(base_name(name))]
    return all(current.publish_questions for current in named if current is not None)


def is_test_set(name: str, settings: Mapping[str, object]) -> bool:
    """Whether a run's benchmark is a shipped test set, which must not become training data.

    settings: the settings that the run recorded. Data without a card are classified by file name: a file with a
    benchmark's name counts as a copy of that benchmark.
    """
    shipped_card = shipped_card_of(name, settings)
    return shipped_card is not None and not shipped_card.training


def shipped_card_of(name: str, settings: Mapping[str, object]) -> Card | None:
    """The shipped card of a run's benchmark; None if the run used a user's card, or if there is no shipped card of that
    name."""
    return None if settings.get(CARD) is not None else shipped_card_named(base_name(name))


def shipped_card_named(name: str) -> Card | None:
    """The shipped card with this name or alias, regardless of the user's cards."""
    folded = fold_name(name)
    return next((card for card in shipped_cards() if folded in _names_of(card)), None)


def shipped_cards() -> Iterator[Card]:
    """The cards that ship with the harness, sorted by file name, regardless of the user's cards."""
    yield from filter(None, map(_card_or_none, _files_in(shipped_folder())))


def shipped_folder() -> Path:
    """The folder of the shipped cards."""
    return files.shipped_folder("datasets", "datasets")


def base_name(name: str) -> str:
    """A benchmark's name without the release or dates after its @."""
    return name.partition("@")[0]


def fold_name(name: str) -> str:
    """The name normalized for comparison: case, spaces, dots, hyphens and underscores are ignored."""
    return re.sub(r"[\s_.-]+", "", name.casefold())


def _names_of(named: Card) -> set[str]:
    """A card's name and aliases, each normalized with `fold_name`."""
    return {fold_name(named.name), *map(fold_name, named.aliases)}


def _card_files() -> list[Path]:
    """The files of all cards. If two have the same name, the one in the earlier folder is used. Raises `UsageError`."""
    files: dict[str, Path] = {}
    own = [Path(entry).expanduser() for entry in os.environ.get(USER_FOLDER_VARIABLE, "").split(os.pathsep) if entry]
    for folder in (*own, shipped_folder()):
        if not folder.is_dir():
            raise UsageError(f"the card folder {folder} (set by {USER_FOLDER_VARIABLE}) does not exist")
        for path in _files_in(folder):
            files.setdefault(path.stem, path)
    return list(files.values())


def _files_in(folder: Path) -> list[Path]:
    """The cards' files in a folder, sorted by name."""
    # Comparing names is ten times as fast as comparing paths.
    return sorted((path for path in folder.iterdir() if path.suffix in CARD_SUFFIXES), key=lambda path: path.name)


def _card_or_none(path: Path) -> Card | None:
    """The card in a file; None if it is broken or gone."""
    try:
        return _load_cached(path, path.stat().st_mtime_ns)
    except (UsageError, OSError):
        return None


@cache  # the modification time is part of the key, so an edited card is read again
def _load_cached(path: Path, _changed_ns: int) -> Card:
    """As `load_file`, with a cache."""
    return load_file(path)
