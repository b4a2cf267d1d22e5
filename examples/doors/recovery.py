"""Print how much of a model's accuracy a quantized copy keeps: `python recovery.py results/base results/gptq-4bit`.

Recovery is the copy's accuracy divided by the base's, as in the tables of GPTQModel and llm-compressor. Its interval is
for the same questions, sampled again.
"""

from __future__ import annotations

import sys

import harness


def lines(base: str, copy: str) -> list[str]:
    """Return a line for each benchmark that is in both scored runs."""
    found = []
    for comparison in harness.compare([base, copy]):
        paired = comparison.decision.paired
        if (ratio := paired.recovery) is None or ratio.sampling is None:
            continue  # the base may have no correct answer
        low, high = (100 * end for end in ratio.sampling)
        found.append(
            f"{paired.benchmark}: recovery {100 * ratio.value:.1f}% ({low:.1f} to {high:.1f}): "
            f"{100 * paired.first_accuracy:.1f}% of {100 * paired.second_accuracy:.1f}%, "
            f"{comparison.decision.verdict}"
        )
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join([*lines(*sys.argv[1:]), ""]))
