"""Servers on the nodes of a Ray cluster: each is an actor in a placement group of its own that runs `harness serve`.

    Served (the caller)              Replica (actor, rank 0)          NodeMember (actor, each other rank)
    starts and asks replicas ──────► runs `harness serve` ──────────► runs `harness serve` for its rank

Ray restarts an actor whose worker or node was lost, on any node where its group has room. The command reads a pipe, and
the actor holds its other end. The system closes that end even if the worker is killed, and the command then ends the
engine.

A server over several nodes has a placement group with one part for each node. If a member is lost or its process ends,
the replica ends all members and starts the server again: an engine over several nodes hangs where one of them is gone.

    state      meaning                                                    next
    waiting    the actor has not answered: its group waits for room       starting
    starting   the command runs, and has not registered                   ready, failed
    ready      its address is in the folder of endpoints                  lost
    lost       a process or a node ended after the server was ready       starting
    failed     the command ended before the server was ready              none
    gone       the actor is no longer in the cluster                      none

Long: the caller, the replica and its members speak one protocol, whose three sides are read together.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from harness.asking.watching import Watcher
from harness.core.about import __version__
from harness.core.errors import Sentence, ServerError, UsageError, option
from harness.core.inert import visible
from harness.extensions.clusters.ray.cluster import LOOK_SECONDS, Cluster
from harness.verbs.elsewhere import FILE, HEAD, HOST, NODE, PORT, RANK, Replicas
from server_launchers import isolated

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

NAMESPACE = "harness-serve"
"""Namespace of the harness's actors in the cluster; a replica's actor is called NAME-NUMBER."""

STOP_SECONDS = 60.0
"""Seconds that an actor may take to end its server before the actor is killed."""

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a node that Ray knows by a loopback address has no better one

LOG_BYTES = 16 * 1024
"""Bytes at the end of a log in which the cause of a failed start is sought."""

ReplicaState = Literal["waiting", "starting", "ready", "lost", "failed", "gone"]


def resources_of(spec: ServerSpec, gpus: float | None) -> dict[str, float]:
    """The resources that Ray reserves on each node of a server of `spec`. gpus: devices of the whole server; None: as
    many as its parallel sizes need.

    Raises `UsageError` for a server that runs elsewhere, or that names its devices itself.
    """
    from server_launchers.engines import table as engines

    launcher = engines.launcher_of(spec)
    if launcher.command is None:
        raise UsageError(f"{option('on')} starts servers, but this file names a server that runs already")
    if spec.devices is not None:
        raise UsageError(f"Ray chooses the devices: give {option('gpus_per_replica')} instead", field="server.devices")
    if gpus is None:
        uses = launcher.devices == "sliced" and spec.device != "cpu"
        gpus = spec.tp * spec.pp * spec.dp if uses else 0
    if spec.nodes > 1 and gpus % spec.nodes:
        raise UsageError(
            f"cannot be spread evenly over {option('server.nodes', spec.nodes)}",
            field="gpus_per_replica",
            value=f"{gpus:g}",
        )
    kind = "NPU" if launcher.runs_on(spec) == "ascend" else "GPU"
    return {"CPU": 1.0} | ({kind: gpus / spec.nodes} if gpus else {})


class Served:
    """Replicas on a cluster, which are stopped at the end of the `with` block. detach: keep them running instead, even
    after this process has ended.

    Raises `UsageError` if no cluster answers, the name is taken, or too few nodes have what a replica needs.
    """

    def __init__(self, on: str, replicas: Replicas, watcher: Watcher, *, detach: bool = False) -> None:
        self._replicas, self._watcher, self._detach = replicas, watcher, detach
        self._cluster = Cluster(on)
        self._ray: Any = importlib.import_module("ray")
        self._names = [f"{replicas.name}-{number}" for number in range(1, replicas.count + 1)]
        self._states: list[tuple[ReplicaState, str]] = [("waiting", "")] * replicas.count
        try:
            self._check()
            self._actors = [self._start_actor(name) for name in self._names]
        except BaseException:
            self._close(keep_replicas=False)
            raise
        self._pending: dict[Any, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close(keep_replicas=self._detach and kind is None)

    def until_ready(self) -> None:
        """Wait until all replicas are ready. Raises `ServerError` with the name of a replica that cannot be started."""
        while True:
            self._look()
            for index, (state, detail) in enumerate(self._states):
                if state in ("failed", "gone"):
                    raise ServerError(f"{self._label(index)} did not start: {detail}")
            if all(state == "ready" for state, _ in self._states):
                return

    def hold(self) -> None:
        """Watch the replicas and report those that are lost or ready again, until none is left: then raise
        `ServerError`."""
        while any(state not in ("failed", "gone") for state, _ in self._states):
            self._look()
        raise ServerError("no server is left; their logs are in " + visible(str(self._replicas.folder)))

    def _check(self) -> None:
        """Raise `UsageError` if the name is taken, or too few nodes have what a replica needs on each of its nodes."""
        if taken := [name for name in _actor_names(self._ray) if _fleet(name) == self._replicas.name]:
            raise UsageError(
                f"servers called {self._replicas.name} run on the cluster ({len(taken)}): stop them, or choose another "
                f"{option('name')}"
            )
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        needed, many = self._replicas.resources, self._replicas.nodes
        able = sum(all(node.get(kind, 0) >= amount for kind, amount in needed.items()) for node in nodes)
        if able < many:
            listed = ", ".join(f"{amount:g} {kind}" for kind, amount in needed.items())
            what = f"a replica needs {many} nodes ({listed} on each), and {able} of the cluster have that"
            if many == 1:
                what = f"no node of the cluster has what a replica needs ({listed})"
            raise UsageError(f"{what}; see {option('gpus_per_replica')}")

    def _start_actor(self, name: str) -> Any:
        """Start a replica's actor in a new placement group; the actor waits until the group has room."""
        lifetime = "detached" if self._detach else None
        replicas = self._replicas
        group = self._ray.util.placement_group(
            [dict(replicas.resources)] * replicas.nodes,
            strategy="STRICT_SPREAD",
            name=f"{NAMESPACE}/{name}",
            lifetime=lifetime,
        )
        # -1: Ray restarts the actor as often as needed; by default it never does.
        actor = self._ray.remote(Replica).options(
            **_placing(group, 0, replicas.resources), name=name, namespace=NAMESPACE, lifetime=lifetime, max_restarts=-1
        )
        return actor.remote(name, replicas, str(replicas.folder.absolute()), str(Path.cwd()), __version__)

    def _look(self) -> None:
        """Ask each replica for its state, wait `LOOK_SECONDS` for the answers, and report what has changed."""
        waiting = set(self._pending.values())
        # An actor that waits for room has not answered the last call; a second call would only queue behind it.
        for index, actor in enumerate(self._actors):
            if index not in waiting and self._states[index][0] not in ("failed", "gone"):
                self._pending[actor.state.remote()] = index
        time.sleep(LOOK_SECONDS)
        with self._cluster.reached():
            done, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=LOOK_SECONDS)
        for ref in done:
            index = self._pending.pop(ref)
            try:
                now = self._ray.get(ref)
            except Exception:  # noqa: BLE001  Ray raises exceptions of many kinds for a lost actor
                with self._cluster.reached():
                    is_there = self._names[index] in _actor_names(self._ray)
                now = ("lost", "") if is_there else ("gone", "it was stopped")
            if now[0] == "starting" and self._states[index][0] == "ready":
                now = ("lost", "")  # Lost and restarted since the last look.
            if now != self._states[index]:
                self._states[index] = now
                self._report(index)

    def _report(self, index: int) -> None:
        """Tell the user the new state of this replica, if it is ready, lost or ended."""
        state, detail = self._states[index]
        label = self._label(index)
        if state == "ready":
            self._watcher.standing(Sentence(f"{label} is ready at {visible(detail, 200)}"))
        elif state == "lost":
            self._watcher.warn(Sentence(f"{label} was lost; it is started again"))
        elif state in ("failed", "gone"):
            self._watcher.warn(Sentence(f"{label} has ended: {visible(detail, 500)}"))

    def _label(self, index: int) -> str:
        return f"replica {index + 1} of {self._replicas.count}"

    def _close(self, *, keep_replicas: bool) -> None:
        """End the replicas, unless they are kept or the cluster is gone; then disconnect."""
        try:
            if not keep_replicas and not self._cluster.gone:
                _end(self._ray, self._names)
        finally:
            self._cluster.close()


