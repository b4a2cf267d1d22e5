"""`harness serve --dry-run`, `probe`, and the lists: benchmarks, models, plug-ins, the commands with `--json`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from harness.cli.json_output import output_types
from server_launchers.engines.table import by_name
from server_launchers.spec import ENGINES
from tests.commands.reading_server import Reader
from tests.commands.toy_faults import FAULTS
from tests.pins import reading, stored
from tests.pins.server import drawing
from tests.pins.stage import Scene, Stage

CHECKOUT = Path(__file__).resolve().parents[3]
VERSIONS = {"vllm_ascend": "0.18.0"}
"""Engine → the version it is started as, where that is not the assumed one: what is installed changes no pin."""
OPTIONS = (
    (),
    ("--tp", "2", "--max-model-len", "8192", "--memory-fraction", "0.8"),
    ("--dtype", "bfloat16", "--sampling-defaults", "model", "--server-seed", "5", "--eager", "--env", "A=b"),
)
SEED = ("--seed", "3", "--json")


def serve(stage: Stage) -> None:
    """A few options to each engine: a command line, or a refusal. `numbers` pins the command lines of 300 servers."""
    for engine in ENGINES:
        if engine == "command":
            continue
        version = VERSIONS.get(engine) or by_name(engine).assumed_version
        stated = ("--engine-version", version) if version else ()
        for words in OPTIONS:
            stage.command("serve", engine, "org/model", "--dry-run", *stated, *words, read=started)
    stage.command("serve", "command", "--dry-run", "--", "my-server", "--port", "{port}", read=started)
    stage.command("serve", "vlm", "org/model")
    stage.python("serve", "vlm", "org/model")
    stage.python("serve", "vllm", "org/model", tp=0)
    stage.python("serve", "vllm", "org/model", tpp=1)


def started(text: str) -> dict[str, Any]:
    """The words of the command lines that a dry run shows."""
    own = (sys.prefix, str(CHECKOUT))  # of a file of the checkout, or of the interpreter that runs it: its name
    lines = ([Path(w).name if w.startswith(own) else w for w in shlex.split(line)] for line in text.splitlines())
    return {"starts": list(lines)}


def probe(stage: Stage) -> None:
    """The word that each check comes to, of each engine."""
    for engine, words in (("vllm", ()), ("llama.cpp", ("--quick",)), ("plain", ("--quick",))):
        server = stage.server(engine, drawing(engine))
        stage.command("probe", server.base_url, *words, *SEED, read=reading.outcomes)


def probe_replies(stage: Stage) -> None:
    """A copy that is read beside its base, once with the base's server; and one of another engine."""
    run = stored.copy("first", stage.folder)
    base, copy = stage.server("base", Reader()), stage.server("copy", Reader("copy", shift=0.5))
    for url, words in (
        (copy.base_url, ()),
        (copy.base_url, ("--reference", base.base_url)),
        (base.base_url, ("--margin", "0.1", "--read-tokens", "600")),
        (stage.server("other", Reader(owner="llamacpp")).base_url, ()),
    ):
        stage.command("probe", url, "--replies", run, *words, *SEED, read=reading.outcomes)


def probe_without_usage(stage: Stage) -> None:
    """A server that counts no tokens, and what cannot be probed."""
    server = stage.server("server", drawing("vllm", fault=FAULTS["usage dropped"]()))
    stage.command("probe", server.base_url, "--checks", "context,usage", *SEED, read=reading.outcomes)
    for words in (["--checks", "temprature 1"], ["--model", "nobody"], ["--reference", "nowhere"]):
        stage.command("probe", server.base_url, *words)


def lists(stage: Stage) -> None:
    """The cards, what is said of one, the models, the plug-ins, and the commands that print JSON."""
    stage.command("benchmarks", "list", "--json", read=reading.cards)
    for words in (["show", "demo"], ["show", "demmo"], ["fetch", "demo"], ["schema"]):
        stage.command("benchmarks", *words)
    stage.command("serve", "--models", read=lambda text: {"models": reading.first_words(text)})
    stage.command("serve", "fetch", "nobody")
    stage.command("doctor", stored.copy("first", stage.folder))
    stage.command("doctor", "nowhere")
    stage.keep(**{"with --json": [*output_types()]})


SCENES: tuple[Scene, ...] = (serve, probe, probe_replies, probe_without_usage, lists)
