"""Measures what continuing half-written answers saves, whether it changes the answers, and what it costs; see
docs/reliability.md.

python bench/salvage.py simulate   # interruptions an hour: tokens and hours with it and without
python bench/salvage.py equal      # the embedded server, or one at --base-url: whole answers beside continued ones
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import json
import math
import random
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

# ---- simulate

RATE = 40.0
"""Tokens per second of one stream."""

CLIENT_US = 8.4
"""Microseconds of the client's CPU a token, 512 streams (docs/performance.md)."""

LOST_SECONDS = 30.0
"""Seconds of each stream that a kill loses: those since the half-written answers were last stored."""

DOWN_SECONDS = 300.0
"""Seconds between an interruption and the next session of the run."""


def simulate(seeds: int) -> None:
    """Simulate runs of 20 answers for each of 256 requests in flight that are interrupted once an hour on average;
    print tokens and hours.
    """
    print(f"256 in flight, {RATE:g} tokens/s each, an interruption an hour, {DOWN_SECONDS:g} s down, {seeds} seeds\n")
    print("| answers | after an interruption | tokens written / kept | hours | mean length |")
    print("| --- | --- | --- | --- | --- |")
    for mean, cap in ((8_000, 32_000), (32_000, 128_000)):
        for how in ("none comes", "asked anew, new seed", "asked anew, same seed", "gone on with"):
            runs = [_one_run(random.Random(seed), mean, cap, how) for seed in range(seeds)]
            wasted, hours, length = (statistics.fmean(values) for values in zip(*runs, strict=True))
            print(f"| {mean // 1000}k | {how} | {wasted:.3f} | {hours:.2f} | {length:,.0f} |")


def _one_run(chance: random.Random, mean: float, cap: int, how: str) -> tuple[float, float, float]:
    """Simulate one run: (tokens written for each token kept, hours, mean length). how: what is done with half-written
    answers.
    """
    slots, per_slot, sigma = 256, 20, 0.7

    def drawn() -> float:
        return min(cap, chance.lognormvariate(math.log(mean) - sigma**2 / 2, sigma))

    todo = [[drawn(), 0.0] for _ in range(slots * per_slot)]  # length, written
    now, written, done = 0.0, 0.0, []
    flying: list[tuple[float, float, list[float]]] = []
    next_stop = chance.expovariate(1 / 3600) if how != "none comes" else math.inf
    while todo or flying:
        while todo and len(flying) < slots:
            flight = todo.pop()
            heapq.heappush(flying, (now + (flight[0] - flight[1]) / RATE, now, flight))
        ends, began, flight = flying[0]
        if ends <= next_stop:
            heapq.heappop(flying)
            now = ends
            written += (ends - began) * RATE
            done.append(flight[0])
            continue
        now = next_stop
        for _, began, flight in flying:
            written += (now - began) * RATE
            if how == "gone on with":
                flight[1] += max(0.0, now - began - chance.uniform(0, LOST_SECONDS)) * RATE
            elif how == "asked anew, new seed":
                flight[0] = drawn()
            todo.append(flight)
        flying = []
        now += DOWN_SECONDS
        next_stop = now + chance.expovariate(1 / 3600)
    return written / sum(done), now / 3600, statistics.fmean(done)


# ---- the embedded server

SUMS = [(3, 4), (12, 5), (20, 30), (7, 8), (15, 15), (9, 2), (40, 2), (6, 6)]
"""The questions of `equal`, each of which needs two samples for a spread."""


def _server(folder: Path) -> Any:
    from server_launchers.embedded import weights
    from server_launchers.keeping import supervisor
    from server_launchers.spec import ServerSpec

    spec = ServerSpec(
        engine="llama_cpp", model=str(weights.fetch("smollm2-135m")), served_name="smollm2-135m", name=folder.name,
        threads=1, max_sequences=4, context=16_384,
    )  # fmt: skip
    return supervisor.launch(spec)


