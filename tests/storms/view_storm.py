"""A storm over `harness view`: verdicts corrected by hand while the viewer is killed and its disk fails.

Every correction that the page was told is stored stands in the run afterwards, once; the run can be shown and scored.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

from tests.storms.campaigns import N_QUESTIONS, N_SAMPLES
from tests.storms.storm import ENDS, SIGNALS, Broken, Play, ended, hindered, leftovers, played, start

MAX_CORRECTIONS = 40
LINE = ["view", "one", "--port", "0", "--no-open"]


def stored(folder: Path) -> list[str]:
    """The reasons of the corrections that stand in the run, read by code of its own."""
    path = folder / "one" / "sums" / "overrides.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["why"] for line in lines]


class Page:
    """A visitor of the viewer, who sends corrections."""

    def __init__(self, address: str) -> None:
        self.base, _, query = address.strip().partition("/?")
        self.cookies = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self.cookies.open(f"{self.base}/?{query}", timeout=10).read()

    def correct(self, question: str, sample: int, why: str) -> bool:
        """Whether the viewer says that the correction is stored."""
        body = {"run": "one", "benchmark": "sums", "question": question, "sample": sample, "verdict": "correct"}
        data = json.dumps({**body, "who": "Ada", "why": why}).encode()
        request = urllib.request.Request(f"{self.base}/api/override", data, {"X-Harness-View": "1"})
        try:
            return bool(json.loads(self.cookies.open(request, timeout=20).read())["stored"])
        except (OSError, http.client.HTTPException):  # killed, or its disk refused the line
            return False


def visit(play: Play, child: subprocess.Popen[str], number: int, most: int) -> set[str]:
    """Send up to `most` corrections to a viewer that was started; the reasons of those that it acknowledged."""
    assert child.stdout is not None
    address = child.stdout.readline()
    acknowledged: set[str] = set()
    with contextlib.suppress(OSError, http.client.HTTPException):
        page = Page(address) if address.startswith("http") else None
        for i in range(most if page else 0):
            question, sample = f"q{play.chance.randrange(N_QUESTIONS)}", play.chance.randrange(N_SAMPLES)
            why = f"reason {number}.{i}"
            if page and page.correct(question, sample, why):
                acknowledged.add(why)
            if child.poll() is not None:
                break
    return acknowledged


def check(play: Play, acknowledged: set[str]) -> None:
    """Raises `Broken` where an acknowledged correction is lost, or any stands there twice."""
    reasons = stored(play.folder)
    if lost := acknowledged - set(reasons):
        raise Broken(f"corrections were acknowledged and are lost: {sorted(lost)}")
    if twice := [why for why, n in Counter(reasons).items() if n > 1]:
        raise Broken(f"corrections stand there twice: {twice}")


def disturb(play: Play) -> None:
    acknowledged: set[str] = set()
    for number in range(play.chance.randint(2, 4)):
        how = hindered(play)
        child = start(play, LINE, how)
        acknowledged |= visit(play, child, number, play.chance.randrange(MAX_CORRECTIONS))
        ending = play.chance.choice(list(SIGNALS))
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(ending)
        if how.prefix:  # a signal to strace is none to what it traces
            time.sleep(0.2)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        ended(play, child, (*SIGNALS[ending], -9, 137, *ENDS))
        check(play, acknowledged)
        play.counts["viewers ended"] += 1
    play.counts["corrections"] += len(acknowledged)
    for line in (["show", "one"], ["score", "one", "--workers", "1"], ["doctor", "one"]):
        ended(play, start(play, line), (0,))
    last = start(play, LINE)
    corrections = visit(play, last, 9, 3)
    last.send_signal(signal.SIGINT)
    ended(play, last, (0, 130, -2))
    if len(corrections) != 3:
        raise Broken("an undisturbed viewer did not store three corrections")
    check(play, acknowledged | corrections)
    leftovers(play)


def play(seed: int) -> Counter[str]:
    """The storm of this seed. Raises `Broken`; its folder is then kept and named."""
    with played("show", seed, 0.0) as storm:
        storm.chance = random.Random(seed)
        try:
            disturb(storm)
        except Broken as broken:
            raise Broken(f"view: {broken} (seed {seed}, kept in {storm.folder})") from None
    storm.counts["campaign: view"] += 1
    return storm.counts
