# SPDX-License-Identifier: BSD-2-Clause
"""Ranks from the environment of a job that runs: recorded, and in what is exported."""
import json

import gbpf
import pytest

pytestmark = pytest.mark.root


@pytest.mark.parametrize("variables,info", [
    ({"RANK": "5", "LOCAL_RANK": "1"}, {"rank": 5}),
    ({"LOCAL_RANK": "3"}, {"rank": 3, "rank_is": "local"}),
])
def test_the_rank_of_a_live_job(tmp_path, variables, info):
    env = {**gbpf.sim_env(), **variables}
    job = [gbpf.JOB, "--lib", gbpf.SIM / "lib", "--iterations", "2", "--truth-mib", "0", "--quiet"]
    done = gbpf.gbpf("trace", "-q", "-o", tmp_path / "t.gbpf", "--", *job, env=env)
    assert done.returncode == 0, done.stderr
    done = gbpf.gbpf("export", tmp_path / "t.gbpf", "-o", tmp_path / "t.json", "-f", "kineto")
    assert done.returncode == 0, done.stderr
    trace = json.loads((tmp_path / "t.json").read_text())
    said = trace["distributedInfo"]
    assert {k: said[k] for k in said if k != "backend"} == info
    calls = [e for e in trace["traceEvents"] if e.get("cat") == "cuda_driver"]
    assert "cuLaunchKernel" in {e["name"] for e in calls}
    assert trace["gbpf"]["losses"]["file"] == "whole"
