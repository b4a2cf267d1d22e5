"""Makes the pictures in the documentation from real runs on the embedded server, in a real Chromium.

    python -m tools.screenshots docs/images             # the pictures that the pages show
    python -m tools.screenshots docs/images --every DIR  # and each page in light and dark, 1280 and 400 px, to look at
    python -m tools.screenshots docs/images --runs DIR   # in pieces: keep the runs; what was interrupted goes on
    python -m tools.screenshots docs/images --runs DIR --only report --only view-sample

The runs take minutes, and the pictures a few seconds each; each step is printed with the seconds since the start. There
are two runs of the demo benchmark: `thinking`, with SmolLM2, a chat template that opens a think block, and a grammar
that closes it (the model of 135 million parameters never closes one by itself), and `plain`, with the same model and
neither.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.terminal_theme import MONOKAI

from harness.generation.network.control import progress_of
from harness.generation.run_progress import Progress
from harness.progress.display import render_lines
from harness.progress.lines import panel
from harness.progress.running_score import RunningScore, RunningScores
from harness.runs import RunFolder
from server_launchers.embedded import weights
from server_launchers.lifecycle import launch
from tests.browser.chromium import Browser, browsing
from tests.embedded import MODEL, THINKING_TEMPLATE, embedded_spec
from tests.viewer.running import viewing

if TYPE_CHECKING:
    from server_launchers.lifecycle.launch import RunningServer

GRAMMAR = (
    r'root ::= [A-Za-z0-9 .,+*=/()\n-]{20,140} "\n</think>\n\n" [A-Za-z0-9 .,+*=/()-]{3,50} '
    r'" The answer is \\boxed{" [0-9A-E/.]{1,5} "}."'
)
"""Grammar that forces a reply to consist of a think block, a sentence, and a box."""

STARTED = time.monotonic()
SEQUENCES = 8
"""Number of replies that the server generates at the same time."""
COLUMNS = 100
Scores = dict[str, RunningScore]
RUNS = ("thinking", "plain")
REPORTS = {"report": ("plain",), "report-two": ("plain", "thinking")}


def command(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start `harness WORDS` in `folder`."""
    environment = {**os.environ, "HARNESS_STATE": str(folder / "state")}
    return subprocess.Popen([sys.executable, "-m", "harness", *words], cwd=folder, env=environment)


def run(folder: Path, name: str, server: RunningServer, questions: int, samples: int) -> None:
    """Sample and score the demo. Afterwards, the file `NAME.seen.json` contains the progress and scores that the run
    reported at one point in its second half, and the file `NAME.made` marks the run as complete.
    """
    url = server.base_urls[0]
    thinking = ["--extra-body", json.dumps({"grammar": GRAMMAR})]
    plain = ["--extra-body", json.dumps({"chat_template_kwargs": {"enable_thinking": False}})]
    words = [f"demo:{samples}", "--limit", str(questions), "--base-url", url, "--model", MODEL]
    words += ["--out", f"results/{name}", "--max-tokens", "96"]
    running = command(folder, "run", *words, *(thinking if name == "thinking" else plain))
    following: subprocess.Popen[bytes] | None = None
    while running.poll() is None:
        time.sleep(0.5)
        run_folder = folder / "results" / name
        if following is None and (run_folder / "manifest.json").exists():
            following = command(folder, "score", str(run_folder), "--follow")
        progress = progress_of(RunFolder(run_folder)) if (run_folder / "manifest.json").exists() else None
        if progress is not None and progress.done < 0.7 * progress.total:
            seen = progress, RunningScores(RunFolder(run_folder)).current(["demo"])
            (folder / f"{name}.seen.json").write_bytes(msgspec.json.encode(seen))
    if running.returncode or following is None or following.wait():
        sys.exit(f"the run {name} came to nothing")
    (folder / f"{name}.made").touch()


