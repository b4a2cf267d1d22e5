"""Runs the command's own code night after night: does `harness gate` keep its promise?

    python -m bench.simulate_nights [--repositories 60] [--nights 60] [--cells WORD,…] [--histories 8] [--seed DAY]

A repository has a policy file, a history, and, if the cell says so, a baseline run. Each night reads the policy, opens
a new folder, decides look by look, and writes the decision; only the samples are drawn instead of requested. Questions
have Beta probabilities (concentration 1: half of a coin's variance remains within questions). The accuracy of a night
is the model's, shifted by the deviation of runs.

A change occurs on a random night of the second half. That night is simulated four times, healthy and changed, with and
without the history. "alarms": nights of a healthy model that fail, for all repositories, and for the tenth with the
unluckiest references. "promised": what `--dry-run` reports for the loss on that night. Errors are standard errors over
repositories. Exit code 1 if a goal is missed by more than two standard errors.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import yaml
from numpy.typing import NDArray

from bench import histories
from harness.core import codec
from harness.core.hidden_limit import DIGEST_BITS
from harness.core.records import Question, ServerFacts
from harness.deciding import simulation
from harness.gates import execution, output
from harness.gates import policy as policies
from harness.gates.decision import Gated, Halt
from harness.gates.policy import Policy
from harness.gates.samples import in_order
from harness.reports.inputs import RunHistory, ScoredBenchmark, ScoredRun
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder
from harness.runs.manifest import Provenance
from harness.scoring.anomalies import copies_among
from harness.scoring.stats import Array
from harness.scoring.tally import _ROW as ROW
from harness.scoring.tally import CORRECT, UNDECIDED, QuestionTally
from harness.scoring.tally import _Counted as Counted

FALSE_ALARM, UNLUCKY, POWER = 0.01, 0.02, 0.95
START = datetime(2026, 1, 1, 3, tzinfo=UTC)


@dataclass(frozen=True)
class Cell:
    """One situation, in points and numbers of samples. baseline: samples per question; 0 for a floor. change: change of
    the accuracy from some night on. creep: change every night. with_policy: whether the change comes with a new floor
    and model. undecided: right or wrong, the truth of the 8% of samples that are left undecided; empty: none are.
    concentration: concentration of the questions' probabilities. threshold: threshold of a public CI, which fails a run
    with one sample per question below it. example: whether the policy is what `--example` prints, without the benchmark
    for which a new user has no baseline.
    """

    name: str
    questions: int = 100
    samples: int = 4
    accuracy: float = 80.0
    loss: float = 8.0
    baseline: int = 0
    deviation: float = 0.3
    stated: float = 0.3
    change: float = -8.0
    creep: float = 0.0
    with_policy: bool = False
    deaf: bool = False
    undecided: str = ""
    benchmarks: int = 1
    concentration: float = 1.0
    threshold: float = 0.0
    example: bool = False


THREADS = (
    # Repository and pull request, questions, threshold, mean and sd of the runs in points, loss of the gate.
    ("sgl-project/sglang 20304", 200, 93.5, 94.43, 0.52, 2.5),
    ("sgl-project/sglang 35477", 500, 92.0, 91.60, 0.70, 2.0),
    ("lightseekorg/tokenspeed 278", 198, 70.0, 74.0, 3.0, 7.5),
)
"""Thresholds of public CIs; of healthy runs there, they failed 17 of 120, 9 of 10, and about 11%."""


def thread(name: str, n: int, threshold: float, mean: float, sd: float, loss: float) -> Cell:
    """A thread's history, with a gate of at most 8 rounds in place of the threshold and the mean as its floor."""
    share = min(0.9, sd * sd * n / mean / (100 - mean))
    return Cell(
        name, n, 8, mean, loss, deviation=0.0, change=-loss, concentration=share / (1 - share), threshold=threshold
    )


def cells() -> list[Cell]:
    """All situations."""
    usual = Cell("step 8")
    return [
        usual,
        replace(usual, name="step 5", loss=5, change=-5),
        Cell("step 10", 30, 32, 80.0, loss=10, change=-10),
        replace(usual, name="creep", change=0.0, creep=-0.25),
        replace(usual, name="new floor", change=5.0, with_policy=True),
        replace(usual, name="better", change=5.0),
        *(
            replace(usual, name=f"runs {true:g} stated {stated:g}", deviation=true, stated=stated, loss=10, change=-10)
            for true in (0.3, 1.0, 2.0)
            for stated in (0.3, 1.0, 2.0)
        ),
        replace(usual, name="ignores seeds", deaf=True, loss=10.0, change=-10.0),
        *(replace(usual, name=f"undecided {truth}", undecided=truth) for truth in ("right", "wrong")),
        *(replace(usual, name=f"baseline of {n}", baseline=n, loss=10.0, change=-10.0) for n in (2, 4, 8)),
        *(replace(usual, name=f"{n} benchmarks", benchmarks=n) for n in (3, 8)),
        (example := Cell("example", 1319, 4, 94.5, loss=3, change=-3, example=True)),
        replace(example, name="example, runs 1", deviation=1.0),
        *(thread(*each) for each in THREADS),
    ]


