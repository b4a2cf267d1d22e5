"""The headings under which a command's help shows its options, in their order."""

from __future__ import annotations

ASKED = "What is asked"
WHOM = "Of whom"
SAMPLING = "Sampling"
REQUEST = "The request"
BATCH = "By the batch"
LIMITS = "Limits"
MONEY = "Money"
RESUMING = "Resuming"
OUTPUTS = "A file of outputs"
GRADING = "Grading"
JUDGE = "A judge"
OUTPUT = "Output"

ORDER = (ASKED, WHOM, SAMPLING, REQUEST, BATCH, LIMITS, MONEY, RESUMING, OUTPUTS, GRADING, JUDGE, OUTPUT)
