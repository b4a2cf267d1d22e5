"""All options of a run, a judge, a scoring and the other verbs; each option is declared once, here.

A file holds the options of one subject; `run` and `judge` combine them and check what must go together.
`harness.core.options` turns a declaration into a flag, a keyword, a key of a file and a check. All packages above may
import this one.
"""

from __future__ import annotations

from harness.asking.options.deciding import (
    CompareOptions,
    PlanBasis,
    PlanOptions,
    RaceRules,
    VerifyOptions,
)
from harness.asking.options.finished import AuditOptions, ExportOptions, GradeOptions, MergeOptions, ReportOptions
from harness.asking.options.judge import JudgeOptions
from harness.asking.options.probing import ProbeOptions
from harness.asking.options.score import JudgingCosts, OutputsOptions, ScoreOptions
from harness.asking.options.verbs import RunOptions
from harness.asking.options.whom import WhichServer
from harness.presets.grading import AnyK, GradingOptions

__all__ = [
    "AnyK",
    "AuditOptions",
    "CompareOptions",
    "ExportOptions",
    "GradeOptions",
    "GradingOptions",
    "JudgeOptions",
    "JudgingCosts",
    "MergeOptions",
    "OutputsOptions",
    "PlanBasis",
    "PlanOptions",
    "ProbeOptions",
    "RaceRules",
    "ReportOptions",
    "RunOptions",
    "ScoreOptions",
    "VerifyOptions",
    "WhichServer",
]