@dataclass
class Repository:
    """One repository: its folder, the probabilities of its questions by benchmark, and its baselines."""

    cell: Cell
    rng: np.random.Generator
    folder: Path
    chances: dict[str, Array]
    baselines: dict[str, ScoredRun] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    model: str = "model"

    @classmethod
    def of(cls, cell: Cell, rng: np.random.Generator, folder: Path) -> Repository:
        """Make a new repository for the cell."""
        accuracy = cell.accuracy / 100
        names = ["gsm8k"] if cell.example else [f"b{number}" for number in range(cell.benchmarks)]
        shape = cell.concentration * accuracy, cell.concentration * (1 - accuracy)
        drawn = {name: rng.beta(*shape, (1, cell.questions)) for name in names}
        chances = {name: simulation.moved(each, np.array([accuracy]))[0] for name, each in drawn.items()}
        own = cls(cell, rng, folder, chances)
        if cell.baseline:
            run = Drawn(own, folder / "baseline", 0.0, START)
            run.sample(dict.fromkeys(names, float(cell.baseline)))
            own.baselines = dict.fromkeys(names, run.runs()[0])
        own.write_policy(cell.accuracy)
        return own

    def write_policy(self, floor: float) -> None:
        """Write the policy with a history, and the same policy without one."""
        reference = {"baseline": "baseline"} if self.cell.baseline else {"floor": floor}
        watched = {**reference, "loss": self.cell.loss, "max_samples": self.cell.samples}
        policy = {
            "benchmarks": {name: {**watched} for name in self.chances},
            "run_deviation": self.cell.stated,
            "run": {"model": self.model},
        }
        if self.cell.example:
            policy = yaml.safe_load(policies.EXAMPLE.read_text(encoding="utf-8"))
            policy |= {"benchmarks": {name: policy["benchmarks"][name] for name in self.chances}, "waivers": []}
            del policy["history"]
        for name, more in (("gate", {"history": str(self.folder / "history")}), ("alone", {})):
            path = self.folder / f"{name}.yaml"
            path.write_text(yaml.safe_dump(policy | more), encoding="utf-8")
            self.policies[name] = policies.read(path)

    def luck(self) -> float:
        """By how much the references are too high, as a fraction."""
        held = [run.benchmarks[name].questions for name, run in self.baselines.items()]
        return max((np.mean([item.correct / item.n for item in each]) for each in held), default=0.0)

    def night(self, number: int, shift: float, name: str = "gate", seed: int = 0, *, kept: bool = True) -> Gated:
        """Run the gate of one night. shift: shift of the accuracy, in points. kept: whether the night is added to the
        history.
        """
        now = START + timedelta(days=number + 1)
        policy = self.policies[name]
        with mock.patch.object(execution, "RESULTS", self.folder):
            folder = execution.new_folder(policy, now, "" if kept else f"{name}{seed}-{number}-{shift:g}")

        @contextlib.contextmanager
        def opened(*_: object) -> Iterator[Drawn]:
            yield Drawn(self, folder, shift, now, np.random.default_rng(seed) if seed else self.rng)

        with mock.patch.object(execution, "read_baselines", return_value=self.baselines):
            gated = execution.run_gate(policy, folder, opened, today=now.date())
        if kept:
            output.write(policy, gated, folder)
        return gated


