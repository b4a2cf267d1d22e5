"""What makes a run itself, byte for byte: a run made by an older version must resume under the next one."""

from __future__ import annotations

from pathlib import Path

from harness.client.spelling import Spelling
from harness.core import codec
from harness.generation.settings import BenchmarkSettings
from harness.presets.sampling import Sampling
from tests.generation.small_runs import changed, question_set, run_settings

OF_0_1_0 = (
    b'{"model":"test-model","api":"chat","sampling":{"temperature":0.6,"top_k":20,"max_tokens":99,"stop":["a"]},'
    b'"fitted_max_tokens":64,"seed":7,"prompt":"boxed",'
    b'"prompt_digest":"da8b36fc60619f23eab3a6139ecd651a9b482e207f6b50691bb551152c1221b4","system_prompt":"Be brief.",'
    b'"dataset_digest":"0a2a048d61143f8532c999e197d8235634a11c9657c530d1024347ee1fcc57c8",'
    b'"chat_template_kwargs":{"enable_thinking":false},"extra_body":{"top_a":0.5,"b":{"c":1}}}'
)
"""As version 0.1.0 writes it for the settings below."""


def test_the_identity_is_what_version_0_1_0_wrote(tmp_path: Path) -> None:
    sampling = Sampling(temperature=0.6, top_k=20, max_tokens=99, stop=("a",))
    settings = changed(
        run_settings(tmp_path / "run"),
        benchmarks={"sums": BenchmarkSettings(samples=2, sampling=sampling)},
        seed=7,
        spelling=Spelling(
            chat_template_kwargs={"enable_thinking": False},
            extra_body={"top_a": 0.5, "b": {"c": 1}},
            max_tokens_field="max_completion_tokens",
            stream=False,
        ),
    )
    three = question_set(tmp_path, 3, system_prompt="Be brief.")
    assert codec.encode(settings.identity(three, 64)) == OF_0_1_0
