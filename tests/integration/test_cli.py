# SPDX-License-Identifier: BSD-2-Clause
"""What every command does with its options, its output and its exit status."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

pytestmark = pytest.mark.parallel

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ["trace", "report", "diagnose", "diff", "export", "merge", "monitor", "top", "doctor",
            "list"]


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def option_lines(help_text):
    """The options that --help lists, in the column where they stand."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]+)", help_text, re.M))


def test_help_names_every_command(run_gbpf):
    done = run_gbpf("--help")
    assert done.returncode == 0 and done.stderr == ""
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", done.stdout, re.M)
    for section in ("Usage:", "Commands:", "Options:", "Environment:", "Exit status:"):
        assert section in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_complete(run_gbpf, command):
    done = run_gbpf(command, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"Usage: gbpf {command} ")
    for section in ("\nOptions:\n", "\nExamples:\n", "\nExit status:\n"):
        assert section in done.stdout
    assert run_gbpf(command, "-h").stdout == done.stdout
    man = run_gbpf("--print-man", command).stdout.replace("\\-", "-")
    listed = set(re.findall(r"\\fB(--[a-z-]+)\\fR", man))
    assert option_lines(done.stdout) == listed
    assert "--help" in listed and len(listed) >= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_use_options_that_exist(run_gbpf, command):
    text = run_gbpf(command, "--help").stdout
    examples = text.split("\nExamples:\n")[1].split("\nExit status:\n")[0]
    lines = [line for line in examples.split("\n") if re.match(r"  \S", line)]
    assert lines
    for line in lines:
        ours = line.split(" -- ")[0]
        assert "gbpf" in ours
        assert options_in(ours) <= option_lines(text), line


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [60, 80, 300])
def test_help_is_wrapped(run_gbpf, command, columns):
    text = run_gbpf(command, "--help", env=dict(os.environ, COLUMNS=str(columns))).stdout
    width = min(columns, 100)
    for line in text.split("\n"):
        # A command to be copied, and the names of an option, are never broken.
        if not re.match(r"Usage:|  \S| +-", line):
            assert len(line) <= width, line
    longest = max(len(line) for line in text.split("\n"))
    assert longest > min(columns, 100) - 25


def test_version(run_gbpf):
    done = run_gbpf("--version")
    assert done.returncode == 0
    assert done.stdout == f"gbpf {(ROOT / 'VERSION').read_text().strip()}\n"