class Drawn(execution.Session):
    """The sampler of one night, which draws samples instead of requesting them."""

    halt = None

    def __init__(
        self, repository: Repository, folder: Path, shift: float, now: datetime, rng: np.random.Generator | None = None
    ) -> None:
        self.cell, self.rng, self._model = repository.cell, rng or repository.rng, repository.model
        self._folder, self._now = folder, now
        n = self.cell.questions
        self._seed = int(self.rng.integers(2**31))
        self.ids = {name: in_order([f"q{i}" for i in range(n)], self._seed) for name in repository.chances}
        folder.mkdir(parents=True, exist_ok=True)
        self._chances = {
            name: simulation.moved(
                chances[None],
                chances.mean(keepdims=True) + (shift + self.cell.deviation * self.rng.standard_normal()) / 100,
            )[0]
            for name, chances in repository.chances.items()
        }
        self._rows = {name: np.zeros((n, 0), ROW) for name in repository.chances}
        self._runs: list[ScoredRun] = []

    def runs(self) -> list[ScoredRun]:
        """The scored run; empty before the first sample."""
        return self._runs

    def sample(self, looks: Mapping[str, float]) -> Halt | None:
        """Draw the samples up to the looks."""
        for name, look in looks.items():
            more = math.ceil(look) - self._rows[name].shape[1]
            if more > 0:
                self._rows[name] = np.hstack([self._rows[name], self._new(name, more)])
        manifest = Manifest(
            harness_version="0",
            created=self._now.isoformat(timespec="seconds"),
            model=self._model,
            provenance=Provenance(servers={"s": ServerFacts(host={"engine": "vllm", "version": "1"})}),
        )
        scored = {name: self._scored(name, min(look, 1)) for name, look in looks.items()}
        self._runs = [ScoredRun(RunFolder(self._folder), "run", manifest, scored, RunHistory())]
        return None

    def _scored(self, name: str, part: float) -> ScoredBenchmark:
        """The samples of the part of the questions that was asked, counted like those of a score."""
        ids = self.ids[name][: math.ceil(part * self.cell.questions)]
        questions = [
            Question(benchmark=name, question_id=each, references=(), kind="number", row_digest=each, prompt_digest="")
            for each in ids
        ]
        rows = self._rows[name][[int(each[1:]) for each in ids]]
        rows["question"] = np.arange(len(ids))[:, None]
        rows, planned = rows.ravel(), np.full(len(ids), rows.shape[1])
        copies, independent = copies_among(rows["question"], rows["text"], len(ids)) or (None, None)
        counted = Counted.of((), rows, planned, independent if copies is not None and copies.is_excessive else None)
        record = BenchmarkRecord(
            identity={"model": self._model, "seed": self._seed}, plan=Plan(samples=self.cell.samples)
        )
        items = tuple(QuestionTally(question, counted, number) for number, question in enumerate(questions))
        return ScoredBenchmark(name, record, None, items, known_as=None)

    def _new(self, name: str, n: int) -> NDArray[Any]:
        """Draw new samples of each question, (Q, n)."""
        cell, chances, former = self.cell, self._chances[name], self._rows[name]
        right = self.rng.random((len(chances), n)) < chances[:, None]
        rows = np.zeros(right.shape, ROW)
        rows["index"], rows["text"] = np.arange(n) + former.shape[1], -1
        if cell.deaf:
            right = np.repeat(former["signs"][:, :1] if former.size else right[:, :1], n, axis=1) > 0
            rows["text"] = (2000 << DIGEST_BITS) | np.arange(len(chances))[:, None]
        share = {"right": cell.accuracy, "wrong": 100 - cell.accuracy}.get(cell.undecided, 100.0)
        doubted = (right == (cell.undecided == "right")) & (self.rng.random(right.shape) < 8 / share)
        rows["signs"] = np.where(doubted & bool(cell.undecided), UNDECIDED, CORRECT * right)
        return rows


@dataclass
class Played:
    """The results of a repository. alarms, passes, rounds: results of its healthy nights. found, alone: whether the
    change fails the gate that night, with and without the history. passed, passed_alone: whether the healthy twin
    passes. promised: the power that `--dry-run` reports that night; NaN if it was not run. later: whether the gate
    fails the first night on which a creeping loss reaches the policy's. threshold: nights that a fixed threshold fails.
    """

    luck: float
    alarms: float
    passes: float
    rounds: float
    found: float = math.nan
    alone: float = math.nan
    passed: float = math.nan
    passed_alone: float = math.nan
    promised: float = math.nan
    later: float = math.nan
    threshold: float = math.nan


