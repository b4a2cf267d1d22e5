"""Measures the memory and time of a large run: its start, resumption, scoring, and report.

    python bench/size.py [--questions 200000] [--samples 2] [--asked 2000] [--reply-bytes 0] [--folder DIR]
                         [--only-resume] [--only-score] [--only-complete]

The run is started, and ended by Ctrl-C after `--asked` samples; then the journal is filled except for the same number
of samples. The run is resumed to its end, resumed with nothing missing ("complete"), scored, and reported. Each command
is a separate process. Its peak is the largest resident memory of any of its processes. A process inherits the peak of
its parent, so this process stays small. Linux only.

`--only-resume`: nothing is scored or reported. `--only-score`: one process per processor writes the missing samples to
the journal; they are scored, scored again with the stored grades, and reported. `--only-complete`: the same journal is
resumed with nothing missing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bench.first_request import MODEL, Server, start
from harness.core.records import Question, Sample, Timing, Usage
from harness.runs import Journal, Manifest, RunFolder, read_samples, record
from harness.runs import questions as stored

_TEXT = "A train leaves the station at noon and travels at {} km/h for {} hours. How far does it go, in kilometres?"


def make_data(path: Path, n_questions: int) -> None:
    """Write a file of questions with about a hundred characters each."""
    with path.open("w") as file:
        for number in range(n_questions):
            text = f"{number}. {_TEXT.format(number % 97, number % 89)}"
            file.write(json.dumps({"id": f"question-{number}", "question": text, "answer": str(number % 100)}) + "\n")


def fill(folder: RunFolder, benchmark: str, n_left: int, reply_bytes: int) -> None:
    """Store all missing samples except `n_left`. reply_bytes: approximate number of bytes in each reply before its
    answer.
    """
    scratch = folder.benchmark(benchmark)
    plan = Manifest.load(folder).benchmarks[benchmark].plan
    with Journal.open(scratch) as journal:
        on_disk = {(sample.question_id, sample.sample_index) for sample in read_samples(scratch)}
        question_list = [*stored.read(scratch)]
        missing = ((q, i) for i in range(plan.samples) for q in question_list if (q.question_id, i) not in on_disk)
        n_stored = plan.samples * len(question_list) - len(on_disk) - n_left
        for number, (question, index) in enumerate(islice(missing, n_stored)):
            journal.append(made_up(benchmark, question, index, number, reply_bytes))


def pour(folder: RunFolder, benchmark: str, part: int, n_parts: int, reply_bytes: int) -> None:
    """Append part `part` of the missing samples to the journal, whole lines at a time, while other processes append
    their parts.
    """
    scratch = folder.benchmark(benchmark)
    plan = Manifest.load(folder).benchmarks[benchmark].plan
    on_disk = {(sample.question_id, sample.sample_index) for sample in read_samples(scratch)}
    question_list = [*stored.read(scratch)]
    file = os.open(scratch.samples, os.O_WRONLY | os.O_APPEND)
    for index in range(part, plan.samples, n_parts):
        for first in range(0, len(question_list), 1000):
            missing = (
                (n, q)
                for n, q in enumerate(question_list[first : first + 1000], first)
                if (q.question_id, index) not in on_disk
            )
            lines = b"".join(
                record.encode(made_up(benchmark, q, index, index * len(question_list) + n, reply_bytes))
                for n, q in missing
            )
            if os.write(file, lines) != len(lines):
                sys.exit("the disk is full")
    os.close(file)


def made_up(benchmark: str, question: Question, index: int, number: int, reply_bytes: int) -> Sample:
    """A correct answer to a question. number: makes the texts differ."""
    return Sample(
        benchmark=benchmark,
        question_id=question.question_id,
        sample_index=index,
        text=rf"{prose(number, reply_bytes)}It goes {number} km: \boxed{{{number % 100}}}",
        reasoning=None,
        finish_reason="stop",
        usage=Usage(prompt_tokens=30, completion_tokens=12),
        timing=Timing(started=1.8e9, total=0.1),
        endpoint="http://127.0.0.1:1/v1",
        server_model=MODEL,
        seed=number + 1,
        prompt_digest=question.prompt_digest,
    )


def prose(number: int, n_bytes: int) -> str:
    """About `n_bytes` of text that looks like reasoning and never repeats itself."""
    steps = range(number % 997, number % 997 + n_bytes // 56)
    return "".join(f"After {n * n} metres it has gone on for {n % 61} min {n * 7 % 60} s.\n" for n in steps)


def in_processes(work: Callable[..., None], each: Sequence[tuple[Any, ...]]) -> None:
    """Do the work in new processes, because memory that this process has used would count in the peaks of the processes
    that it starts.
    """
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=given) for given in each]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("the journal could not be filled")


def ended(process: subprocess.Popen[bytes], expected: int) -> str:
    """Wait for a process to end; return its peak in MB and the CPU seconds of all its processes, as text. Raises if its
    exit code is not the expected one.
    """
    _, status, used = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code != expected:
        sys.exit(f"{process.args!r} ended with {code}, not {expected}")
    return f"peak {round(used.ru_maxrss / 1024)} MB, {used.ru_utime + used.ru_stime:.1f} s of processor in all"


def show(name: str, begun: float, cost: str, server: Server | None = None) -> None:
    """Print the cost of a command. server: the server to which it sent requests; the seconds then count up to the first
    request.
    """
    seconds, until = time.monotonic() - begun, ""
    if server is not None:
        assert server.first_at is not None
        seconds, until = server.first_at - begun, f"to its first request, {server.first_cpu:.1f} s of processor; "
    print(f"{name:8} {seconds:6.1f} s {until}{cost}", flush=True)


def main() -> None:
    """Measure a run of the size given on the command line, in a folder that is then removed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--questions", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--asked", type=int, default=2000, help="samples asked by each of the two sessions")
    parser.add_argument("--reply-bytes", type=int, default=0, help="working before the answer of each reply")
    parser.add_argument("--only-resume", action="store_true", help="nothing after the resumes")
    parser.add_argument(
        "--only-score", action="store_true", help="fill the journal, score and report it, and nothing else"
    )
    parser.add_argument("--only-complete", action="store_true", help="fill the journal and resume the complete run")
    parser.add_argument("--keep", action="store_true", help="leave the folder where it is")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="size-bench-", dir=arguments.folder))
    try:
        with Server() as server:
            measure(scratch, server, arguments)
    finally:
        if arguments.keep:
            print(scratch)
        else:
            shutil.rmtree(scratch)


