"""Measures what continuing half-written answers saves, whether it changes the answers, and what it costs; see
docs/salvage.md.

python bench/salvage.py simulate   # interruptions an hour: tokens and hours with it and without
python bench/salvage.py kill       # the embedded server, kill -9 of the client, the same command again
python bench/salvage.py equal      # the embedded server, or one at --base-url: whole answers beside continued ones
python bench/salvage.py seam       # a vLLM at --base-url: the next token in whole answers and after a seam
python bench/salvage.py cost       # the client's CPU with it and without
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
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# ---- simulate

RATE = 40.0
"""Tokens per second of one stream."""

CLIENT_US = 8.4
"""Microseconds of the client's CPU a token, 512 streams (docs/performance.md)."""

LOST_SECONDS = 5.0
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


def kill(seconds: float) -> None:
    """Kill a run by SIGKILL in the middle of long answers, and give the same command again; print what was lost."""
    from harness.generation.network.control import ControlCommand, send
    from harness.runs import inflight, read_samples
    from harness.runs.layout import RunFolder

    with tempfile.TemporaryDirectory(prefix="salvage-") as temporary, _server(Path(temporary)) as server:
        scratch = Path(temporary)
        rows = [
            {"id": f"q{n}", "q": f"Write a very long story about {w}.", "a": "1"}
            for n, w in enumerate(("rain", "iron"))
        ]
        (scratch / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        command = [
            sys.executable, "-m", "harness", "run", "--data", str(scratch / "q.jsonl"), "--question-key", "q",
            "--answer-key", "a", "--id-key", "id", "--samples", "2", "--base-url", server.base_urls[0],
            "--max-tokens", "2000", "--temperature", "1.0", "--top-p", "1", "--no-canary",
            "--out", str(scratch / "run"),
            "--extra-body", '{"ignore_eos": true}', "--no-fingerprint", "--no-progress",
        ]  # fmt: skip
        folder = RunFolder(scratch / "run")
        print("$ harness run …   (killed with -9)")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            time.sleep(seconds)
            facts = send(folder, ControlCommand(verb="status")).facts
            arrived = facts.arrived if facts is not None else 0
            process.send_signal(signal.SIGKILL)
        stored = (
            {name: s for name in ("q",) for s in read_samples(folder.benchmark(name))} if folder.has_samples() else {}
        )
        partials = inflight.read(folder).partials
        n_kept = inflight.kept_tokens(partials.values())
        n_stored = sum(s.usage.completion_tokens or 0 for s in stored.values())
        print(f"after {seconds:.0f} s: {arrived} tokens had arrived, {n_stored} are in stored samples, {n_kept} of "
              f"{len(partials)} half-written answers are kept")  # fmt: skip
        print(f"asked again: {max(0, arrived - n_stored - n_kept)} tokens, "
              f"{max(0, arrived - n_stored - n_kept) / max(1, arrived):.1%} of what had arrived")  # fmt: skip
        print("$ harness run …   (the same command)")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print((done.stdout + done.stderr).strip().replace(str(scratch), "…"))
        for sample in read_samples(folder.benchmark("q")):
            seams = ", ".join(f"{s.tokens} tokens {'exact' if s.exact else 'near'}" for s in sample.salvaged_at)
            key = f"{sample.question_id}:{sample.sample_index}"
            print(f"{key}  {sample.usage.completion_tokens} tokens, seams: {seams or 'none'}")


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


def seam(url: str, answers: int, at_once: int) -> None:
    """Compare the next-token distributions of a vLLM server inside whole answers with those that it gives when the
    answer is continued at that place (the seam).

    Whole answers are sampled at temperature 0.8, `at_once` in flight. At four places of each answer, the model is asked
    to continue as the harness does it: from the token ids, and from the ids that the tokenizer makes of the text. The
    noise of batches is measured by asking at the same places again, one request at a time.
    """
    from concurrent.futures import ThreadPoolExecutor

    import httpx

    topics = ("rain", "iron", "a lighthouse", "bread", "the sea", "an old clock", "a long road", "winter")
    forms = ("Write a short story about {}.", "Describe {} to a child.", "Write a poem about {}.", "Tell me of {}.")
    topic_prompts = [form.format(topic) for form in forms for topic in topics]
    common = {"model": "smollm2-135m", "return_token_ids": True, "return_tokens_as_token_ids": True}
    with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:

        def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = client.post(path, json={**common, **body})
            answer.raise_for_status()
            reply: dict[str, Any] = answer.json()
            return reply

        def whole(n: int) -> dict[str, Any]:
            return post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": topic_prompts[n % len(topic_prompts)]}],
                "temperature": 0.8, "top_p": 0.95,
                "seed": 1000 + n, "max_tokens": 40, "logprobs": True, "top_logprobs": 20,
            })  # fmt: skip

        def next_token(prompt: list[int]) -> dict[str, float]:
            """Ask for the likeliest next tokens after these token ids: token → log-probability."""
            body = {"prompt": prompt, "max_tokens": 1, "temperature": 0.8, "logprobs": 20}
            return dict(post("/v1/completions", body)["choices"][0]["logprobs"]["top_logprobs"][0])

        def ids_of(reply: dict[str, Any]) -> list[int]:
            return list(reply["choices"][0]["token_ids"])

        def likeliest(reply: dict[str, Any], cut: int) -> dict[str, float]:
            listed = reply["choices"][0]["logprobs"]["content"][cut]["top_logprobs"]
            return {entry["token"]: entry["logprob"] for entry in listed}

        def as_text(ids: list[int]) -> list[int]:
            """Turn token ids into text and back: the ids that the tokenizer makes of the text."""
            named = {"model": common["model"]}
            text = client.post("/detokenize", json={**named, "tokens": ids}).json()["prompt"]
            reply = client.post("/tokenize", json={**named, "prompt": text, "add_special_tokens": False}).json()
            return list(reply["tokens"])

        def each(work: Any, of: Any, workers: int) -> list[Any]:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(work, of))

        first = each(whole, range(answers), at_once)
        places = [(n, cut) for n, reply in enumerate(first) for cut in (16, 20, 24, 32) if cut < len(ids_of(reply))]
        begun = {(n, cut): ids_of(first[n])[:cut] for n, cut in places}
        prompts = {n: list(reply["prompt_token_ids"]) for n, reply in enumerate(first)}
        again = dict(zip(range(0, answers, 4), each(whole, range(0, answers, 4), 1), strict=True))
        written_so_far = each(lambda p: next_token([*prompts[p[0]], *begun[p]]), places, at_once)
        texts = dict(zip(places, each(lambda p: as_text(begun[p]), places, 4), strict=True))
        recut = [p for p in places if texts[p] != begun[p]]
        near = each(lambda p: next_token([*prompts[p[0]], *texts[p]]), recut, at_once)

    def shown(label: str, pairs: list[tuple[dict[str, float], dict[str, float], str]]) -> None:
        from harness.verbs.probe.reference import compared

        comparisons = [compared(0, there, here) for here, there, _ in pairs]
        gaps = sorted(
            abs(there[token] - here[token]) for here, there, token in pairs if token in here and token in there
        )
        divergences = sorted(comparison.divergence for comparison in comparisons)
        print(
            f"{label}: {len(comparisons)} places, "
            f"divergence {statistics.fmean(divergences):.5f} nats a token on average, "
            f"{divergences[len(divergences) * 99 // 100]:.5f} in the 99th of 100, likeliest token the same in "
            f"{sum(comparison.same for comparison in comparisons)}; log-probability of the answer's own token off by "
            f"{statistics.fmean(gaps):.4f} on average, {gaps[-1]:.4f} at most"
        )

    def own(n: int, cut: int) -> str:
        return f"token_id:{ids_of(first[n])[cut]}"

    alike = [(n, cut) for n, cut in places if n in again and ids_of(again[n])[: cut + 1] == ids_of(first[n])[: cut + 1]]
    print(f"{answers} answers; {len(alike)} of {sum(n in again for n, _ in places)} places that were asked again, one "
          "by one, had the same tokens before them")  # fmt: skip
    shown(
        "whole, asked again one by one",
        [(likeliest(first[n], cut), likeliest(again[n], cut), own(n, cut)) for n, cut in alike],
    )
    shown("continued, given the ids", [(likeliest(first[n], cut), likely, own(n, cut))
                                       for (n, cut), likely in zip(places, written_so_far, strict=True)])  # fmt: skip
    print(f"{len(recut)} of {len(places)} beginnings are cut otherwise by the tokenizer")
    if recut:
        shown("continued, given their text", [(likeliest(first[n], cut), likely, own(n, cut))
                                              for (n, cut), likely in zip(recut, near, strict=True)])  # fmt: skip


