"""The jobs of the guide on a Slurm of shell scripts: they serve, run and score, and go on after their time limit."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.able import sums
from tests.patience import PATIENCE_SECONDS, until

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "scaling.md").read_text("utf-8")
STUBS = {
    "harness": f'exec {sys.executable} -m harness "$@"',
    "sbatch": "export SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 SLURM_JOB_NODELIST='node[0-1]'; exec bash \"$1\"",
    "scontrol": "[ \"$*\" = 'show hostnames node[0-1]' ] && printf '%s\\n' 127.0.0.1 127.0.0.2",
    "srun": """\
while [[ $1 == --* ]]; do shift; done
for rank in 0 1; do SLURM_NODEID=$rank "$@" & tasks+=($!); done
trap 'kill -TERM "${tasks[@]}"' TERM
wait "${tasks[@]}"; wait "${tasks[@]}"
""",
    "vllm": f"""\
echo "$*" >> "${{0%/*}}/engines.log"
exec {sys.executable} - "$@" << 'END'
import signal, sys, time
sys.path.insert(0, {str(ROOT)!r})
from harness.testing import FakeServer, Said, serving
if "--headless" in sys.argv:
    signal.pause()
def slow(request):
    if request.method != "GET":
        time.sleep(0.4)
    yield from serving(Said("So 2."), sys.argv[2], pages={{"/health": {{}}}})(request)
word = dict(zip(sys.argv, sys.argv[1:]))
with FakeServer(slow, host=word["--host"], port=int(word["--port"])):
    signal.pause()
END
""",
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder for jobs, with Slurm's commands and an engine on the path."""
    for name, text in STUBS.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    return tmp_path


def blocks(beginning: str) -> list[str]:
    """The guide's code blocks that begin so."""
    found = re.findall(r"```(?:ba)?sh\n(.*?)```", GUIDE, re.DOTALL)
    return [block for block in found if block.startswith(beginning)]


def submitted(folder: Path, job: str) -> subprocess.Popen[bytes]:
    """The job's shell; its output is in `slurm.out`."""
    (folder / "job.sh").write_text(job.replace("/shared", str(folder)))
    with (folder / "slurm.out").open("w") as log:
        return subprocess.Popen(["sbatch", "job.sh"], cwd=folder, stdout=log, stderr=log)


def ended(folder: Path, job: subprocess.Popen[bytes]) -> str:
    """The output of a job that ends."""
    job.wait(PATIENCE_SECONDS)
    return (folder / "slurm.out").read_text()


def test_the_job_of_the_guide_serves_runs_scores_and_goes_on(slurm: Path) -> None:
    words = f"--data {sums(slurm, 8)} --id-key id --samples 4 --no-canary --concurrency 1"
    job = blocks("#!/bin/bash\n")[0].replace("aime24:64", words)
    assert words in job
    samples = slurm / "results" / "qwq" / "sums" / "samples.jsonl"

    def stored() -> int:
        return len(samples.read_bytes().splitlines()) if samples.exists() else 0

    first = submitted(slurm, job)
    until(lambda: stored() >= 3, "the first samples")
    first.send_signal(signal.SIGTERM)  # as `--signal=B:TERM@180` has it: to the shell alone
    log = ended(slurm, first)
    assert "stopped by SIGTERM" in log
    assert "samples missing" in log or "of 32" in log, "the score says how much is missing"
    assert 3 <= stored() < 32
    log = ended(slurm, submitted(slurm, job))
    assert stored() == 32
    assert "complete: 32 of 32 samples" in log
    assert len((slurm / "bin" / "engines.log").read_text().splitlines()) == 2


def test_srun_starts_one_server_on_two_nodes_and_stops_both(slurm: Path) -> None:
    (job,) = blocks("#!/bin/bash\n#SBATCH --job-name=serve")
    (nodes,) = blocks("export head=")
    job, replaced = re.subn(r"harness serve .* &\n", lambda _: nodes, job)
    assert replaced == 1
    server = submitted(slurm, job)
    endpoints = slurm / "endpoints"
    until(lambda: [*endpoints.glob("*.url")] == [endpoints / "1.url"], "the address of both nodes")
    run = f"harness run --data {sums(slurm, 2)} --id-key id --samples 1 --no-canary --base-url {endpoints} --out run"
    subprocess.run(run.split(), cwd=slurm, check=True, timeout=PATIENCE_SECONDS)
    until(lambda: "DeepSeek-R1 runs on node 1 after" in (slurm / "slurm.out").read_text(), "the other node")
    server.send_signal(signal.SIGTERM)
    log = ended(slurm, server)
    assert server.returncode == 143, log
    assert log.count("DeepSeek-R1 answers at http://") == 1
    assert not [*endpoints.glob("*.url")]
    engines = sorted((slurm / "bin" / "engines.log").read_text().splitlines(), key=lambda line: "--headless" in line)
    assert [re.findall(r"--node-rank (\S+) --master-addr (\S+)", line) for line in engines] == [
        [("0", "127.0.0.1")], [("1", "127.0.0.1")],
    ]  # fmt: skip
    assert ["--headless" in line for line in engines] == [False, True]