def stop(on: str, name: str | None, *, everything: bool = False) -> list[str]:
    """End the servers called `name`, or all servers. Returns their names.

    name: None if all servers on the cluster have the same name. everything: end servers of every name. Raises
    `UsageError` if there are none of that name.
    """
    with Cluster(on):
        ray: Any = importlib.import_module("ray")
        actors = _actor_names(ray)
        fleets = sorted({_fleet(actor) for actor in actors})
        stopped = fleets if everything else [fleet for fleet in fleets if name in (None, fleet)]
        if not everything and len(stopped) != 1:
            which = f"say which servers to stop, or {option('all')}" if name is None else f"none is called {name}"
            raise UsageError(f"{which}; on the cluster are: {', '.join(fleets) or 'none'}")
        _end(ray, [actor for actor in actors if _fleet(actor) in stopped])
        return stopped


def _fleet(actor: str) -> str:
    """The fleet of an actor: NAME of NAME-NUMBER, which all replicas of one command share."""
    return actor.rpartition("-")[0]


def _actor_names(ray: Any) -> list[str]:
    """The names of the harness's actors in the cluster."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    return [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE]


def _end(ray: Any, names: Sequence[str]) -> None:
    """End these actors, their servers and their placement groups. An actor that still waits for room has no server to
    stop, and is killed at once."""
    placement = importlib.import_module("ray.util.placement_group")
    by_group = {f"{NAMESPACE}/{name}": name for name in names}
    placed, groups = set(), []
    for number, group in ray.util.placement_group_table().items():
        if (name := by_group.get(group["name"])) is not None and group["state"] != "REMOVED":
            groups.append(placement.PlacementGroup(ray.PlacementGroupID(bytes.fromhex(number))))
            if group["state"] == "CREATED":
                placed.add(name)
    actors = {}
    for name in names:
        with contextlib.suppress(ValueError):  # The actor has ended.
            actors[name] = ray.get_actor(name, namespace=NAMESPACE)
    stopping = [actor.stop.remote() for name, actor in actors.items() if name in placed]
    if stopping:
        ray.wait(stopping, num_returns=len(stopping), timeout=STOP_SECONDS)
    # `stop` ends the server only; the actor would stay and hold its part of the group.
    for actor in actors.values():
        ray.kill(actor, no_restart=True)
    for group in groups:
        ray.util.remove_placement_group(group)


def _placing(group: Any, part: int, resources: Mapping[str, float]) -> dict[str, Any]:
    """Ray's options for an actor in that part of the group; the actor takes all resources of the part."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    # Ray takes CPU and GPU by arguments of their own and refuses them among the resources.
    rest = {kind: amount for kind, amount in resources.items() if kind not in ("CPU", "GPU")}
    return {
        "num_cpus": resources["CPU"],
        "num_gpus": resources.get("GPU", 0),
        "resources": rest or None,
        "scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=part),
    }


