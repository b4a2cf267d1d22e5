"""Every command and every function of `harness` has a step in the data that shows what it does, every number of a score
a value, every column of a report its heading.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click
from msgspec import inspect as kinds

import harness
from harness.cli.main import cli
from harness.scoring.score import Score
from tests.conftest import CHECKOUT
from tests.pins import data
from tests.pins.held import read_pins
from tests.pins.test_pinned_numbers import NUMBERS
from tests.pins.test_pins import SCENES

ELSEWHERE = {
    "view": "serves pages until it is stopped: tests/viewer",
    "serve stop": "needs a server that runs: tests/server_launchers",
    "serve logs": "needs a server that runs: tests/server_launchers",
    "gate": "draws its samples from a server of a chance: tests/commands/test_gate.py",
    "serve fetch": "downloads: tests/server_launchers",
    "function serve": "starts a server: tests/system/test_python_api.py",
    "function frame": "gives a table of Arrow: tests/exports/test_export.py",
    "function probe": "the same report as the command's, which is pinned: tests/system/test_python_api.py",
}
"""What shows nothing in process and in a moment → why, and where it is held. Their refusals are pinned."""

UNPINNED = {
    "test_pinned_numbers, by shorter names": "tokens.reasoning.n, tokens.reasoning.mean.value, tokens.reasoning.p50, "
    "tokens.reasoning.p99",
    "test_scoring_observed": "anomalies.by_sign.*, hidden_limit.n_at, hidden_limit.n_samples, hidden_limit.tokens, "
    "workload.started, workload.ended, workload.cached_tokens, "
    "tokens.reasoning.mean.sampling, tokens.reasoning.mean.question, longer %, "
    "endpoints.*.accuracy.question, endpoint, interval, expected, "
    "goodput.first_token, goodput.token_gap, goodput.total, goodput.share, goodput.n_requests, goodput.n_unknown, "
    "goodput.seconds, limits, within %, right within %, within/s, right within/s, goodput.within.value, "
    "goodput.within.low, goodput.within.high, goodput.right.value, goodput.right.low, goodput.right.high, "
    "goodput.within_per_s.value, goodput.within_per_s.low, goodput.within_per_s.high, goodput.right_per_s.value, "
    "goodput.right_per_s.low, goodput.right_per_s.high",
    "test_engine_metrics": "engine.acceptance_length, engine.acceptance_rate, engine.cache_hit_rate, engine.gap_s, "
    "engine.client_tokens, engine.client_tokens_per_s, engine.concurrency, engine.draft_share, engine.first_token_s, "
    "engine.kv_cache, engine.preempted, engine.running, engine.tokens, engine.tokens_per_s, engine.waiting, "
    "engine.waiting_share, speculation.length, speculation.error, speculation.low, speculation.high, "
    "speculation.steps, speculation.n_questions",
    "test_judge_trial": "judging.cost.usd",
    "test_tool": "tool.n_samples, tool.with_call, tool.lost, tool.cut_by_steps, tool.steps, tool.calls, tool.failed, "
    "tool.stopped, tool.repeated, tool.prompt_tokens, tool.new_tokens",
    "test_graded_turns": "turns.*.accuracy.value, turns.*.accuracy.sampling, turns.*.accuracy.question, turns.*.n, "
    "turns.*.n_reached, turns.*.parts, turn, parts, reached %",
    "test_reports_series": "step, change, value, set by (blank: not recorded), kind, requests, the latest said",
    "test_outputs_beside_runs, test_sweep_runs": "this run, published, metric, verdict, settings that differ",
    "test_scoring_benchmarks": "near_misses.*, schema, breakdowns.*.*.accuracy.question, measure",
    "test_core_contradictions": "early_cut.max_tokens, early_cut.n_at, early_cut.n_samples, early_cut.tokens",
    "test_scoring_regrades": "questions × samples",
    "test_reports_formats": "questions",
}
"""Numbers of a score and headings of a report that no pin has, by where they are held."""
WRITE = "`python -m tests.pins.write score,read`, or name in UNPINNED the test that holds it"


def commands(command: click.Command, *words: str) -> Iterator[str]:
    """The words of every command below, without the groups."""
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, *words, name)


def every() -> set[str]:
    """All commands and functions."""
    functions = [name for name in harness.__all__ if inspect.isfunction(getattr(harness, name))]
    return {*commands(cli), *(f"function {name}" for name in functions)}


def pinned(steps: data.Steps) -> set[str]:
    """Commands, with all beginnings of their words, that did what they are for; functions that returned."""
    names = set()
    for key, step in steps.items():
        if key.startswith("harness.") and "refused" not in step:
            names.add(f"function {key.removeprefix('harness.').partition('(')[0]}")
        elif step.get("exit") in (0, 1, 4):  # not a refusal
            words = shlex.split(key)[1:]
            names |= {" ".join(words[:n]) for n in range(1, len(words) + 1)}
    return names


def steps() -> data.Steps:
    """The steps of all scenes."""
    return {key: step for path in data.FOLDER.glob("*.json") for key, step in data.load(path.stem).items()}


def test_every_command_and_every_function_is_pinned() -> None:
    assert every() - pinned(steps()) - ELSEWHERE.keys() == set()


def test_what_is_held_elsewhere_is_there_and_has_no_pin() -> None:
    assert ELSEWHERE.keys() <= every() - pinned(steps())
    assert all((CHECKOUT / reason.rpartition(": ")[2]).exists() for reason in ELSEWHERE.values())


def test_each_file_belongs_to_a_scene() -> None:
    assert {*SCENES, "streams.recorded"} == {path.stem for path in data.FOLDER.glob("*.json")}


def numbers(stated: Any, at: str = "") -> Iterator[str]:
    """Where a value of this type has numbers: `tokens.*.n`. An interval counts as one number."""
    if isinstance(stated, kinds.IntType | kinds.FloatType | kinds.NamedTupleType):
        yield at.removeprefix(".")
    if isinstance(stated, kinds.DictType):
        yield from numbers(stated.value_type, f"{at}.*")
    for kind in getattr(stated, "types", ()):
        yield from numbers(kind, at)
    for field in getattr(stated, "fields", ()) if isinstance(stated, kinds.StructType) else ():
        yield from numbers(field.type, f"{at}.{field.encode_name}")


def states(value: Any, keys: Sequence[str]) -> bool:
    """Whether a pinned value has something there; * is any key."""
    if not keys or not isinstance(value, dict):
        return not keys and value is not None
    return any(states(value[key], keys[1:]) for key in value if keys[0] in ("*", key))


def headings(tree: ast.AST) -> Iterator[str]:
    """The words of the column heads in calls of `Table` and `_by_score`, and in what is named `heads` or `columns`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("Table" | "_by_score"), [_, heads, *_]) | ast.Assign(
                [ast.Name("heads" | "columns")], heads
            ):
                for word in ast.walk(heads):
                    if isinstance(word, ast.Constant) and isinstance(word.value, str):
                        yield word.value


def test_every_number_of_a_score_and_every_column_of_a_report_is_in_a_pin() -> None:
    """In a scene, or in the 64 runs: a fault in any other number would be unseen."""
    scores = [score for step in steps().values() for score in dict(step.get("scores", {})).values()]
    of_runs = {
        name for key, runs in read_pins(NUMBERS).items() if key[:5] == "score" for run in runs.values() for name in run
    }
    stated = set(numbers(kinds.type_info(Score))) - of_runs
    unseen = {place for place in stated if not any(states(score, place.split(".")) for score in scores)}
    tables = [*(CHECKOUT / "harness" / "reports").glob("*.py"), CHECKOUT / "harness" / "sweeps" / "table.py"]
    shown = {head for step in steps().values() for table in step.get("tables", ()) for head in table.split(" | ")}
    unseen |= {word for path in tables for word in headings(ast.parse(path.read_text("utf-8")))} - shown
    held = {name for names in UNPINNED.values() for name in names.split(", ")}
    assert unseen - held == set(), "let a scene (tests/pins/scenes: score, read.report) show it, then run " + WRITE
    assert held - unseen == set(), "it is pinned: take it from UNPINNED"