def terminal_picture(progress: Progress, scores: Scores, path: Path) -> None:
    """Draw the terminal display of `progress` as an SVG file."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(render_lines(panel(progress, COLUMNS, 30, scores)))
    console.save_svg(str(path), title="harness run", theme=MONOKAI)


def picture(browser: Browser, path: Path, height: int | None = None) -> None:
    """Save a picture of the page: its first `height` CSS pixels, or the whole page."""
    size = browser.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    height = min(size["height"], height or 4000)
    # Content below the window is not drawn until it is visible, and a scroll bar would cut off the right edge.
    window = {"width": size["width"], "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    time.sleep(0.5)
    if end := browser.script("return document.querySelector('main')?.getBoundingClientRect().bottom + 20"):
        height = min(height, int(end))
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
    request = {"captureBeyondViewport": True, "clip": clip}
    path.write_bytes(base64.b64decode(browser.driver.execute_cdp_cmd("Page.captureScreenshot", request)["data"]))


PAGES = {
    "view-runs": "/",
    "view-run": "/run/thinking",
    "view-questions": "/run/thinking/demo?sort=fraction",
    "view-question": "/run/thinking/demo/demo-01",
    "view-sample": "/run/thinking/demo/demo-01/s0",
    "view-compare": "/compare/plain/thinking/demo",
    "view-side-by-side": "/compare/plain/thinking/demo/demo-01/s0",
}
"""The viewer's pages: picture name → URL path."""

SHOWN = ("terminal", "view-sample", "report")
"""The pictures that the documentation shows."""


def main() -> None:
    """Make the runs and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--every", type=Path, help="folder for each page in each colour and width")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--runs", type=Path, help="folder to keep the runs in; those that it holds are not made again")
    names = ("terminal", *PAGES, *REPORTS)
    parser.add_argument("--only", action="append", choices=names, metavar="PAGE", help=f"only this: {', '.join(names)}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.runs or Path(temporary)
        folder.mkdir(exist_ok=True)
        make(folder, given.questions, given.samples)
        given.images.mkdir(exist_ok=True)
        shoot(folder, Path(temporary), given.images, given.every, given.only or (names if given.every else SHOWN))


def say(step: str) -> None:
    """Print a step with the seconds since the start."""
    sys.stderr.write(f"{time.monotonic() - STARTED:4.0f} s: {step}\n")


def make(folder: Path, questions: int, samples: int) -> None:
    """Make the runs that `folder` does not contain yet, and the reports."""
    os.environ["HARNESS_STATE"] = str(folder / "state")
    if missing := [name for name in RUNS if not (folder / f"{name}.made").exists()]:
        say("the server starts")
        template = str(THINKING_TEMPLATE)
        spec = embedded_spec(weights.fetch(MODEL), name="pictures", chat_template=template, max_sequences=SEQUENCES)
        with launch.launch(spec) as server:
            for name in missing:
                say(f"the run {name}, {questions * samples} samples")
                run(folder, name, server, questions, samples)
    for name, runs in REPORTS.items():
        if command(folder, "report", *(f"results/{run}" for run in runs), "--out", name).wait():
            sys.exit("no report")


def shoot(folder: Path, temporary: Path, images: Path, every: Path | None, names: Collection[str]) -> None:
    """Take the pictures with these names of the runs in `folder`."""
    if "terminal" in names:
        seen = (folder / "thinking.seen.json").read_bytes()
        terminal_picture(*msgspec.json.decode(seen, type=tuple[Progress, Scores]), images / "terminal.svg")
        say("terminal.svg")
    if not {*names} - {"terminal"}:
        return
    with viewing(folder, "results") as viewer, browsing(temporary / "profile") as browser:
        looks = [(width, dark) for width in (1280, 400) for dark in (False, True)] if every else [(1280, False)]
        for width, dark in looks:
            browser.look(width=width, dark=dark)
            into = every or images
            suffix = f"-{width}-{'dark' if dark else 'light'}" if every else ""
            into.mkdir(exist_ok=True)
            for name, address in PAGES.items():
                if name not in names:
                    continue
                browser.look(width=width, dark=dark)
                browser.open(viewer, address)
                time.sleep(1)
                if name == "view-sample":
                    browser.press("r", "w")
                    time.sleep(2)
                picture(browser, into / f"{name}{suffix}.png", None if every else 800)
                say(f"{name}{suffix}.png")
            for name in [name for name in REPORTS if name in names]:
                browser.look(width=width, dark=dark)
                browser.driver.get((folder / name / "report.html").absolute().as_uri())
                picture(browser, into / f"{name}{suffix}.png", None if every else 1100)
                say(f"{name}{suffix}.png")


if __name__ == "__main__":
    main()
