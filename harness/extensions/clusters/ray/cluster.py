"""A Ray cluster: one function with several arguments, each a task that begins again where its node is lost."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from harness.core import errors
from harness.core.about import __version__, install_line
from harness.core.errors import HarnessError, Interrupted, Sentence, ServerError, UsageError, option
from harness.core.inert import quoted, visible
from harness.generation.network.control import Signals

LOOK_SECONDS = 1.0
"""Seconds between two looks at what has ended; a first Ctrl-C may go unseen for as long."""

TRIES = 3
"""Attempts to get a session of a Ray client server, which starts a process for each and gives up after 30 s."""

RETRIES = 20
"""A task whose worker or node was lost is begun again at most this often."""

Stands = Callable[[Sequence[Any]], None]
"""Called at each look with the result of each task; None for a task that still runs."""

_FAILURES = (errors.UsageError, errors.ServerError, errors.StoreError, errors.StoppedByRule)


class Cluster:
    """A connection, ended by `close`. on: "ray" for the cluster of RAY_ADDRESS or of this machine, or ray://HOST:PORT.

    Raises `UsageError` where the package is missing or no cluster answers.
    """

    def __init__(self, on: str) -> None:
        # Ray reports its use to its makers, unless this is set before the import.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # else a call after the cluster's end begins one on this machine
        self.gone = False
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise UsageError(f"{option('on', 'ray')} needs the package ray: {install_line('ray')}") from error
        address = (os.environ.get("RAY_ADDRESS") or "auto") if on == "ray" else on
        for tries_left in reversed(range(TRIES if address.startswith("ray://") else 1)):
            try:
                # Ray lets its workers import from the folder that is current here. A task gets its folder by itself.
                with warnings.catch_warnings(action="ignore"), chdir("/"):
                    self._ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
                return
            except Exception as error:  # what Ray raises here is of many kinds
                if tries_left:
                    continue
                where = "" if address == "auto" else f" at {visible(address, 200)}"
                raise UsageError(
                    f"no Ray cluster answers{where} ({_last_line(error)}). Start one (docs/howto/ray.md), or set "
                    f"RAY_ADDRESS, or give {option('on')} ray://HOST:PORT"
                ) from error

    def close(self) -> None:
        """Disconnect; tasks that still run are ended by Ray."""
        self._ray.shutdown()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Around calls of Ray. Raises `ServerError` where the cluster does not answer any more; `gone` is true then."""
        try:
            yield
        except HarnessError:
            raise
        except Exception as error:  # what Ray raises here is of many kinds
            self.gone = True
            raise ServerError(f"the Ray cluster does not answer any more ({_last_line(error)})") from error

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_nodes(self) -> int:
        """Nodes that can run a task, at least one."""
        able = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        return max(1, len(able))

    @property
    def n_cpus(self) -> int:
        """Processors that Ray has to give, at least one."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def each(
        self, work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], names: Sequence[str], stands: Stands
    ) -> list[Any]:
        """What `work` returns for each of `arguments`, in their order; names: of the tasks, for messages.

        Once all have ended, raises the first refusal of one of them, with its name; `ServerError` for a task whose
        node was lost too often; `Interrupted` for a signal: the first lets the tasks end in order, the second ends
        them.
        """
        ray, ended = self._ray, [None] * len(arguments)
        # max_calls=1: each task has a process of its own, so that its locks on a run folder end with it.
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=1, scheduling_strategy="SPREAD")(_task)
        folder = str(Path.cwd())

        def begin(index: int) -> Any:
            return task.remote(work, __version__, folder, arguments[index])

        indices = {begin(index): index for index in range(len(arguments))}
        waiting, failed, again = list(indices), dict[int, HarnessError](), Counter[int]()
        # Ray prints news of its nodes to standard output, where a program may read JSON.
        with redirect_stdout(sys.stderr), Signals(lambda _: "interrupted; the same command goes on") as signals:
            signals.attach(lambda _signum, nth: _cancel(ray, waiting, force=nth > 1))
            while waiting:
                with self.reached():
                    ready, waiting = ray.wait(waiting, timeout=LOOK_SECONDS)
                for ref in ready:
                    index = indices.pop(ref)
                    try:
                        kind, value = ray.get(ref)
                        if kind == "Interrupted" and signals.caught is None and again[index] < RETRIES:
                            again[index] += 1  # its node is being drained
                            indices[begun := begin(index)] = index
                            waiting.append(begun)
                            continue
                        ended[index] = _unpacked(kind, value, names[index])
                    except HarnessError as error:
                        failed[index] = error
                    except Exception as error:  # noqa: BLE001  what Ray says of a task that it lost
                        failed[index] = _lost(names[index], error)
                stands(ended)
        if signals.caught is not None:
            raise Interrupted("interrupted; what is stored counts, and the same command goes on.", signals.caught)
        for index in sorted(failed):
            raise failed[index]
        return ended


def _cancel(ray: Any, refs: Sequence[Any], *, force: bool) -> None:
    for ref in refs:
        ray.cancel(ref, force=force)


def _task(work: Callable[..., Any], version: str, folder: str, given: tuple[Any, ...]) -> tuple[str, Any]:
    """On the node: ("done", what the work returned), or (name of the error, its sentence)."""
    try:
        if version != __version__:
            raise UsageError(f"the node has version {__version__} of this package, the caller {version}: install one")
        try:
            os.chdir(folder)
        except OSError as error:
            raise UsageError(f"the node does not see the working folder {folder}: {error.strerror}") from error
        return "done", work(*given)
    # Returned, not raised: Ray wraps a raised exception in its own, whose text is a traceback.
    except HarnessError as error:
        return type(error).__name__, error.sentence.marked


def _unpacked(kind: str, value: Any, name: str) -> Any:
    if kind == "done":
        return value
    kinds = {kind.__name__: kind for kind in _FAILURES}
    raise kinds.get(kind, ServerError)(f"{name}: {Sentence(value).marked}")


def _last_line(error: Exception) -> str:
    """The last line of Ray's message: there stands what happened in the other process."""
    return quoted(str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__)


def _lost(name: str, error: Exception) -> HarnessError:
    cause = _last_line(error)
    if isinstance(error.__cause__ or error, ModuleNotFoundError) or "ModuleNotFoundError" in str(error):
        return UsageError(f"{name}: this package is not installed where Ray runs its tasks ({cause})")
    return ServerError(f"{name} was lost on the cluster ({cause}); the same command goes on with it")
