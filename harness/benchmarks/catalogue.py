"""The cards that can be named: those that ship with the harness and those of the user's own folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from harness.benchmarks import card, eval_yaml
from harness.benchmarks.card import Card
from harness.benchmarks.sources import gym
from harness.core import files, yaml_file
from harness.core.errors import UsageError, near_names, option
from harness.core.inert import visible
from harness.core.packed import Packed
from harness.core.records import GradeRules, Question

USER_FOLDER_VARIABLE = "HARNESS_DATASETS"
"""Environment variable: folder (or several, separated as in PATH) of the user's own cards; they come first."""


CARD = "card"
"""The setting of a run's benchmark that holds the file of a card of the user's."""


def load(name_or_path: str) -> Card:
    """The card of a name, an alias, `NAME@RELEASE`, `NAME@FROM..TO`, `gym:TASK`, a path to a YAML file, or a data
    set of the hub with an `eval.yaml`: `hf://datasets/OWNER/NAME`, `#TASK` behind it where it has several. Raises
    `UsageError` with the near names."""
    if name_or_path.startswith("hf://"):
        return eval_yaml.of_hub(name_or_path)
    if name_or_path.startswith(gym.PREFIX):
        return gym.card_of(name_or_path.removeprefix(gym.PREFIX))
    whole, *arguments = name_or_path.split("@")
    if arguments and not Path(name_or_path).exists():
        return load(whole).narrowed(arguments)
    path, task = Path(name_or_path), ""
    if "#" in path.name and not path.exists():
        before, _, task = name_or_path.rpartition("#")
        path = Path(before)
    if path.suffix in (".yaml", ".yml"):
        return load_file(path, task)
    meant = folded(name_or_path)
    for file in _card_files():
        if folded(file.stem) == meant:
            return load_file(file)
    for file in _card_files():
        candidate = _named_card(file)
        if candidate and meant in _names_of(candidate):
            return load_file(file)
    if path.is_file():
        raise UsageError(f"{visible(name_or_path, 100)} is a file: give it with {option('data')}")
    listing = names()
    every = {*listing, *(alias for c in cards() for alias in c.aliases)}
    raise UsageError(
        f"unknown benchmark {visible(name_or_path, 100)!r}; there are {', '.join(listing)}, or give the path of a card "
        f"(.yaml) or a file with {option('data')}.{near_names(name_or_path, every)}"
    )


def knows(name: str) -> bool:
    """Whether a card goes by this name or alias."""
    meant = folded(name)
    return any(folded(path.stem) == meant for path in _card_files()) or any(
        meant in map(folded, card.aliases) for card in cards()
    )


def load_file(path: Path, task: str = "") -> Card:
    """The card in a YAML file, of an `eval.yaml` that of this task. Raises `UsageError` with the file and the field."""
    value = yaml_file.read_mapping(path, "a card")
    if "tasks" in value and "source" not in value:
        return eval_yaml.of_file(value, path, task)
    if task:
        raise UsageError(f"{path} is a card and has no tasks: leave out #{visible(task, 60)}")
    value.setdefault("name", path.stem)
    loaded = card.from_mapping(value, where=str(path), folder=path.resolve().parent)
    loaded._file = None if path.resolve().parent == shipped_folder().resolve() else path.resolve()
    return loaded


def file_of(name: str, settings: Mapping[str, object]) -> Path | None:
    """The file of the card that a run's benchmark was asked by, as far as it is here.

    settings: those that its run recorded. Where they name no card of the user's, the one that goes by its name counts.
    """
    recorded = settings.get(CARD)
    if isinstance(recorded, str):
        return Path(recorded) if Path(recorded).is_file() else None
    return next((path for path in _card_files() if folded(path.stem) == folded(_whole(name))), None)