def equal(samples: int, url: str, engine: str, concurrency: int, out: str) -> None:
    """Compare two runs of the same questions: one undisturbed, and one in which every stream is cut after 16 to 24
    tokens and continued.

    url: a server of `engine` that is running and serves the model as smollm2-135m; "" = the embedded one, started here.
    out: folder in which both are kept, and gone on with by the same command; "" = a temporary one.
    """
    from dataclasses import replace

    from harness.benchmarks import card, questions
    from harness.client.address.endpoint import Endpoint
    from harness.client.asker import Asker
    from harness.client.interface import Arriving
    from harness.client.protocol.reply import RequestFailed
    from harness.client.spelling import Spelling
    from harness.client.transport import Transport as HttpTransport
    from harness.generation.runner import ServerSide, generate
    from harness.generation.settings import BenchmarkSettings, RunSettings, Salvage
    from harness.presets.sampling import Sampling
    from harness.runs import read_samples
    from harness.runs.layout import RunFolder

    class Cutting(HttpTransport):
        """A proxy that cuts each chat stream once; requests that continue a stream are not cut."""

        async def complete(self, endpoint: Any, path: str, *given: Any) -> Any:
            body, deadlines, max_body_bytes, *rest = given
            arriving = (rest and rest[0]) or Arriving()
            reply = super().complete(endpoint, path, body, deadlines, max_body_bytes, arriving)
            request = asyncio.ensure_future(reply)
            if path != "/chat/completions":
                return await request
            after = chance.randrange(16, 25)
            while not request.done() and arriving.count() < after:
                await asyncio.sleep(0.01)
            if request.done():
                return request.result()
            seen = arriving.so_far()
            request.cancel()
            arriving.so_far = lambda: seen
            raise RequestFailed("cut", "cut by the benchmark")

    with contextlib.ExitStack() as stack:
        scratch = Path(out or stack.enter_context(tempfile.TemporaryDirectory(prefix="salvage-"))).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        url = url or stack.enter_context(_server(scratch)).base_urls[0]
        rows = [{"id": f"q{a}", "q": f"What is {a} + {b}? Explain in two sentences.", "a": str(a + b)} for a, b in SUMS]
        (scratch / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        benchmark = questions.build(
            card.from_file(str(scratch / "sums.jsonl"), question_key="q", answer_key="a", id_key="id"),
        )
        chance, each = random.Random(0), -(-samples // len(rows))
        samples_of: dict[str, list[Any]] = {}
        for arm, seed in (("whole", 1), ("continued", 2)):
            salvage = Salvage(mode="off" if arm == "whole" else "near", engine=engine)
            settings = RunSettings(
                asker=Asker(model="smollm2-135m", spelling=Spelling(token_ids=salvage.states_ids("chat"))),
                endpoints=(Endpoint.parse(url),),
                benchmarks={benchmark.name: BenchmarkSettings(
                    samples=each, sampling=Sampling(temperature=0.8, top_p=0.95, max_tokens=40)
                )},
                out=scratch / arm, concurrency=concurrency, seed=seed, canary=False,
                salvage=salvage,
            )  # fmt: skip
            settings = replace(settings, patience=replace(settings.patience, first_wait=0.01))
            begun = time.monotonic()
            make = Cutting if arm == "continued" else HttpTransport
            while not generate(
                settings, [benchmark], transport_factory=make, servers=ServerSide(context_of=lambda *_: None)
            ).complete:
                pass  # more streams break than one session asks again for
            stored = read_samples(RunFolder(settings.out).benchmark(benchmark.name))
            samples_of[arm] = [sample for sample in stored if sample.sample_index < each]  # a folder may hold more
            print(f"{arm}: {len(samples_of[arm])} samples in {time.monotonic() - begun:.0f} s")
    _compare(samples_of, {f"q{a}": a + b for a, b in SUMS})


def _compare(samples_of: dict[str, list[Any]], answers: dict[str, int]) -> None:
    def right(sample: Any) -> float:
        numbers = re.findall(r"\d+", sample.text or "")
        return float(str(answers[sample.question_id]) in numbers)

    continued = [sample for sample in samples_of["continued"] if sample.salvaged_at]
    n_exact = sum(all(seam.exact for seam in sample.salvaged_at) for sample in continued)
    print(
        f"{len(continued)} of {len(samples_of['continued'])} were continued, {n_exact} exact; "
        "the others ended before the cut"
    )
    measures = {
        "right answers, %": (lambda sample: 100 * right(sample), 8.0),
        "length, tokens": (lambda sample: float(sample.usage.completion_tokens), 2.0),
        "ended by itself, %": (lambda sample: 100.0 * (sample.finish_reason == "stop"), 8.0),
    }
    for name, (measure, margin) in measures.items():
        (mean_a, error_a), (mean_b, error_b) = (_mean(samples_of[arm], measure) for arm in ("whole", "continued"))
        gap, error = mean_b - mean_a, math.hypot(error_a, error_b)
        low, high = gap - 1.645 * error, gap + 1.645 * error
        verdict = "equivalent" if -margin < low and high < margin else "not shown"
        print(f"{name}: {mean_a:.2f} whole, {mean_b:.2f} continued; difference {gap:+.2f}, "
              f"90 % interval {low:+.2f} to {high:+.2f}, margin ±{margin:g}: {verdict} (TOST at 5 %)")  # fmt: skip


def _mean(samples: list[Any], measure: Any) -> tuple[float, float]:
    """(mean over questions, its standard error); both runs have the same questions."""
    by: dict[str, list[float]] = {}
    for sample in samples:
        by.setdefault(sample.question_id, []).append(measure(sample))
    errors = [statistics.variance(values) / len(values) for values in by.values()]
    return statistics.fmean(map(statistics.fmean, by.values())), math.sqrt(sum(errors)) / len(by)


# ---- the seam


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "equal"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=504, help="of each arm of `equal`")
    parser.add_argument("--base-url", default="", help="a running server for `equal`")
    parser.add_argument("--engine", default="vllm", choices=["vllm", "sglang"], help="what it is")
    parser.add_argument("--out", default="", help="folder that keeps the runs of `equal`, to go on with them")
    parser.add_argument("--concurrency", type=int, default=4, help="requests in flight of both")
    given = parser.parse_args()
    match given.what:
        case "simulate":
            simulate(given.seeds)
        case _:
            if given.samples < 2 * len(SUMS):
                least = f"at least {2 * len(SUMS)}, two of each of its {len(SUMS)} questions"
                parser.error(f"--samples of `equal`: expected {least}, found {given.samples}")
            equal(given.samples, given.base_url, given.engine, given.concurrency, given.out)


if __name__ == "__main__":
    main()
