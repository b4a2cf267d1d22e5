"""The commit of the code that makes a run."""

from __future__ import annotations

import functools
import json
from importlib import metadata

from harness.core import channel
from harness.core.installation import DISTRIBUTION, PACKAGE
from server_launchers.machine.programs import NOT_INSTALLED, ask


@functools.cache
def commit() -> str | None:
    """The first 12 digits of this code's git commit, for a run's manifest; None if neither git nor pip recorded one.

    It ends in "-dirty" if a file of the checkout differs from the commit. A checkout asks git; an installation from a
    git URL reads what pip wrote into `direct_url.json` (PEP 610).
    """
    git = PACKAGE.parent / ".git"  # a folder, or a file in a worktree
    if git.exists():
        argv = ("git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
        answer = ask(argv, seconds=5, GIT_DIR=str(git), GIT_WORK_TREE=str(PACKAGE.parent))
        if not answer.problem:
            return answer.output.strip()
        if answer.reason != NOT_INSTALLED:
            channel.warn(f"the commit of this code is unknown: {answer.problem}")
    try:
        origin = json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        return str(origin["vcs_info"]["commit_id"])[:12]
    except (metadata.PackageNotFoundError, KeyError, ValueError, OSError):
        return None
