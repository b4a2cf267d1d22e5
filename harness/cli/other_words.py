"""Names of commands and options that other tools have, or that this one had, and what they are here."""

from __future__ import annotations

from collections.abc import Iterator


def _meanings(words: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (option name of another tool, its meaning) for each name. words: meaning → names, with spaces between."""
    for meant, others in words.items():
        for word in others.split():
            yield word, meant


ELSEWHERE: dict[str, str] = dict(
    _meanings(
        {
            "samples": "n num-tries repeats n-samples num-samples n-sampling num-repeats epochs n-generations "
            "n-repeat num-return-sequences total-run",
            "concurrency": "parallel num-threads max-concurrency max-connections num-concurrent "
            "max-concurrent-requests eval-batch-size batch-size",
            "concurrency/workers": "max-workers num-workers num-proc",
            "data": "data-path data-dir input-file data-file dataset-path question-file",
            "out": "output-path output-dir output-file save-dir log-dir result-dir output work-dir "
            "completions-save-dir result-file raw-result-file result-path",
            "server_tp": "server-gpus tp-size tensor-parallel-size tensor-parallel",
            "server_dp": "dp-size data-parallel-size data-parallel",
            "server_pp": "pp-size pipeline-parallel-size",
            "server_memory_fraction": "gpu-memory-utilization mem-fraction-static mem-fraction",
            "server_context": "context-length max-context-length max-seq-len max-seq-length",
            "server_devices": "gpus gpu-ids cuda-visible-devices rank",
            "server_max_batched_tokens": "max-num-batched-tokens",
            "server_prefix_caching": "enable-prefix-caching",
            "server_eager": "enforce-eager",
            "server_max_sequences": "max-num-seqs max-running-requests",
            "temperature": "temp",
            "k": "pass-at-k code-k-values",
            "to": "format",
            "Greedy sampling is --temperature 0.": "greedy",
            "Scores are printed by --json: `harness score RUN --json > FILE`; --out names the run that is made of a "
            "file.": "score:output score:output-file score:output-path",
            "No run is overwritten: name another folder by --out.": "overwrite force",
            "The port is part of the server's address: http://127.0.0.1:PORT.": "port",
            "max_tokens": "tok-limit tokens-to-generate max-new-tokens max-gen-toks max-completion-tokens "
            "max-output-tokens "
            "max-length max-tokens-per-call",
            "model": "model-name model-name-or-path model-path model-paths model-dir model-id model-args",
            "base_url": "server server-name endpoints url api-base api-url model-base-url host endpoint "
            "openai-api-base address",
            "provider": "model-provider backend-name",
            "A key comes from the environment: export OPENAI_API_KEY=KEY, or --api-key-env names another variable.": (
                "api-key openai-api-key key"
            ),
            "benchmarks/benchmark": "task tasks task-name benchmark dataset datasets data-set test-set data-name",
            "limit": "num-questions num-examples num-samples-limit max-examples max-samples n-questions "
            "num-test-sample",
            "prompt": "prompt-type prompt-template prompt-file-path template",
            "system_prompt": "system system-message system-instruction system-prompt-type",
            "question_key": "input-key",
            "answer_key": "label-key",
            "extra_body": "extra-body-dict skip-special-tokens",
            "header": "organization",
            "timeout": "first-token-timeout idle-timeout request-timeout read-timeout",
            "attempts": "max-retries retries num-retries",
            "rpm": "request-rate rate-limit max-rpm",
            "judge": "grader-model judge-model eval-model evaluator-model-path",
            "thinking": "reasoning-effort effort enable-thinking",
            "A loss is ruled out, or found, by --margin POINTS; its exit code is 0, 4, or 1 if it is open.": (
                "fail-if-worse pass-unseen"
            ),
            "--prompt few_shot or long_thought shows examples; your own prompt others (docs/benchmarks.md).": (
                "num-fewshot fewshot n-shot num-shots few-shot use-few-shot few-shot-file use-example-prompt"
            ),
            "A sparse attention and its budget belong to its server; a sweep starts one for each (docs/moving.md).": (
                "token-budget attention-implementation sparsity-method threshold block-size sliding-window-size "
                "start-layer profile-sparsity use-fused-kernel use-batch-exist"
            ),
            "An environment is made by hand: `uv venv ENV && uv pip install --python ENV/bin/python vllm`, then "
            "--python ENV/bin/python.": "uvx",
            "`harness score FILE` grades another tool's replies; --out FILE goes on with them (docs/moving.md).": (
                "continue-from file-path input-path"
            ),
            "A server starts on the machine of its command. Run `harness serve ENGINE MODEL --host 0.0.0.0 --register "
            "FOLDER/NAME.url` on each node; `harness run --base-url FOLDER` asks them all (docs/scaling.md).": (
                "on slurm replicas"
            ),
            "quiet": "no-progress",
            "A judge grades what is stored: `harness score RUN --judge MODEL` (docs/judge.md).": "judge",
            'A key comes from the environment: export OPENAI_API_KEY="$(cat FILE)".': "api-key-file",
            "Every sample is stored, always.": "log-samples save-outputs save-samples write-out",
            "The same command continues a run by itself.": "resume continue use-cache rerun skip-existing "
            "continue-from-last repair-resume",
            "Certificate authorities are those of the system, or of the variable: SSL_CERT_FILE=FILE.": (
                "ca-file judge-ca-file cacert ca-bundle"
            ),
            "Chat is the default; --api completions asks without a template.": "apply-chat-template use-chat-template "
            "surround-with-messages",
            "--limit N takes the first questions, --filter those with a field of a value.": "start-idx end-idx",
            "One model over several GPUs is --serve-option tp=N, several copies of it dp=N.": "num-gpus n-gpus",
            "The model's name says its size.": "scale model-size",
            "All samples of a question belong to one run; --samples says how many.": "run-id",
            "Servers are asked by the OpenAI protocol; --serve ENGINE starts one.": "backend",
            "Programs run in a sandbox, with a limit of time (docs/programs.md).": "allow-unsafe-code exec-timeout",
            "Each score has two 95 % intervals, from formulas (docs/statistics.md).": (
                "bootstrap-samples confidence-level"
            ),
            "A run stops if its first replies are all bad, unless --no-canary is given.": "fail-fast",
            "Questions with options are answered in text; no probabilities are asked for.": "mode loglikelihood-mode "
            "mc-aggregation",
            "It goes to the engine unchanged, behind --: `harness serve ENGINE MODEL -- FLAG`.": (
                "enable-chunked-prefill model-revision rope-scaling rope-scaling-dict"
            ),
        }
    )
)
"""Option names of other tools, without dashes, and their meaning here: a parameter (`a/b`: either) or a sentence.
`score:output` is the name in one command alone."""

_RUN_AND_SCORE = "`harness run` asks for the samples, and `harness score` grades them"
COMMANDS = {
    "eval": _RUN_AND_SCORE,
    "evaluate": _RUN_AND_SCORE,
    "demo": "`make demo` in a checkout, or `harness doctor --demo`, plays the whole path on a small model",
    "completion": "`_HARNESS_COMPLETE=bash_source harness` prints the script, also zsh_source and fish_source",
}
"""Word in a command's place → what stands for it."""
