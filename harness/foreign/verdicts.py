"""Reads the verdicts in the files of suites that grade themselves. Nothing is graded here.

format       files
verdicts     a JSON object with verdicts or, for a key, with objects that have them: by id, in lists by id, or in a list
swe_bench    a JSON object with lists of ids whose names are verdicts: `resolved_ids`, `failed`, `error_ids` …
tau2_bench   `results.json` of tau2-bench: `simulations`, each with `task_id`, `trial` and `reward_info.reward`
harbor       a job's folder of Harbor (Terminal-Bench 2) with `TRIAL/result.json`

Each file becomes rows with the columns `id` and `verdict`, and for tau2-bench also `trial`. `rows.read` reads
them like any file with `verdict_key`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.files import open_named
from harness.core.literals import OutputsFormat as Format
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted, visible
from harness.foreign.row_values import id_of, mapping_or_empty

FORMATS: tuple[Format, ...] = ("verdicts", "swe_bench", "tau2_bench", "harbor")
"""The formats of this module."""

ID_COLUMNS = ("task_id", "instance_id", "testcase", "problem_id", "question_id", "id", "index")
"""Usual names of columns with a task's id in files of verdicts."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "resolved", "correct", "success", "solved", "accepted"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed", "unresolved", "incorrect", "wrong", "failure", "timeout"), 0.0),
}
_NUMBER = re.compile(r"(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")

_RIGHT = re.compile(r"resolved|pass(ed)?|success(ful)?|correct|solved|accepted")
_WRONG = re.compile(r"unresolved|fail(ed|ures?)?|incorrect|wrong|unsolved|rejected|not_resolved")
_EMPTY = re.compile(r"empty_patch|no_(generation|patch|apply)")
_LOST = re.compile(r"(test_)?(errore?d?|incomplete|timeout|missing)|no_logs")
"""Names of lists, without `_ids`: of the attempts that are right, wrong, and not made (which counts as wrong), and of
those that were not judged.
"""
_TRIES = re.compile(r"(?:.*\.)?(?:tests_)?(?:outcomes|tries|attempts)")
"""Names of lists with the tries of one attempt, of which one success is enough: Aider's `tests_outcomes`."""
_NULL_IS_WRONG = frozenset({"is_resolved"})
"""Fields in which null counts as wrong: Terminal-Bench divides the resolved attempts by all of them
(terminal_bench/harness/models.py, `BenchmarkResults.accuracy`)."""
_EXTENDED, _BASE = "plus_status", "base_status"
"""EvalPlus's verdicts on its extended tests, where a reply is right only if it also passes the base tests
(evalplus/evaluate.py), and on these.
"""
_MAX_CONTAINERS = 1_000
"""Number of objects and lists that are searched for attempts."""


class GivenVerdicts(NamedTuple):
    """How verdicts are read from a file. key: the field with the verdicts; None: replies are graded, if the format has
    any. errors: what an attempt without a verdict counts as; None: the format's own rule.
    """

    key: str | None = None
    errors: Literal["missing", "wrong"] | None = None


def share_of(value: Any, where: str, field: str) -> float | None:
    """The fraction of the task that a verdict counts as correct, from 0 to 1; None if there is no verdict.

    field: the name of the verdict's field, for messages. Raises `UsageError` for anything but a verdict.
    """
    if value is None or value == "":
        return None
    share = value if isinstance(value, int | float) else None
    if isinstance(value, str):
        text = value.strip()
        share = float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text.lower())
    if share is None or not 0 <= share <= 1:  # also for NaN
        raise UsageError(
            f"{where}: {visible(field, 100)!r} must be a verdict, found {quoted(repr(value)[:400])}; expected true or "
            f"false, a fraction from 0 to 1, or one of {', '.join(_WORDS)}"
        )
    return float(share)


