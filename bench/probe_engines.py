"""Runs `harness probe` against real engines: sound ones, and ones that serve a slightly different copy of the model.

    python bench/probe_engines.py --sound --repeats 50 [--model FILE.gguf] [--vllm PYTHON --model FOLDER]
    python bench/probe_engines.py --vllm PYTHON --transformers PYTHON --model FOLDER [--copies FOLDER] [--repeats 3]
    python bench/probe_engines.py … --passages questions.jsonl --repeats 50

--sound: probe a sound server --repeats times with other seeds, with all checks and with a reference saved from the
server itself: vLLM with --vllm, else llama.cpp, with the embedded weights if there is no --model. --without leaves
checks out, --context makes the long prompts shorter, --first N goes on with the seed of probe N. bench/random_model.py
makes a model small enough for many probes.

--model: a folder of safetensors with its chat template. Each copy of bench/copies.py is served by vLLM on the CPU. It
is compared with the model itself as transformers computes it, and with a reference saved from vLLM with the same
weights.

--passages: a file of JSON lines with a question each, of 24 words and more (GSM8K's will do). Then the check of weights
alone is made --repeats times, each time in 96 places that no other repeat has: 16 passages serve three repeats, whose
places are a word apart. vLLM returns the distributions after all words of a passage in one request (echo); apart from
the batch, they equal those of n requests.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from harness.asking.options import WhichServer
from harness.asking.options.request import HowWritten
from harness.asking.watching import Watcher
from harness.scoring.intervals import wilson
from harness.verbs.probe import reference, template
from harness.verbs.probe.asking import COMPLETIONS, Inquiry, Refused
from harness.verbs.probe.connecting import probed
from harness.verbs.probe.counterparts import FolderReference, SavedReference
from harness.verbs.probe.findings import ProbeReport
from harness.verbs.probe.probe import CHECKS, examine
from harness.verbs.probe.probed_endpoint import ProbedEndpoint
from harness.verbs.probe.subject import logprob_fields
from server_launchers.embedded import weights
from server_launchers.keeping import supervisor
from server_launchers.spec import ServerSpec

EACH = len(reference.PASSAGES)
"""Number of passages of a repeat: as many as a probe has."""

WORDS = range(reference.FIRST_WORD, reference.FIRST_WORD + reference.STEP * reference.PLACES)
"""Numbers of words before the places that are compared in a passage."""

COPIES = ("the same weights", "8bit", "4bit", "rope", "template", "sibling")


def main() -> None:
    """Print the findings for each copy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, help="interpreter with vLLM for CPUs")
    parser.add_argument("--transformers", type=Path, help="interpreter with torch and transformers")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--copies", type=Path, help="folder that keeps the copies")
    parser.add_argument("--only", nargs="+", choices=COPIES, default=COPIES)
    parser.add_argument(
        "--repeats", type=int, default=3, help="times that each server is probed, each time with another seed"
    )
    parser.add_argument("--passages", type=Path, help="JSON lines: weights alone, on other passages in each repeat")
    parser.add_argument("--sound", action="store_true", help="the whole probe of the model itself")
    parser.add_argument("--without", nargs="+", default=[], help="checks that --sound leaves out")
    parser.add_argument("--first", type=int, default=1, help="number of the first probe of --sound; its seed is 1000 N")
    parser.add_argument("--context", type=int, help="tokens of the longest prompt of --sound")
    given = parser.parse_args()
    if given.vllm is not None and given.model is None:
        parser.error("--vllm needs --model FOLDER")
    if given.sound:
        with supervisor.launch(
            llama_cpp(given.model) if given.vllm is None else spec(given.vllm, given.model)
        ) as server:
            numbers = range(given.first, given.first + given.repeats)
            count_accusations(server, numbers, given.without, given.context)
        return
    if given.vllm is None or given.transformers is None:
        parser.error("copies need --vllm, --transformers and --model")
    with tempfile.TemporaryDirectory(prefix="copies-") as temporary:
        copies = given.copies or Path(temporary)
        script = Path(__file__).with_name("copies.py")
        subprocess.run([given.transformers, script, given.model, copies], check=True)
        true = FolderReference(given.model, python=str(given.transformers))
        saved: SavedReference | None = None
        if given.passages is not None:
            held = [[" ".join(words[:n]) for n in WORDS] for words in passages(given.passages, given.repeats)]
            true.texts = [text for texts in held for text in texts]
        for name in given.only:
            folder = given.model if name == COPIES[0] else copies / name
            with supervisor.launch(spec(given.vllm, folder)) as server:
                if given.passages is not None:
                    repeated(name, endpoint_of(server), true, held)
                    continue
                for seed in range(given.repeats):
                    if name == COPIES[0] and saved is None:
                        saved = SavedReference.of(reference.ServerReference(endpoint_of(server), server.base_urls[0]))
                    # Checks against a reference keep what they saw: each probe has its own.
                    own = (template.against(template.ServerTemplate.of(given.model)), *reference.against(true))
                    show(name, examine(endpoint_of(server), own, seed=1000 * (seed + 1)))
                    if saved is not None:
                        beside = reference.against(saved)
                        show(f"{name}, beside vLLM", examine(endpoint_of(server), beside, seed=1000 * (seed + 1)))


def endpoint_of(server: supervisor.RunningServer) -> ProbedEndpoint:
    """Connect to the server in the way a probe does."""
    (endpoint,) = probed(WhichServer.of(base_url=server.base_urls[0]), Watcher(), HowWritten())
    return endpoint


