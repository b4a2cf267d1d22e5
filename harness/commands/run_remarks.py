"""The sentences that hold for all scores of a run, in the tables of a sweep and in a report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from harness.commands import same_replies
from harness.core.errors import StoreError
from harness.core.inert import visible
from harness.preparing import model_files
from harness.runs import Manifest, RunFolder

FACTS = "files."
"""Beginning of the names of a server's facts about its model's files."""


def remarks() -> Callable[[RunFolder], list[str]]:
    """A function that returns sentences about files of a run's model that are no longer those of the samples, and about
    a step that repeats the step before; often none. Only the first such step gets the advice.
    """
    repeated: list[str] = []

    def of_run(folder: RunFolder) -> list[str]:
        sentences = same_replies.remarks(folder)
        shown = [sentence.removesuffix(same_replies.ADVICE) if repeated else sentence for sentence in sentences]
        repeated.extend(sentences)
        return [*changed_model(folder), *shown]

    return of_run


def changed_model(folder: RunFolder) -> list[str]:
    """A sentence if the files of the run's model are no longer those that made its samples, by the checksums that a run
    on a server that the harness started records; none if they are gone, or lie elsewhere.

    A training that is started again, for example, writes the same folders once more.
    """
    with contextlib.suppress(StoreError, OSError):
        provenance = Manifest.load(folder).provenance
        names = {name for session in provenance.sessions[-1:] for name in session.endpoints.values()}
        facts = {key: value for name in names for key, value in provenance.servers[name].model.items()}
        before = {key.removeprefix(FACTS): str(value) for key, value in facts.items() if key.startswith(FACTS)}
        sources = {provenance.servers[name].model.get("source") for name in names} - {None}
        if before and len(sources) == 1 and (path := Path(str(sources.pop()))).exists():
            now = model_files.fingerprints(str(path))
            # Runs of earlier versions may record a checksum of the whole weights.
            compared = sorted({*before, *now} - {"weights_sha256"})
            if changed := [visible(name, 80) for name in compared if before.get(name) != now.get(name)]:
                return [
                    f"{visible(str(path), 200)} changed after its samples were made ({', '.join(changed)}): its scores "
                    "are those of the former files"
                ]
    return []
