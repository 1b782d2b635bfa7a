# SPDX-License-Identifier: BSD-2-Clause
"""Uses no CUDA: starts the jobs that do, as torchrun does, and waits for them.

launcher.py DIR[,DIR…] -- COMMAND [ARG…]    each child gets --dir DIR
"""
import signal
import subprocess
import sys

import gate


def main():
    gate.die_with_parent()
    directories = sys.argv[1].split(",")
    command = sys.argv[sys.argv.index("--") + 1:]
    children = []
    for d in directories:
        with open(f"{d}/log", "wb") as log:
            children.append(subprocess.Popen(
                command + ["--dir", d], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT))

    def stop(*_):
        for c in children:
            c.kill()

    signal.signal(signal.SIGTERM, stop)
    return max(abs(c.wait()) for c in children)


if __name__ == "__main__":
    sys.exit(main())
