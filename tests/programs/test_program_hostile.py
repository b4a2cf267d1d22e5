"""Hostile programs: none is accepted, none disturbs another verdict, nothing is left.

The suite runs a few; `make test-programs` runs all (`HARNESS_PROGRAM_ATTACKS`).
"""

from __future__ import annotations

import os
import time
from itertools import islice
from pathlib import Path

import psutil

from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import ProgramDecision
from tests.programs.hostile import ENDLESS, PAYLOADS, Attack, attacks
from tests.programs.sandboxed import called, cell, checked, needs_sandbox, script

pytestmark = needs_sandbox
__all__ = ["cell"]

N_ATTACKS = int(os.environ.get("HARNESS_PROGRAM_ATTACKS", "25"))


def verdict(cell: SandboxCell, attack: Attack) -> ProgramDecision:
    """The verdict on the attack: the right answer would be 42."""
    if attack.style == "stdin":
        return script(cell, attack.code, ("1", "42"), seconds=0.5, memory_mb=512)
    if attack.style == "calls":
        return called(cell, attack.code, ("1", "42"), seconds=0.5)
    return checked(cell, attack.code, "assert f(1) == 42", seconds=0.5)


def test_there_are_more_than_a_thousand_and_all_differ() -> None:
    codes = {(attack.style, attack.code) for attack in attacks()}
    assert len(codes) > 1_000
    assert len(PAYLOADS) + len(ENDLESS) >= 70


def test_no_attack_is_accepted_disturbs_or_stays(cell: SandboxCell, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("here")
    accepted, undecided, disturbed, restarts = [], [], [], 0
    script(cell, "print(42)", ("", "42"))
    bwrap = cell._process
    for attack in islice(attacks(), N_ATTACKS):
        decision = verdict(cell, attack)
        accepted += [attack.name] if decision.outcome == "correct" else []
        undecided += [(attack.name, decision.failure)] if decision.outcome == "undecided" else []
        restarts += cell._process is not bwrap
        bwrap = cell._process
        if cell._process is not None:
            names = [p.name() for p in psutil.Process(cell._process.pid).children(recursive=True)]
            disturbed += [(attack.name, names)] if len(names) > 2 else []
        if script(cell, "print(int(input()) + 1)", ("1", "2")).outcome != "correct":
            disturbed.append((attack.name, ["a right program"]))
        if checked(cell, "def f(x): return x", "assert f(1) == 2").outcome != "wrong":
            disturbed.append((attack.name, ["a wrong program"]))
    assert accepted == []
    assert undecided == []
    assert disturbed == []
    assert restarts == 0, "no attack brought a sandbox down"
    assert canary.read_text() == "here"


def test_memory_of_the_host_stays_within_the_bound(cell: SandboxCell) -> None:
    before, least = psutil.virtual_memory().available, 1 << 62
    began = time.monotonic()
    for code in (PAYLOADS["memory in parts"], PAYLOADS["mmap"], PAYLOADS["disk in parts"]):
        script(cell, code, ("", "42"), seconds=0.5, memory_mb=256)
        least = min(least, psutil.virtual_memory().available)
    assert time.monotonic() - began < 250
    assert before - least < 1 << 30
