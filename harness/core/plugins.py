"""The registry through which the core finds code that it does not import: our extensions and others' plug-ins.

An extension is a module below `harness/extensions/`. Its path determines its kind and name:
`exporters/lm_eval.py` is the exporter `lm-eval`, and the object is its attribute `EXPORTER`. A new file is a new
extension; the core works without that folder.

A plug-in is an object in another installed package, found through entry points: the package names it in its metadata,
for example as `mine = "package.module:function"` in the group `harness.graders`.

    kind                                                        extensions      plug-ins
    grader prompt source launcher provider answer command       none            yes
    exporter tracker cluster                                    yes             yes

A name is looked up among the extensions first, then among the plug-ins. An extension or a plug-in is imported when it
is first used, so a broken one stops only the commands that use it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness.core.errors import UNSET, HelperFailed, UsageError, near_names
from harness.core.sanitize import visible
from harness.core.validation import M, validated

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal[
    "grader", "prompt", "source", "launcher", "exporter", "provider", "tracker", "answer", "cluster", "command"
]
"""The kinds of plug-ins that another package may offer."""

ExtensionKind = Literal["exporter", "tracker", "cluster"]
"""The kinds of extensions; each has a folder below `harness/extensions/`, named after the kind's plural."""

KINDS: dict[Kind, str] = {
    "grader": "function(answer, question) that returns whether the answer is correct",
    "prompt": "mapping or `Prompt` with a template",
    "source": "function(address, split) that returns rows as mappings",
    "launcher": "function(model) that returns a command line as a list of words, one of which contains {port}",
    "exporter": "function(benchmarks, folder) that writes files there and returns their paths (or an `Exporter`)",
    "provider": "mapping that describes a hosted provider",
    "tracker": "function(run: Tracked) that sends a scored run to a tracker and returns the URL of its page",
    "answer": "module that decides answers of a kind (`harness.grading.external_graders.AnswerPackage`)",
    "cluster": "object that runs shards on a cluster (`harness.commands.cluster_interface.ClusterExtension`)",
    "command": "command of the package click",
}
"""Kind of a plug-in → what it is. The group of its entry points is `harness.<kind>s`."""


class Plugin(NamedTuple):
    """A plug-in that an installed package offers.

    name: the name that users select it by. value: `module:attribute` of its object. package: name and version.
    """

    kind: Kind
    name: str
    value: str
    package: str


@cache
def extensions(kind: ExtensionKind) -> tuple[str, ...]:
    """The sorted names of our extensions of a kind; does not import them."""
    modules = iter_modules([str(Path(__file__).parent.parent / "extensions" / f"{kind}s")])
    return tuple(sorted(module.name.replace("_", "-") for module in modules))


def extension(kind: ExtensionKind, name: str) -> Any:
    """The object of our extension of that kind and name, with dashes or underscores; None if there is none."""
    name = name.replace("_", "-")
    if name not in extensions(kind):
        return None
    module = import_module(f"harness.extensions.{kind}s.{name.replace('-', '_')}")
    return getattr(module, kind.upper())


class LateFunctions:
    """An extension whose functions are imported from modules of its package when they are first used.

    modules: name of a function → its module.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package, self._modules = package, modules

    def __getattr__(self, name: str) -> Any:
        if name not in self._modules:
            raise AttributeError(name)
        return getattr(import_module(f"{self._package}.{self._modules[name]}"), name)


def names(kind: Kind) -> list[str]:
    """The sorted names of the installed plug-ins of a kind; does not import them."""
    return sorted(_points(kind))


def list_plugins() -> list[Plugin]:
    """All installed plug-ins, sorted by kind and name; does not import them."""
    return [
        Plugin(kind, name, point.value, _package(point))
        for kind in KINDS
        for name, same_name in sorted(_points(kind).items())
        for point in same_name
    ]


def value_of(kind: Kind, name: str) -> str | None:
    """`module:attribute` of a plug-in, which is not imported; None if no package offers that name. Raises `UsageError`
    if two packages offer it.
    """
    point = _point(kind, name)
    return None if point is None else point.value


def load(kind: Kind, name: str) -> Any:
    """The object of a plug-in; None if no package offers that name.

    Raises a `UsageError` that names the package if the plug-in cannot be imported or two packages offer the name.
    """
    point = _point(kind, name)
    if point is None:
        return None
    try:
        return point.load()
    # A plug-in may call sys.exit() when it is imported.
    except (Exception, SystemExit) as error:
        raise _unusable_error(kind, point, f"{type(error).__name__}: {visible(str(error), 200)}") from error


def call(kind: Kind, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a plug-in's function and return its result. Whatever it raises becomes a one-sentence `UsageError`."""
    try:
        return function(*arguments)
    except UsageError:
        # Already a sentence for the user.
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the {kind} {visible(name, 100)!r} failed: {type(error).__name__}: {visible(str(error), 200)}"
        ) from error


