"""How much of a model's accuracy a quantised copy keeps: `python recovery.py results/base results/gptq-4bit`.

Recovery is the copy's accuracy over the base's, the number of the tables of GPTQModel and llm-compressor. Its interval
is that of the difference on the same questions, over the base's accuracy (whose own error hardly matters for small
losses).
"""

from __future__ import annotations

import sys

import harness


def lines(base: str, copy: str) -> list[str]:
    """A line for each benchmark that both scored runs have."""
    found = []
    for comparison in harness.compare([base, copy]):
        paired = comparison.decision.paired
        of_base = paired.second_accuracy
        low, high = (100 * (1 + end / of_base) for end in paired.difference.sampling)
        found.append(
            f"{paired.benchmark}: recovery {100 * paired.first_accuracy / of_base:.1f} % ({low:.1f} to {high:.1f}): "
            f"{100 * paired.first_accuracy:.1f} % of {100 * of_base:.1f} %, {comparison.decision.verdict}"
        )
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join([*lines(*sys.argv[1:]), ""]))
