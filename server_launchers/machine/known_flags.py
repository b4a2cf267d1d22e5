"""The long options that a version of an engine knows: from the installed engine, else from recorded lists.

Each file `<engine>-<version>.txt` in `engines/flag_lists/` records one version. A version in between uses the newest
list that is not newer than itself: options are added more often than removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from server_launchers.errors import LaunchError, near_name
from server_launchers.folders import cache_folder
from server_launchers.machine.programs import output_of
from server_launchers.program import version_key

HELP_SECONDS = 180.0
"""Seconds that an engine may take to print its help; vLLM needs 13 on an idle machine."""
MIN_OPTIONS = 20
"""Least number of options in a complete help text."""
_OPTION = re.compile(r"(?<![\w-])--[a-z0-9][a-z0-9_-]*")
_RECORDED = Path(__file__).parent.parent / "engines" / "flag_lists"


class Flags(msgspec.Struct, frozen=True):
    """The options of one engine version."""

    engine: str
    version: str
    names: frozenset[str]
    from_engine: bool
    """Whether the engine itself was asked; a recorded list may belong to a nearby version."""

    def __contains__(self, flag: str) -> bool:
        return flag.replace("_", "-") in self.names

    def check(self, argv: Iterable[str]) -> None:
        """Raise LaunchError for the first long option in `argv` that the engine does not know; suggest a near name."""
        for word in argv:
            if word == "--":
                return
            # vLLM also accepts --some_flag for --some-flag, and --config.key for a key of --config.
            flag = word.split("=", 1)[0].split(".", 1)[0].replace("_", "-")
            if not flag.startswith("--") or self._knows(flag):
                continue
            near = near_name(flag, self.names)
            others = [
                version for version in recorded_versions(self.engine) if flag in recorded_flags(self.engine, version)
            ]
            hints = [f"did you mean {near}?"] if near else []
            if others:
                hints.append(f"known to {self.engine} {', '.join(others)}")
            if not self.names:
                hints = [f"no options of it are recorded in {_RECORDED.name}"]
            raise LaunchError(
                f"{self.engine} {self.version} has no option {flag}; {'; '.join(hints) or 'see its --help'}"
            )

    def _knows(self, flag: str) -> bool:
        # Some help texts list --x but not --no-x, although argparse accepts both.
        if flag in self.names or (flag.startswith("--no-") and f"--{flag[5:]}" in self.names):
            return True
        # argparse also accepts the beginning of an option, if it is the beginning of one option only.
        return sum(name.startswith(flag) for name in self.names) == 1


def recorded_versions(engine: str) -> list[str]:
    """The versions of `engine` whose command-line options are recorded in a file here, oldest first."""
    versions = [path.stem.removeprefix(f"{engine}-") for path in _RECORDED.glob(f"{engine}-*.txt")]
    return sorted(versions, key=version_key)


@cache
def recorded_flags(engine: str, version: str | None = None) -> Flags:
    """The recorded options that fit `version` best; None means the newest list."""
    versions = recorded_versions(engine)
    if not versions:
        return Flags(engine, version or "unknown", frozenset(), from_engine=False)
    nearest = versions[-1]
    if version is not None:
        older = [candidate for candidate in versions if version_key(candidate) <= version_key(version)]
        nearest = older[-1] if older else versions[0]
    text = (_RECORDED / f"{engine}-{nearest}.txt").read_text(encoding="utf-8")
    names = frozenset(line for line in text.splitlines() if line.startswith("--"))
    return Flags(engine, version or nearest, names, from_engine=False)


def ask(engine: str, version: str, program: Sequence[str]) -> Flags:
    """The options that `program --help` names, cached by version; the recorded options if the program fails.

    program: the words that start the engine.
    """
    # The options of a version never change, and printing the help takes many seconds, because the engine imports torch.
    cached = cache_folder() / "flags" / f"{engine}-{version}.txt"
    try:
        names = frozenset(cached.read_text(encoding="utf-8").split())
    except OSError:
        names = frozenset()
        # vLLM's plain --help leaves options out.
        for helping in ("--help=all", "--help"):
            names = _options_in_help([*program, helping])
            if len(names) >= MIN_OPTIONS:
                break
        else:
            return recorded_flags(engine, version)
        try:
            cached.parent.mkdir(parents=True, exist_ok=True)
            cached.write_text("\n".join(sorted(names)) + "\n", encoding="utf-8")
        except OSError:
            pass  # Without a cache, the next start only takes longer.
    if version in recorded_versions(engine):
        # The recorded lists come from the engine's sources and hold options that its help leaves out.
        names |= recorded_flags(engine, version).names
    return Flags(engine, version, names, from_engine=True)


def _options_in_help(argv: Sequence[str]) -> frozenset[str]:
    flags = _OPTION.findall(output_of(*argv, seconds=HELP_SECONDS))
    return frozenset(option.replace("_", "-") for option in flags)
