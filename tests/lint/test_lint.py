# SPDX-License-Identifier: BSD-2-Clause
"""What can be said about the sources without running them."""
import ast
import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_LINES = 500
MAX_FUNCTION = 60
MAX_COLUMNS = 100
NOT_OURS_TO_MARK = {"LICENSE", "VERSION", ".gitignore"}
DATA = {".names", ".nm", ".json", ".gz", ".gbpf", ".bin", ".txt", ".csv", ".golden"}


def tracked():
    """Every file of the project; without git, every file but products of the build."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    if done.returncode == 0 and done.stdout:
        names = done.stdout.rstrip("\0").split("\0")
    else:
        skip = {"build", ".git", "__pycache__"}
        names = [
            str(p.relative_to(ROOT))
            for p in ROOT.rglob("*")
            if p.is_file() and not skip & set(p.relative_to(ROOT).parts)
        ]
    return sorted(n for n in names if (ROOT / n).is_file() and not is_corpus(n))


def is_corpus(name):
    return "corpus" in pathlib.Path(name).parts


def read(name):
    return (ROOT / name).read_text(errors="replace")


FILES = tracked()
SOURCES = [n for n in FILES if n.endswith((".c", ".h"))]
PYTHON = [n for n in FILES if n.endswith(".py")]
TEXT = [n for n in FILES if pathlib.Path(n).suffix not in DATA and n not in NOT_OURS_TO_MARK]
SHELL = [
    n for n in TEXT
    if n.endswith(".sh") or re.match(r"#!.*\b(sh|bash)\b", read(n).split("\n", 1)[0])
]


def complain(complaints):
    assert not complaints, "\n" + "\n".join(complaints)


def test_there_is_something_to_check():
    assert len(SOURCES) > 20 and len(PYTHON) > 1 and len(SHELL) > 1


def test_every_file_names_its_licence():
    def named(name):
        lines = read(name).split("\n")
        first = lines[1] if lines[0].startswith(("#!", "#compdef")) else lines[0]
        return "SPDX-License-Identifier: " in first

    complain([f"{n}: no SPDX line on top" for n in TEXT if not named(n)])


def test_files_are_short():
    complain([
        f"{n}: {read(n).count(chr(10))} lines"
        for n in SOURCES + PYTHON + SHELL
        if read(n).count("\n") >= MAX_LINES
    ])


def c_functions(text):
    """(name, first line, lines) of each function: its brace stands in column 0."""
    start = signature = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{" and start is None:
            start = number
        elif line == "}" and start is not None:
            yield signature, start, number - start + 1
            start = None
        elif start is None and line and not line[0].isspace():
            signature = line


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def test_functions_fit_a_screen():
    complain([
        f"{n}:{at}: {name}: {lines} lines"
        for names, functions in ((SOURCES, c_functions), (PYTHON, python_functions))
        for n in names
        for name, at, lines in functions(read(n))
        if lines > MAX_FUNCTION
    ])


def test_lines_fit_and_end_cleanly():
    complaints = []
    for name in SOURCES + PYTHON + SHELL:
        text = read(name)
        if text and not text.endswith("\n"):
            complaints.append(f"{name}: no newline at the end")
        for number, line in enumerate(text.split("\n"), 1):
            if len(line.expandtabs(8)) > MAX_COLUMNS:
                complaints.append(f"{name}:{number}: over {MAX_COLUMNS} columns")
            if line != line.rstrip():
                complaints.append(f"{name}:{number}: blanks at the end")
    complain(complaints)


def test_c_is_indented_with_tabs():
    complain([
        f"{n}:{number}"
        for n in SOURCES
        for number, line in enumerate(read(n).split("\n"), 1)
        if re.match(r"\t* {8}", line)
    ])


def test_nothing_is_left_unfinished():
    marks = ["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK", "TB" + "D"]
    words = re.compile(rf"\b({'|'.join(marks)})\b|\bnot (yet )?implemented\b|\bunimplemented\b")
    complain([
        f"{n}:{number}: {line.strip()}"
        for n in TEXT
        if n != "tests/lint/test_lint.py"
        for number, line in enumerate(read(n).split("\n"), 1)
        if words.search(line)
    ])


def test_no_path_of_anybodys_machine():
    paths = re.compile("/" + r"(work|home/\w+)/")
    complain([
        f"{n}:{number}: {line.strip()}"
        for n in TEXT
        for number, line in enumerate(read(n).split("\n"), 1)
        if paths.search(line)
    ])


# target → gpu → probe → inject → collect → record → sidecar → trace → monitor → model →
# report, diagnose, export: a module knows those to its left, and cmd knows them all.
ROOMS = ["util", "target", "gpu", "probe", "inject", "collect", "record", "sidecar", "trace",
         "monitor", "model"]
READERS = ["report", "diagnose", "export", "top"]


def may_include(room):
    if room in ROOMS:
        allowed = ROOMS[: ROOMS.index(room) + 1]
    elif room in READERS:
        allowed = ROOMS + [room]
    else:
        allowed = ROOMS + READERS + [room]
    return set(allowed)


def test_modules_include_only_what_is_left_of_them():
    complaints = []
    for name in SOURCES:
        parts = pathlib.Path(name).parts
        if parts[0] != "user" or len(parts) != 3 or parts[1] == "cmd":
            continue
        for included in re.findall(r'^#include "(\w+)/', read(name), re.M):
            if included != "bpf" and included not in may_include(parts[1]):
                complaints.append(f"{name}: includes {included}/")
    complain(complaints)


def need(tool):
    path = shutil.which(tool)
    if not path:
        pytest.skip(f"{tool} is not installed: tools/install-deps")
    return path


def passes(command):
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


BUILD = ROOT / os.environ.get("BUILD", "build")
C_FLAGS = [
    "-std=c11", "-D_GNU_SOURCE", '-DGBPF_VERSION="0"', "-Iuser", "-I.", f"-I{BUILD}",
    "-Itests/sim",
]
TIDIED = [n for n in SOURCES if n.endswith(".c") and not n.startswith("bpf/")]
BATCH = 16  # files a process: half of what one file takes is clang-tidy's own start
FAULT = re.compile(r"^(?:Error while processing )?(\S+?)(?:\.$|:\d+:\d+: )", re.MULTILINE)


def batches():
    names = [n for n in TIDIED if not n.startswith("user/")]
    return [names[at : at + BATCH] for at in range(0, len(names), BATCH)]


@functools.cache
def tidied(names):
    """clang-tidy's word on a batch, which gets what the tests leave of the processors."""
    return subprocess.run(
        ["nice", need("clang-tidy"), "--quiet", "--checks=-clang-analyzer-*", *names, "--",
         *C_FLAGS],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.xdist_group(f"tidy{number}"))
    for number, batch in enumerate(batches())
    for name in batch
])
def test_clang_tidy(name, request):
    asked = {i.callspec.params["name"] for i in request.session.items
             if getattr(i, "originalname", "") == "test_clang_tidy"}
    batch = next(tuple(n for n in b if n in asked) for b in batches() if name in b)
    done = tidied(batch)
    output = done.stdout.replace(f"{ROOT}/", "")
    named = set(FAULT.findall(output))
    assert name not in named, output[-8000:]
    # What went wrong in a header, or without a name, is a fault of all.
    assert done.returncode == 0 or named & set(batch), output[-8000:]


