"""A sweep comes to the same from any state: killed, with an edited file or a damaged one, with checkpoints that come
and go. The same means: the table of a fresh sweep, and no stored sample is asked again.

For: harness.sweeps.whole, harness.sweeps.running, harness.sweeps.done.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from harness.progress.watching import Watcher
from harness.sweeps import cells
from harness.sweeps import whole as sweeps
from harness.sweeps.plan import Sweep
from harness.sweeps.running import CellScore, score_cell
from harness.testing import FakeServer, Reply, Request, http, serving
from tests.commands.test_sweep_runs import questions

STEPS = (1, 2)
N_QUESTIONS = {"a": 1, "b": 2}
ENOUGH = 10**6


class Sweeping(RuleBasedStateMachine):
    """A training with two steps and a sweep's file with two benchmarks; the server counts its answers."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.before = Path.cwd()
        os.chdir(self.folder)
        for name, n in N_QUESTIONS.items():
            questions(self.folder, name, n, 3)
        self.n_answered, self.n_scored, self.answers_left, self.scorings_left = 0, 0, ENOUGH, ENOUGH
        self.server = FakeServer(serving(self.reply, *(f"ck/step_{step}" for step in STEPS))).__enter__()
        self.benchmarks, self.samples, self.max_tokens = ["a"], 1, 32
        self.max_tokens_of: dict[str, int] = {}  # of each cell with samples
        self.appear(1)

    def teardown(self) -> None:
        self.server.__exit__(None, None, None)
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def reply(self, _: Request) -> Reply:
        self.answers_left -= 1
        if self.answers_left < 0:
            return [http(401, {"error": {"message": "no"}})]
        self.n_answered += 1
        return r"\boxed{3}"

    def score(self, *task: Any) -> CellScore:
        self.scorings_left -= 1
        if self.scorings_left < 0:
            raise KeyboardInterrupt
        self.n_scored += 1
        return score_cell(*task)

    def plan(self, out: str = "results/s") -> Sweep:
        entries = [{"data": f"{name}.jsonl", "samples": self.samples} for name in self.benchmarks]
        run = {"base_url": self.server.base_url, "max_tokens": self.max_tokens, "attempts": 1, "concurrency": 1}
        checked = {"fingerprint": False, "canary": False}
        content = {"checkpoints": "ck/step_*", "benchmarks": entries, "run": run | checked, "score": {"workers": 1}}
        Path("s.yaml").write_text(json.dumps(content))
        return cells.plan_of("s.yaml", {"out": out}, {})

    def stored(self, cell: str = "*") -> list[tuple[str, int]]:
        """Question and index of each sample on disk of the cell, or of all cells."""
        lines = [
            line for path in Path("results/s").glob(f"{cell}/*/samples.jsonl") for line in path.read_text().splitlines()
        ]
        rows = [json.loads(line) for line in lines if line.endswith("}")]  # not a torn tail
        return [(row["question_id"], row["sample_index"]) for row in rows]

    def carry_out(self) -> Any:
        """Sweep; afterwards the settings of each cell are those with which it was first sampled."""
        plan = self.plan()
        try:
            return sweeps.run_sweep(plan, Watcher(), score=self.score)
        finally:
            for cell in plan.cells:
                if self.stored(cell.name):
                    self.max_tokens_of.setdefault(cell.name, self.max_tokens)

    @rule(step=st.sampled_from(STEPS))
    def appear(self, step: int) -> None:
        Path(f"ck/step_{step}").mkdir(parents=True, exist_ok=True)

    @rule(step=st.sampled_from(STEPS))
    def disappear(self, step: int) -> None:
        if len([*Path("ck").iterdir()]) > 1 and Path(f"ck/step_{step}").exists():
            Path(f"ck/step_{step}").rmdir()

    @rule(
        benchmarks=st.sampled_from([["a"], ["b"], ["a", "b"]]),
        samples=st.integers(1, 3),
        max_tokens=st.sampled_from([32, 32, 64]),
    )
    def edit(self, benchmarks: list[str], samples: int, max_tokens: int) -> None:
        self.benchmarks, self.samples, self.max_tokens = benchmarks, samples, max_tokens

    @rule(answers=st.integers(0, 3))
    def break_server(self, answers: int) -> None:
        self.answers_left = answers
        self.carry_out()
        self.answers_left = ENOUGH

    @rule(scorings=st.integers(0, 3))
    def stop(self, scorings: int) -> None:
        self.scorings_left = scorings
        with contextlib.suppress(KeyboardInterrupt):
            self.carry_out()
        self.scorings_left = ENOUGH

    @rule(pattern=st.sampled_from(["*/*/scores.json", "*/*/samples.jsonl", "cells/*.json"]), data=st.data())
    def damage(self, pattern: str, data: st.DataObject) -> None:
        """Lose a file of a cell, or its end, as a full disk or a careless hand does."""
        if paths := sorted(Path("results/s").glob(pattern)):
            path = data.draw(st.sampled_from(paths))
            if pattern == "*/*/scores.json" or data.draw(st.booleans()):
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[: -data.draw(st.integers(1, 40))])
            self.n_answered = len(self.stored())

    @rule()
    def sweep(self) -> None:
        """An undisturbed sweep completes each cell but those of other settings; the next one finds nothing to do."""
        rows = {}
        for result in self.carry_out().results:
            cell, refused = result.cell, self.max_tokens_of[result.cell.name] != self.max_tokens
            assert ("of other settings" in result.reason) == refused, (cell.name, result.reason)
            if not refused:
                assert not result.reason, (cell.name, result.reason)
                rows[cell.name] = result.score and (result.score.accuracy, result.score.n_samples)
                ids = [f"{cell.benchmark}{number}" for number in range(N_QUESTIONS[cell.benchmark])]
                assert {*self.stored(cell.name)} >= {*itertools.product(ids, range(self.samples))}
            assert len(self.stored(cell.name)) == len({*self.stored(cell.name)})
        assert self.n_answered == len(self.stored()), "nothing that is stored was asked again"
        before = self.n_answered, self.n_scored
        self.carry_out()
        assert (self.n_answered, self.n_scored) == before, "nothing is left to do"
        fresh = sweeps.run_sweep(self.plan("fresh"), Watcher(), score=score_cell).results
        again = {one.cell.name: one.score and (one.score.accuracy, one.score.n_samples) for one in fresh}
        assert rows.items() <= again.items(), "the numbers are those of a sweep from nothing"
        shutil.rmtree("fresh")
        self.n_answered = before[0]


def test_a_sweep_comes_to_the_same_from_any_state() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Sweeping,
        settings=settings(
            max_examples=6,
            stateful_step_count=7,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )
