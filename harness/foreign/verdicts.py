"""Reads the verdicts in the files of suites that grade themselves. Nothing is graded here.

format       files
verdicts     a JSON object that maps ids to verdicts
swe_bench    a report of SWE-bench: lists of ids, `resolved_ids`, `unresolved_ids`, `error_ids` …
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
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.choices import OutputsFormat as Format
from harness.core.errors import UsageError
from harness.core.files import open_named
from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun
from harness.foreign.cells import id_of, mapping_or_empty

FORMATS: tuple[Format, ...] = ("verdicts", "swe_bench", "tau2_bench", "harbor")
"""The formats of this module."""

ID_COLUMNS = ("id", "task_id", "instance_id")
"""Usual names of columns with a task's id in files of verdicts."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "resolved", "correct", "success"), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failed", "unresolved", "incorrect", "wrong", "failure"), 0.0),
}
_NUMBER = re.compile(r"(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")

_SWE_BENCH = {
    **{"resolved_ids": True, "unresolved_ids": False, "empty_patch_ids": False},
    **{"error_ids": None, "incomplete_ids": None},
}
"""List in a report → the verdict on the instances in it. An empty patch is an empty answer and therefore wrong."""


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


def form_of(path: Path) -> Format | None:
    """The format (one of this module's) of a file or folder; None for any other format and if it cannot be read."""
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
    if isinstance(value.get("resolved_ids"), list):
        return "swe_bench"
    if isinstance(value.get("simulations"), list):
        return "tau2_bench"
    nested = any(isinstance(verdict, dict | list) for verdict in value.values())
    return "verdicts" if not nested and any(isinstance(verdict, bool) for verdict in value.values()) else None


def rows(path: Path, format: Format, key: str | None) -> Iterator[Row]:
    """The rows of a file or folder in one of this module's formats. key: for Harbor, the name of the reward. Raises
    `UsageError`.
    """
    if format == "harbor":
        return _harbor(path, key or "reward")
    shown = visible(str(path))
    if key is not None:
        raise UsageError(f"{format} has its own verdict field; omit this option", field="verdict_key", value=key)
    value = tables.whole_json(path, partial(_without_repeats, shown))
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{shown} must contain a JSON object with verdicts, found {quoted(repr(value)[:400])}")
    if format == "verdicts":
        return (Row(f"{shown}:{visible(name, 100)}", {"id": name, "verdict": cell}) for name, cell in value.items())
    return _swe_bench(value, shown) if format == "swe_bench" else _tau2_bench(value, shown)


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


def _swe_bench(report: Mapping[str, Any], shown: str) -> Iterator[Row]:
    """The instances of a report; those that were not judged have no verdict. Raises `UsageError`."""
    place: dict[str, str] = {}
    for name, verdict in _SWE_BENCH.items():
        instances = report.get(name, [])
        if not isinstance(instances, list):
            raise UsageError(f"{shown}: {name} must be a list of ids, found {quoted(repr(instances)[:400])}")
        for number, instance in enumerate(instances):
            where = f"{shown}:{name}[{number}]"
            if (earlier := place.setdefault(str(instance), where)) != where:
                raise UsageError(f"{where}: {visible(str(instance), 100)!r} also appears at {earlier}; remove one")
            yield Row(where, {"id": instance, "verdict": verdict})
    total = report.get("total_instances", len(place))
    if total != len(place):
        raise UsageError(
            f"{shown}: total_instances is {quoted(repr(total)[:400])}, but the lists contain "
            f"{count_noun(len(place), 'instance')}; list the others as incomplete_ids"
        )


def _tau2_bench(results: Mapping[str, Any], shown: str) -> Iterator[Row]:
    """The simulations, or their index if each has its own file; a simulation whose infrastructure failed has no
    verdict.
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