def form_of(path: Path, key: str | None = None) -> Format | None:
    """The format (one of this module's) of a file or folder; None for any other format and if it cannot be read.

    key: the field with the verdicts, for an object of objects.
    """
    if path.is_dir():
        return "harbor" if any(path.glob("*/result.json")) else None
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        with open_named(path) as file:
            if file.read(64).lstrip()[:1] != b"{":
                return None
        value = tables.whole_json(path)
    except (OSError, UsageError):
        return None  # the reader of the rows will report it
    if key is not None:
        return "verdicts" if _by_id(value, key) or _container(value, key) is not None else None
    if isinstance(value.get("simulations"), list):
        return "tau2_bench"
    if any(isinstance(ids, list) and _is_right(name) for name, ids in value.items()):
        return "swe_bench"
    each = [verdict for cell in value.values() for verdict in (cell if isinstance(cell, list) else [cell])]
    is_flat = bool(each) and not any(isinstance(verdict, dict | list) for verdict in each)
    is_binary = is_flat and all(verdict in (0, 1, None) for verdict in each)
    return "verdicts" if is_binary or (is_flat and any(isinstance(verdict, bool) for verdict in each)) else None


def tries_of(key: str, values: list[Any], where: str) -> list[Any]:
    """The verdicts in a list: one for each attempt or, for a field with the tries of one attempt, its only one.

    An attempt without tries is wrong, as Aider counts it. An empty list of attempts is one without a verdict.
    """
    if not values:
        return [0.0 if are_tries(key) else None]
    return [max(share_of(each, where, key) or 0.0 for each in values)] if are_tries(key) else values


def are_tries(key: str) -> bool:
    """Whether lists in this field are the tries of one attempt."""
    return _TRIES.fullmatch(key) is not None


def errors_of(key: str, usual: Literal["missing", "wrong"]) -> Literal["missing", "wrong"]:
    """What a null in this field counts as. usual: the rule of the file's format."""
    return "wrong" if key.rpartition(".")[2] in _NULL_IS_WRONG else usual


def rows(path: Path, format: Format, key: str | None, id_key: str | None = None) -> Iterator[Row]:
    """The rows of a file or folder in one of this module's formats. key: the field with the verdicts in an object of
    objects; for Harbor, the name of the reward. id_key: the field with the ids. Raises `UsageError`.
    """
    if format == "harbor":
        return _harbor(path, key or "reward")
    shown = visible(str(path))
    if key is not None and format != "verdicts":
        raise UsageError(f"{format} has its own verdict field; omit this option", field="verdict_key", value=key)
    value = tables.whole_json(path, partial(_without_repeats, shown))
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{shown} must contain a JSON object with verdicts, found {quoted(repr(value)[:400])}")
    if format == "verdicts" and key is not None:
        by_id = _by_id(value, key)
        if not by_id:
            return _attempts(_container(value, key) or {}, shown, key, id_key)
        value = by_id
    if format == "verdicts":
        numbers = [name for name, cell in value.items() if isinstance(cell, int | float) and cell not in (0, 1)]
        if numbers and any(isinstance(cell, bool) for cell in value.values()):
            number = visible(numbers[0], 100)
            raise UsageError(f"{shown}: {number!r} is a number, but other verdicts are true or false; remove it")
        return (Row(f"{shown}:{visible(name, 100)}", {"id": name, "verdict": cell}) for name, cell in value.items())
    return _of_lists(value, shown) if format == "swe_bench" else _tau2_bench(value, shown)


def cell_at(value: Any, path: str) -> Any:
    """The value at a path of keys. In a list of objects, a key is the `name` of one of them, and the value of a
    statistic is its `mean` (HELM). Raises `KeyError`.
    """
    for key in path.split("."):
        if isinstance(value, list):
            names = ((one.get("name"), one) for one in value if isinstance(one, dict))
            names = ((name.get("name") if isinstance(name, dict) else name, one) for name, one in names)
            value = {name: one for name, one in names if isinstance(name, str)}
        if not isinstance(value, dict):
            raise KeyError(path)
        value = value[key]
    return value.get("mean", value) if isinstance(value, dict) else value


