"""The Hugging Face Hub: an entry on a model's page for each benchmark.

An entry is a file below `.eval_results/` in the model's repository (https://huggingface.co/docs/hub/eval-results); the
package huggingface_hub writes its fields. It identifies its leaderboard by the data set and the task in the data set's
`eval.yaml`. These files contain no questions or replies.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import yaml

from harness.benchmarks import catalog, task_names
from harness.benchmarks.card import HubSource
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.installation import __version__
from harness.core.number_text import count_noun, in_percent
from harness.core.sanitize import visible
from harness.exports import ExportedBenchmark, Exporter, File
from harness.scoring.stats import Estimate
from harness.tools.table import recorded


def hub(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write `.eval_results/<benchmark>_reasoning_harness.yaml` for each benchmark with a leaderboard.

    Raises `UsageError` if there is none.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml  # Imported late: few commands need it.

    files, tasks = [], task_names.names_of("hub")
    for benchmark in benchmarks:
        card, score = catalog.shipped_card_of(benchmark.name, benchmark.record.settings), benchmark.score
        own_data = benchmark.record.settings.get(catalog.DATA) is not None
        if card is None or card.name not in tasks or not isinstance(card.source, HubSource):
            reason = f"of benchmarks without a known leaderboard on the Hub ({', '.join(tasks)})"
        elif score.accuracy is None or score.n_missing or score.n_questions != card.questions or own_data:
            reason = "of an incomplete or changed benchmark (no leaderboard accepts these)"
        else:
            date, value = benchmark.manifest.created[: len("2026-01-31")], round(100 * score.accuracy.value, 10)
            notes = _notes(benchmark, card.name, score.accuracy)
            entry = EvalResultEntry(card.source.id, tasks[card.name], value, date=date, notes=notes)
            # A distinct name, because the repository may contain its authors' entry for the same benchmark.
            path = out / ".eval_results" / f"{card.name}_reasoning_harness.yaml"
            text = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=110)
            write_atomically(path, text.encode())
            files.append(File(path, 1))
            continue
        benchmark.left_out[reason] = len(benchmark.grades)
    if not files:
        reasons = dict.fromkeys(reason for benchmark in benchmarks for reason in benchmark.left_out)
        raise UsageError(
            f"there are no results to export in the hub format, only samples {'; '.join(reasons)}", field="to"
        )
    return files


def _notes(benchmark: ExportedBenchmark, name: str, accuracy: Estimate) -> str:
    """Both intervals in percent, the graders, and the command that repeats the run, with its settings.

    The command contains no address, header or key; for another tool's outputs there is no command. name: the card's
    name.
    """
    identity, samples, score = benchmark.record.identity, benchmark.record.plan.samples, benchmark.score
    spans = {"same": accuracy.sampling, "other": accuracy.question}
    intervals = [f"{in_percent(s[0])}–{in_percent(s[1])} ({which} questions)" for which, s in spans.items() if s]
    template, seed = identity.get("chat_template_kwargs"), identity.get("seed")
    body = (identity.get("extra_body") or {}) | ({"chat_template_kwargs": template} if template else {})
    given = {**(identity.get("sampling") or {}), "seed": "none" if seed is None else seed, "extra_body": body or None}
    given |= {option: identity.get(option) for option in ("api", "prompt", "system_prompt")}
    offered = recorded(identity)
    given["tool"] = None if offered is None else offered.spelling
    words = ["harness", "run", f"{name}:{samples}", "--model", benchmark.manifest.model]
    for option, value in given.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            text = json.dumps(each) if isinstance(each, dict) else str(each)
            words += [f"--{option.replace('_', '-')}", text] if each is not None else []
    tool = f"; with the tool {visible(json.dumps(identity['tool']), 500)}" if identity.get("tool") else ""
    again = "sampled by another tool" if benchmark.record.imported else f"repeat: {visible(shlex.join(words), 2000)}"
    warned = f"; {visible('; '.join(score.sentences), 2000)}" if score.sentences else ""
    return (
        f"reasoning-harness {__version__}: {count_noun(score.n_questions, 'question')} × {samples}; 95% interval "
        f"{', '.join(intervals) or 'unknown'}; graded by {visible(', '.join(score.graders), 300)}{tool}{warned}; "
        f"{again}"
    )


EXPORTER = Exporter(kind="results", write=hub, withholds=False)