# ---- cost


def _event(text: str, ids: list[int] | None) -> bytes:
    """A token event as vLLM sends it."""
    choice = {"index": 0, "delta": {"content": text}, "token_ids": ids}
    return json.dumps({"id": "r1", "model": "m", "choices": [choice]}).encode()


class _Clock:
    """A clock that is moved by hand."""

    now_seconds = 0.0

    def now(self) -> float:
        return self.now_seconds


def cost(streams: int, tokens: int) -> None:
    """Compare the CPU of storing all half-written answers once with the CPU of reading the streams in the time between
    two such stores.
    """
    from harness.client.interface import Arriving
    from harness.client.protocol.sse import ReplyParser
    from harness.client.protocol.written import WrittenTokens
    from harness.generation.continuing import written_so_far
    from harness.generation.network.keeping import KEEP_S, Keeper
    from harness.runs.layout import RunFolder
    from harness.runs.record import Task

    between = int(RATE * KEEP_S)
    words = [f" word{n % 97}" for n in range(between)]
    for ids in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            clock, parsers = _Clock(), []
            keeper = Keeper(RunFolder(folder), lambda _: True, lambda *_, **__: None, clock=clock.now)
            for n in range(streams):
                arriving = Arriving()
                keeper.begin(Task("b", f"q{n}", 0), arriving, lambda seen: written_so_far(None, "r", "vllm", seen))
                arriving.written = arriving.written if ids else WrittenTokens()
                parser = ReplyParser(started=0.0, started_utc=0.0, max_body_bytes=1 << 30, written=arriving.written)
                arriving.so_far = parser.so_far
                parsers.append(parser)
            spent = []
            for part in range(tokens // between):
                for parser in parsers:
                    stamps = [float(part)] * between
                    parser.feed_events([_event(word, [part + 7] if ids else None) for word in words], stamps)
                before = time.process_time()
                for _ in range(10):
                    clock.now_seconds += KEEP_S / 10
                    keeper.look()
                spent.append(time.process_time() - before)
            keeper.close()
        mean, most = 1e3 * statistics.fmean(spent), 1e3 * max(spent)
        reading = streams * between * CLIENT_US / 1e3
        how = f"{streams} streams up to {tokens} tokens, {'with' if ids else 'without'} ids"
        print(f"{how}: {mean:.0f} ms of CPU every {KEEP_S:g} s, {most:.0f} ms at most;")
        print(f"  reading takes {reading:.0f} ms: {mean / reading:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "kill", "equal", "seam", "cost"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=504, help="of each arm of `equal`; answers of `seam`")
    parser.add_argument("--base-url", default="", help="a running server for `equal` and `seam`")
    parser.add_argument("--engine", default="llama.cpp", choices=["llama.cpp", "vllm", "sglang"], help="what it is")
    parser.add_argument("--out", default="", help="folder that keeps the runs of `equal`, to go on with them")
    parser.add_argument("--concurrency", type=int, default=4, help="requests in flight of both")
    parser.add_argument("--seconds", type=float, default=90.0, help="until the kill")
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=32_000)
    given = parser.parse_args()
    match given.what:
        case "simulate":
            simulate(given.seeds)
        case "kill":
            kill(given.seconds)
        case "equal":
            if given.samples < 2 * len(SUMS):
                least = f"at least {2 * len(SUMS)}, two of each of its {len(SUMS)} questions"
                parser.error(f"--samples of `equal`: expected {least}, found {given.samples}")
            equal(given.samples, given.base_url, given.engine, given.concurrency, given.out)
        case "seam":
            seam(given.base_url, given.samples, given.concurrency)
        case _:
            cost(given.streams, given.tokens)


if __name__ == "__main__":
    main()
