"""The headings under which a command's help shows its options, in order."""

from __future__ import annotations

from harness.presets import grading, sampling

ASKED = "What is asked"
WHOM = "Of whom"
SAMPLING = sampling.HEADING
REQUEST = "The request"
BATCH = "By the batch"
LIMITS = "Limits"
MONEY = "Money"
RESUMING = "Resuming"
OUTPUTS = "A file of outputs"
GRADING = grading.HEADING
JUDGE = "A judge"
OUTPUT = "Output"

ORDER = (ASKED, WHOM, SAMPLING, REQUEST, BATCH, LIMITS, MONEY, RESUMING, OUTPUTS, GRADING, JUDGE, OUTPUT)
