"""CPU of whole programs per token and per request: `harness run` beside other evaluation and load programs.

    python bench/programs.py [--python-guidellm ENV/bin/python] [--python-evalscope …] [--python-aiperf …]
                             [--python-inspect …] [--python-lm-eval …] [--repeats 3] [--only ours,pool]

All ask the same questions of `bench/fake_server.py`, 64 at once. A cost is a slope, so that imports and start-up do not
count: per token (CPU at 210 tokens a reply − CPU at 10) / (512 × 200), per request (CPU at 512 requests − CPU at
64) / 448. CPU is user and system time of the whole process tree, the least of the repeats, which are interleaved. A
program whose interpreter is not named is skipped. Linux only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
IN_FLIGHT = 64
FEW, MANY = 64, 512
SHORT = 10
RUN_SECONDS = 900
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Job:
    """One run: the server, the questions' files (`.jsonl`, `.txt`, see `write_questions`), an empty folder."""

    python: Path
    port: int
    requests: int
    questions: Path
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tool(self, name: str) -> str:
        """A command beside the interpreter."""
        return str(self.python.parent / name)


@dataclass(frozen=True)
class TimedProgram:
    """How a program is told to ask all questions. streams: it is compared per token."""

    command: Callable[[Job], list[str]]
    streams: bool
    environment: dict[str, str] = field(default_factory=dict)


def ours(job: Job, *more: str) -> list[str]:
    """The harness with its journal, as a user starts it."""
    keys = ["--question-key", "question", "--answer-key", "answer", "--id-key", "id"]
    data = ["--data", str(job.questions.with_suffix(".jsonl")), *keys, "--samples", "1", "--no-canary"]
    where = ["--base-url", job.url, "--model", "m", "--concurrency", str(IN_FLIGHT), "--out", str(job.folder / "run")]
    return [str(job.python), "-m", "harness", "run", *data, *where, *more]


def guidellm(job: Job) -> list[str]:
    """Load generator of the vLLM project."""
    words = {
        "backend": f"kind=openai_http,target={job.url},model=m",
        "profile": f"kind=concurrent,streams={IN_FLIGHT}",
        "constraint": f"kind=max_requests,count={job.requests}",
        "tokenizer": f"kind=hf_auto,model={write_tokenizer(job.folder)}",
        "data": f"kind=json_file,path={job.questions.with_suffix('.jsonl')}",
        "output": f"kind=json,path={job.folder / 'report.json'}",
    }
    flags = [word for name, value in words.items() for word in (f"--{name}", value)]
    return [job.tool("guidellm"), "run", *flags, "--disable-console"]


def evalscope(job: Job) -> list[str]:
    """Load generator of ModelScope's evaluation kit."""
    data = ["--dataset", "line_by_line", "--dataset-path", str(job.questions.with_suffix(".txt"))]
    load = ["--number", str(job.requests), "--parallel", str(IN_FLIGHT), "--stream", "--max-tokens", "4096"]
    where = ["--api", "openai", "--url", f"{job.url}/v1/chat/completions", "--model", "m", "--no-test-connection"]
    out = ["--outputs-dir", str(job.folder / "out"), "--no-timestamp"]
    return [job.tool("evalscope"), "perf", *where, *data, *load, *out]


def aiperf(job: Job) -> list[str]:
    """NVIDIA's load generator."""
    data = ["--input-file", str(job.questions.with_suffix(".jsonl")), "--custom-dataset-type", "single_turn"]
    load = ["--request-count", str(job.requests), "--concurrency", str(IN_FLIGHT), "--streaming"]
    where = ["--url", job.url, "--endpoint-type", "chat", "--model", "m", "--artifact-dir", str(job.folder / "out")]
    quiet = ["--ui-type", "none", "--no-gpu-telemetry", "--no-server-metrics", "--use-server-token-count"]
    return [job.tool("aiperf"), "profile", *where, *data, *load, *quiet, "--tokenizer", write_tokenizer(job.folder)]


def inspect(job: Job) -> list[str]:
    """inspect-ai's `eval` of a task with the same questions; it wants a path below the current folder."""
    task = job.folder / "task.py"
    task.write_text(
        textwrap.dedent(
            f"""
            import json
            from pathlib import Path
            from inspect_ai import Task, task
            from inspect_ai.dataset import Sample
            from inspect_ai.scorer import includes
            from inspect_ai.solver import generate

            @task
            def fake():
                rows = map(json.loads, Path({str(job.questions.with_suffix(".jsonl"))!r}).read_text().splitlines())
                samples = [Sample(input=r["question"], target=r["answer"], id=r["id"]) for r in rows]
                return Task(dataset=samples, solver=generate(), scorer=includes())
            """
        )
    )
    load = ["--max-connections", str(IN_FLIGHT), "--max-samples", str(IN_FLIGHT), "--display", "none"]
    where = ["--model", "openai-api/fake/m", "--model-base-url", f"{job.url}/v1", "--log-dir", str(job.folder / "logs")]
    return [job.tool("inspect"), "eval", task.name, *where, *load]


