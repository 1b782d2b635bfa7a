# SPDX-License-Identifier: BSD-2-Clause
"""Runs that are to fail, and jobs that must not notice."""

import contextlib

import gbpf

NOBODY = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]
STEADY = ["--pattern", "train", "--duration", 0, "--kernel-ns", 20000, "--wait", "sleep",
          "--truth-mib", 0]
SOME = ["--api", "cuLaunchKernel,cuStreamSynchronize"]


def trace(*args, before=(), **kwargs):
    return gbpf.run(*before, gbpf.GBPF, "trace", *args, **kwargs)


def fails(done, status, first_line):
    """Exactly this status and first line, and nothing on stdout."""
    assert done.returncode == status, done
    assert done.stdout == "", done
    assert done.stderr.split("\n")[0] == first_line, done.stderr


def leaves(folder, *names):
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


@contextlib.contextmanager
def busy(tmp_path, **kwargs):
    """A job that must come to its end by SIGTERM, whatever was done to it."""
    with gbpf.job(tmp_path, *STEADY, name="truth", **kwargs) as job:
        yield job
        assert job.poll() is None, "the target is gone"
    assert job.returncode == 0
    assert "output" in job.output
