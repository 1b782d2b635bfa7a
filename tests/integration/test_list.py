# SPDX-License-Identifier: BSD-2-Clause
"""gbpf list: who uses CUDA, as root and as somebody else."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

pytestmark = pytest.mark.parallel
NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that every user can enter."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gbpf-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def job(build, open_folder):
    """Starts simulated jobs, as root or as another user, and ends them."""
    jobs = []

    def start(**kwargs):
        if not (open_folder / "simjob").exists():
            shutil.copy(build / "sim/simjob", open_folder)
            shutil.copytree(build / "sim/lib", open_folder / "lib")
        started = subprocess.Popen(
            [open_folder / "simjob", "--truth-mib", "0", "--hold", "--api", "runtime"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd="/", **kwargs,
        )
        jobs.append(started)
        # "output HEX" comes when all is done and before it holds.
        assert any(line.startswith("output") for line in started.stdout)
        return started

    yield start
    for started in jobs:
        started.terminate()
        started.wait(timeout=30)
        started.stdout.close()


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return {row["pid"]: row for row in json.loads(done.stdout)["rows"]}


def test_shows_a_job_and_nobody_else(run_gbpf, job, open_folder):
    started = job()
    rows = rows_of(run_gbpf("list", "--format", "json"))
    row = rows[started.pid]
    assert row["command"].startswith(f"{open_folder}/simjob --truth-mib 0")
    assert row["uid"] == os.geteuid() and row["container"] == "" and row["ppid"] == os.getpid()
    images = {image["path"]: image for image in row["images"]}
    assert images[f"{open_folder}/lib/libcuda.so.1"]["kind"] == "driver"
    assert images[f"{open_folder}/lib/libcudart.so.13"]["kind"] == "runtime"
    assert not any(image["deleted"] for image in images.values())
    assert os.getpid() not in rows
    line = next(
        line for line in run_gbpf("list").stdout.split("\n") if line.startswith(f"{started.pid} ")
    )
    assert "libcuda.so.1" in line and "simjob" in line


def test_a_replaced_library_is_still_seen(run_gbpf, job, open_folder):
    started = job()
    (open_folder / "lib/libcuda.so.1").unlink()
    row = rows_of(run_gbpf("list", "-f", "json"))[started.pid]
    image = next(i for i in row["images"] if i["kind"] == "driver")
    assert image["deleted"] and image["path"] == f"{open_folder}/lib/libcuda.so.1"


@pytest.mark.root
def test_without_rights_ones_own_are_shown_and_the_rest_counted(gbpf, job, open_folder):
    roots, own = job(), job(user=NOBODY, group=NOBODY, extra_groups=[])
    copy = open_folder / "gbpf"
    shutil.copy(gbpf, copy)
    done = subprocess.run(
        [copy, "list", "--format", "json"], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=60, cwd="/", user=NOBODY, group=NOBODY, extra_groups=[],
    )
    rows = rows_of(done)
    assert own.pid in rows and roots.pid not in rows
    missing = json.loads(done.stdout)["quality"]["processes_not_readable"]
    assert missing >= 1
    assert f"{missing} process" in done.stderr
    assert done.stderr.endswith("  try: sudo gbpf list\n")
