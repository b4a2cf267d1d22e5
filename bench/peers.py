"""Times the same run (50 questions × 4 samples) with this harness and with others; docs/performance.md has the results.

    python -m bench.peers FOLDER [TOOL ...]      # FOLDER/TOOL/bin: environments, made as described there

Each tool has its own environment. A toy server on this machine answers sums after `LATENCY_SECONDS`. The question and n
determine whether its n-th reply to a question is correct, so every tool gets the same 200 replies. Each tool gets the
questions in its own file format, 32 requests in flight, and temperature 0.6. Wall times cover whole commands, including
imports and scoring.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from harness.testing import Answer, FakeServer, Request, Said, serving

QUESTIONS, SAMPLES, LATENCY_SECONDS, TIMEOUT_SECONDS = 50, 4, 0.5, 300

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def sums():
    fields = FieldSpec(input="problem", target="answer", id="id")
    dataset = json_dataset("questions.jsonl", fields)
    return Task(dataset=dataset, solver=generate(), scorer=match(numeric=True), epochs=4)
"""

OPENBENCH_TASK = f"""
from openbench.utils import BenchmarkMetadata
{INSPECT_TASK}
__metadata__ = BenchmarkMetadata(
    name="sums", description="sums", category="math", tags=[], module_path=__name__, function_name="sums"
)
"""

LM_EVAL_TASK = r"""
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: questions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{problem}}"
doc_to_target: "{{answer}}"
repeats: 4
generation_kwargs: {do_sample: true, temperature: 0.6, max_gen_toks: 512, until: []}
filter_list:
  - name: first
    filter: [{function: regex, regex_pattern: '#### (\d+)'}, {function: take_first}]
  - name: majority
    filter: [{function: regex, regex_pattern: '#### (\d+)'}, {function: majority_vote}, {function: take_first}]
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""

COMMANDS = {
    "harness": (
        "{bin}/harness run --data questions.jsonl --samples 4 --base-url {url} --model toy --concurrency 32 "
        "--temperature 0.6 --max-tokens 512 --out run",
        "{bin}/harness score run",
    ),
    "inspect-ai": (
        "{bin}/inspect eval sums.py --model openai-api/toy/toy --max-connections 32 --temperature 0.6 --max-tokens 512 "
        "--display plain",
    ),
    "lm-eval": (
        "{bin}/lm_eval --model local-chat-completions --model_args "
        "model=toy,base_url={url}/v1/chat/completions,num_concurrent=32 --apply_chat_template --tasks sums "
        "--include_path .",
    ),
    "openbench": (
        "{bin}/bench eval bench_sums.py --model openai-api/toy/toy --max-connections 32 --temperature 0.6 "
        "--max-tokens 512 --display plain",
    ),
    "evalscope": (
        "{bin}/evalscope eval --model toy --api-url {url}/v1 --api-key none --eval-type openai_api "
        "--datasets general_qa "
        '--dataset-args {{"general_qa":{{"local_path":"qa","subset_list":["sums"]}}}} --repeats 4 '
        '--eval-batch-size 32 --generation-config {{"temperature":0.6,"max_tokens":512}}',
    ),
}
"""Name of a tool → its commands, with words separated by spaces."""


def right(first: int, second: int, n: int) -> bool:
    """Whether the toy server's n-th reply to the question `first + second` is correct, as 7 of 10 replies are."""
    return hashlib.sha256(f"{first} {second} {n}".encode()).digest()[0] < 180


def toy() -> Answer:
    """Return the answer function of a new toy server, which lists one model and answers sums after
    `LATENCY_SECONDS`.
    """
    n_requests: Counter[tuple[int, int]] = Counter()  # by question
    lock = threading.Lock()

    def reply(request: Request) -> Said:
        """Return a question's next reply, which is correct if `right` says so."""
        first, second = map(int, re.findall(r"What is (\d+) \+ (\d+)\?", json.dumps(request.json))[-1])
        with lock:
            n = n_requests[first, second]
            n_requests[first, second] += 1
        time.sleep(LATENCY_SECONDS)
        result = first + second + (0 if right(first, second, n) else 1)
        return Said(f"It is \\boxed{{{result}}}.\n#### {result}", 12, model="toy")

    return serving(reply, "toy")


def prepare(folder: Path) -> None:
    """Write the questions, and task files for the tools that need one."""
    pairs = [(17 * n + 3, 29 * n + 8) for n in range(QUESTIONS)]
    rows = [{"id": f"q{n}", "problem": f"What is {a} + {b}?", "answer": str(a + b)} for n, (a, b) in enumerate(pairs)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sums.py").write_text(INSPECT_TASK)
    (folder / "bench_sums.py").write_text(OPENBENCH_TASK)
    (folder / "sums.yaml").write_text(LM_EVAL_TASK)
    (folder / "qa").mkdir()
    (folder / "qa" / "sums.jsonl").write_text(
        "".join(json.dumps({"query": row["problem"], "response": row["answer"]}) + "\n" for row in rows)
    )


def true_accuracy() -> float:
    """The fraction of the 200 replies that are correct."""
    pairs = [(17 * n + 3, 29 * n + 8) for n in range(QUESTIONS)]
    return sum(right(a, b, n) for a, b in pairs for n in range(SAMPLES)) / (QUESTIONS * SAMPLES)


def measured(tool: str, binaries: Path) -> tuple[float, int, str]:
    """Run a tool's commands; return (wall seconds, exit code of the last command, end of the output)."""
    with tempfile.TemporaryDirectory() as name, FakeServer(toy()) as server:
        folder = Path(name)
        prepare(folder)
        environment = os.environ | {
            "TOY_API_KEY": "none",
            "TOY_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "none",
            "HOME": name,
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "COLUMNS": "110",
            "PATH": f"{binaries}:{os.environ['PATH']}",
        }
        begun, output, code = time.monotonic(), "", 0
        for command in COMMANDS[tool]:
            words = command.format(bin=binaries, url=server.base_url.removesuffix("/v1")).split()
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
            )
            output += done.stdout + done.stderr[-1500:]
            code = done.returncode
        return time.monotonic() - begun, code, output


def main(argv: list[str]) -> None:
    """Measure the named tools, or all of them, three times each, and print the fastest time and the tool's output."""
    folder = Path(argv[0])
    sys.stdout.write(f"right replies: {true_accuracy():.1%} of {QUESTIONS * SAMPLES}\n")
    for tool in argv[1:] or COMMANDS:
        binaries = (Path(sys.executable).parent if tool == "harness" else folder / tool / "bin").absolute()
        try:
            rounds = [measured(tool, binaries) for _ in range(3)]
        except subprocess.TimeoutExpired:
            sys.stdout.write(f"\n== {tool}: it had not ended after {TIMEOUT_SECONDS} s\n")
            continue
        seconds, code, output = min(rounds)
        sys.stdout.write(f"\n== {tool}: {seconds:.1f} s, exit code {code}\n{output[-2500:]}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
