"""A benchmark of srt-slurm (https://github.com/NVIDIA/srt-slurm): copy this file into its `src/srtctl/benchmarks`,
import it in the `__init__.py` there, and add this to a recipe:

    benchmark: {type: reasoning-harness, env: {BENCHMARKS: "gpqa_diamond:4,aime25:16"}}

The container needs `harness` on its PATH. Runs, scores and `report.html` are in `OUT`. A retried job resumes.
"""

from __future__ import annotations

from typing import Any

from srtctl.benchmarks.base import BenchmarkRunner, register_benchmark

SCRIPT = """set -e
harness run "$BENCHMARKS" --base-url "$1" --model "$MODEL_NAME" --out "$OUT"
harness score "$OUT"
harness report "$OUT"
"""


@register_benchmark("reasoning-harness")
class HarnessRunner(BenchmarkRunner):
    """Measures accuracies of the served model, with intervals."""

    @property
    def name(self) -> str:
        return "reasoning-harness"

    @property
    def script_path(self) -> str:
        return "<harness>"

    def validate_config(self, config: Any) -> list[str]:
        return (
            []
            if config.benchmark.env.get("BENCHMARKS")
            else ["benchmark.env.BENCHMARKS is required, such as aime25:16"]
        )

    def build_command(self, config: Any, runtime: Any) -> list[str]:
        del config
        return ["bash", "-c", SCRIPT, "harness", f"http://localhost:{runtime.frontend_port}"]

    def get_environment(self, config: Any, runtime: Any) -> dict[str, str]:
        del runtime
        return {"MODEL_NAME": config.served_model_name, "OUT": "/logs/harness", **config.benchmark.env}