def by_rules_of_card(
    name: str, settings: Mapping[str, object], questions: Sequence[Question]
) -> tuple[Sequence[Question], str | None]:
    """(the questions with the rules that their card has now, a sentence where the run began with other rules).

    Only the rules change: messages and reference answers are the run's own, in its questions.jsonl. settings: those
    recorded of the benchmark. Without the card, or with one that cannot be read, nothing changes.
    """
    try:
        file = file_of(name, settings)
        current = None if file is None else load_file(file)
    except UsageError as error:
        return questions, f"the rules are those that the run began with: {error}"
    if current is None:
        return questions, None
    of_rows = bool(current.columns.tolerance)  # a tolerance for each question, read from the data
    rules = current.rules

    def ruled(question: Question) -> GradeRules:
        own = question.rules.absolute_tolerance
        return msgspec.structs.replace(rules, absolute_tolerance=own) if of_rows else rules

    if all(ruled(question) == question.rules for question in questions):
        return questions, None
    regraded = (msgspec.structs.replace(question, rules=ruled(question)) for question in questions)
    warning = f"graded by the rules of the card as they are now ({file}); the run began with others"
    return Packed(Question, regraded), warning


def names() -> list[str]:
    """Names of all cards, sorted; a user's card hides a shipped one of the same name."""
    return sorted({path.stem for path in _card_files()})


def cards() -> list[Card]:
    """All cards that can be read, by name. A broken card of the user's is left out; `load` says why."""
    all_cards = [_named_card(path) for path in _card_files()]
    return sorted((c for c in all_cards if c is not None), key=lambda c: c.name)


def may_publish(name: str, settings: Mapping[str, object]) -> bool:
    """Whether questions, answers and samples of a run's benchmark may be shown in public.

    settings: those that its run recorded. A run of an earlier version recorded nothing of it: the card of that name
    decides then.
    """
    if settings.get("publish_questions") is False:
        return False
    named = [_named_card(path) for path in _card_files() if folded(path.stem) == folded(_whole(name))]
    return all(named_card.publish_questions for named_card in named if named_card is not None)


def is_test_set(name: str, settings: Mapping[str, object]) -> bool:
    """Whether a run's benchmark is one that ships and tests: not a training set, and not the user's own.

    settings: those that its run recorded. Data without a card go by the name of their file: a copy of a benchmark under
    its own name is that benchmark.
    """
    shipped_card = shipped(name, settings)
    return shipped_card is not None and not shipped_card.training


def shipped(name: str, settings: Mapping[str, object]) -> Card | None:
    """The card that ships for a run's benchmark; None where it was asked by a card of the user's, or has none."""
    if settings.get(CARD) is not None:
        return None
    meant = folded(_whole(name))
    return next((card for card in shipped_cards() if meant in _names_of(card)), None)


def shipped_cards() -> Iterator[Card]:
    """The cards that ship, by file name; a user's card of the same name hides none."""
    for path in sorted(shipped_folder().glob("*.yaml")):
        if card := _named_card(path):
            yield card


def shipped_folder() -> Path:
    """Folder of the shipped cards."""
    return files.shipped_folder("datasets", "datasets")


def _whole(name: str) -> str:
    """The name of a benchmark without its release and its dates."""
    return name.partition("@")[0]


def folded(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.casefold())


def _names_of(named_card: Card) -> set[str]:
    """The name and the aliases of a card, folded."""
    return {folded(named_card.name), *map(folded, named_card.aliases)}


def _folders() -> Iterable[Path]:
    for entry in os.environ.get(USER_FOLDER_VARIABLE, "").split(os.pathsep):
        if entry:
            yield Path(entry).expanduser()
    yield shipped_folder()


def _card_files() -> list[Path]:
    files: dict[str, Path] = {}
    for folder in _folders():
        if not folder.is_dir():
            raise UsageError(f"the folder of cards {folder} does not exist (see {USER_FOLDER_VARIABLE})")
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            files.setdefault(path.stem, path)
    return list(files.values())


def _named_card(path: Path) -> Card | None:
    try:
        return _cached(path, path.stat().st_mtime_ns)
    except (UsageError, OSError):
        return None


@cache
def _cached(path: Path, _changed_ns: int) -> Card:
    return load_file(path)
