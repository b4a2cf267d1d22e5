"""A Slurm of two nodes: the one that runs, or one started from Debian's packages where the tests are root.

The second node is a second daemon on this machine, in a partition that is not the default one.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=20
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[0]} CPUs={cpus} State=UNKNOWN
NodeName={host}-2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} State=UNKNOWN
PartitionName=one Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=two Nodes={host},{host}-2 MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`sbatch` and the others work while the tests run."""
    if shutil.which("sinfo") and _says("sinfo", "--noheader"):
        yield
        return
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"no Slurm answers, and none can be started: {', '.join(missing) or 'not root'}")
    place = tmp_path_factory.mktemp("slurm")
    (place / "state").mkdir()
    host = socket.gethostname()
    with socket.create_server(("", 0)) as first, socket.create_server(("", 0)) as second:
        ports = [first.getsockname()[1], second.getsockname()[1]]
    text = CONFIGURATION.format(host=host, place=place, cpus=os.cpu_count(), ports=ports)
    (place / "slurm.conf").write_text(text)
    (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(place / "slurm.conf"))
        if not _says("munge", "--no-input"):
            Path("/run/munge").mkdir(exist_ok=True)
            shutil.chown("/run/munge", "munge", "munge")
            subprocess.run(["runuser", "-u", "munge", "--", "munged"], check=True)
        line = (["slurmctld", "-D"], ["slurmd", "-D", "-N", host], ["slurmd", "-D", "-N", f"{host}-2"])
        daemons = [subprocess.Popen(one) for one in line]
        try:
            while "2 idle" not in " ".join(_says("sinfo", "--noheader", "--format=%D %t %P").split()):
                if any(one.poll() is not None for one in daemons):
                    end_of_log = (place / f"slurmd-{host}.log").read_text()[-500:]
                    pytest.skip(f"Slurm's daemons do not run here: {end_of_log}")
                time.sleep(0.2)
            yield
        finally:
            for one in daemons:
                one.terminate()
            for one in daemons:
                one.wait()


def _says(*argv: str) -> str:
    """What the command prints; nothing where it fails."""
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