def _by_id(value: Any, key: str) -> dict[str, Any]:
    """The object of verdicts, or of lists of them, at this path of a file's object; empty if there is none."""
    found = cell_at(value, key) if _has(value, key) else None
    found = found if isinstance(found, dict) else {}
    return {} if any(isinstance(cell, dict) for cell in found.values()) else found


def _has(value: Any, key: str) -> bool:
    """Whether an attempt has a value at this path."""
    try:
        cell_at(value, key)
    except KeyError:
        return False
    return isinstance(value, dict)


def is_unfinished(value: Mapping[str, Any], key: str) -> bool:
    """Whether an attempt has the first key of a path and no value at its end: nothing judged it."""
    first, _, rest = key.partition(".")
    return bool(rest) and first in value


def _container(value: Any, key: str) -> dict[str, Any] | list[Any] | None:
    """The outermost object or list of attempts with this field (in an object: attempts, or lists of them); None if
    there is none.
    """
    found = [value]
    for place in range(_MAX_CONTAINERS):
        if place == len(found):
            break
        container = found[place]
        items = [*container.values()] if isinstance(container, dict) else container
        if isinstance(container, dict):  # of attempts, or of lists of attempts; a single list is one of questions
            firsts = [item[0] if isinstance(item, list) and item else item for item in items]
            n_lists = sum(isinstance(item, list) for item in items)
            is_whole = n_lists in (0, max(len(items), 2)) and all(isinstance(one, dict) or one == [] for one in firsts)
        else:
            firsts, is_whole = items, True
        if is_whole and any(_has(first, key) for first in islice(firsts, 100)):
            return container  # type: ignore[no-any-return]
        found += [item for item in islice(items, _MAX_CONTAINERS) if isinstance(item, dict | list)]
    return None


def _attempts(container: dict[str, Any] | list[Any], shown: str, key: str, id_key: str | None) -> Iterator[Row]:
    """The attempts in an object or list. Raises `UsageError` for one without the field or an id."""
    by_name = container.items() if isinstance(container, dict) else ((None, item) for item in container)
    list_of = dict[str, str]()  # a question's id → the name of its list
    for number, (name, value) in enumerate(by_name):
        where = f"{shown}:{number if name is None else visible(name, 100)}"
        for attempt in value if value and isinstance(value, list) else [value]:  # an empty list is refused
            is_judged = _has(attempt, key)
            if not is_judged and not (isinstance(attempt, dict) and is_unfinished(attempt, key)):
                raise UsageError(f"{where} has no {visible(key, 100)!r}, found {quoted(repr(attempt)[:400])}")
            is_named = name is not None and not id_key and isinstance(value, dict)
            ids = (id_key,) if id_key else () if is_named else ID_COLUMNS
            own = next((attempt[column] for column in ids if column in attempt), name)
            if name is not None and not id_key and (other := list_of.setdefault(str(own), name)) != name:
                raise UsageError(
                    f"{where}: {visible(str(own), 100)!r} is also in {visible(other, 100)!r}; remove one of the lists, "
                    "or specify with `id_key` which field has the questions' ids"
                )
            verdict = cell_at(attempt, key) if is_judged else None
            if key == _EXTENDED and is_judged and not share_of(base := attempt.get(_BASE), where, _BASE):
                verdict = base
            yield Row(where, {"id": own, "verdict": verdict})


def trials(folder: Path) -> list[Path]:
    """The results of the trials in a Harbor job's folder, by name."""
    return sorted(folder.glob("*/result.json"))


