"""The headings under which a command's help shows its options, in order."""

from __future__ import annotations

from harness.presets import grading, sampling

ASKED = "Questions"
WHOM = "Server"
SAMPLING = sampling.HEADING
REQUEST = "Requests"
BATCH = "Batch API"
LIMITS = "Limits"
MONEY = "Prices"
RESUMING = "Resuming"
OUTPUTS = "Outputs of another tool"
GRADING = grading.HEADING
JUDGE = "Judge"
OUTPUT = "Output"

ORDER = (ASKED, WHOM, SAMPLING, REQUEST, BATCH, LIMITS, MONEY, RESUMING, OUTPUTS, GRADING, JUDGE, OUTPUT)
