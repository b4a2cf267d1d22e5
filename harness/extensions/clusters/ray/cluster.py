"""Run one function on a Ray cluster, as one task for each tuple of arguments.

    a task ends with                                    then
    its result                                          the result is stored
    a `HarnessError`, returned as its name and text     the error is raised here, with the task's name
    `Interrupted`, without a signal here                its node is being drained: it is restarted, `RETRIES` times
    the loss of its worker or node                      Ray restarts it, `RETRIES` times; then `ServerError`

An error does not stop the other tasks: their stored results are reused when the same command is resumed.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import socket
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from harness.core import channel
from harness.core.errors import HarnessError, Interrupted, ServerError, StoppedByRule, StoreError, UsageError
from harness.core.installation import build, install_line
from harness.core.sanitize import quoted, visible
from harness.generation.network.control import Signals
from harness.progress.events import Watcher

PROGRESS_SECONDS = 15.0
"""Minimum number of seconds between two progress lines."""

LOOK_SECONDS = 1.0
"""Seconds between two checks for tasks that have ended; a first Ctrl-C may go unnoticed for that long."""

HEAD_SECONDS = 20.0
"""A cluster whose head accepts no connection for this many seconds is abandoned; Ray itself ends the process after 60
s."""

RETRIES = 20
"""Maximum number of restarts of a task whose worker or node was lost."""


class Cluster:
    """A connection to a cluster, for a `with` block; at its end Ray stops the tasks that are still running.

    on: "ray" for the cluster of RAY_ADDRESS or of this machine, or ray://HOST:PORT. n_nodes: number of nodes that can
    run a task; n_cpus: number of processors; each at least one. Raises `UsageError` if the package is missing or no
    cluster responds.
    """

    def __init__(self, on: str) -> None:
        # Ray sends usage statistics to its authors unless this is set before the import.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Otherwise a call to Ray after the cluster's end would start a new cluster on this machine.
        os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise UsageError(f"on=ray requires the ray package: {install_line('ray')}") from error
        address = (os.environ.get("RAY_ADDRESS") or "auto") if on == "ray" else on
        try:
            # Ray adds the current folder to its workers' import path; `_task` changes to the caller's folder.
            with (
                warnings.catch_warnings(action="ignore"),
                chdir("/"),
                channel.waiting(f"the Ray cluster at {visible(address, 200)}"),
            ):
                self._ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception as error:  # Ray raises many kinds of exceptions here
            raise UsageError(
                f"no Ray cluster responds at {visible(address, 200)} ({_last_line(error)}). Start a cluster "
                "(docs/scaling.md), set RAY_ADDRESS, or use `on=ray://HOST:PORT`"
            ) from error
        able = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        # With ray://, Ray's client monitors the head and raises an error.
        self._head = None if address.startswith("ray://") else self._ray.get_runtime_context().gcs_address
        self._answered = math.inf
        self.n_nodes = max(1, len(able))
        self.n_cpus = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_lost():
            self._ray.shutdown()

    def _is_lost(self) -> bool:
        """Whether the head, which accepted connections before, has accepted none for `HEAD_SECONDS`."""
        if self._head is not None:
            with suppress(OSError):
                socket.create_connection(self._head.rsplit(":", 1), timeout=LOOK_SECONDS).close()
                self._answered = time.monotonic()
        return time.monotonic() - self._answered > HEAD_SECONDS

    def each(
        self,
        work: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        watcher: Watcher,
        progress: Callable[[], str] = str,
    ) -> list[Any]:
        """Run `work` once with each tuple of `arguments`; return the results in their order.

        names: names of the tasks, for messages. watcher: receives the number of tasks that have ended and,
        periodically, the sentence from `progress` if it has changed. Raises, after all tasks have ended, the error of
        the first task in order that failed (`ServerError` if its node was lost too often), or `Interrupted` after a
        signal. The first signal asks the tasks to stop; the second terminates them.
        """
        ray, results = self._ray, [None] * len(arguments)
        # max_calls=1: each task has its own process, so that its locks on a run folder end with it.
        task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=1, scheduling_strategy="SPREAD")(_task)
        folder, version = str(Path.cwd()), build()

        def begin(index: int) -> Any:
            return task.remote(work, version, folder, arguments[index])

        def cancel(_signum: int, nth: int) -> None:
            for ref in waiting:
                ray.cancel(ref, force=nth > 1)

        indices = {begin(index): index for index in range(len(arguments))}
        waiting = list(indices)
        failed: dict[int, HarnessError] = {}
        n_restarts: Counter[int] = Counter()
        former, due = "", time.monotonic() + PROGRESS_SECONDS
        # Ray prints node messages to standard output, where a program may read JSON.
        with redirect_stdout(sys.stderr), Signals(lambda _: "interrupted; run the same command to continue") as signals:
            signals.attach(cancel)
            while waiting:
                try:
                    ready, waiting = ray.wait(waiting, timeout=LOOK_SECONDS)
                    if self._is_lost():
                        raise ConnectionError(f"its head node has not accepted connections for {HEAD_SECONDS:.0f} s")
                except Exception as error:  # Ray raises many kinds of exceptions here
                    raise ServerError(f"the Ray cluster stopped responding ({_last_line(error)})") from error
                if time.monotonic() >= due:
                    due = time.monotonic() + PROGRESS_SECONDS
                    if (sentence := progress()) != former:
                        watcher.standing(former := sentence)
                for ref in ready:
                    index = indices.pop(ref)
                    try:
                        kind, value = ray.get(ref)
                        if kind == "Interrupted" and signals.caught is None and n_restarts[index] < RETRIES:
                            # This process received no signal: Ray is draining the task's node.
                            n_restarts[index] += 1
                            restarted = begin(index)
                            indices[restarted] = index
                            waiting.append(restarted)
                            continue
                        results[index] = _unpack(kind, value, names[index])
                    except HarnessError as error:
                        failed[index] = error
                    except Exception as error:  # noqa: BLE001  Ray raises its own for a task that it lost
                        failed[index] = _loss_error(names[index], error)
                if ready:
                    watcher.standing(f"{len(results) - len(waiting)} of {len(results)} tasks have finished")
        if signals.caught is not None:
            raise Interrupted("interrupted. Stored results are kept; to resume, run the same command.", signals.caught)
        for index in sorted(failed):
            raise failed[index]
        return results


def _task(work: Callable[..., Any], version: str, folder: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Runs on the node: call `work` with `arguments`. Returns ("done", its result), or (name of the error's class, the
    error's sentence).

    version: the caller's `build` of this package. folder: the caller's working folder, which must also be visible on
    the node.
    """
    try:
        if version != (own := build()):
            raise UsageError(f"the node has version {own}, but the caller has {version}: install the same version")
        try:
            os.chdir(folder)
        except OSError as error:
            raise UsageError(f"the node cannot access the working folder {folder}: {error.strerror}") from error
        return "done", work(*arguments)
    # Returned, not raised: Ray wraps a raised exception in its own, whose text is a traceback.
    except HarnessError as error:
        return type(error).__name__, error.sentence


def _unpack(kind: str, value: Any, name: str) -> Any:
    """The result of a task, or the error that it returned, raised with the task's name before its sentence.

    kind: "done", or the name of the error's class. value: the result, or the error's sentence.
    """
    if kind == "done":
        return value
    classes = {"UsageError": UsageError, "StoreError": StoreError, "StoppedByRule": StoppedByRule}
    raise classes.get(kind, ServerError)(f"{name}: {value}")


def _last_line(error: Exception) -> str:
    """The last line of Ray's message, which names the error; the preceding lines may be a traceback."""
    return quoted(str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__)


def _loss_error(name: str, error: Exception) -> HarnessError:
    """The error to report for the task `name` that Ray lost. error: Ray's exception."""
    cause = _last_line(error)
    if isinstance(error.__cause__ or error, ModuleNotFoundError) or "ModuleNotFoundError" in str(error):
        return UsageError(f"{name}: this package is not installed where Ray runs its tasks ({cause})")
    return ServerError(f"{name} was lost on the cluster ({cause}); run the same command to continue")
