# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs of this machine in another kernel, under QEMU's emulation."""

import lzma
import pathlib
import shutil
import subprocess
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
           "virtio_pci", "virtio_blk")
DISK_BYTES = 1 << 30  # of a sparse file
SECONDS = 400


def kernel(build, version):
    """The directory of an unpacked kernel package, fetched if need be."""
    store = build / "qemu"
    done = subprocess.run([HERE / "fetch-kernels", store], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    return store / version


class Archive:
    """An initramfs: a cpio archive in the "newc" format of the kernel's documentation."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0
        self.directories = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._entry("TRAILER!!!", b"", 0)
        self.file.close()

    def _entry(self, name, data, mode):
        self.count += 1
        name = name.encode() + b"\0"
        numbers = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08x" % n for n in numbers) + name
        for part in (head, data):
            self.file.write(part + b"\0" * (-len(part) % 4))

    def directory(self, name):
        name = pathlib.PurePosixPath(name)
        for parent in [*reversed(name.parents), name]:
            if str(parent) != "." and parent not in self.directories:
                self.directories.add(parent)
                self._entry(str(parent), b"", 0o040755)

    def data(self, name, data):
        self.directory(pathlib.PurePosixPath(name).parent)
        self._entry(name, data, 0o100755)

    def program(self, name, path):
        """A file, and the libraries it needs where the linker looks for them."""
        self.data(name, pathlib.Path(path).read_bytes())
        done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, check=False)
        for word in done.stdout.split():
            if word.startswith("/") and pathlib.PurePosixPath(word) not in self.directories:
                self.directories.add(pathlib.PurePosixPath(word))
                self.data(word[1:], pathlib.Path(word).read_bytes())


def initramfs(path, unpacked, programs, cases):
    """programs: {name in the archive: path here}; cases: lines of tests/qemu/init's /cases."""
    with Archive(path) as archive:
        for name in ("proc", "sys", "dev", "out", "tmp"):
            archive.directory(name)
        archive.data("init", (HERE / "init").read_bytes())
        archive.data("bin/busybox", pathlib.Path(shutil.which("busybox")).read_bytes())
        archive.data("cases", "".join(f"{case}\n" for case in cases).encode())
        for name, source in programs.items():
            archive.program(name, source)
        for number, module in enumerate(MODULES):
            for found in unpacked.glob(f"lib/modules/*/kernel/**/{module}.ko*"):
                data = found.read_bytes()
                if found.suffix == ".xz":
                    data = lzma.decompress(data)
                archive.data(f"modules/{number}-{module}.ko", data)


def boot(directory, version, build, programs, cases, arguments=""):
    """Boots, runs the cases, and unpacks what they wrote; (its directory, console's text)."""
    unpacked = kernel(build, version)
    disk, image, console = (directory / n for n in ("disk", "initramfs", "console"))
    initramfs(image, unpacked, programs, cases)
    with open(disk, "wb") as file:
        file.truncate(DISK_BYTES)
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "2048",
               "-cpu", "Nehalem", "-nodefaults", "-no-reboot", "-display", "none",
               "-serial", f"file:{console}", "-kernel", next(unpacked.glob("boot/vmlinuz-*")),
               "-initrd", image, "-append", f"console=ttyS0 panic=-1 quiet {arguments}",
               "-drive", f"file={disk},if=none,id=out,format=raw",
               "-device", "virtio-blk-pci,drive=out"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    said = ended.stdout + console.read_text(errors="replace")
    assert ended.returncode == 0, said[-4000:]
    out = directory / "out"
    try:
        with tarfile.open(disk) as archive:
            archive.extractall(out)
    except tarfile.TarError as error:
        raise AssertionError(f"{error}\n{said[-4000:]}") from error
    disk.unlink()
    image.unlink()
    return out, said
