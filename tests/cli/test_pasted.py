"""A command line of another tool becomes one that our command takes; nothing is run, and no key is printed.

The lines are made from the tables and from docs/moving.md.

For: harness.cli.foreign.command_line, harness.cli.help.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.foreign.command_line import quoted
from harness.cli.foreign.tables import COMMON, FlagTable, tables
from harness.cli.main import cli
from harness.core.inert import visible
from harness.testing import FakeServer, scripted
from tests.budget import share_of

MOVING = Path(__file__).parents[2] / "docs" / "moving.md"
TOOLS = {name: table for name, table in tables().items() if table.starts}
KEY = "sk-canary0123456789abcdef"
TEXTS = {
    "--base-url": "{url}", "--model": "org/m", "MODEL": "org/m", "--thinking": "high", "--header": "A:b",
    "--prompt": "qwen_boxed", "--out": "r", "--system-prompt": "none", "--stop": "x", "--extra-body": '{"a": 1}',
    "--quantization": "fp8", "--reasoning-parser": "qwen3", "--devices": "0", "--chat-template": "t.jinja",
    "--host": "h", "--served-name": "n", "--attention-backend": "x", "--device": "cpu", "--ids": "demo-01",
    "--dtype": "auto", "SOURCE": "f.jsonl", "URL": "{url}", "BENCHMARKS": "demo", "--max-model-len": "8192",
}  # fmt: skip
"""Our flag → a value for it; a number for any other."""
WITH_COMMON = ("lm-eval run", "vllm-openai", "lighteval accelerate")
"""The commands with which the flags of `common` are tried."""
APART = (
    "--data", "--question-key", "--answer-key", "--batch", "--provider", "--api", "--node-rank", "--head-address",
    "--head-port", "--nodes", "--thinking-tokens", "--json",
)  # fmt: skip
"""Flags that need another one, or exclude the benchmark or the server of the lines here."""


def pasted(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def flags_of(table: FlagTable, start: str, url: str) -> list[tuple[str, ...]]:
    """A flag of each name in the table and in `common` that is an option here, with a value that it takes."""
    flags = []
    for name, answer in {**(tables()[COMMON].answers if start in WITH_COMMON else {}), **table.answers}.items():
        ours, plain = answer.text.split(" ")[0], name.partition("=")[0]
        # Neither the questions of a fixed benchmark nor a server at a fixed address may be here.
        fixed = (ours == "BENCHMARKS" and "{benchmarks}" not in answer.text) or "http:" in answer.text
        if not (answer.is_reason or fixed) and answer.text and ours not in APART and not re.search(r"[:*.]", plain):
            exact = name.partition("=")[2].replace("[Ff]", "F").replace("*/*", "./t.jinja").replace("*.*", "t.jinja")
            value = (
                exact.replace("*", "org/m") or TEXTS.get(ours, "1").replace("{url}", url) if "{" in answer.text else ""
            )
            flags.append((f"--{plain}", *([value] if value else [])))
    return flags


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (name, start)
        for name, one in TOOLS.items()
        for start in {ours: start for start, ours in one.starts.items()}.values()
    ],
)
def test_each_printed_command_is_one_that_we_take(
    name: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jinja").write_text("")
    table, tried = TOOLS[name], set[str]()
    with FakeServer(scripted("4", model="org/m")) as server:
        for flag in share_of(flags_of(table, start, server.base_url)):
            need = {
                "serve": ["--model", "org/m"],
                "run": ["--tasks", "demo", "--model", "org/m", "--model-args", "model=org/m"],
                "score": ["--input-path", "x"],
            }
            line = [*start.split(), *need.get(table.starts[start].split()[0], []), *flag]
            ours = pasted(*(["python", "-m", *line] if "." in line[0] else line)).stdout.strip()
            words = shlex.split(ours)[1:]
            if not words or words[0] not in ("serve", "run") or ours in tried:
                continue
            tried.add(ours)
            server_words = [] if {"--base-url", "--serve"} & {*words} else ["--base-url", server.base_url]
            at = words.index("--") if "--" in words else len(words)
            words[at:at] = ["--dry-run", *(server_words if words[0] == "run" else [])]
            done = pasted(*words)
            assert done.exit_code == 0, (line, ours, done.output, done.exception)


@pytest.mark.parametrize(
    "line", re.findall(r"^(?:python|vllm|lm_eval|inspect|evalscope|ns eval|opencompass).*", MOVING.read_text(), re.M)
)
def test_each_line_of_the_page_is_known(line: str) -> None:
    done = pasted(*shlex.split(line))
    assert (done.exit_code, done.stdout[:8]) == (0, "harness "), done.output
    assert pasted(line.replace(" --", " \\\n  --")).output == done.output


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("A=b vllm serve m && x | lm_eval --tasks gsm8k", "A=b harness serve vllm m\nA=b harness run gsm8k\n"),
        ("export A='b c'\nlm-eval -t gsm8k 2>&1 | tee log", "A='b c' harness run gsm8k\n"),
        ("uv run --with x /v/bin/lm_eval --tasks aime24,nosuch,GSM8K", "harness run aime24,gsm8k\n"),
        ("docker run --gpus all vllm/vllm-openai:v1 --model m -tp 2 --x=1", "harness serve vllm m --tp 2 -- --x 1\n"),
        ("lm_eval --tasks 'gsm8k;reboot' nosuch", ""),
        ("vllm serve '$(reboot)' --dtype '`id`'", "harness serve vllm '$(reboot)' --dtype '`id`'\n"),
    ],
)
def test_a_line_is_read_as_a_shell_reads_it(line: str, ours: str) -> None:
    done = pasted(line)
    assert (done.stdout, done.exit_code) == (ours, 0 if ours else 2), done.output


@pytest.mark.parametrize(
    "line",
    [
        f"lm_eval --tasks gsm8k --model_args api_key={KEY},model=m", f"OPENAI_API_KEY={KEY} lm_eval --tasks gsm8k",
        f"vllm serve m --api-key {KEY} --hf-token={KEY}", f"sgl-eval run gsm8k --base-url http://u:{KEY}@h/v1",
        f"evalscope eval --datasets gsm8k --api-key {KEY} --generation-config '{{\"api_key\": \"{KEY}\"}}'",
        f"inspect eval gsm8k -M api_key={KEY} --extra-headers Authorization:{KEY}", f"vllm serve m -- --x {KEY}",
    ],
)  # fmt: skip
def test_no_key_is_printed(line: str) -> None:
    done = pasted(line)
    assert (done.exit_code, KEY in done.output) == (0, False), done.output


@given(st.text(min_size=1))
def test_a_word_stays_one_harmless_word(word: str) -> None:
    shown = quoted(word)
    assert visible(shown) == shown
    assert shown.startswith("$'") or shlex.split(shown) == [word]


@pytest.mark.parametrize("value", ["[" * 90_000, '{"a":' * 90_000, '{"chat_template_kwargs": 3}', "a=1,b", "{{", "\0"])
def test_a_hostile_value_ends_in_a_line(value: str) -> None:
    options = ["--generation-config", value, "--generation-config", '{"chat_template_kwargs": {"a": 1}}']
    done = pasted("evalscope", "eval", "--datasets", "gsm8k", *options)
    assert (done.exit_code, done.stdout[:18]) == (0, "harness run gsm8k "), done.exception


def test_an_engines_line_after_serve_is_told_its_place() -> None:
    done = pasted("serve", "--", "vllm", "serve", "m")
    assert (done.exit_code, "as in `harness vllm serve MODEL`" in done.output) == (2, True), done.output


def test_all_foreign_flags_of_a_line_are_answered_at_once() -> None:
    said = pasted(
        "run", "demo", "--n_samples", "4", "--tensor-parallel-size", "2", "--nosuchflag", "--log_samples"
    ).output
    for part in (
        "Use --samples instead",
        "use --serve-option tp=VALUE",
        "--nosuchflag. `cli run",
        "Every sample is always stored",
    ):
        assert part in said