class NodeMember:
    """Runs on a node: keeps the process of a server there until `stop` or the end of the worker.

    here: the working folder of the caller. version: the caller's version of this package.
    """

    def __init__(self, here: str, version: str) -> None:
        self._here, self._version = here, version
        self._ending = threading.Event()

    def address(self) -> str:
        """The address by which Ray knows this node."""
        return str(importlib.import_module("ray.util").get_node_ip_address())

    def run(self, words: Sequence[str], values: Mapping[str, str], log: str) -> str:
        """Run `harness serve` with these words until it ends. Returns why it ended, and where its log is.

        values: the values for the placeholders HOST, FILE … in `words`; this node adds NODE, and HOST if it is missing.
        log: the path of the log.
        """
        if self._version != __version__:
            return f"the node has version {__version__} of this package, the caller {self._version}"
        own = self.address() if HOST not in values or NODE in words else ""
        values = {HOST: _listening(own), NODE: own, **values}
        argv = isolated.command("harness", "serve", *(values.get(word, word) for word in words))
        # Ray sets OMP_NUM_THREADS to the processors of the actor; an engine counts the machine's processors itself.
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        try:
            with Path(log).open("wb") as output:
                # The open pipe is the server's lifeline: the system closes it even where Ray kills this worker.
                process = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, cwd=self._here
                )
            assert process.stdin is not None
            while process.poll() is None and not self._ending.wait(0.2):
                pass
            process.stdin.close()
            process.wait()
            return f"{_cause(Path(log))}; its log is {log}"
        except OSError as error:
            return str(error)

    def stop(self) -> None:
        """Let the command end."""
        self._ending.set()


