"""Servers on the nodes of a Ray cluster: an actor each, in a placement group of its own, that runs `harness serve`.

Ray begins an actor again whose worker or node was lost, wherever its group finds room. The command that an actor runs
ends with the actor's end of a pipe, and its guard then ends the engine: also where a worker is killed.

A server over several nodes has a group with one part a node. Its actor is on the node of rank 0 and has an actor of its
own on each other node, which ends with it. Where one of them is lost or its process ends, it ends all and begins anew.

    state      meaning                                                    next
    waiting    the actor has not answered: its group waits for room       starting
    starting   the command runs, and has not registered                   ready, failed
    ready      its address stands in the folder of endpoints              lost
    lost       a process or a node ended after it was ready               starting
    failed     the command ended before it was ready: the end             none
    gone       the actor is not in the cluster any more: the end          none
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
"""Namespace of our actors in the cluster; an actor and its group are called NAME-NUMBER."""

STOP_SECONDS = 60.0
"""Seconds that an actor may take to end its server before Ray ends the actor."""

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a node that Ray knows by a loopback address has no better one

LOG_BYTES = 16 * 1024
"""Bytes at the end of a log in which the cause of a failed start is sought."""

Stand = Literal["waiting", "starting", "ready", "lost", "failed", "gone"]


def resources_of(spec: ServerSpec, gpus: float | None) -> dict[str, float]:
    """The resources that Ray holds on each node of a server of `spec`. gpus: for the whole server; None: as many
    devices as its parallel sizes need.

    Raises `UsageError` for a server that runs elsewhere, or that names its devices itself.
    """
    from server_launchers.engines import table as engines

    launcher = engines.launcher_of(spec)
    if launcher.command is None:
        raise UsageError(f"{option('on')} starts servers, and this one runs elsewhere")
    if spec.devices is not None:
        raise UsageError(f"Ray says which: give {option('gpus_per_replica')} instead", field="server.devices")
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
    """Replicas on a cluster, ended with the `with` block. detach: they stay, also when this process ends.

    Raises `UsageError` where no cluster answers, where the name is taken, or no node has what a replica needs.
    """

    def __init__(self, on: str, replicas: Replicas, watcher: Watcher, *, detach: bool = False) -> None:
        self._replicas, self._watcher, self._detach = replicas, watcher, detach
        self._cluster = Cluster(on)
        self._ray: Any = importlib.import_module("ray")
        self._names = [f"{replicas.name}-{number}" for number in range(1, replicas.count + 1)]
        self._stands: list[tuple[Stand, str]] = [("waiting", "")] * replicas.count
        try:
            self._check()
            self._actors = [self._begun(name) for name in self._names]
        except BaseException:
            self._close(started=False)
            raise
        self._pending: dict[Any, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close(started=self._detach and kind is None)

    def until_ready(self) -> None:
        """Return when all are ready. Raises `ServerError` naming the first that cannot be started, and its log."""
        while True:
            self._look()
            for index, (stand, detail) in enumerate(self._stands):
                if stand in ("failed", "gone"):
                    raise ServerError(f"{self._label(index)} did not start: {detail}")
            if all(stand == "ready" for stand, _ in self._stands):
                return

    def hold(self) -> None:
        """Say what is lost and ready again, until none is left. Raises `ServerError` then."""
        while any(stand not in ("failed", "gone") for stand, _ in self._stands):
            self._look()
        raise ServerError("no server is left; their logs are in " + visible(str(self._replicas.folder)))

    def _check(self) -> None:
        if taken := [name for name in _named(self._ray) if _fleet(name) == self._replicas.name]:
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

    def _begun(self, name: str) -> Any:
        life = "detached" if self._detach else None
        replicas = self._replicas
        group = self._ray.util.placement_group(
            [dict(replicas.resources)] * replicas.nodes,
            strategy="STRICT_SPREAD",
            name=f"{NAMESPACE}/{name}",
            lifetime=life,
        )
        # -1 is without end; by default Ray would not begin an actor again.
        actor = self._ray.remote(Replica).options(
            **_placing(group, 0, replicas.resources), name=name, namespace=NAMESPACE, lifetime=life, max_restarts=-1
        )
        return actor.remote(name, replicas, str(replicas.folder.absolute()), str(Path.cwd()), __version__)

    def _look(self) -> None:
        """Ask each replica that has answered for its state, and report what has changed."""
        waiting = set(self._pending.values())
        # An actor that waits for room has not answered yet; another call would only queue behind the first.
        for index, actor in enumerate(self._actors):
            if index not in waiting and self._stands[index][0] not in ("failed", "gone"):
                self._pending[actor.stands.remote()] = index
        time.sleep(LOOK_SECONDS)
        with self._cluster.reached():
            done, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=LOOK_SECONDS)
        for ref in done:
            index = self._pending.pop(ref)
            try:
                now = self._ray.get(ref)
            except Exception:  # noqa: BLE001  what Ray says of an actor that is not there
                with self._cluster.reached():
                    is_there = self._names[index] in _named(self._ray)
                now = ("lost", "") if is_there else ("gone", "it was stopped")
            if now[0] == "starting" and self._stands[index][0] == "ready":
                now = ("lost", "")  # it was lost between two looks
            if now != self._stands[index]:
                self._stands[index] = now
                self._report(index)

    def _report(self, index: int) -> None:
        stand, detail = self._stands[index]
        label = self._label(index)
        if stand == "ready":
            self._watcher.standing(Sentence(f"{label} is ready at {visible(detail, 200)}"))
        elif stand == "lost":
            self._watcher.warn(Sentence(f"{label} was lost; it is started again"))
        elif stand in ("failed", "gone"):
            self._watcher.warn(Sentence(f"{label} has ended: {visible(detail, 500)}"))

    def _label(self, index: int) -> str:
        return f"replica {index + 1} of {self._replicas.count}"

    def _close(self, *, started: bool) -> None:
        try:
            if not started and not self._cluster.gone:
                _end(self._ray, self._names)
        finally:
            self._cluster.close()


def stop(on: str, name: str | None, *, everything: bool = False) -> list[str]:
    """End the servers called `name`, the only ones there are, or all; returns the names. Raises `UsageError`."""
    with Cluster(on):
        ray: Any = importlib.import_module("ray")
        actors = _named(ray)
        fleets = sorted({_fleet(actor) for actor in actors})
        stopped = fleets if everything else [fleet for fleet in fleets if name in (None, fleet)]
        if not everything and len(stopped) != 1:
            which = f"say which servers to stop, or {option('all')}" if name is None else f"none is called {name}"
            raise UsageError(f"{which}; on the cluster are: {', '.join(fleets) or 'none'}")
        _end(ray, [actor for actor in actors if _fleet(actor) in stopped])
        return stopped


def _fleet(actor: str) -> str:
    return actor.rpartition("-")[0]


def _named(ray: Any) -> list[str]:
    """The actors of ours that the cluster has."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    return [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE]


