# SPDX-License-Identifier: BSD-2-Clause
"""What a recording and its reports say of the GPUs is what NVML said, and NVML's troubles
are not the recording's."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import gbpf
import pytest

pytestmark = pytest.mark.root
LIBRARY = gbpf.SIM / "nvml/libnvidia-ml.so.1"
DUMP = gbpf.BUILD / "tests/integration/dump_gpus"
INFO = gbpf.BUILD / "tests/integration/dump_info"
LAST = "nvmlGpmSampleGet"  # the last call of a round, where a GPU has all that it may have
UUID = "GPU-11111111-2222-3333-4444-555555555555"
FAST = {"sm": 1980, "memory_clock": 3201, "power": 650500, "power_limit": 700000,
        "temperature": 71, "throttle": 0x4, "energy": 1000000, "utilisation": (99, 60),
        "memory": (8 << 30, 140 << 30), "gpm": (90.5, 45, 30.25, 60), "processes": (77, 4242)}
SLOW = {**FAST, "sm": 345, "power": 120000, "temperature": 86, "throttle": 0x60,
        "energy": 1002500, "utilisation": (10, 2), "memory": (9 << 30, 140 << 30),
        "gpm": (5, 4, 3, 2), "processes": (4242,)}


def words(value):
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Nvml:
    """The stand-in of one test: what it answers, and what it was asked."""

    def __init__(self, folder):
        self.file = folder / "nvml.txt"
        self.log = folder / "nvml.log"

    def says(self, *lines, **numbers):
        text = [f"log {self.log}", *lines]
        if numbers:
            text += [f"gpu {UUID}", "name NVIDIA H200", "pci 00000000:65:00.0"]
            text += [f"{key} {words(value)}" for key, value in numbers.items()]
        new = self.file.with_suffix(".new")
        new.write_text("\n".join(text) + "\n")
        new.rename(self.file)

    def calls(self):
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("GBPF_NVML", str(LIBRARY))
    monkeypatch.setenv("SIMNVML", str(tmp_path / "nvml.txt"))
    return Nvml(tmp_path)


def samples(recording):
    done = gbpf.run(DUMP, recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def trouble(recording):
    lines = gbpf.run(INFO, recording).stdout.split("\n")
    return [line.split("\t")[1] for line in lines if line.startswith("gpu_trouble\t")]


def expected(said):
    """A sample as the file has it."""
    got = {key: value for key, value in said.items() if not isinstance(value, tuple)}
    got["utilisation"], got["memory_utilisation"] = said["utilisation"]
    got["memory_used"], got["memory_total"] = said["memory"]
    got["processes"] = len(said["processes"])
    got["pids"] = ",".join(map(str, said["processes"]))
    return got


def is_of(sample, said):
    return all(sample[key] == value for key, value in expected(said).items())


@pytest.fixture
def recording(nvml, tmp_path):
    """A job whose GPU is fast first and then slow, with two errors."""
    nvml.says(**FAST)
    with gbpf.job(tmp_path, "--iterations", "1000000000", "--cpu-ns", "100000",
                  "--truth-mib", "0") as job:
        with gbpf.tracing(tmp_path / "t.gbpf", "-p", job.pid, "-d", "0") as tracing:
            gbpf.wait_until(lambda: nvml.calls().count(LAST) == 1)
            nvml.says(**SLOW, xid="13\nxid 79")
            gbpf.wait_until(lambda: nvml.calls().count(LAST) == 3)
        assert tracing.returncode == 0, tracing.err
    return tmp_path / "t.gbpf"


def median(values):
    return sorted(values)[(len(values) + 1) // 2 - 1]


def check_row(row, found):
    """gpu_sum, worked out once more from the samples."""
    clocks = [s["sm"] for s in found]
    assert row["samples"] == len(found)
    assert row["sm_clock_min_mhz"] == 345 and row["sm_clock_max_mhz"] == 1980
    assert row["sm_clock_p50_mhz"] == median(clocks)
    assert row["memory_clock_p50_mhz"] == 3201
    mean = sum(s["power"] for s in found) / len(found) / 1000
    assert row["power_avg_w"] == pytest.approx(mean, abs=0.001)
    assert (row["power_max_w"], row["power_limit_w"]) == (650.5, 700)
    assert row["temperature_max_c"] == 86
    assert row["energy_j"] == 2.5
    assert row["memory_used_max_bytes"] == 9 << 30 and row["memory_total_bytes"] == 140 << 30
    share = 100 / len(found)
    slow = len(found) - 1
    assert row["throttled_pct"] == 100
    assert row["throttled_by"] == (
        f"thermal slowdown {slow * share:.1f} %, hardware thermal slowdown "
        f"{slow * share:.1f} %, power cap {share:.1f} %")
    mean = sum(s["utilisation"] for s in found) / len(found)
    assert row["utilisation_avg_pct"] == pytest.approx(mean, abs=0.001)
    assert (row["processes_max"], row["xid_count"], row["xid_last"]) == (2, 2, 79)
    assert (row["gpu"], row["name"], row["uuid"]) == (0, "NVIDIA H200", UUID)
    assert (row["pci"], row["mig_parent"]) == ("00000000:65:00.0", None)


def test_samples_are_what_nvml_said(recording, nvml):
    found = samples(recording)
    assert len(found) >= 3
    assert {s["uuid"] for s in found} == {UUID}
    assert is_of(found[0], FAST) and (found[0]["xid_count"], found[0]["xid_last"]) == (0, 0)
    for sample in found[1:]:
        assert is_of(sample, SLOW), sample
        assert (sample["xid_count"], sample["xid_last"]) == (2, 79)
    times = [s["ts"] for s in found]
    assert times == sorted(set(times))
    # GPM compares two samples, so the first has nothing to say
    assert not found[0]["has"] >> 9 & 1
    assert [found[1][k] for k in ("gpm_sm", "gpm_occupancy", "gpm_tensor", "gpm_dram")] == [
        5000, 4000, 3000, 2000]
    row, = gbpf.view(recording, "gpu_sum")["rows"]
    check_row(row, found)
    assert row["gpm_sm_avg_pct"] == 5
    summary = gbpf.gbpf("report", recording).stdout.split("\n")
    line, = [line for line in summary if line.startswith("GPU 0")]
    assert "NVIDIA H200" in line and "(345 to 1980)" in line and "2 XID errors" in line
    assert "thermal slowdown" in line
    # NVML was let go of, as the last thing
    assert nvml.calls()[-1] == "nvmlShutdown"
    assert trouble(recording) == []


def short(tmp_path):
    """A recording of a job that ends soon; its calls must all be there, whatever NVML does."""
    done, recording, truths = gbpf.trace_job(tmp_path, "--iterations", "40")
    assert done.returncode == 0, done.stderr
    truth, = truths.values()
    hooked = gbpf.hooked(recording)
    made = [call for call in truth.calls if call.api in hooked]
    assert len(made) > 1000 and len(gbpf.calls(recording)) == len(made)
    return done, recording


def test_a_short_recording_knows_its_energy(nvml, tmp_path):
    nvml.says(**FAST)
    _, recording = short(tmp_path)
    row, = gbpf.view(recording, "gpu_sum")["rows"]
    assert row["samples"] >= 2 and row["energy_j"] == 0


def test_instances_beside_their_gpu(nvml, tmp_path):
    nvml.says(**FAST, mig="MIG-a\nname H200 MIG 1g.18gb\nmemory 100 200\nprocesses 5")
    _, recording = short(tmp_path)
    gpu, mig = gbpf.view(recording, "gpu_sum")["rows"]
    assert gpu["uuid"] == UUID and gpu["mig_parent"] is None
    assert (mig["uuid"], mig["mig_parent"], mig["gpu"]) == ("MIG-a", UUID, 0)
    assert mig["memory_used_max_bytes"] == 100 and mig["processes_max"] == 1
    assert mig["power_avg_w"] is None and mig["throttled_pct"] is None


def check_nothing(done, recording):
    assert "nvml" not in done.stderr.lower() and "gpu" not in done.stderr.lower()
    assert samples(recording) == []
    assert gbpf.view(recording, "gpu_sum")["rows"] == []
    assert "GPU 0" not in gbpf.gbpf("report", recording).stdout


def test_without_nvml_there_is_no_word_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GBPF_NVML", str(tmp_path / "libnvidia-ml.so.1"))
    done, recording = short(tmp_path)
    check_nothing(done, recording)
    assert trouble(recording) == []


@pytest.mark.parametrize("line, says", [
    ("fail nvmlInit_v2 18", "reload the driver, or reboot"),
    ("fail nvmlDeviceGetUUID 999", "error 999"),
])
def test_what_keeps_it_from_the_gpus_is_in_the_file(nvml, tmp_path, line, says):
    nvml.says(line, **FAST)
    done, recording = short(tmp_path)
    check_nothing(done, recording)
    assert len(trouble(recording)) == 1 and says in trouble(recording)[0]
    assert says in gbpf.gbpf("report", recording, "--view", "gpu_sum").stdout


def test_a_library_that_lacks_what_it_needs(nvml, tmp_path, monkeypatch):
    monkeypatch.setenv("GBPF_NVML", str(gbpf.SIM / "nvml-broken/libnvidia-ml.so.1"))
    nvml.says(**FAST)
    done, recording = short(tmp_path)
    check_nothing(done, recording)
    assert "nvmlInit_v2" in trouble(recording)[0]


def test_lost_half_way(nvml, tmp_path):
    nvml.says("fail nvmlDeviceGetPowerUsage 15 2", **FAST)
    _, recording = short(tmp_path)
    found = samples(recording)
    assert len(found) == 1 and is_of(found[0], FAST)
    assert trouble(recording) == ["GPU 0 does not answer any more"]
    assert nvml.calls()[-1] == "nvmlShutdown"


def test_a_driver_that_hangs_holds_nothing_up(nvml, tmp_path):
    nvml.says("hang nvmlDeviceGetPowerUsage 3600000", **FAST)
    done, recording = short(tmp_path)
    check_nothing(done, recording)
    assert "nvmlShutdown" not in nvml.calls()


def target(fd):
    try:
        return os.readlink(fd)
    except OSError:  # closed meanwhile
        return ""


def holds(pid):
    """What of NVML a process has: the library, its file, its events and GPM samples, and
    threads that it or whoever asks it runs."""
    proc = pathlib.Path(f"/proc/{pid}")
    files = [target(fd) for fd in (proc / "fd").iterdir()]
    names = [(task / "comm").read_text() for task in (proc / "task").iterdir()]
    return ("libnvidia-ml" in (proc / "maps").read_text(), files.count("/dev/zero"),
            files.count("anon_inode:[eventfd]"), names.count("gbpf-gpu\n"))


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_monitor_lets_go_of_the_driver_when_told(nvml, tmp_path, again):
    """And takes it up again after some seconds, as it is then."""
    nvml.says(**FAST)
    with gbpf.job(tmp_path, "--iterations", "1000000000", "--cpu-ns", "100000",
                  "--truth-mib", "0") as job:
        monitor = subprocess.Popen(
            [gbpf.GBPF, "monitor", "-p", str(job.pid), "--format", "json"], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

        def until(holds_true):
            for _ in range(30):
                gpus = json.loads(monitor.stdout.readline())["gpus"]
                if holds_true(gpus):
                    return gpus
            raise AssertionError("waited in vain")

        try:
            until(len)
            assert holds(monitor.pid) == (True, 1, 3, 2)
            monitor.send_signal(signal.SIGHUP)
            until(lambda gpus: not gpus)
            assert holds(monitor.pid) == (False, 0, 0, 1)
            assert nvml.calls().count("nvmlInit_v2") == nvml.calls().count("nvmlShutdown") == 1
            if again:
                nvml.says(**SLOW)
                gpu, = until(len)
                assert (gpu["uuid"], gpu["clock_sm_mhz"]) == (UUID, 345)
                assert holds(monitor.pid) == (True, 1, 3, 2)
        finally:
            monitor.terminate()
            monitor.communicate(timeout=60)
    assert monitor.returncode == 0
    assert nvml.calls().count("nvmlShutdown") == 1 + again


def test_more_rights_than_its_user(tmp_path, monkeypatch):
    """Whoever may not load code into gbpf may not name a library either."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gbpf-test-"))
    try:
        folder.chmod(0o777)
        binary = folder / "gbpf"
        shutil.copy(gbpf.GBPF, binary)
        nvml = Nvml(folder)
        nvml.says(**FAST)
        shutil.copy(LIBRARY, folder)
        env = dict(os.environ, GBPF_NVML=str(folder / LIBRARY.name), SIMNVML=str(nvml.file))
        with gbpf.job(tmp_path, "--iterations", "1000000000", "--cpu-ns", "100000",
                      "--truth-mib", "0") as job:
            command = [binary, "trace", "-q", "-d", "0.3", "-o", folder / "t.gbpf",
                       "-p", job.pid]
            assert gbpf.run(*command, env=env).returncode == 0
            assert "nvmlInit_v2" in nvml.calls()
            nvml.log.unlink()
            binary.chmod(0o4755)
            user = ["setpriv", "--reuid=31001", "--regid=31001", "--clear-groups"]
            done = gbpf.run(*user, *command, env=env)
            assert done.returncode == 0, done.stderr
        assert nvml.calls() == []
    finally:
        shutil.rmtree(folder)
