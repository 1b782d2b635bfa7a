# SPDX-License-Identifier: BSD-2-Clause
"""Starts jobs quickly: loads their modules once, and forks one for each line "MODE DIR" it reads.

CUDA is initialized in the children only. They end with their orders, or with this process.
"""
import os
import signal
import sys

import gate


def loaded(simulated):
    """make(mode, directory): the job, for gate.serve()."""
    if simulated:
        import sim_job
        return lambda mode, directory: sim_job.SimJob(mode, 1)
    import torch_job

    def make(mode, directory):
        torch_job.TorchJob.directory = directory
        return torch_job.MODES[mode]()
    return make


def serve(make, mode, directory):
    """In the child, which must never return to the loop of its parent."""
    status = 1
    try:
        log = os.open(os.path.join(directory, "log"), os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(directory)
        status = gate.serve(lambda: make(mode, directory), directory)
        sys.stdout.flush()
    finally:
        os._exit(status)


def main():
    gate.die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    make = loaded("--simulated" in sys.argv)
    for line in sys.stdin:
        if not os.fork():
            serve(make, *line.split())


if __name__ == "__main__":
    main()
