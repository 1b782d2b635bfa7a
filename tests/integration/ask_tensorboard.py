# SPDX-License-Identifier: BSD-2-Clause
"""
Asks the parser of TensorBoard's plugin for torch.profiler, in a process of its own: it and what
it imports lie in a folder of their own (PYTHONPATH).

  ask_tensorboard.py FOLDER-OF-FILES > answers.json     times in us, as the plugin says them
"""
import contextlib
import json
import logging
import pathlib
import sys
import tempfile

from torch_tb_profiler import __version__, consts
from torch_tb_profiler.profiler.data import RunProfileData

COMPLAINTS = []


class Listener(logging.Handler):
    def emit(self, record):
        COMPLAINTS.append(record.getMessage())


def answer(path, cache):
    """What the plugin's own loader does with each file it finds."""
    name = consts.WORKER_PATTERN.match(path.name)
    profile = RunProfileData.parse(name.group(1), name.group(2), str(path), cache)
    return {
        "worker": profile.worker,
        "span": profile.span,
        "rank": profile.distributed_info["rank"],
        "schema": profile.data_schema_version,
        "device": profile.device_props[0]["name"],
        "devices": profile.used_devices,
        "steps": profile.steps_names,
        "utilization": profile.gpu_metrics_parser.gpu_utilization[0],
        "runtime": profile.has_runtime,
        "kernels": {str(name): row for name, row in
                    profile.kernel_stat.to_dict("index").items()},
        "step_us": [step.costs for step in profile.steps_costs],
    }


if __name__ == "__main__":
    logging.getLogger(consts.PLUGIN_NAME).addHandler(Listener(logging.ERROR))
    with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as cache:
        found = [answer(path, cache) for path in sorted(pathlib.Path(sys.argv[1]).iterdir())]
    json.dump({"version": __version__, "files": found, "complaints": COMPLAINTS}, sys.stdout,
              default=lambda v: v.item())
