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
            "asking:samples": "n num-tries repeats n-samples num-samples n-sampling num-repeats epochs n-generations "
            "n-repeat num-return-sequences total-run",
            "concurrency": "parallel num-threads max-concurrency max-connections num-concurrent "
            "max-concurrent-requests eval-batch-size",
            "The server makes batches by itself; --concurrency N is the number of open requests.": "batch-size",
            "concurrency/workers": "max-workers num-workers num-proc",
            "data": "data-path data-dir input-file data-file dataset-path question-file",
            "out": "output-path output-dir output-file output save-dir save-path",
            "asking:out": "log-dir result-dir work-dir completions-save-dir result-file raw-result-file result-path",
            "server_tp": "server-gpus tp-size tensor-parallel-size tensor-parallel",
            "server_dp": "dp-size data-parallel-size data-parallel",
            "server_pp": "pp-size pipeline-parallel-size",
            "server_memory_fraction": "gpu-memory-utilization mem-fraction-static mem-fraction",
            "server_context": "context-length max-context-length max-seq-len max-seq-length",
            "server_devices": "gpu-ids cuda-visible-devices",
            "server_max_batched_tokens": "max-num-batched-tokens",
            "server_prefix_caching": "enable-prefix-caching",
            "server_eager": "enforce-eager",
            "server_max_sequences": "max-num-seqs max-running-requests",
            "temperature": "temp",
            "k": "pass-at-k code-k-values",
            "to": "format",
            "Greedy sampling is --temperature 0.": "greedy",
            "Scores are printed by --json: `harness score RUN --json > FILE`; --out names the run that is made of a "
            "file.": "score:output score:output-file score:output-path score:save-path",
            "Grades stand in the run's folder, and only new samples are graded; a new version of the grader grades all "
            "of them anew.": "score:cache-path score:force score:overwrite",
            "No run is overwritten: name another folder by --out.": "overwrite force",
            "The port is part of the server's address: http://127.0.0.1:PORT.": "port",
            "max_tokens": "tok-limit tokens-to-generate max-new-tokens max-gen-toks max-completion-tokens "
            "max-output-tokens max-tokens-per-call",
            "asking:model": "model-name model-name-or-path model-path model-paths model-dir model-id",
            "Each of them is an option: --model NAME, --base-url URL, --concurrency N.": "model-args",
            "Each of them is an option: --temperature, --top-p, --max-tokens; others go into --extra-body.": (
                "gen-kwargs generation-config generation-kwargs"
            ),
            "Settings of a run in a file are a sweep: `harness sweep FILE`.": "config",
            "A run has no ranks: one client asks all servers (docs/scaling.md).": "rank",
            "A card says how its answers are graded (docs/grading.md).": "scorer",
            "`harness score RUN` computes every metric.": "metrics",
            "base_url": "server server-name endpoints url api-base api-url model-base-url endpoint openai-api-base "
            "address",
            "The server's address is one option: --base-url http://HOST:PORT.": "host",
            "provider": "model-provider backend-name",
            "A key comes from the environment: export OPENAI_API_KEY=KEY, or --api-key-env names another variable.": (
                "api-key openai-api-key key"
            ),
            "benchmarks/benchmark": "task tasks task-name benchmark dataset datasets data-set test-set data-name",
            "limit": "num-questions num-examples num-samples-limit max-examples n-questions num-test-sample",
            "--limit N takes the first N questions, --samples N asks each of them N times.": "max-samples",
            "prompt": "prompt-type prompt-template prompt-file-path template",
            "system_prompt": "system system-message system-instruction system-prompt-type",
            "question_key": "input-key",
            "answer_key": "label-key",
            "extra_body": "extra-body-dict",
            "It is a field of the request: --extra-body '{\"skip_special_tokens\": false}'.": "skip-special-tokens",
            "It is a header of the request: --header OpenAI-Organization:ID.": "organization",
            "timeout": "first-token-timeout idle-timeout read-timeout",
            "A request may last as long as tokens come; --timeout is the longest wait for one.": "request-timeout "
            "time-limit",
            "The first try counts, too: N retries are --attempts N+1.": "max-retries retries num-retries",
            "--rpm N is the largest number of requests a minute.": "request-rate rate-limit",
            "rpm": "max-rpm",
            "judge": "grader-model judge-model eval-model evaluator-model-path",
            "thinking": "reasoning-effort effort enable-thinking",
            "A loss is ruled out, or found, by --margin POINTS; its exit code is 0, 4, or 1 if it is open.": (
                "fail-if-worse pass-unseen"
            ),
            "--prompt few_shot or long_thought shows examples; your own prompt others (docs/benchmarks.md).": (
                "num-fewshot fewshot n-shot num-shots few-shot use-few-shot few-shot-file use-example-prompt"
            ),
            "A sparse attention and its budget belong to its server; a sweep starts one for each (docs/moving.md).": (
                "attention token-budget attention-implementation sparsity-method "
                " threshold block-size sliding-window-size "
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
            "One model over several GPUs is --serve-option tp=N, several copies of it dp=N.": "gpus num-gpus n-gpus",
            "The model's name says its size.": "scale model-size",
            "All samples of a question belong to one run; --samples says how many.": "run-id",
            "Servers are asked by the OpenAI protocol; --serve ENGINE starts one.": "backend",
            "Programs run in a sandbox, with a limit of time (docs/programs.md).": "allow-unsafe-code exec-timeout",
            "Each score has two 95 % intervals, from formulas (docs/statistics.md).": (
                "bootstrap-samples confidence-level"
            ),
            "A run stops if its first replies are all bad, unless --no-canary is given.": "fail-fast",
            "Questions with options are answered in text; no probabilities are asked for.": (
                "loglikelihood-mode mc-aggregation"
            ),
            "`harness run` asks, `harness score` grades; questions with options are answered in text.": "mode",
            "It goes to the engine unchanged, behind --: `harness serve ENGINE MODEL -- FLAG`.": (
                "enable-chunked-prefill model-revision rope-scaling rope-scaling-dict swap-space"
            ),
        }
    )
)
"""Option names of other tools, without dashes, and their meaning here: a parameter (`a/b`: either) or a sentence.
Only words that surely mean the same stand here. `score:output` is the name in one command alone; `asking:out` is the
parameter of a command that asks a server or starts one: elsewhere it means something else."""

_RUN_AND_SCORE = "`harness run` asks for the samples, and `harness score` grades them"
FORMER_COMMANDS = {
    "watch": "`harness sweep FILE --follow MINUTES` follows a training",
    "eval": _RUN_AND_SCORE,
    "evaluate": _RUN_AND_SCORE,
    "demo": "`make demo` in a checkout, or `harness doctor --demo`, plays the whole path on a small model",
    "experiment": "`repeat: 30` or `samples: [8, 16]` in a sweep's file makes the runs, and `harness report FOLDER` "
    "shows how they differ",
    "init": "copy a file of datasets/templates and edit it (docs/sweeps.md)",
    "completion": "`_HARNESS_COMPLETE=bash_source harness` prints the script, also zsh_source and fish_source",
    "published": "`harness verify RUN` compares with the shipped scores, `--published FILE` with those of a file",
    "models": "`harness serve --models` lists the models of the embedded server",
    "list": "`harness benchmarks` lists the benchmarks, `harness serve status` the servers",
    "ls": "`harness benchmarks` lists the benchmarks, `harness serve status` the servers",
    "diff": "`harness compare A B --samples` shows where two runs differ",
    "plugins": "`harness doctor` lists and tries the plug-ins",
}
"""Word in a command's place → what stands for it."""
