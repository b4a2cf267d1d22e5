"""Small runs against a scripted server: the settings, the questions, and what stands on disk afterwards.

As a program it is a run to be killed: `-m tests.generation.small_runs FOLDER QUESTIONS SAMPLES GRACE URL...`. Exit
code: 0 complete, 1 missing, else that of the harness's exception, as the command line has it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from harness.benchmarks import card, questions
from harness.benchmarks.questions import QuestionSet
from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.request_builder import Asker
from harness.client.transport import Transport as HttpTransport
from harness.core.errors import HarnessError
from harness.core.records import Sample
from harness.generation.runner import Listener, Outcome, ServerSide, generate
from harness.generation.settings import BenchmarkSettings, Patience, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.journal import read_samples
from harness.runs.layout import RunFolder
from harness.testing import Request, completion
from tests.faults.able import sums

QUICK = Patience(start_up=1.0, outage=5.0, first_wait=0.01, longest_wait=0.05, grace=200.0, term_grace=200.0)


def question_set(folder: Path, n: int, name: str = "sums", **build: Any) -> QuestionSet:
    """A benchmark of `n` additions, read from a file as a user's would be."""
    return questions.build(card.from_file(str(sums(folder, n, name)), id_key="id"), **build)


def run_settings(
    out: Path, *urls: str, samples: int = 2, names: tuple[str, ...] = ("sums",), **more: Any
) -> RunSettings:
    settings = RunSettings(
        asker=Asker(model="test-model", deadlines=Deadlines(connect=60.0, first_token=200.0, idle=200.0)),
        endpoints=tuple(Endpoint.parse(url) for url in urls or ("http://127.0.0.1:1/v1",)),
        benchmarks={n: BenchmarkSettings(samples=samples, sampling=Sampling(temperature=0.6)) for n in names},
        out=out,
        concurrency=8,
        patience=QUICK,
    )
    return changed(settings, **more)


def changed(settings: RunSettings, **more: Any) -> RunSettings:
    """`settings` with other fields; those of its asker are named alone (`model`, `spelling`, `deadlines`)."""
    of_asker = {one.name for one in fields(Asker)} & more.keys()
    asker = replace(settings.asker, **{name: more.pop(name) for name in of_asker})
    return replace(settings, asker=asker, **more)


def run(settings: RunSettings, *sets: QuestionSet, **more: Any) -> Outcome:
    """`generate`. more: of `generate`, of `ServerSide` and of `Listener`."""
    transport: Callable[[], Transport] = more.pop("transport_factory", HttpTransport)
    servers, listener = (
        of(**{f.name: more.pop(f.name) for f in fields(of) if f.name in more}) for of in (ServerSide, Listener)
    )
    return generate(settings, sets, servers=servers, listener=listener, transport_factory=transport, **more)


def samples_of(settings: RunSettings, name: str = "sums") -> list[Sample]:
    """Every record on disk, repeated keys included."""
    lines = RunFolder(settings.out).benchmark(name).samples.read_bytes().splitlines()
    samples = list(read_samples(RunFolder(settings.out).benchmark(name)))
    assert len(lines) == len(samples), "a key stands in the journal twice, or a line is damaged"
    return samples


def keys_of(settings: RunSettings, name: str = "sums") -> set[tuple[str, int]]:
    return {(s.question_id, s.sample_index) for s in samples_of(settings, name)}


def expected_keys(n: int, samples: int) -> set[tuple[str, int]]:
    return {(f"q{q}", i) for q in range(n) for i in range(samples)}


def well(request: Request) -> Iterator[bytes]:
    """A reply of its own to each seed, as a sampling model gives."""
    return completion(f"seed {request.json.get('seed')}", tokens=7)


def main() -> int:
    # A signal inside `Popen` leaves a file to the garbage collector. A user's Python says nothing of that; the tests'
    # -W error would.
    warnings.simplefilter("ignore", ResourceWarning)
    folder, n, samples, grace, *urls = sys.argv[1:]
    settings = run_settings(Path(folder) / "run", *urls, samples=int(samples))
    settings = replace(settings, patience=replace(settings.patience, grace=float(grace), term_grace=float(grace)))
    try:
        outcome = run(settings, question_set(Path(folder), int(n)))
    except HarnessError as error:
        sys.stderr.write(str(error))
        return error.exit_code
    return 0 if outcome.complete else 1


if __name__ == "__main__":
    sys.exit(main())
