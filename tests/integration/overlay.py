# SPDX-License-Identifier: BSD-2-Clause
"""Two containers' worth of overlay mounts over one lower layer.

Both show the same real files under the same path, each with a device number of
its own, as images of one container layer do. Everything lives in mount
namespaces that their holders keep: when those end, nothing is left behind.
"""
import contextlib
import pathlib
import subprocess
import tempfile

BASE = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/lower"
echo ready
exec cat
"""

MEMBER = r"""
set -e
mkdir "$1/upper$2" "$1/work$2" "$1/merged$2"
mount -t overlay none "$1/merged$2" \
    -o "lowerdir=$1/lower,upperdir=$1/upper$2,workdir=$1/work$2"
mkdir -p "$1/merged"
mount --move "$1/merged$2" "$1/merged"
echo ready
exec cat
"""


class Namespace:
    """A mount namespace, as long as its holder waits at the end of a pipe."""

    def __init__(self, enter, script, *args):
        command = [*enter, "unshare", "--mount", "--propagation=private"]
        self.holder = subprocess.Popen(
            [*command, "sh", "-c", script, "sh", *map(str, args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        if self.holder.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError("the overlay could not be mounted (root is needed)")

    @property
    def enter(self):
        """What to put before a command so that it runs inside."""
        return ["nsenter", f"--target={self.holder.pid}", "--mount", "--"]

    def popen(self, command, **kwargs):
        """The command itself is the child: nsenter becomes it."""
        return subprocess.Popen([*self.enter, *map(str, command)], **kwargs)

    def run(self, command, **kwargs):
        return subprocess.run([*self.enter, *map(str, command)], check=True, **kwargs)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


class Overlay(Namespace):
    """`root` is where the overlay is mounted, the same path in both."""

    def __init__(self, base, path, number):
        super().__init__(base.enter, MEMBER, path, number)
        self.root = path / "merged"


@contextlib.contextmanager
def two_overlays(files):
    """Yields two Overlays whose lower layer holds files: {relative name: file to copy}."""
    with contextlib.ExitStack() as stack:
        path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gbpf-")))
        base = stack.enter_context(contextlib.closing(Namespace([], BASE, path)))
        for name, source in files.items():
            target = path / "lower" / name
            base.run(["install", "-D", "-m", "755", source, target])
        yield tuple(
            stack.enter_context(contextlib.closing(Overlay(base, path, number)))
            for number in (1, 2)
        )