# With the analyser, which follows every path and takes seconds a file: for what runs at users'.
# Faults in generated headers (bpftool's skeletons) are not ours.
@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in TIDIED if n.startswith("user/")])
def test_clang_tidy_and_analyzer(name):
    done = subprocess.run(
        [need("clang-tidy"), "--quiet", name, "--", *C_FLAGS],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = done.stdout.replace(f"{BUILD}/", "build/").split("\n")
    faults = [l for l in lines if ": error: " in l and not l.startswith("build/")]
    assert not faults, "\n".join(faults)
    assert done.returncode == 0 or [l for l in lines if l.startswith("build/")], lines[-40:]


@pytest.mark.long
def test_cppcheck():
    passes([
        need("cppcheck"), "--quiet", "--std=c11", "--inline-suppr", "--error-exitcode=1",
        "--enable=warning,portability,performance", "-D_GNU_SOURCE", "-Iuser", "-I.",
        # Wrong about out parameters and void **; sanitizers look for these.
        "--suppress=memleak", "--suppress=ctuuninitvar", "user",
    ])


@pytest.mark.parametrize("name", SHELL)
def test_shellcheck(name):
    passes([need("shellcheck"), name])


# Of pytest's fixtures, which are imported and then named by arguments, the tool knows nothing.
FIXTURES = re.compile(r"^tests/integration/.*(imported but unused|redefinition of unused)")


def test_python_names_are_defined():
    done = subprocess.run(
        [need("pyflakes3"), *PYTHON], cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    complain([line for line in done.stdout.splitlines() if not FIXTURES.match(line)])
