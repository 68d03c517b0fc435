"""The guide's lines for SLURM, run as they are on a SLURM of one node: a class is judged in its jobs.

munge and SLURM are real and have everything in a folder of the test's own.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.core import environment
from grading.core.course import ROOT
from grading.core.sandbox import Limits
from grading.lms import classroom
from tests.grading.conftest import LAB, Class
from tests.setup.environments import run

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
CONFIGURATION = """\
ClusterName=gpulab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=6000
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A SLURM with one node of two cores, in the foreground of this test; yields its folder."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        pytest.skip(f"{', '.join(missing)} not installed: apt install slurm-wlm munge")
    if os.geteuid():
        pytest.skip("slurmd starts jobs as root only")
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/gpulab-slurm-XXXX"], text=True).strip())
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    configuration = CONFIGURATION.format(host=socket.gethostname(), folder=folder, ports=free_ports(2))
    (folder / "slurm.conf").write_text(configuration)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    munge = [
        "--socket",
        "munge.sock",
        "--key-file",
        "munge.key",
        "--pid-file",
        "munge.pid",
        "--log-file",
        "munge.log",
    ]
    commands = (
        ["munged", "--foreground", "--force", *munge, "--seed-file", "munge.seed"],
        ["slurmctld", "-D", "-f", "slurm.conf"],
        ["slurmd", "-D", "-f", "slurm.conf"],
    )
    running = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.said").open("w") as said:
                running.append(subprocess.Popen(command, cwd=folder, stdout=said, stderr=said))
            time.sleep(1)
        deadline = time.monotonic() + 60
        while "idle" not in (states := subprocess.run(["sinfo"], capture_output=True, text=True).stdout):
            assert time.monotonic() < deadline, states + (folder / "slurmctld.said").read_text()
            time.sleep(1)
        yield folder
    finally:
        subprocess.run(["scancel", "--state=RUNNING"], check=False)
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(20)
        shutil.rmtree(folder)


def recipe() -> str:
    """The lines of the guide, with the numbers of this one node."""
    guide = (ROOT / "docs" / "instructors" / "scaling.md").read_text(encoding="utf-8")
    start = guide.index("    from dask_jobqueue")
    lines = guide[start : guide.index("\n\n`interface", start)]
    text = "\n".join(line.removeprefix("    ") for line in lines.splitlines())
    for ours, here in (('"16GB"', '"2GB"'), ("scale(64)", "scale(2)")):
        assert ours in text
        text = text.replace(ours, here)
    return text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_guides_lines_judge_a_class_in_jobs_of_slurm_and_end_them(
    slurm: Path, school: Class, needs_sandbox: None
) -> None:
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(slurm / "jobqueue"),
        "dask-jobqueue",
        cwd=slurm,
    )
    environment.code.cache_clear()  # a worker reads the files now
    (slurm / "cluster.py").write_text(recipe())
    packages = {**os.environ, "PYTHONPATH": f"{slurm / 'jobqueue'}:{ROOT}"}
    cluster = subprocess.Popen(
        [sys.executable, "cluster.py"], cwd=slurm, env=packages, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert cluster.stdin and cluster.stdout
    try:
        address = cluster.stdout.readline().strip()
        for name in ("ann", "bob", "cleo"):
            school.hand_in(name, {"sectors": f"# {name}\n" + school.solutions["sectors"]})
        school.hand_in("dan", {"sectors": "def sectors(addresses, size):\n    return 4"})
        limits = Limits(seconds=120, patience=60)
        result = classroom.grade(school.course, LAB, school.folder, limits=limits, scheduler=address)
        assert {s: result.points(s) for s in result.tasks} == {"ann": 11, "bob": 11, "cleo": 11, "dan": 8}
        assert len(list(slurm.glob("slurm-*.out"))) == 2  # what the jobs said
        cluster.communicate("\n", timeout=60)
        assert cluster.returncode == 0
    finally:
        cluster.kill()
        cluster.wait()
    deadline = time.monotonic() + 60
    while subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < deadline, "the jobs still run"
        time.sleep(1)
