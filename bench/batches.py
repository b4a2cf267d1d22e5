"""Measures memory and seconds of a large run by a provider's batch API, and checks what the provider was sent.

    python -m bench.batches [--samples 100000] [--prompt-bytes 500]

The provider is the test server `tests/faults/batch_server.py`, in a process of its own. It answers every request of a
batch once, and has OpenAI's limits on files. Exit code 1 if a request was sent twice or never, a file exceeds a limit,
or a sample is missing or stored twice. Linux only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from harness.client.address.providers import Batches
from harness.runs import RunFolder, read_samples
from tests.faults.batch_server import BatchProvider
from tests.faults.server import FaultServer

QUESTIONS = 1000


def serve(pipe: Connection) -> None:
    """Run the server and send its address; on request, send what it got: (requests, different requests, most requests
    of a file, most bytes of a file).
    """
    provider = BatchProvider()
    with FaultServer(provider.answer) as server:
        pipe.send(server.base_url)
        pipe.recv()
        inputs = [batch["input_file_id"] for batch in provider.batches.values()]
        counts = Counter(line["custom_id"] for line in provider.asked())
        n = [provider.files[name].count(b"\n") for name in inputs]
        pipe.send((counts.total(), len(counts), len(inputs), max(n), max(len(provider.files[name]) for name in inputs)))


def main() -> int:
    """Run the client in batch mode against the test server; print its seconds, memory and numbers of requests.

    Returns the exit code: 0 if every sample was requested and stored exactly once and no file exceeds a limit.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--samples", type=int, default=100_000, help="samples of the whole run, a multiple of 1,000")
    parser.add_argument("--prompt-bytes", type=int, default=500)
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    base_url = ours.recv()
    with tempfile.TemporaryDirectory(prefix="batch-bench-") as name:
        folder = Path(name)
        text = "x" * arguments.prompt_bytes
        lines = (json.dumps({"id": f"q{n}", "question": f"{n} {text}", "answer": str(n)}) for n in range(QUESTIONS))
        (folder / "bench.jsonl").write_text("".join(f"{line}\n" for line in lines))
        words = [
            "run",
            "--data",
            str(folder / "bench.jsonl"),
            "--samples",
            str(arguments.samples // QUESTIONS),
            "--batch",
        ]
        words += ["--base-url", base_url, "--model", "m", "--no-canary", "--quiet", "--out", str(folder / "run")]
        begun = time.monotonic()
        client = subprocess.Popen([sys.executable, "-m", "harness", *words], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        ours.send(None)
        n_requests, n_distinct, n_files, most_requests, most_bytes = ours.recv()
        benchmark = RunFolder(folder / "run").benchmark("bench")
        stored = Counter(sample.key for sample in read_samples(benchmark))
        n_lines = sum(1 for _ in benchmark.samples.open("rb"))
    # The limits by default; the two fields are required and not used here.
    limits = Batches.model_validate({"page": "", "checked": False})
    print(
        f"client: {seconds:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor, peak {used.ru_maxrss >> 10} MB"
    )
    print(
        f"sent: {n_requests} requests, {n_distinct} of them different, in {n_files} files of at most {most_requests} "
        f"requests and {most_bytes:,} bytes"
    )
    print(f"stored: {n_lines} lines, {len(stored)} samples; exit code {client.returncode}")
    sound = n_requests == n_distinct == n_lines == len(stored) == arguments.samples and client.returncode == 0
    return int(not (sound and most_requests <= limits.most_requests and most_bytes <= limits.most_bytes))


if __name__ == "__main__":
    raise SystemExit(main())