def _without_repeats(shown: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these members. Raises `UsageError` if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise UsageError(f"{shown} has the key {visible(twice, 100)!r} twice in one object; remove one")
    return members


def _is_right(name: str) -> bool:
    """Whether this is the name of a list of the attempts that are right."""
    return _RIGHT.fullmatch(name.lower().removesuffix("_ids").removesuffix("_instances")) is not None


def _of_lists(report: Mapping[str, Any], shown: str) -> Iterator[Row]:
    """The attempts in lists of ids; those that were not judged have no verdict, and those that only lists of no verdict
    contain (such as `generated`) are wrong. Raises `UsageError`.
    """
    place: dict[str, str] = {}
    others: dict[str, Row] = {}
    has_wrong = False
    for name, instances in report.items():
        short = name.lower().removesuffix("_ids").removesuffix("_instances")
        kind = next((names for names in (_RIGHT, _WRONG, _EMPTY, _LOST) if names.fullmatch(short)), None)
        if not isinstance(instances, list):
            if kind is not None and name.endswith("_ids"):
                raise UsageError(f"{shown}: {name} must be a list of ids, found {quoted(repr(instances)[:400])}")
            continue
        has_wrong |= kind is _WRONG
        for number, instance in enumerate(instances):
            where = f"{shown}:{name}[{number}]"
            row = Row(where, {"id": instance, "verdict": None if kind is _LOST else kind is _RIGHT})
            if kind is None:
                others[str(instance)] = row
                continue
            if (earlier := place.setdefault(str(instance), where)) != where:
                raise UsageError(f"{where}: {visible(str(instance), 100)!r} also appears at {earlier}; remove one")
            yield row
    unlisted = [row for name, row in others.items() if name not in place]
    yield from unlisted
    total = report.get("total_instances", len(place) + len(unlisted))
    if total != len(place) + len(unlisted):
        raise UsageError(
            f"{shown}: total_instances is {quoted(repr(total)[:400])}, but the lists contain "
            f"{count_noun(len(place) + len(unlisted), 'instance')}; list the others as incomplete_ids"
        )
    if not has_wrong and not others and "total_instances" not in report:
        raise UsageError(f"{shown} does not list the attempts that failed: add them as unresolved_ids")


def _tau2_bench(results: Mapping[str, Any], shown: str) -> Iterator[Row]:
    """Yield a row per simulation, read from the results or, if each has its own file, from their index. A simulation
    that ended with an infrastructure error has no verdict.
    """
    name = "simulations" if results.get("simulations") else "simulation_index"
    for number, simulation in enumerate(results.get(name) or []):
        where = f"{shown}:{name}[{number}]"
        if not isinstance(simulation, dict) or "task_id" not in simulation:
            raise UsageError(f"{where} is not a tau2-bench simulation: expected an object with task_id and reward_info")
        info = simulation.get("reward_info", simulation)
        reward = info["reward"] if isinstance(info, dict) and "reward" in info else info
        failed = simulation.get("termination_reason") == "infrastructure_error"
        cells = {"verdict": None if failed else reward, "trial": simulation.get("trial")}
        yield Row(where, {"id": simulation["task_id"], **cells, "seconds": simulation.get("duration")})


def _harbor(folder: Path, reward: str) -> Iterator[Row]:
    """The trials in a job's folder, sorted by name within each task. A reward counts even if there is also an exception
    (such as the agent's timeout), because the verifier ran after it.
    """
    for path in trials(folder):
        where = visible(str(path))
        trial = tables.whole_json(path)
        if not isinstance(trial, dict) or id_of(trial.get("task_name")) is None:
            raise UsageError(f"{where} is not a Harbor trial: expected an object with task_name and verifier_result")
        rewards = mapping_or_empty(trial.get("verifier_result")).get("rewards")
        if rewards and (not isinstance(rewards, dict) or reward not in rewards):
            found = quoted(repr(rewards)[:400])
            raise UsageError(f"{where} has no {visible(reward, 100)!r} in verifier_result.rewards, found {found}")
        usage = mapping_or_empty(trial.get("agent_result"))
        tokens = {"prompt_tokens": usage.get("n_input_tokens"), "completion_tokens": usage.get("n_output_tokens")}
        yield Row(where, {"id": trial["task_name"], "verdict": rewards[reward] if rewards else None, **tokens})