def lm_eval(job: Job) -> list[str]:
    """lm-evaluation-harness on a task with the same questions."""
    task = {
        "task": "fake",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(job.questions.with_suffix(".jsonl"))}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": [], "max_gen_toks": 4096},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    (job.folder / "fake.yaml").write_text(json.dumps(task))  # JSON is YAML
    model = f"model=m,base_url={job.url}/v1/chat/completions,num_concurrent={IN_FLIGHT},tokenized_requests=False"
    where = ["--model", "local-chat-completions", "--model_args", model, "--output_path", str(job.folder / "out")]
    tasks = ["--include_path", str(job.folder), "--tasks", "fake", "--apply_chat_template", "--log_samples"]
    return [job.tool("lm_eval"), "run", *where, *tasks]


def pool(job: Job) -> list[str]:
    """Threads around the openai SDK that wait for whole replies and write a line each, see `ask_by_threads`."""
    return [str(job.python), __file__, "--ask-by-threads", f"{job.url}/v1", str(job.questions), str(job.folder)]


PROGRAMS = {
    "ours": TimedProgram(ours, streams=True),
    "ours --no-stream": TimedProgram(lambda job: ours(job, "--no-stream"), streams=False),
    "guidellm": TimedProgram(guidellm, streams=True, environment={"HF_HUB_OFFLINE": "1"}),
    "evalscope perf": TimedProgram(evalscope, streams=True),
    "aiperf": TimedProgram(aiperf, streams=True),
    "inspect eval": TimedProgram(inspect, streams=False, environment={"FAKE_API_KEY": "none"}),
    "lm_eval": TimedProgram(lm_eval, streams=False),
    "thread pool": TimedProgram(pool, streams=False),
}
OWN_PYTHON = ("ours", "ours --no-stream", "thread pool")


def ask_by_threads(base_url: str, questions: Path, folder: Path) -> None:
    """What small evaluation scripts do."""
    import openai

    client = openai.OpenAI(base_url=base_url, api_key="none", timeout=3600)
    lock = threading.Lock()
    rows = [json.loads(line) for line in questions.with_suffix(".jsonl").read_text().splitlines()]
    with (folder / "out.jsonl").open("w") as file, ThreadPoolExecutor(IN_FLIGHT) as threads:

        def ask(row: dict[str, str]) -> None:
            messages = [{"role": "user", "content": row["question"]}]
            reply = client.chat.completions.create(
                model="m",
                messages=messages,  # type: ignore[arg-type]
                temperature=0.6,
                top_p=0.95,
                max_tokens=4096,
            )
            with lock:
                file.write(json.dumps(row | {"gen": reply.choices[0].message.content}) + "\n")
                file.flush()

        list(threads.map(ask, rows))


def write_questions(folder: Path, n: int) -> Path:
    """`n` questions as JSONL and as lines of text; returns the path without its suffix."""
    path = folder / f"questions-{n}"
    texts = [f"What is {i} + {i}?" for i in range(n)]
    rows = [{"id": f"q{i}", "question": text, "answer": str(2 * i), "text": text} for i, text in enumerate(texts)]
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path.with_suffix(".txt").write_text("".join(f"{text}\n" for text in texts))
    return path


def write_tokenizer(folder: Path) -> str:
    """A tokenizer of words, for programs that do not start without one; the server states all counts."""
    home = folder / "tokenizer"
    home.mkdir()
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    tokenizer = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (home / "tokenizer.json").write_text(json.dumps(tokenizer | empty))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "model_max_length": 100_000}
    (home / "tokenizer_config.json").write_text(json.dumps(config))
    return str(home)


def measure(argv: list[str]) -> None:
    """Run `argv` to its end, with every process that it leaves behind; prints CPU seconds and the exit status."""
    # Orphans become our children, so that their CPU is counted too.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    done = subprocess.run(argv, stdout=sys.stderr, timeout=RUN_SECONDS, check=False)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(json.dumps({"code": done.returncode, "cpu": usage.ru_utime + usage.ru_stime}) + "\n")