def _end(ray: Any, names: Sequence[str]) -> None:
    """End these actors, their servers and their placement groups. Placed actors are told to stop first; the others are
    killed without that."""
    groups = importlib.import_module("ray.util.placement_group")
    named = {f"{NAMESPACE}/{name}": name for name in names}
    placed, ours = set(), []
    for number, group in ray.util.placement_group_table().items():
        if (name := named.get(group["name"])) is not None and group["state"] != "REMOVED":
            ours.append(groups.PlacementGroup(ray.PlacementGroupID(bytes.fromhex(number))))
            placed |= {name} if group["state"] == "CREATED" else set()
    actors = {}
    for name in names:
        with contextlib.suppress(ValueError):  # it has ended
            actors[name] = ray.get_actor(name, namespace=NAMESPACE)
    stopping = [actor.stop.remote() for name, actor in actors.items() if name in placed]
    if stopping:
        ray.wait(stopping, num_returns=len(stopping), timeout=STOP_SECONDS)
    # Killed after a stop in order, too: the actor would stay and hold its part of the group.
    for actor in actors.values():
        ray.kill(actor, no_restart=True)
    for group in ours:
        ray.util.remove_placement_group(group)


def _placing(group: Any, part: int, resources: Mapping[str, float]) -> dict[str, Any]:
    """Options of an actor in that part of the group, with all that it holds."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    # Ray refuses CPU and GPU among the resources: they have arguments of their own.
    rest = {kind: amount for kind, amount in resources.items() if kind not in ("CPU", "GPU")}
    return {
        "num_cpus": resources["CPU"],
        "num_gpus": resources.get("GPU", 0),
        "resources": rest or None,
        "scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=part),
    }


class NodeMember:
    """On a node: the process of a server there. It ends with `stop`, and with the worker."""

    def __init__(self, here: str, version: str) -> None:
        self._here, self._version = here, version
        self._ending = threading.Event()

    def address(self) -> str:
        """By which Ray knows this node."""
        return str(importlib.import_module("ray.util").get_node_ip_address())

    def run(self, words: Sequence[str], values: Mapping[str, str], log: str) -> str:
        """Run the server's command until it ends; why it ended, with its log.

        values: the values of HOST, FILE … by word; the node itself adds NODE, and HOST where it is missing.
        """
        if self._version != __version__:
            return f"the node has version {__version__} of this package, the caller {self._version}"
        own = self.address() if HOST not in values or NODE in words else ""
        values = {HOST: _listening(own), NODE: own, **values}
        argv = isolated.command("harness", "serve", *(values.get(word, word) for word in words))
        # Ray sets it to the processors of the actor; an engine counts for itself.
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
    """On the node of rank 0: keeps a server, again where a process of it ends after it was ready, until `stop`.

    Each life registers in a file of its own: one that ends late takes no other's address away.
    """

    def __init__(self, name: str, replicas: Replicas, folder: str, here: str, version: str) -> None:
        self._name, self._replicas, self._folder = name, replicas, Path(folder)
        self._here, self._version = here, version
        if replicas.nodes > 1:
            self._ray: Any = importlib.import_module("ray")
            self._group = self._ray.util.get_current_placement_group()
        self._stand: tuple[Stand, str] = ("starting", "")
        self._ending = threading.Event()
        # A daemon: a worker that Ray ends must not wait for the end of the server's life.
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def stands(self) -> tuple[Stand, str]:
        """How it stands, with its address or the cause of its end."""
        return self._stand

    def stop(self) -> None:
        """End the server; returns when it has ended."""
        self._ending.set()
        self._thread.join()

    def _keep(self) -> None:
        try:
            while not self._ending.is_set() and self._lived():
                self._stand = ("lost", "")
        except OSError as error:
            self._stand = ("failed", str(error))

    def _lived(self) -> bool:
        """One life of the server, on all its nodes. Returns whether another is to follow."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # A worker that was killed may have left its address behind.
        self._unregister()
        others = [self._other(rank) for rank in range(1, self._replicas.nodes)]
        try:
            there = [member.address.remote().future() for member in others]  # they wait for room
            while not self._ending.is_set() and wait(there, LOOK_SECONDS).not_done:
                pass
            if self._ending.is_set() or any(map(_lost, there)):
                # A pause, or a node that stays away would make the caller try again without rest.
                self._ending.wait(LOOK_SECONDS)
                return True
            return self._served(others)
        finally:
            self._unregister()
            for member in others:
                self._ray.kill(member)

    def _served(self, others: Sequence[Any]) -> bool:
        """The rest of a life, whose nodes are all there."""
        replicas, own = self._replicas, NodeMember(self._here, self._version)
        # A new name for each life: the file of a life that was killed would look like this one's readiness.
        file = self._folder / f"{self._name}@{secrets.token_hex(4)}.url"
        values = {FILE: str(file)} | ({} if replicas.host is None else {HOST: replicas.host})
        if others:
            values |= {HEAD: own.address(), PORT: str(_free_port())}
        runs = [_beside(own.run, replicas.words, values | {RANK: "0"}, str(self._folder / f"{self._name}.log"))]
        for rank, member in enumerate(others, 1):
            log = str(self._folder / f"{self._name}.rank-{rank}.log")
            runs.append(member.run.remote(replicas.words, values | {RANK: str(rank)}, log).future())
        ready = False
        while not self._ending.is_set() and not wait(runs, 0.2, FIRST_COMPLETED).done:
            if not ready and file.exists():
                ready = True
                self._stand = ("ready", file.read_text("utf-8").strip().replace("\n", ", "))
        first = next((rank for rank, run in enumerate(runs) if run.done()), None)
        # All members end with the first: an engine over several nodes hangs where one of them is gone.
        own.stop()
        for member in others:
            member.stop.remote()
        runs[0].result()
        late = wait(runs, STOP_SECONDS).not_done
        if ready or first is None or late or any(map(_lost, runs)):
            return True
        error = runs[first].exception()
        where = f"rank {first}: " if others else ""
        self._stand = ("failed", where + (str(runs[first].result()) if error is None else visible(str(error), 500)))
        return False

    def _other(self, rank: int) -> Any:
        """An actor for the node of that rank, where its part of the group is."""
        placed = _placing(self._group, rank, self._replicas.resources)
        # It ends with this one; the second thread is for `stop`.
        return self._ray.remote(NodeMember).options(**placed, max_concurrency=2).remote(self._here, self._version)

    def _unregister(self) -> None:
        for left in self._folder.glob(f"{self._name}@*.url"):
            left.unlink(missing_ok=True)


def _beside(work: Callable[..., str], *given: object) -> Future[str]:
    """The result of `work` in a thread that does not hold up the end of the process."""
    future = Future[str]()

    def run() -> None:
        try:
            future.set_result(work(*given))
        except BaseException as error:  # noqa: BLE001  whoever waits is to hear of it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _lost(run: Future[str]) -> bool:
    """Whether the worker or the node went away; False where the member refused to begin."""
    error = run.exception() if run.done() else None
    actor_error = importlib.import_module("ray.exceptions").RayActorError if error is not None else ()
    return isinstance(error, actor_error) and not error.actor_init_failed


def _free_port() -> int:
    with socket.create_server(("", 0)) as free:
        return int(free.getsockname()[1])


def _listening(address: str) -> str:
    """Where a node listens that Ray knows by `address`."""
    loopback = address.startswith("127.") or address in ("localhost", "::1")
    return EVERYWHERE if loopback else address


def _cause(log: Path) -> str:
    """The line in which the command says why it ended."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    reasons = [line for line in lines if line.startswith("harness: ")] or lines
    return visible(reasons[-1].removeprefix("harness: "), 500) if reasons else "it ended without a word"
