# SPDX-License-Identifier: BSD-2-Clause
"""gbpf top, looked at through a terminal.

What the screen must look like is in screens/. Each of these was read by a person;
`GBPF_SCREENS=write` writes them anew, to be read again before they are committed.
"""
import os
import pathlib
import random
import re
import signal
import subprocess

import pytest

from terminal import KEYS, Terminal

SCREENS = pathlib.Path(__file__).resolve().parent / "screens"

pytestmark = pytest.mark.parallel

# What shows that a scenario's last interval is on the screen.
READY = "22:14:49"


@pytest.fixture
def program(build):
    return build / "tests/integration/show_top"


@pytest.fixture
def show(program):
    def run(scenario="machine", rows=24, columns=80, arguments=(), **kwargs):
        return Terminal([program, scenario, *arguments], rows, columns, **kwargs)

    return run


def compare(terminal, name):
    """Waits until the screen is as it must be."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("GBPF_SCREENS") == "write":
        terminal.quiet()
        SCREENS.mkdir(exist_ok=True)
        path.write_text(terminal.text())
        return
    expected = path.read_text()
    terminal.wait(lambda text: text == expected, f"the screen of {path.name},\n{expected}\n")


CASES = {
    # name: (scenario, rows, columns, keys, further arguments of Terminal)
    "processes-80x24": ("machine", 24, 80, [], {}),
    "processes-120x40": ("machine", 40, 120, [], {}),
    "processes-200x60": ("machine", 60, 200, [], {}),
    "processes-60x12": ("machine", 12, 60, [], {}),
    "too-small-40x10": ("machine", 10, 40, [], {}),
    "too-small-8x1": ("machine", 1, 8, [], {}),
    "vt100": ("machine", 24, 80, [], {"term": "vt100"}),
    "ascii": ("machine", 24, 120, [], {"LC_ALL": "C"}),
    "ascii-process": ("machine", 24, 80, ["enter"], {"LC_ALL": "C"}),
    "ascii-histogram": ("machine", 24, 80, ["enter", "enter"], {"LC_ALL": "C"}),
    "none": ("none", 24, 80, [], {}),
    "waiting": ("waiting", 24, 80, [], {}),
    "many": ("many", 24, 80, [], {}),
    "many-end": ("many", 24, 80, ["end", "up"], {}),
    "many-gpus": ("many", 24, 120, ["g"], {}),
    "hostile": ("hostile", 24, 100, [], {}),
    "hostile-kernels": ("hostile", 24, 80, ["enter", "2"], {}),
    "hostile-threads": ("hostile", 24, 80, ["enter", "3"], {}),
    "hostile-places": ("hostile", 24, 120, ["+", "+", "+", "down"], {}),
    "hostile-ascii": ("hostile", 24, 100, ["down"], {"LC_ALL": "C"}),
    "columns-memory": ("machine", 24, 80, ["+"], {}),
    "columns-waits": ("machine", 24, 80, ["+", "+"], {}),
    "columns-places": ("machine", 24, 120, ["+", "+", "+"], {}),
    "columns-cost": ("machine", 24, 80, ["-"], {}),
    "sort-next": ("machine", 24, 80, [">", ">"], {}),
    "sort-reversed": ("machine", 24, 80, ["r"], {}),
    "sort-menu": ("machine", 24, 80, ["s", "down", "down"], {}),
    "sort-chosen": ("machine", 24, 80, ["f6", "end", "enter"], {}),
    "filter-typing": ("machine", 24, 80, ["/", "TRITON"], {}),
    "filter-kept": ("machine", 24, 80, ["/", "gpt2 research", "enter"], {}),
    "filter-nothing": ("machine", 24, 80, ["/", "nowhere", "enter"], {}),
    "gpus-80x24": ("machine", 24, 80, ["g"], {}),
    "apis-80x24": ("machine", 24, 80, ["enter"], {}),
    "apis-200x60": ("machine", 60, 200, ["enter"], {}),
    "apis-60x12": ("machine", 12, 60, ["enter"], {}),
    "apis-ever": ("machine", 24, 80, ["enter", "+"], {}),
    "kernels-80x24": ("machine", 24, 80, ["enter", "2"], {}),
    "threads-80x24": ("machine", 24, 80, ["enter", "3"], {}),
    "threads-200x60": ("machine", 60, 200, ["enter", "3"], {}),
    "threads-calls": ("machine", 24, 80, ["enter", "3", "+"], {}),
    "histogram-80x24": ("machine", 24, 80, ["enter", "enter"], {}),
    "histogram-120x40": ("machine", 40, 120, ["enter", "down", "enter"], {}),
    "histogram-log": ("machine", 24, 80, ["enter", "4", "l", "right"], {}),
    "newcomer": ("machine", 24, 80, ["end", "enter"], {}),
    "help-80x24": ("machine", 24, 80, ["h"], {}),
    "help-ascii": ("machine", 40, 80, ["h"], {"LC_ALL": "C"}),
    "help-end": ("machine", 24, 80, ["?", "pgdn", "pgdn", "pgdn", "pgdn", "pgdn"], {}),
    "help-threads": ("machine", 40, 100, ["enter", "3", "h", "pgdn"], {}),
    "unknown-key": ("machine", 24, 80, ["x"], {}),
    "suspended": ("machine", 24, 80, ["^Z"], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_screens(show, name):
    scenario, rows, columns, keys, more = CASES[name]
    with show(scenario, rows, columns, **more) as terminal:
        terminal.wait(lambda text: text.strip(), "anything")
        terminal.press(*keys)
        compare(terminal, name)


def test_every_screen_is_of_a_test():
    """What no test draws any more would never be noticed to be wrong."""
    source = pathlib.Path(__file__).read_text()
    assert [p.name for p in SCREENS.iterdir() if f'"{p.stem}"' not in source] == []


def test_without_colours_the_words_are_the_same(show):
    seen = {}
    for label, env in (("colours", {}), ("none", {"NO_COLOR": "1"}), ("vt100", {"term": "vt100"})):
        with show("machine", 30, 160, **env) as terminal:
            terminal.wait_for("p Pause")
            seen[label] = terminal.text()
            assert bool(terminal.colours()) == (label == "colours")
            # Heads, keys and the chosen row stand out without colours too.
            marked = [y for y, row in terminal.screen.buffer.items()
                      if label != "colours" and row[0].reverse]
            assert len(marked) == (0 if label == "colours" else 3)
    assert seen["colours"] == seen["none"] == seen["vt100"]


def test_a_new_size_is_followed(show):
    with show() as terminal:
        compare(terminal, "processes-80x24")
        for rows, columns, name in ((40, 120, "processes-120x40"), (10, 40, "too-small-40x10"),
                                    (1, 8, "too-small-8x1"), (60, 200, "processes-200x60"),
                                    (12, 60, "processes-60x12"), (24, 80, "processes-80x24")):
            terminal.resize(rows, columns)
            compare(terminal, name)


def test_keys_lead_back_to_where_one_was(show):
    with show() as terminal:
        compare(terminal, "processes-80x24")
        terminal.press("enter")
        compare(terminal, "apis-80x24")
        terminal.press("enter")
        compare(terminal, "histogram-80x24")
        terminal.press("esc")
        compare(terminal, "apis-80x24")
        terminal.press("tab")
        compare(terminal, "kernels-80x24")
        terminal.press("h")
        terminal.wait_for("Keys")
        terminal.press("esc")
        compare(terminal, "kernels-80x24")
        terminal.press("q")
        compare(terminal, "processes-80x24")
        terminal.press("g")
        compare(terminal, "gpus-80x24")
        terminal.press("q", "s")
        terminal.wait_for("Sort by")
        terminal.press("esc")
        compare(terminal, "processes-80x24")


def test_a_filter_can_be_given_up_or_cleared(show):
    with show() as terminal:
        compare(terminal, "processes-80x24")
        terminal.press("/", "Qtriton", "backspace", "^U", "nowhere")
        terminal.wait_for("no process matches")
        terminal.press("esc")
        compare(terminal, "processes-80x24")
        terminal.press("/", "triton", "enter")
        terminal.wait_for("1 of 3 processes match")
        terminal.press("esc")
        compare(terminal, "processes-80x24")


def test_sort_and_filter_from_the_start(show):
    with show(arguments=["pid", "a.out"]) as terminal:
        terminal.wait_for("PID▲")
        terminal.wait_for('1 of 3 processes match "a.out"')


def chosen(text):
    return re.search(r"^>\s*(\d+)", text, re.M)[1]


def test_the_cursor_stays_with_its_process(show):
    """Numbers change so that others come to stand where it was."""
    with show("many") as terminal:
        terminal.wait_for(READY)
        terminal.press("down", "down")
        terminal.wait(lambda text: ">   2532" in text, "the third row chosen")
        for _ in range(40):
            terminal.tell("n")
            terminal.answers(1)
        terminal.wait_for("22:15:29")
        assert chosen(terminal.text()) == "2532"
        # At the top it is the first row that is chosen, whichever that is.
        terminal.press("home")
        terminal.wait(lambda text: chosen(text) != "2532", "another chosen")


def test_a_process_that_ends_while_it_is_looked_at(show):
    with show() as terminal:
        compare(terminal, "processes-80x24")
        terminal.press("enter")
        compare(terminal, "apis-80x24")
        terminal.tell("e")
        compare(terminal, "gone")
        terminal.press("enter", "2", "3", "4", "l", "+", "q", "q")
        terminal.wait_for("2 processes")
        assert "4242" not in terminal.text()


def test_paused_stands_still(show):
    with show() as terminal:
        compare(terminal, "processes-80x24")
        terminal.press("p")
        terminal.wait_for("PAUSED at 22:14:49")
        terminal.tell("e" + "n" * 20)
        terminal.answers(21)
        # All of it can be looked at, although it is gone.
        terminal.press("enter")
        terminal.wait_for("[1 APIs]")
        text = terminal.text().replace("PAUSED at ", " " * 10)
        assert "4242 python" in text and "128k to 238k in 90 s" in text
        terminal.press("p")
        terminal.tell("n")
        terminal.wait_for("22:15:11")
        assert "PAUSED" not in terminal.text()


def test_history_grows(show):
    with show("waiting") as terminal:
        terminal.wait_for("waiting for the first interval")
        terminal.tell("n" * 300)
        terminal.answers(300)
        terminal.press("enter")
        terminal.wait_for("in 5 min")


SIZES = [(24, 80), (60, 200), (12, 60), (1, 1), (2, 3), (11, 59), (12, 300), (200, 60)]


@pytest.mark.parametrize("scenario", ["machine", "hostile", "many", "none", "waiting"])
def test_any_keys_at_any_size(show, scenario):
    """Whatever is typed while processes come and go, F10 ends it and nothing breaks."""
    dice = random.Random(scenario)
    keys = [k for k in KEYS if k not in ("f10", "^C")] + list("hjklrgps<>+-=/?1234qxI é")
    with show(scenario) as terminal:
        for _ in range(40):
            # q in the list would end it
            for key in dice.choices(keys, k=10):
                terminal.press("h", "esc", "enter") if key == "q" else terminal.press(key)
            if dice.random() < 0.3:
                terminal.resize(*dice.choice(SIZES))
            if dice.random() < 0.3:
                terminal.tell(dice.choice("ne"))
                terminal.answers(1)
            terminal.read(0)
        terminal.press("f10")
        assert terminal.ended() == (0, "")
        assert terminal.modes() == terminal.before


# ---- ends ----


@pytest.mark.parametrize("way", ["q", "Q", "f10", "closed"])
def test_the_terminal_is_given_back(show, way):
    with show(columns=100) as terminal:
        terminal.wait_for(READY)
        assert terminal.modes() != terminal.before
        terminal.resize(30, 90)
        terminal.wait(lambda text: "h Help" in terminal.rows()[29], "the new size")
        if way == "closed":
            terminal.tell("c")
        else:
            terminal.press(way)
        status, stderr = terminal.ended()
        assert (status, stderr) == (0, "")
        assert terminal.modes() == terminal.before
        # The last thing said is no part of the screen, and lines scroll in all of it.
        assert "ended" in terminal.text()
        regions = re.findall(rb"\x1b\[1;(\d+)r", terminal.output)
        assert regions and regions[-1] == b"30"


def test_interrupts_are_left_to_the_caller(show):
    """show_top handles none, so that ^C is its end as if there were no screen."""
    with show() as terminal:
        terminal.wait_for(READY)
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.ended()[0] == -signal.SIGINT


def test_a_terminal_that_goes_away_ends_it(show):
    """show_top ignores SIGHUP: the screen itself says that there is nobody left."""
    with show() as terminal:
        terminal.wait_for(READY)
        os.close(terminal.master)
        try:
            terminal.process.wait(timeout=20)
        finally:
            terminal.master = os.open("/dev/null", os.O_RDWR)
        assert terminal.process.returncode == 0


def test_a_terminal_that_takes_nothing_stops_nothing(show):
    """More is drawn than any buffer holds, and nobody reads it."""
    with show("many", 60, 200) as terminal:
        terminal.wait_for(READY)
        for i in range(40):
            terminal.tell("n")
            terminal.press("end" if i % 2 else "home")
            terminal.answers(1)
        # Once it is read again, it comes to show the last interval.
        terminal.wait_for("22:15:29")
        terminal.press("q")
        assert terminal.ended()[0] == 0


# Opens the terminal, and runs the program without the right to open it once more.
CLOSED = ["sh", "-c", 'chmod 0 "$(tty)" && exec setpriv --inh-caps=-all '
          '--bounding-set=-dac_override,-dac_read_search "$@"', "sh"]


@pytest.mark.root
def test_a_terminal_that_may_not_be_opened_anew(program):
    """As under sudo once gbpf has given up its rights: the same, and still no waiting."""
    with Terminal([*CLOSED, program, "many"], 60, 200) as terminal:
        terminal.wait_for(READY)
        for i in range(40):
            terminal.tell("n")
            terminal.press("end" if i % 2 else "home")
            terminal.answers(1)
        terminal.wait_for("22:15:29")
        terminal.press("q")
        assert terminal.ended() == (0, "")
        assert terminal.modes() == terminal.before


def test_without_a_terminal(program):
    done = subprocess.run([program, "machine"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert "is no terminal" in done.stderr and "gbpf monitor" in done.stderr


@pytest.mark.parametrize("term", ["dumb", "no-such-terminal"])
def test_a_terminal_that_cannot(show, term):
    with show(term=term) as terminal:
        status, stderr = terminal.ended()
        assert status == 1 and f"TERM={term}" in stderr
        assert terminal.modes() == terminal.before


def test_a_column_that_does_not_exist(show):
    with show(arguments=["speed"]) as terminal:
        status, stderr = terminal.ended()
        assert status == 1
        assert 'no column "speed": there are pid, comm, gpu, launches, ' in stderr
        assert "command" in stderr
        assert terminal.modes() == terminal.before