def cpu_of(program: TimedProgram, job: Job) -> float:
    """CPU seconds of one run; a run that fails, or asks less than it should, ends the benchmark."""
    n_served = served(job.port)
    done = subprocess.run(
        [sys.executable, __file__, "--measure", *program.command(job)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=job.folder,
        env=os.environ | program.environment,
    )
    result = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {"code": done.returncode, "cpu": 0.0}
    n_served = served(job.port) - n_served
    if result["code"] != 0 or n_served < job.requests:
        tail = (done.stderr + done.stdout)[-2000:]
        raise RuntimeError(f"exit status {result['code']}, {n_served} of {job.requests} requests made: {tail}")
    return float(result["cpu"])


def served(port: int) -> int:
    """Completions that the server has begun so far."""
    import httpx

    return int(httpx.get(f"http://127.0.0.1:{port}/served", trust_env=False).json()["completions"])


def start_server(tokens: int, pace: float) -> tuple[subprocess.Popen[str], int]:
    """A fake server whose replies have so many tokens, and its port."""
    server = subprocess.Popen(
        [sys.executable, HERE / "fake_server.py", "0", str(tokens), str(pace)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    return server, int(server.stdout.readline())


def main() -> int:
    """Measure every program that is there, in turns; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("guidellm", "evalscope", "aiperf", "inspect", "lm-eval"):
        parser.add_argument(f"--python-{name}", type=Path, metavar="PATH", help=f"interpreter that has {name}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--long", type=int, default=210, help="tokens of a long reply; more, for fast programs")
    parser.add_argument("--pace", type=float, default=0, help="milliseconds between two tokens; 0 = flat out")
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs by name, separated by commas")
    parser.add_argument("--measure", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("--ask-by-threads", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return 0
    if arguments.ask_by_threads:
        url, questions, folder = arguments.ask_by_threads
        ask_by_threads(url, Path(questions), Path(folder))
        return 0
    say = Console(stderr=True)
    pythons: dict[str, Path] = {}
    for name in arguments.only.split(","):
        flag = name.split(" ")[0].replace("_", "-")
        python = Path(sys.executable) if name in OWN_PYTHON else getattr(arguments, f"python_{flag.replace('-', '_')}")
        if python is None:
            say.print(f"{name}: skipped, --python-{flag} is not given")
        elif not python.exists():
            say.print(f"{name}: skipped, there is no {python}")
        else:
            pythons[name] = python.absolute()
    measured = measure_all(pythons, arguments.repeats, arguments.long, arguments.pace, say)
    Console(width=100).print(table(measured, arguments.long))
    return 0


def measure_all(
    pythons: dict[str, Path], repeats: int, long: int, pace: float, say: Console
) -> dict[str, dict[tuple[int, int], float]]:
    """CPU seconds by program and (tokens, requests), the least of the repeats; a failing program is dropped."""
    least: dict[str, dict[tuple[int, int], float]] = {name: {} for name in pythons}
    servers = {tokens: start_server(tokens, pace) for tokens in (SHORT, long)}
    base = Path(tempfile.mkdtemp(prefix="programs-"))
    try:
        for repeat in range(repeats):
            for tokens, requests in ((SHORT, FEW), (SHORT, MANY), (long, MANY)):
                questions = write_questions(base, requests)
                for name in list(least):
                    if tokens == long and not PROGRAMS[name].streams:
                        continue
                    folder = base / f"{name.replace(' ', '-')}-{tokens}-{requests}-{repeat}"
                    folder.mkdir()
                    job = Job(pythons[name], servers[tokens][1], requests, questions, folder)
                    try:
                        cpu = cpu_of(PROGRAMS[name], job)
                    except RuntimeError as error:
                        say.print(f"{name}: dropped, {error}", markup=False)
                        del least[name]
                        continue
                    key = (tokens, requests)
                    least[name][key] = min(cpu, least[name].get(key, cpu))
                    say.print(f"{repeat + 1}/{repeats} {name}: {requests} × {tokens} tokens, {cpu:.2f} s CPU")
    finally:
        for server, _ in servers.values():
            server.kill()
            server.wait()
        shutil.rmtree(base, ignore_errors=True)
    return least


def table(measured: dict[str, dict[tuple[int, int], float]], long: int) -> Table:
    """Slopes and their ratios to ours: per token among those that stream, per request among all."""
    title = "CPU of whole programs (process tree, least of the repeats; × = times ours)"
    shown = Table(title=title)
    for column in ("program", "replies", "µs/token", "×", "ms/request", "×", "s before the first"):
        shown.add_column(column, justify="left" if column in ("program", "replies") else "right")
    costs = {}
    for name, cpu in measured.items():
        token = 0.0
        if PROGRAMS[name].streams:
            token = (cpu[long, MANY] - cpu[SHORT, MANY]) / (MANY * (long - SHORT)) * 1e6
        request = (cpu[SHORT, MANY] - cpu[SHORT, FEW]) / (MANY - FEW) * 1e3
        costs[name] = (token, request, cpu[SHORT, FEW] - FEW * request / 1e3)
    for name, (token, request, fixed) in costs.items():
        streams = PROGRAMS[name].streams
        own = costs.get("ours" if streams else "ours --no-stream", (0.0, 0.0, 0.0))[:2]
        ratios = [f"{cost / mine:.1f}" if mine else "-" for cost, mine in zip((token, request), own, strict=True)]
        per_token = (f"{token:.1f}", ratios[0]) if streams else ("-", "-")
        shown.add_row(name, "streamed" if streams else "whole", *per_token, f"{request:.2f}", ratios[1], f"{fixed:.1f}")
    return shown


if __name__ == "__main__":
    sys.exit(main())
