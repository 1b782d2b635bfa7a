# SPDX-License-Identifier: BSD-2-Clause
"""A terminal for programs that draw: a pseudo-terminal and an emulator behind it."""
import fcntl
import os
import select
import socket
import struct
import subprocess
import termios
import time

import pyte

PATIENCE = 20  # seconds until what is waited for counts as not coming

KEYS = {
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D",
    "home": b"\x1b[1~", "end": b"\x1b[4~", "pgup": b"\x1b[5~", "pgdn": b"\x1b[6~",
    "f6": b"\x1b[17~", "f10": b"\x1b[21~", "enter": b"\r", "esc": b"\x1b", "tab": b"\t",
    "backspace": b"\x7f", "^L": b"\x0c", "^Z": b"\x1a", "^U": b"\x15", "^C": b"\x03",
}


class Terminal:
    """Runs a program in a terminal of this size; fd 3 of the program is a socket."""

    def __init__(self, command, rows=24, columns=80, term="linux", **env):
        self.master, self.slave = os.openpty()
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.set_size(rows, columns)
        self.before = self.modes()
        self.control, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith("LC_") and k not in ("NO_COLOR", "LINES", "COLUMNS")}
        environment.update(TERM=term, LANG="C.UTF-8", TZ="UTC", **env)
        # A session of its own, whose terminal this is: ^C and ^Z mean something.
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&0 0<>"$0" 1>&0', os.ttyname(self.slave), *map(str, command)],
            stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment,
            start_new_session=True)
        theirs.close()
        self.output = b""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.control.close()
        os.close(self.slave)
        os.close(self.master)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)

    def modes(self):
        """What stty says of the terminal, without its size."""
        with open(os.ttyname(self.slave), "rb") as terminal:
            said = subprocess.run(["stty", "-a"], stdin=terminal, capture_output=True, text=True,
                                  check=True)
        return said.stdout.split("\n", 1)[1]

    def press(self, *keys):
        """Keys by name, or text to be typed."""
        for key in keys:
            os.write(self.master, KEYS.get(key, key.encode()))

    def tell(self, commands):
        """Commands on fd 3."""
        self.control.sendall(commands.encode())

    def answers(self, count):
        """Waits for so many bytes from fd 3, without reading what is drawn."""
        self.control.settimeout(PATIENCE)
        while count:
            got = self.control.recv(count)
            assert got, "the program has closed fd 3"
            count -= len(got)

    def read(self, seconds):
        """Draws what comes within so many seconds; False: nothing came."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        got = os.read(self.master, 65536)
        self.output += got
        self.stream.feed(got)
        return True

    def rows(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.rows()) + "\n"

    def quiet(self):
        """Draws until nothing has come for a while."""
        while self.read(0.4):
            pass

    def wait(self, condition, what):
        """Draws until condition(text) is true."""
        until = time.monotonic() + PATIENCE
        while not condition(self.text()):
            assert time.monotonic() < until, f"{what} never came:\n{self.text()}"
            self.read(0.1)

    def wait_for(self, words):
        self.wait(lambda text: words in text, repr(words))

    def ended(self):
        """Waits for the end; its exit status and what it wrote to stderr."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it does not end:\n{self.text()}"
            self.read(0.05)
        while self.read(0):
            pass
        return self.process.returncode, self.process.stderr.read().decode()

    def colours(self):
        """Colours that are on the screen, but the terminal's own."""
        return {colour for row in self.screen.buffer.values() for cell in row.values()
                for colour in (cell.fg, cell.bg)} - {"default"}
