"""The embedded server: llama.cpp's own OpenAI-compatible server in one Python process, from prebuilt wheels.

python -m server_launchers.embedded.llama_cpp_server MODEL.gguf --port 8080 --slots 4 --context 4096

In addition to the standard library it needs only `xllamacpp`, so it also runs in an environment without the harness.
The API key is read from an environment variable, never from argv, which every user of the machine can read. On SIGTERM
or SIGINT the process exits immediately, because llama.cpp's server would wait as long as a client stays connected.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from harness.core.cores import granted_cores

MISSING = (
    "the embedded server needs the llama-cpp extra (xllamacpp, and pykdtree for its OpenMP runtime); "
    f"install it with {shlex.quote(sys.executable)} -m pip install 'xllamacpp>=2026.6.9538,<2027' pykdtree"
)
"""The message if its packages are not installed."""
DEFAULT_SLOTS = 4
"""Number of concurrent requests."""
DEFAULT_CONTEXT = 4096
"""Number of tokens that one request may use, prompt and answer together."""
LOG_SECONDS = 0.5
"""Seconds that llama.cpp's own log thread gets after a failed start to write the lines that explain it."""


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; `--context` is the length of one request, prompt and answer together."""
    options = argparse.ArgumentParser(
        prog="python -m server_launchers.embedded.llama_cpp_server", description=__doc__.split("\n")[0]
    )
    options.add_argument("model", type=Path, help="GGUF file with the weights")
    options.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    options.add_argument("--port", type=int, default=0, help="port (default: 0, which picks a free port)")
    options.add_argument("--served-name", help="model name that clients use (default: the file's name)")
    options.add_argument("--slots", type=int, default=DEFAULT_SLOTS, help="parallel requests (default: %(default)s)")
    options.add_argument(
        "--context", type=int, default=DEFAULT_CONTEXT, help="tokens per request (default: %(default)s)"
    )
    options.add_argument("--threads", type=int, help="CPU threads (default: one less than the number of cores)")
    options.add_argument("--chat-template", type=Path, help="Jinja file used instead of the model's own template")
    options.add_argument("--api-key-env", help="environment variable that contains the API key for clients")
    return options


def main(argv: list[str] | None = None) -> NoReturn:
    """Serve until a signal arrives. The exit status is 1, after a one-sentence message, if the server cannot start."""
    import xllamacpp

    options = parser().parse_args(argv)
    params = _params(xllamacpp, options)
    # Before the server is created: loading takes long, and a signal must work during it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        # xllamacpp has no call that flushes llama.cpp's log; without this wait its last lines, which contain the cause,
        # can be lost.
        time.sleep(LOG_SECONDS)
        sys.stderr.flush()
        _say(f"error: llama.cpp could not start with {options.model}: {error}")
        # Threads of the half-started server would block an orderly exit.
        os._exit(1)
    _say(f"listening on {server.listening_address} as {options.served_name or options.model.stem}")
    while True:
        signal.pause()


def _params(library: Any, options: argparse.Namespace) -> Any:
    """The options in the form that xllamacpp expects."""
    params = library.CommonParams()
    params.model.path = str(options.model)
    # xllamacpp accepts one host up to 2026.9, and a list of hosts from 2026.10.
    if hasattr(params, "hostnames"):
        params.hostnames = [options.host]
    else:
        params.hostname = options.host
    params.port = options.port
    params.model_alias = {options.served_name or options.model.stem}
    params.n_parallel = options.slots
    # llama.cpp divides this number among its slots.
    params.n_ctx = options.slots * options.context
    params.endpoint_metrics = True
    threads = options.threads or max(1, granted_cores() - 1)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    if options.chat_template is not None:
        params.chat_template = options.chat_template.read_text(encoding="utf-8")
    if options.api_key_env is not None:
        params.api_keys = [os.environ[options.api_key_env]]
    return params


def _end(_signal: int, _frame: FrameType | None) -> None:
    """Exit immediately; used as a signal handler."""
    os._exit(0)


def _say(text: str) -> None:
    """Print a line and flush it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