def complains(done, *words):
    """Exit status 2, nothing on stdout, one line of reason and one of advice."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.rstrip("\n").split("\n")
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("gbpf: ")
    assert lines[1].startswith("  try: gbpf ")
    for word in words:
        assert word in lines[0]


def test_wrong_commands(run_gbpf):
    complains(run_gbpf())
    complains(run_gbpf("rport"), "unknown command 'rport'", "did you mean 'report'?")
    complains(run_gbpf("--versoin"), "unknown option", "--version")
    complains(run_gbpf("qqqqqqqq"), "unknown command 'qqqqqqqq'")
    complains(run_gbpf("\x1b[2J"), "'\\x1b[2J'")
    complains(run_gbpf("--print-man", "nothing"), "nothing")


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_options(run_gbpf, command):
    complains(run_gbpf(command, "--hepl"), "unknown option '--hepl'", "did you mean '--help'?")
    complains(run_gbpf(command, "-Z"), "unknown option '-Z'")
    complains(run_gbpf(command, "--zzzzzzzz=1"), "unknown option '--zzzzzzzz'")


def test_wrong_values(run_gbpf):
    complains(run_gbpf("report", "--format", "jsno"), "did you mean 'json'?", "table, csv")
    complains(run_gbpf("report", "--top", "-1"), "whole number")
    complains(run_gbpf("report", "--top"), "wants a value")
    complains(run_gbpf("report", "a", "b"), "one FILE")
    complains(run_gbpf("list", "--format=csv"), "csv")
    complains(run_gbpf("list", "something"), "something")


@pytest.mark.parametrize("args", [["--help"], ["report", "--help"], ["list", "-f", "json"]])
def test_output_that_cannot_be_written_fails(run_gbpf, args):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = run_gbpf(*args, stdout=full)
    assert done.returncode == 1
    assert "cannot write to stdout: No space left on device" in done.stderr


def test_reader_that_went_away_fails(gbpf):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [gbpf, "--help"], stdout=write, stderr=subprocess.PIPE, text=True, check=False,
        restore_signals=False, timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
    )
    os.close(write)
    assert done.returncode == 1
    assert "cannot write to stdout: Broken pipe" in done.stderr


# ---- what is generated from the options ----


def test_man_pages_are_clean(run_gbpf, tmp_path):
    for command in ["gbpf", *COMMANDS]:
        page = tmp_path / f"{command}.1"
        page.write_text(run_gbpf("--print-man", command).stdout)
        lint = subprocess.run(
            ["mandoc", "-Tlint", "-W", "warning", page],
            capture_output=True, text=True, check=False, timeout=60,
        )
        # A page made by a build has no date, so that builds can be repeated.
        found = [n for n in lint.stdout.split("\n") if n and "missing date" not in n]
        assert not found, lint.stdout
        shown = subprocess.run(
            ["mandoc", "-Tutf8", page], capture_output=True, text=True, check=False, timeout=60
        ).stdout
        assert "SYNOPSIS" in re.sub(r".\x08", "", shown)


def bash_completes(script, *words):
    program = (
        f'source "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gbpf; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", *words],
        capture_output=True, text=True, check=True, timeout=60,
    )
    return done.stdout.split()


def test_bash_completion(run_gbpf, tmp_path):
    script = tmp_path / "gbpf.bash"
    script.write_text(run_gbpf("--print-completion", "bash").stdout)
    subprocess.run(["bash", "-n", script], check=True, timeout=60)
    subprocess.run(["shellcheck", script], check=True, timeout=60)
    assert bash_completes(script, "gbpf", "re") == ["report"]
    assert bash_completes(script, "gbpf", "report", "--fo") == ["--format"]
    assert set(bash_completes(script, "gbpf", "report", "--format", "")) >= {"table", "json"}
    assert bash_completes(script, "gbpf", "list", "-f", "j") == ["json"]
    every = set(bash_completes(script, "gbpf", "report", "--"))
    assert every == option_lines(run_gbpf("report", "--help").stdout)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_completions(run_gbpf, tmp_path, shell):
    done = run_gbpf("--print-completion", shell)
    assert done.returncode == 0
    for command in COMMANDS:
        for option in option_lines(run_gbpf(command, "--help").stdout):
            assert option[2:] in done.stdout
    script = tmp_path / shell
    script.write_text(done.stdout)
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True, timeout=60)


def test_completion_for_unknown_shells(run_gbpf):
    done = run_gbpf("--print-completion", "tcsh")
    assert done.returncode == 2 and done.stdout == ""


def test_install_and_uninstall(build, gbpf, tmp_path):
    make = ["make", f"BUILD={build}", f"DESTDIR={tmp_path}", "PREFIX=/opt/gbpf"]
    subprocess.run([*make, "install"], cwd=ROOT, check=True, timeout=120, capture_output=True)
    top = tmp_path / "opt/gbpf"
    binary = top / "bin/gbpf"
    assert binary.read_bytes() == gbpf.read_bytes()
    assert os.access(binary, os.X_OK)
    pages = {p.name for p in (top / "share/man/man1").iterdir()}
    assert pages == {"gbpf.1", *(f"gbpf-{c}.1" for c in COMMANDS)}
    assert (top / "share/bash-completion/completions/gbpf").stat().st_size > 0
    assert (top / "share/zsh/site-functions/_gbpf").stat().st_size > 0
    assert (top / "share/fish/vendor_completions.d/gbpf.fish").stat().st_size > 0
    subprocess.run([*make, "uninstall"], cwd=ROOT, check=True, timeout=120, capture_output=True)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