class Replica:
    """Runs on the node of rank 0: keeps a server running until `stop`, or until a start fails.

    A life lasts from a start of the server's processes to their end. Each life registers in a file of its own, so that
    a life that ends late does not remove the address of the next one.
    """

    def __init__(self, name: str, replicas: Replicas, folder: str, here: str, version: str) -> None:
        self._name, self._replicas, self._folder = name, replicas, Path(folder)
        self._here, self._version = here, version
        if replicas.nodes > 1:
            self._ray: Any = importlib.import_module("ray")
            self._group = self._ray.util.get_current_placement_group()
        self._state: tuple[ReplicaState, str] = ("starting", "")
        self._ending = threading.Event()
        # A daemon thread: a worker that Ray ends must not wait for the server.
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def state(self) -> tuple[ReplicaState, str]:
        """(state, the address of a ready server or the cause of a failed start)."""
        return self._state

    def stop(self) -> None:
        """End the server; returns when it has ended."""
        self._ending.set()
        self._thread.join()

    def _keep(self) -> None:
        try:
            while not self._ending.is_set() and self._live_once():
                self._state = ("lost", "")
        except OSError as error:
            self._state = ("failed", str(error))

    def _live_once(self) -> bool:
        """Run one life of the server, on all its nodes. Returns whether to start it again; if not, the start failed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # A worker that was killed may have left its address behind.
        self._unregister()
        others = [self._start_member(rank) for rank in range(1, self._replicas.nodes)]
        try:
            # Members answer once their nodes have room.
            addresses = [member.address.remote().future() for member in others]
            while not self._ending.is_set() and wait(addresses, LOOK_SECONDS).not_done:
                pass
            if self._ending.is_set() or any(map(_lost, addresses)):
                # Without this pause `_keep` would start members again and again while a node stays away.
                self._ending.wait(LOOK_SECONDS)
                return True
            return self._run_members(others)
        finally:
            self._unregister()
            for member in others:
                self._ray.kill(member)

    def _run_members(self, others: Sequence[Any]) -> bool:
        """Run the server on its nodes, whose members have all answered. Returns whether to start it again.

        others: the members of rank 1 and above, in order.
        """
        replicas, own = self._replicas, NodeMember(self._here, self._version)
        # Each life has a file of its own: a file left by a killed life would look as if this life were ready.
        file = self._folder / f"{self._name}@{secrets.token_hex(4)}.url"
        values = {FILE: str(file)} | ({} if replicas.host is None else {HOST: replicas.host})
        if others:
            values |= {HEAD: own.address(), PORT: str(_free_port())}
        runs = [_in_thread(own.run, replicas.words, values | {RANK: "0"}, str(self._folder / f"{self._name}.log"))]
        for rank, member in enumerate(others, 1):
            log = str(self._folder / f"{self._name}.rank-{rank}.log")
            runs.append(member.run.remote(replicas.words, values | {RANK: str(rank)}, log).future())
        ready = False
        while not self._ending.is_set() and not wait(runs, 0.2, FIRST_COMPLETED).done:
            if not ready and file.exists():
                ready = True
                self._state = ("ready", file.read_text("utf-8").strip().replace("\n", ", "))
        first = next((rank for rank, run in enumerate(runs) if run.done()), None)
        own.stop()
        for member in others:
            member.stop.remote()
        runs[0].result()
        unfinished = wait(runs, STOP_SECONDS).not_done
        # The next start would fail too only if the command ended by itself before it was ready.
        if ready or first is None or unfinished or any(map(_lost, runs)):
            return True
        error = runs[first].exception()
        where = f"rank {first}: " if others else ""
        cause = str(runs[first].result()) if error is None else visible(str(error), 500)
        self._state = ("failed", where + cause)
        return False

    def _start_member(self, rank: int) -> Any:
        """Start the member with this rank, an actor, in its part of the placement group."""
        placed = _placing(self._group, rank, self._replicas.resources)
        # The actor that runs this code owns the member, so Ray ends the member when this actor ends. The member has two
        # threads: one runs the command, the other answers `stop`.
        return self._ray.remote(NodeMember).options(**placed, max_concurrency=2).remote(self._here, self._version)

    def _unregister(self) -> None:
        for left in self._folder.glob(f"{self._name}@*.url"):
            left.unlink(missing_ok=True)


def _in_thread(work: Callable[..., str], *given: object) -> Future[str]:
    """Start `work` in a daemon thread, so that the process can end before it. Returns the future of its result."""
    future = Future[str]()

    def run() -> None:
        try:
            future.set_result(work(*given))
        except BaseException as error:  # noqa: BLE001  the future hands the error to its reader
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _lost(run: Future[str]) -> bool:
    """Whether a call ended because its worker or node was lost; False if the actor's own start failed."""
    error: Any = run.exception() if run.done() else None
    if error is None:
        return False
    actor_error = importlib.import_module("ray.exceptions").RayActorError
    return isinstance(error, actor_error) and not error.actor_init_failed


def _free_port() -> int:
    with socket.create_server(("", 0)) as free:
        return int(free.getsockname()[1])


def _listening(address: str) -> str:
    """The address on which a server listens, for a node that Ray knows by `address`."""
    loopback = address.startswith("127.") or address in ("localhost", "::1")
    return EVERYWHERE if loopback else address


def _cause(log: Path) -> str:
    """Why the command ended, by the line of its log that begins with "harness: "; without such a line, the last
    line."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    reasons = [line for line in lines if line.startswith("harness: ")] or lines
    return visible(reasons[-1].removeprefix("harness: "), 500) if reasons else "it ended without a message"
