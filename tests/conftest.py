# SPDX-License-Identifier: BSD-2-Clause
"""How gbpf's tests are collected, kept apart and counted.

* Each case of a cmocka binary is a test of its own, run with the address and
  undefined-behaviour sanitizers, and in `make check-long` also as built for users.
* Tests under tests/integration attach probes: they run one after another
  unless marked `parallel`. Each worker has files of its own to probe
  (integration/gbpf.py). `quiet` ones have the machine to themselves.
* `long` ones belong to `make check-long`.
* As root on a kernel with uprobes nothing may be skipped: a skip is a failure.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
if not BUILD.is_absolute():
    BUILD = ROOT / BUILD

collect_ignore_glob = ["gpu/*"]
os.environ.setdefault("TRACE_PROCESSOR", shutil.which("trace_processor_shell") or "")
if not os.environ["TRACE_PROCESSOR"]:
    collect_ignore_glob.append("*/test_trace_processor.py")

MARKS = {
    "parallel": "an integration test that may run beside others",
    "serial": "runs one after another with other serial tests",
    "quiet": "compares times or sees all processes: runs alone on the machine",
    "long": "belongs to make check-long",
    "xdist_group(name)": "tests of a group run on one worker (xdist)",
    "root": "needs root and uprobes; skipped elsewhere",
}


def can_probe():
    return (
        os.geteuid() == 0
        and os.path.exists("/sys/kernel/btf/vmlinux")
        and os.path.exists("/sys/bus/event_source/devices/uprobe/type")
    )


def pytest_configure(config):
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


# ---- cmocka ----

CASE = re.compile(r"cmocka_unit_test(?:_\w+)?\(\s*(\w+)")
RESULT = re.compile(r"^(ok|not ok) \d+ (?:- |# SKIP )(\w+)")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".c" and file_path.parent == ROOT / "tests/unit":
        return UnitFile.from_parent(parent, path=file_path)
    return None


class UnitFile(pytest.File):
    def collect(self):
        cases = list(dict.fromkeys(CASE.findall(self.path.read_text())))
        for build, label in ((BUILD, ""), (BUILD / "san", "san")):
            run = UnitRun(build / "tests/unit" / self.path.stem, cases)
            for case in cases:
                name = f"{case}[{label}]" if label else case
                item = UnitCase.from_parent(self, name=name, run=run, case=case)
                if not label:
                    item.add_marker(pytest.mark.long)
                yield item


class UnitRun:
    """One run of a binary, shared by its cases."""

    def __init__(self, binary, cases):
        self.binary = binary
        self.cases = cases
        self.results = None
        self.trouble = ""
        self.output = ""

    def run(self):
        self.results = {}
        env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        try:
            done = subprocess.run(
                [self.binary],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.trouble = str(error)
            return
        self.output = done.stdout.decode(errors="replace")[-20000:]
        self.parse(done.stdout.decode(errors="replace"))
        if done.returncode and all(r == "ok" for r in self.results.values()):
            self.trouble = f"exit status {done.returncode} although no case failed"

    def parse(self, output):
        case = None
        for line in output.splitlines():
            match = RESULT.match(line)
            if match:
                case = match[2]
                self.results[case] = "skip" if "# SKIP" in line else match[1]
        unlisted = set(self.results) - set(self.cases)
        if unlisted:
            self.trouble = f"cases that the source does not list: {sorted(unlisted)}"


class UnitFailure(Exception):
    pass


class UnitCase(pytest.Item):
    def __init__(self, *, run, case, **kwargs):
        super().__init__(**kwargs)
        self.unit = run
        self.case = case
        self.add_marker(pytest.mark.xdist_group(str(run.binary)))

    def runtest(self):
        if self.unit.results is None:
            self.unit.run()
        result = self.unit.results.get(self.case, "never reported")
        if self.unit.trouble:
            raise UnitFailure(f"{self.unit.trouble}\n{self.unit.output}")
        if result == "skip":
            pytest.skip("the case skipped itself")
        if result != "ok":
            raise UnitFailure(f"{result}\n{self.unit.output}")

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, UnitFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, 0, f"{self.path.stem}::{self.name}"


# ---- what runs beside what ----


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    probing = can_probe()
    for item in items:
        serial = folder_of(item) == "integration" and not item.get_closest_marker("parallel")
        if serial or item.get_closest_marker("serial"):
            item.add_marker(pytest.mark.xdist_group("serial"))
        if item.get_closest_marker("root") and not probing:
            item.add_marker(pytest.mark.skip(reason="needs root and uprobes"))
    # The chain of serial tests starts first; what is over in a moment fills up in the end.
    items.sort(key=lambda item: ("serial" not in groups(item), folder_of(item) == "lint"))


def folder_of(item):
    return item.path.relative_to(ROOT / "tests").parts[0]


def groups(item):
    return [mark.args[0] for mark in item.iter_markers("xdist_group")]


# ---- a skip is no pass, and the counts ----


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and can_probe() and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped here: {reason}"


def pytest_terminal_summary(terminalreporter):
    """For tools/run-tests, which adds up several runs."""
    path = os.environ.get("GBPF_COUNTS")
    if not path:
        return
    stats = terminalreporter.stats

    def count(*names):
        return sum(len(stats.get(name, [])) for name in names)

    failed = count("failed", "error", "xfailed", "xpassed")
    text = f"{count('passed')} {failed} {count('skipped')}\n"
    pathlib.Path(path).write_text(text)


# ---- fixtures ----


@pytest.fixture(scope="session")
def build():
    """Where the products of the build are."""
    return BUILD


@pytest.fixture(scope="session")
def gbpf():
    """The path of the binary under test."""
    binary = BUILD / "gbpf"
    assert binary.exists(), f"{binary} is not built: make"
    return binary


@pytest.fixture
def run_gbpf(gbpf):
    """Runs gbpf with arguments; a CompletedProcess with text comes back."""

    def run(*args, timeout=60, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        return subprocess.run(
            [gbpf, *map(str, args)], timeout=timeout, text=True, check=False, **kwargs
        )

    return run
