"""docs/reference/providers.md holds the tables that the provider files make, word for word.

`python -m tests.client.test_providers_page` writes them anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from harness.client.address import providers
from harness.client.address.providers import Fact, Provider

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "providers.md"
BEGIN, END = "<!-- tables made from harness/client/address/provider_files -->", "<!-- end of the tables -->"


def mark(fact: Fact, text: str) -> str:
    """`text`, with a question mark where the fact was not read on a page."""
    return text if fact.checked else f"{text} (?)"


def row(provider: Provider) -> str:
    address = provider.address
    url = str(address.base_url).rstrip("/") if address.base_url else f"`--base-url`, ends in `{address.path}`"
    header = "" if address.key_header == "Authorization" else f", header `{address.key_header}`"
    cells = (
        f"`{provider.name}`",
        mark(address, url),
        f"`{address.key_variable}`{header}",
        "; ".join(mark(one, f"`{one.field}`") for one in provider.max_tokens),
        mark(provider.seed, provider.seed.support + (f" as `{provider.seed.field}`" * (provider.seed.field != "seed"))),
        mark(provider.reasoning, provider.reasoning.field),
    )
    return "| " + " | ".join(cells) + " |"


def section(provider: Provider) -> list[str]:
    lines = [f"### {provider.name}", "", f"{provider.label}.", ""]
    for switch in provider.thinking:
        spelt = "; ".join(
            f"{level} → {f'`{json.dumps(body)}`' if body else 'nothing'}" for level, body in switch.levels.items()
        )
        lines.append(f"- `--thinking` for {models(switch)}: {mark(switch, spelt)}")
    for budget in provider.thinking_tokens:
        where = f" on {budget.engine}" if budget.engine else ""
        spelt = f"`{json.dumps(budget.body_fields(budget.least)).replace(f': {budget.least}', ': N')}`"
        least = f", N {budget.least} at least" if budget.least > 1 else ""
        lines.append(f"- `--thinking-tokens N` for {models(budget)}{where}: {mark(budget, spelt)}{least}")
    for refusal in provider.refused:
        names = ", ".join(f"`{name}`" for name in refusal.parameters)
        when = f" under --thinking {'/'.join(refusal.thinking)}" if refusal.thinking else ""
        lines.append(f"- {mark(refusal, refusal.effect)} for {models(refusal)}{when}: {names}")
    if (batches := provider.batches) is not None:
        most = (
            f"{batches.most_requests:,} requests and {batches.most_bytes // 10**6} MB a file, within {batches.window}"
        )
        lines.append(f"- `--batch`: {mark(batches, most)}")
    lines += [f"- {mark(note, note.text)}" for note in provider.notes]
    lines += [f"- Pages: {', '.join(f'[{name}]({url})' for name, url in provider.pages.items())}", ""]
    return lines


def models(fact: providers.ForModels) -> str:
    """The patterns of a rule, as they are written."""
    shown = "all models" if fact.models == ("*",) else ", ".join(f"`{pattern}`" for pattern in fact.models)
    but_not = ", ".join(f"`{pattern}`" for pattern in fact.but_not)
    return f"{shown} but {but_not}" if but_not else shown


def tables() -> str:
    """Everything between the two marks of the page."""
    all_providers = [providers.load(name) for name in providers.names()]
    head = "| provider | address | key | length | seed | reasoning text |\n| --- | --- | --- | --- | --- | --- |"
    body = [head, *(row(one) for one in all_providers), "", *(line for one in all_providers for line in section(one))]
    return "\n".join([BEGIN, "", *body, END])


def test_the_tables_of_the_page_are_those_of_the_data() -> None:
    text = PAGE.read_text("utf-8")
    tables_of_page = re.search(re.escape(BEGIN) + ".*" + re.escape(END), text, re.DOTALL)
    assert tables_of_page is not None
    assert tables_of_page[0] == tables(), "run `python -m tests.client.test_providers_page`"


def test_every_flag_that_the_page_names_exists() -> None:
    from harness.cli.run import command

    flags = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text("utf-8"))) <= flags


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + tables() + rest.partition(END)[2], "utf-8")