def measure(scratch: Path, server: Server, arguments: argparse.Namespace) -> None:
    """Carry out the commands in the folder `scratch`, and print what each costs."""
    make_data(scratch / "bench.jsonl", arguments.questions)
    run = ["run", "--data", str(scratch / "bench.jsonl"), "--samples", str(arguments.samples), "--model", MODEL]
    run += ["--base-url", server.base_url, "--out", str(scratch / "run"), "--drop", "stream", "--no-canary", "--quiet"]

    begun = time.monotonic()
    process = server.started(run, n_until=arguments.asked)
    server.enough.wait()
    process.send_signal(signal.SIGINT)
    show("begin", begun, ended(process, 130), server)

    folder = RunFolder(scratch / "run")
    finishing = [(name, [name, str(scratch / "run")]) for name in ("score", "report")]
    if arguments.only_score or arguments.only_complete:
        n = os.cpu_count() or 1
        in_processes(pour, [(folder, "bench", part, n, arguments.reply_bytes) for part in range(n)])
        commands = [finishing[0], *finishing] if arguments.only_score else [("complete", run)]
    else:
        in_processes(fill, [(folder, "bench", arguments.asked, arguments.reply_bytes)])
        begun = time.monotonic()
        show("resume", begun, ended(server.started(run), 0), server)
        commands = [("complete", run), *([] if arguments.only_resume else finishing)]
    for name, words in commands:
        begun = time.monotonic()
        show(name, begun, ended(start(words), 0))


if __name__ == "__main__":
    main()
