"""Checksum of the settings that the points of one curve in a tracker share.

They are the settings that the samples of a run must share, and which questions are asked: those in which the steps of a
table's curve may not differ either (`harness.runs.recorded_settings.differences_in_curve`). So the number of samples,
the model, the seed, the server and the pace are not among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from harness.asking.options import RunOptions
from harness.asking.options.request import HowReasoned, HowWritten, WhichPreset
from harness.asking.options.what import WhatIsAsked
from harness.core.codec import digest
from harness.core.files import open_named
from harness.core.options import options_of
from harness.presets.sampling import SamplingOptions
from harness.runs.recorded_settings import FREE_IN_A_CURVE

_PARTS = (WhatIsAsked, WhichPreset, SamplingOptions, HowReasoned, HowWritten)
"""The parts of a run's options that say what is asked, and how."""

_HOW_OFTEN = ("samples",)
"""Options among these parts that only say how many samples each question gets."""

_CARRIED_BY = ("stream", "max_tokens_field")
"""Options among these parts that change the form of a request, and no reply."""

_SHARED = {"api"}.union(*map(options_of, _PARTS)).difference(_HOW_OFTEN, _CARRIED_BY, FREE_IN_A_CURVE)
"""Names of the options that the points of a curve share."""


def checksum(by_benchmark: Mapping[str, RunOptions]) -> str:
    """Checksum of the settings of a curve, 8 hexadecimal digits. by_benchmark: name of each benchmark in the sweep →
    the options of one of its cells on the curve.
    """
    shared = {
        name: [{key: value for key, value in options.plain.items() if key in _SHARED}, contents(options)]
        for name, options in sorted(by_benchmark.items())
    }
    return digest(shared)[:8]


def contents(options: RunOptions) -> list[str]:
    """Checksums of the files that the options name: of questions, and of benchmark cards; empty for a benchmark's name,
    which is no file.
    """
    return [_content(path) for path in (options.data, *options.benchmarks) if path]


def _content(path: str) -> str:
    """Checksum of a file; empty if `path` is no file that can be read."""
    try:
        with open_named(Path(path)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        # A benchmark's name is no file; the name itself stands in the options.
        return ""
