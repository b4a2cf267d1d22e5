"""The page of `harness` without arguments: servers, keys and runs on this machine, and the next command for each.

Also the example for a command whose argument is missing, with runs that are here.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from harness.core.errors import HarnessError
from harness.core.inert import visible
from harness.core.nouns import count_noun

SHOWN = 3
"""Largest number of servers, runs and keys that are named, of each kind."""

_LINE = "{:<52}{}"
_RUN = re.compile(r"(?<= )results/\S+")


def overview(results: Path = Path("results")) -> Iterator[str]:
    """The page, at most ten lines. Reads state files, manifests and names of variables; sends nothing."""
    servers = _servers()
    for name, model, url in servers[:SHOWN]:
        yield _LINE.format(f"harness run demo:4 --server {shlex.quote(name)}", f"{model} answers at {url}")
    runs = newest_runs(results)
    for manifest in runs[:SHOWN]:
        yield _run_line(manifest.parent)
    if len(runs) > 1:
        yield _LINE.format("harness view", f"read all {count_noun(len(runs), 'run')} of {results}/ in the browser")
    keys = [key for key in _keys() if os.environ.get(key[1])]
    for provider, variable in keys[: SHOWN - 1]:
        yield _LINE.format(f"harness run demo:1 --provider {provider} --model MODEL", f"{variable} is set")
    if not servers and not runs:
        yield _LINE.format("harness demo", "the whole path on a small model, in minutes")
    if not servers:
        yield _LINE.format("harness serve vllm MODEL --detach", "start a server (also sglang, llama_cpp …)")
    yield _LINE.format("harness --help", "all commands")


def newest_runs(results: Path = Path("results")) -> list[Path]:
    """The manifests of the runs in `results`, the one that changed last first."""
    return sorted(results.glob("*/manifest.json"), key=_time_of_change, reverse=True)


def example(command: click.Command, ctx: click.Context) -> str:
    """The first example in the command's help, without a remark or a second command; empty if it has none.

    The newest runs in results/ stand in place of its own, if it names runs and there are so many.
    """
    path = f"harness {ctx.command_path.partition(' ')[2]} "
    lines = map(str.strip, f"{command.help}\n{command.epilog}".splitlines())
    line = re.split(" +#| && ", next((line for line in lines if line.startswith(path)), ""))[0]
    n_runs = len(_RUN.findall(line))
    runs = [shlex.quote(visible(str(manifest.parent))) for manifest in newest_runs()[:n_runs]] if n_runs else []
    # A pattern stands for runs that belong together, such as the shards of one.
    if len(runs) < n_runs or "*" in line:
        return line
    return _RUN.sub(lambda _: runs.pop(), line)


def _servers() -> list[tuple[str, str, str]]:
    """Return (name, model, addresses) of each server that is ready on this machine."""
    from server_launchers.errors import LaunchError
    from server_launchers.keeping import servers

    try:
        ready = [server for server in servers.status() if server.status == "ready"]
    except (LaunchError, OSError):
        return []
    return [
        (visible(server.name), visible(server.model, 40), visible(", ".join(server.base_urls), 60)) for server in ready
    ]


def _run_line(folder: Path) -> str:
    """The line of a run: the next command for it, and how many samples are stored."""
    from harness.runs.going import on_disk
    from harness.runs.layout import RunFolder

    name = shlex.quote(visible(str(folder)))
    try:
        stored = on_disk(RunFolder(folder))
    except HarnessError:
        return _LINE.format(f"harness doctor {name}", "a run that cannot be read")
    done, total = (
        sum(benchmark.done for benchmark in stored.benchmarks),
        sum(benchmark.total for benchmark in stored.benchmarks),
    )
    line = f"{visible(stored.model, 40)}: {done} of {count_noun(total, 'sample')}"
    if stored.holder is not None:
        return _LINE.format(f"harness status {name} --watch", f"{line}, going on")
    if done < total:
        return _LINE.format(f"harness score {name}", f"{line}; give its command again to continue")
    scored = any((folder / benchmark.name / "scores.json").exists() for benchmark in stored.benchmarks)
    return _LINE.format(f"harness {'report' if scored else 'score'} {name}", line)


def _keys() -> Iterator[tuple[str, str]]:
    """Yield (provider, the environment variable of its key) for each hosted provider; each variable once."""
    from harness.client.address import providers

    seen = set()
    for name in providers.names():
        provider = providers.load(name)
        if provider.hosted and provider.address.key_variable not in seen:
            seen.add(provider.address.key_variable)
            yield name, provider.address.key_variable


def _time_of_change(path: Path) -> float:
    """The time of the last change, in seconds since the epoch; 0 if the file is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