def play(cell: Cell, seed: Sequence[int], n_nights: int, *, ask: bool) -> Played:
    """Simulate one repository. ask: whether to run `--dry-run` at the change, too."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        own = Repository.of(cell, rng, Path(folder))
        at = int(rng.integers(n_nights // 2, n_nights))
        sound: list[Gated] = []
        later: list[bool] = []
        result = Played(own.luck(), 0, 0, 0)
        shift = 0.0
        for number in range(n_nights):
            if number == at and cell.change:
                twin = int(rng.integers(1, 2**31))
                codes = {
                    (name, change): own.night(number, change, name, twin, kept=False).verdict
                    for name in ("gate", "alone")
                    for change in (0.0, min(cell.change, -cell.loss))
                }
                result.found, result.alone = (
                    codes[name, min(cell.change, -cell.loss)] == "fail" for name in ("gate", "alone")
                )
                result.passed, result.passed_alone = (codes[name, 0.0] == "pass" for name in ("gate", "alone"))
                if ask:
                    policy, (name, *_) = own.policies["gate"], own.chances
                    # without the forecast of time and money, which reads runs
                    unread = {"open_scored": str, "run_forecast": lambda *_: None, "read_runs": lambda _: [None]}
                    with mock.patch.multiple(execution, **unread):
                        result.promised = execution._expected_of(
                            policy, name, cell.questions, own.baselines.get(name), output.read_history(policy)
                        ).forecast.power
                shift += cell.change
                if cell.with_policy:
                    own.model = "new"
                    own.write_policy(cell.accuracy + cell.change)
            gated = own.night(number, shift + cell.creep * number)
            is_sound = number < at or cell.change > 0
            if cell.creep:
                is_sound = number == 0
                if cell.creep * number <= -cell.loss:
                    later.append(gated.verdict == "fail")
            if is_sound:
                sound.append(gated)
        result.later = float(later[0]) if later else math.nan
        if cell.threshold:
            once = rng.binomial(1, *own.chances.values(), (n_nights, cell.questions)).mean(axis=-1)
            result.threshold = float((100 * once <= cell.threshold + 1e-9).mean())
        result.alarms = float(np.mean([each.verdict == "fail" for each in sound]))
        result.passes = float(np.mean([each.verdict == "pass" for each in sound]))
        result.rounds = float(np.mean([check.rounds for each in sound for check in each.checks]))
        return result


def summary(cell: Cell, played: Sequence[Played]) -> bool:
    """Print the row of a cell; return whether it meets the goals."""

    def mean(name: str, of: Sequence[Played] = played) -> tuple[float, float]:
        values = np.array([getattr(each, name) for each in of], dtype=float)
        values = values[~np.isnan(values)]
        return (float(values.mean()), float(values.std() / math.sqrt(len(values)))) if len(values) else (math.nan, 0.0)

    unlucky = sorted(played, key=lambda each: -each.luck)[: math.ceil(len(played) / 10)] if cell.baseline else []
    alarms, worst, found, promised = mean("alarms"), mean("alarms", unlucky), mean("found"), mean("promised")
    texts = [
        "–" if math.isnan(value) else f"{100 * value:.{digits}f}" + (f" ± {100 * error:.{digits}f}" if error else "")
        for (value, error), digits in (
            (alarms, 2),
            (worst, 1),
            (mean("passes"), 1),
            (mean("rounds"), 2),
            (mean("passed"), 0),
            (mean("passed_alone"), 0),
            (found, 0),
            (mean("alone"), 0),
            (promised, 0),
            (mean("later"), 0),
            (mean("threshold"), 0),
        )
    ]
    texts[3] = f"{mean('rounds')[0]:.2f}"
    print(f"| {cell.name} | {' | '.join(texts)} |", flush=True)
    holds = alarms[0] <= FALSE_ALARM + 2 * alarms[1] and not worst[0] > UNLUCKY + 2 * worst[1]
    return holds and not found[0] + 2 * found[1] < promised[0] - 2 * promised[1]


HEADS = (
    "cell",
    "alarms %",
    "unlucky",
    "pass %",
    "rounds",
    "sound twin passes",
    "alone",
    "found %",
    "alone",
    "promised",
    "creep found",
    "threshold fails %",
)


def main() -> int:
    """Print the rows. Returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repositories", type=int, default=60)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--cells", default="", help="parts of the names of cells, with commas between them")
    parser.add_argument("--asked", type=int, default=12, help="repositories whose dry run is asked")
    parser.add_argument("--histories", type=int, default=8, help="settings of each kind of history (`histories`)")
    parser.add_argument("--kinds", default="", help="parts of the names of kinds of histories")
    parser.add_argument("--seed", default=datetime.now(UTC).date().isoformat())
    given = parser.parse_args()
    os.fsync = lambda _file: None  # nothing here must survive a crash of the machine
    output.page = lambda *_: ""  # half the time of a night
    codec.sample_seed = lru_cache(1 << 16)(codec.sample_seed)  # each look of a night sorts the same questions
    print(f"| {' | '.join(HEADS)} |\n|{' ---: |' * len(HEADS)}", flush=True)
    holds = True
    for number, cell in enumerate(cells()):
        if any(word in cell.name for word in given.cells.split(",")):
            seeds = [(zlib.crc32(given.seed.encode()), number, repository) for repository in range(given.repositories)]
            holds &= summary(cell, [play(cell, seed, given.nights, ask=seed[-1] < given.asked) for seed in seeds])
    print(f"\nthe promise holds in each cell, up to the simulation's error: {'yes' if holds else 'NO'}")
    kinds = [name for name in histories.KINDS if any(word in name for word in given.kinds.split(","))]
    if given.histories:
        histories.report(given.seed, given.histories, given.repositories, kinds)
    return 0 if holds else 1


if __name__ == "__main__":
    os.environ.pop("GITHUB_SHA", None)
    raise SystemExit(main())