@contextmanager
def failures(field: str | None = None, value: object = UNSET) -> Iterator[None]:
    """A `with` block that calls a package which knows no error of ours: its `ValueError` becomes a `UsageError` for
    this field, its `RuntimeError` a `HelperFailed`; both have a sentence for the user.
    """
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error), field=field, value=value) from error
    except RuntimeError as error:
        raise HelperFailed(str(error)) from error


def function(kind: Kind, name: str) -> Callable[..., Any] | None:
    """A plug-in that is a function, wrapped in `call`; None if no package offers that name. Raises `UsageError` if it
    cannot be imported or two packages offer it.
    """
    offered = load(kind, name)
    if offered is None:
        return None
    if not callable(offered):
        raise wrong_kind_error(kind, name, offered)
    return partial(call, kind, name, offered)


def call_problem(function: Callable[..., Any], arguments: Sequence[str]) -> str | None:
    """Why a function cannot be called with these arguments; None if it can, or if it does not state its parameters."""
    try:
        parameters = inspect.signature(function)
    except ValueError:  # a function written in C may not state its parameters
        return None
    try:
        parameters.bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        return f"{name}{parameters} cannot be called with ({', '.join(arguments)}): {error}"
    return None


def record(kind: Kind, name: str, offered: object, model: type[M]) -> M:
    """The record that a plug-in offers, as an instance of its class or a mapping of its fields. Raises `UsageError`."""
    if isinstance(offered, model):
        return offered
    if not isinstance(offered, Mapping):
        raise wrong_kind_error(kind, name, offered)
    return validated(model, {"name": name, **offered}, f"the plug-in {kind} {visible(name, 100)!r}")


def wrong_kind_error(kind: Kind, name: str, offered: object) -> UsageError:
    """The error for a plug-in whose object (`offered`) does not have the type that its kind requires."""
    point = _point(kind, name)
    assert point is not None
    return _unusable_error(kind, point, f"expected a {KINDS[kind]}, found {type(offered).__name__}")


def unknown_name_error(kind: Literal["exporter", "tracker"], noun: str, name: str, *, field: str) -> UsageError:
    """The error for a name that no extension or plug-in has. noun: the user's word for the kind."""
    ours = extensions(kind)
    listing = ", ".join([*ours, *names(kind)])
    return UsageError(
        f"unknown {noun}; expected one of {listing}.{near_names(name, ours)} To add one, write a plug-in "
        "(examples/plugin_package).",
        field=field,
        value=name,
    )


def _unusable_error(kind: Kind, point: EntryPoint, why: str) -> UsageError:
    """The error for a plug-in that cannot be used; it names the package."""
    return UsageError(
        f"the {kind} {visible(point.name, 100)!r} from the package {visible(_package(point), 100)} cannot be used "
        f"({visible(point.value, 100)}): {why}"
    )


def _point(kind: Kind, name: str) -> EntryPoint | None:
    """The entry point of a plug-in; None if no package offers that name. Raises `UsageError` if two offer it."""
    points = _points(kind).get(name, ())
    if len(points) > 1:
        packages = " and ".join(sorted(visible(_package(point), 100) for point in points))
        raise UsageError(f"{packages} both provide a {kind} named {visible(name, 100)!r}: uninstall one of them")
    return points[0] if points else None


@cache
def _points(kind: Kind) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Name → the entry points that installed packages declare under it, for one kind of plug-in."""
    from importlib.metadata import entry_points  # a slow import, which most commands do not need

    points: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=f"harness.{kind}s"):
        if point not in points.get(point.name, ()):  # a package may be on the path twice
            points[point.name] = (*points.get(point.name, ()), point)
    return points


def _package(point: EntryPoint) -> str:
    """The name and version of the package that declares the entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