def passages(path: Path, repeats: int) -> list[list[str]]:
    """The words of as many questions as the repeats need; questions with too few words are left out."""
    read = (json.loads(line)["question"].split() for line in path.read_text("utf-8").splitlines())
    needed = EACH * math.ceil(repeats / reference.STEP)
    beginnings = [words[: WORDS.stop] for words in read if len(words) >= WORDS.stop][:needed]
    if len(beginnings) < needed:
        raise SystemExit(f"{path} has {len(beginnings)} questions of {WORDS.stop} words; {needed} are needed")
    return beginnings


def repeated(name: str, server: ProbedEndpoint, true: FolderReference, held: list[list[str]]) -> None:
    """Make the check of weights again and again. Print how often each outcome came (with and without a known rounding
    error of the model), and the divergence as a multiple of that rounding error. held: of each passage, the texts whose
    next token is compared.
    """
    common = {"max_tokens": 1, "temperature": 1.0, "seed": 1, "echo": True, **logprob_fields(COMPLETIONS)}
    inquiries = [Inquiry(texts[-1], common, COMPLETIONS) for texts in held]
    answers = server.many([inquiry.body(server.asker) for inquiry in inquiries], COMPLETIONS)
    likely, rounding = iter(true.likely()), iter(true.rounding())
    own: dict[int, list[reference.TokenComparison]] = {}
    for i, (texts, answer) in enumerate(zip(held, answers, strict=True)):
        if isinstance(answer, Refused):
            raise answer
        after = dict(
            zip(accumulate(token.token for token in answer.first.tokens), answer.first.tokens[1:], strict=False)
        )
        for j, text in enumerate(texts):
            likeliest, alone = next(likely), next(rounding)
            if text in after:  # else a word ends within a token
                repeat = i // EACH * reference.STEP + j % reference.STEP
                spot = reference.compared(i, after[text].token, after[text].top, likeliest, alone)
                own.setdefault(repeat, []).append(spot)
    outcomes = [reference.weighed(spots, true.named)[0] for spots in own.values()]
    blind = [reference.weighed([replace(spot, rounding=None) for spot in spots], "")[0] for spots in own.values()]
    times = sorted(estimate[0] for estimate in map(reference.times_rounding, own.values()) if estimate is not None)
    for label, judged in (("", outcomes), (" without the yardstick", blind)):
        counts = {kind: judged.count(kind) for kind in ("sound", "warns", "spoils")}
        print(f"{name}{label}: {counts}", flush=True)
    print(
        f"{name}: {statistics.fmean(map(len, own.values())):.1f} places a repeat, divergence "
        f"{statistics.fmean(spot.divergence for spots in own.values() for spot in spots):.4f}; times rounding "
        f"{statistics.median(times):.2f}, {times[0]:.2f} to {times[-1]:.2f}",
        flush=True,
    )


def count_accusations(
    server: supervisor.RunningServer, numbers: range, without: list[str], context: int | None
) -> None:
    """Probe a sound server again and again. Print each probe, the outcomes of each check, and the probes that accused
    the server.

    numbers: of the probes, which make their seeds.
    """
    saved = SavedReference.of(reference.ServerReference(endpoint_of(server), server.base_urls[0]))
    counts: dict[str, Counter[str]] = {}
    n_accused = 0
    for n in numbers:
        checks = [check for check in (*CHECKS, *reference.against(saved)) if check.name not in without]
        report = examine(endpoint_of(server), checks, seed=1000 * n, context=context)
        n_accused += not report.sound
        for finding in report.findings:
            counts.setdefault(finding.check, Counter())[finding.outcome] += 1
        odd = [f"{finding.check}: {finding.came}" for finding in report.findings if finding.outcome == "spoils"]
        size = f"{report.requests} requests, {report.tokens:,} tokens, {report.seconds:.0f} s"
        print(f"probe {n}: {'; '.join(odd) or 'sound'}; {size}", flush=True)
    for name, outcomes in counts.items():
        print(f"{name:<24} {dict(outcomes)}")
    ends = wilson(np.array(n_accused / len(numbers)), np.array(len(numbers)))
    print(f"accused {n_accused}/{len(numbers)} ({float(ends.low):.1%}–{float(ends.high):.1%})", flush=True)


def show(name: str, report: ProbeReport) -> None:
    """Print a probe's findings."""
    for finding in report.findings:
        print(f"{name}: {finding.check}: {finding.outcome}: {finding.came}")
    print(f"{name}: {report.requests} requests, {report.tokens:,} tokens, {report.seconds:.0f} s", flush=True)


def llama_cpp(model: Path | None) -> ServerSpec:
    """The settings of a llama.cpp server with that GGUF file, or with the embedded weights."""
    path = weights.fetch("smollm2-135m") if model is None else model.absolute()
    return ServerSpec(engine="llama_cpp", model=str(path), served_name="model", name="probe-llama-cpp")


def spec(python: Path, folder: Path) -> ServerSpec:
    """The settings of a vLLM server of that model folder, on the CPU."""
    return ServerSpec(
        engine="vllm", model=str(folder.absolute()), python=python, served_name="model", name=f"probe-{folder.name}",
        device="cpu", dtype="bfloat16", eager=True, context=2048, max_sequences=8,
        # vLLM on a CPU dies of a seeded request whose prompt it cuts up.
        max_batched_tokens=16_384,
        environment={"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
    )  # fmt: skip


if __name__ == "__main__":
    main()
