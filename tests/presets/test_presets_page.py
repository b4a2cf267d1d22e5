"""docs/reference/presets.md holds every preset with its sources, as the data have them."""

from __future__ import annotations

import re
from pathlib import Path

from harness.presets import preset as presets
from harness.presets.preset import Preset, Sourced, SourcedSampling
from server_launchers.engines import table as engines

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "presets.md"
READ = {"page": "verified", "quoted": "verified from a quotation", "no": "not verified"}
ADVICE = {"no_greedy": "no greedy decoding"}
BEGIN, END = "<!-- tables made from harness/presets/files -->", "<!-- /tables -->"


def source(fact: Sourced | SourcedSampling) -> str:
    """Where a fact stands, and how it was read."""
    linked = re.sub(r"(https?://[^ ,;)]+)", r"<\1>", fact.source)
    return f"Source ({READ[fact.read]}): {linked}"


def label(names: str) -> str:
    """The engine whose own names of parsers stand under that key, as people write it."""
    summary = next(one.summary for one in engines.every().values() if one.parsers == names)
    return summary.removeprefix("Start ").partition(" (")[0]


def section(preset: Preset) -> list[str]:
    """What the page says of one preset."""
    lines = [f"### {preset.name}", ""]
    if preset.models:
        lines.append(f"- models: {', '.join(f'`{pattern}`' for pattern in preset.models)}")
    if (sampling := preset.sampling) is not None:
        sent = ", ".join(f"{name} {value:g}" for name, value in sampling.plain.sent().items())
        ranges = ", ".join(f"{name} {least:g} to {most:g}" for name, (least, most) in sampling.range.items())
        allowed = f"; no warning for {ranges}" if ranges else ""
        whose = "" if sampling.card else ", not from a model card"
        lines.append(f"- sampling{whose}: {sent}{allowed}. {source(sampling)}")
    if (context := preset.context) is not None:
        lines.append(f"- context: {context.tokens:,}. {source(context)}")
    if (parser := preset.reasoning_parser) is not None:
        rest = "".join(
            f"; {label(engine)} {f'calls it {name}' if name else 'has none'}" for engine, name in parser.but.items()
        )
        lines.append(f"- reasoning parser: {parser.name}{rest}. {source(parser)}")
    for advice in preset.advice:
        lines.append(f"- {ADVICE.get(advice.rule, advice.rule.replace('_', ' '))}: {advice.text}. {source(advice)}")
    return [*lines, ""]


def tables() -> str:
    """Everything between the two marks of the page."""
    return "\n".join([BEGIN, "", *(line for name in presets.names() for line in section(presets.load(name))), END])


def test_the_page_has_every_preset_as_the_data_have_it() -> None:
    found = re.search(re.escape(BEGIN) + ".*" + re.escape(END), PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    assert found[0] == tables(), "run `python -m tests.presets.test_presets_page`"


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + tables() + rest.partition(END)[2], "utf-8")
