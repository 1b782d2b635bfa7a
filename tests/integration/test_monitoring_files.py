# SPDX-License-Identifier: BSD-2-Clause
"""docs/monitoring: the dashboard and the alerts ask for what is served, and what deploys works."""
import itertools
import json
import re
import subprocess
import urllib.request

import gbpf
import metrics_doc
import pytest
import yaml

pytestmark = pytest.mark.parallel

FOLDER = gbpf.ROOT / "docs/monitoring"
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "grafana.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel, target) for panel in PANELS for target in panel["targets"]]
VARIABLES = [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
SERVER = gbpf.BUILD / "tests/integration/serve_metrics"


def expressions():
    """Everything that is asked of Prometheus, with where."""
    for panel, target in TARGETS:
        yield f"{panel['title']} {target['refId']}", target["expr"]
    for variable in VARIABLES:
        yield variable["name"], re.match(r"label_values\((.*), \w+\)$", variable["definition"])[1]
    for note in DASHBOARD["annotations"]["list"]:
        yield note["name"], note["expr"]
    for rule in RULES:
        yield rule["alert"], rule["expr"]


EXPRESSIONS = list(expressions())


def succeeds(*command, **kwargs):
    done = gbpf.run(*command, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# ---- what is asked for is what is documented, and what is served ----


def test_the_table_of_metrics_is_read():
    kinds = {family.name: family.kind for family in metrics_doc.FAMILIES}
    assert len(kinds) >= 55 and len(kinds) == len(metrics_doc.FAMILIES)
    assert kinds["gbpf_launch_dispatch_seconds"] == "histogram"
    assert metrics_doc.SAMPLES["gbpf_calls_total"] == metrics_doc.LABEL_SET | {"api", "kind"}
    assert metrics_doc.VALUES["gbpf_thread_activity_ratio"]["activity"] == {
        "dispatch", "sync", "elsewhere"}
    assert "power_cap" in metrics_doc.VALUES["gbpf_gpu_throttle_active"]["reason"]


def test_faults_are_found():
    wrong = {
        "gbpf_call_total": "gbpf_call_total is not documented",
        'gbpf_processes{pid="1"}': "gbpf_processes has no label pid",
        'gbpf_thread_activity_ratio{activity=~"sync|launch"}': "activity is never launch",
        "sum by (api) (gbpf_processes)": "nothing in it has a label api",
    }
    for expression, fault in wrong.items():
        assert list(metrics_doc.faults(expression)) == [fault]


@pytest.mark.parametrize("where, expression", EXPRESSIONS, ids=[e[0] for e in EXPRESSIONS])
def test_it_asks_for_what_is_documented(where, expression):
    assert not list(metrics_doc.faults(expression))
    assert list(metrics_doc.selectors(expression))


def test_labels_that_are_shown_exist():
    for panel, target in TARGETS:
        shown = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"]))
        by = re.search(r"\b(?:sum|avg|max|count) by \(([^)]*)\)", target["expr"])
        kept = set(by[1].replace(" ", "").split(",")) if by else None
        assert shown <= (kept or metrics_doc.labels_of(target["expr"])), panel["title"]
    for variable in VARIABLES:
        asked = re.match(r"label_values\((.*), (\w+)\)$", variable["definition"])
        assert asked[2] in metrics_doc.labels_of(asked[1])


def test_what_is_documented_is_on_the_dashboard():
    used = {metric for _, e in EXPRESSIONS for metric, _ in metrics_doc.selectors(e)}
    missing = {family.name for family in metrics_doc.FAMILIES
               if not used & {name for name, _ in family.samples()}}
    # bytes are shown as a rate of all copies; a machine's GPUs by name, not by number
    assert missing == {"gbpf_call_bytes_total", "gbpf_gpus"}


@pytest.fixture(scope="module")
def served():
    """Each series that is served for a made-up snapshot: {name: [labels]}."""
    process = subprocess.Popen([SERVER, "-l", "127.0.0.1:0", "-n", "2"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        url = process.stdout.readline().split()[1]
        process.stdin.write("next\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("done")
        page = urllib.request.urlopen(url, timeout=10).read().decode()
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()
    series = {}
    for name, labels in re.findall(r"^(gbpf_\w+)(?:\{(.*)\})? \S+$", page, re.M):
        series.setdefault(name, []).append(
            dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
    return series


def test_what_is_served_is_documented(served):
    for name, rows in served.items():
        assert name in metrics_doc.SAMPLES
        for labels in rows:
            assert set(labels) <= metrics_doc.SAMPLES[name], name
            for label, values in metrics_doc.VALUES.get(name, {}).items():
                assert labels[label] in values, name


def test_expressions_find_what_is_served(served):
    """Of every metric that is served, selectors with labels of its own find a series."""
    found = set()
    for where, expression in EXPRESSIONS:
        for metric, matchers in metrics_doc.selectors(expression):
            own = [m for m in matchers if m[0] in metrics_doc.VALUES.get(metric, {})]
            if metric not in served:
                continue
            found.add(metric)
            for label, operator, value in own:
                words = value.split("|")
                rows = [row for row in served[metric] if row[label] in words]
                assert rows, (where, metric, label, value)
    assert len(found) >= 35 and "gbpf_launch_dispatch_seconds_bucket" in found, found


# ---- the alerts ----


def test_alerts_are_valid():
    out = succeeds("promtool", "check", "rules", FOLDER / "alerts.yml")
    assert f"{len(RULES)} rules found" in out


def test_alerts_fire_when_they_should():
    assert "SUCCESS" in succeeds("promtool", "test", "rules",
                                 gbpf.ROOT / "tests/integration/alerts_test.yml")


def test_every_alert_is_seen_to_fire_and_not_to():
    cases = yaml.safe_load((gbpf.ROOT / "tests/integration/alerts_test.yml").read_text())
    tried = [case for test in cases["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in RULES}
    assert len(names) == len(RULES)
    assert {case["alertname"] for case in tried if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in tried if not case.get("exp_alerts")} == names


def test_alerts_say_what_to_do():
    for rule in RULES:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert len(rule["annotations"]["description"]) > 100
        assert "pid" not in rule["expr"]


PAGES = ["docs/monitoring.md", *(f"docs/monitoring/{p.name}" for p in sorted(FOLDER.iterdir()))]
OTHERS = {"--enable-feature", "--now", "--no-install-recommends", "--from", "--pid"}


@pytest.fixture(scope="module")
def known_options():
    pages = [gbpf.gbpf(c, "--help").stdout for c in ("monitor", "top", "trace", "doctor")]
    return {word for page in pages for word in re.findall(r"--[a-z][a-z-]*", page)}


@pytest.mark.parametrize("page", PAGES)
def test_options_that_are_named_exist(page, known_options):
    text = (gbpf.ROOT / page).read_text()
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named <= known_options | OTHERS


# ---- the dashboard ----


def test_expressions_of_the_dashboard_are_valid(tmp_path):
    rules = []
    for _, expression in EXPRESSIONS:
        expression = expression.replace("$__rate_interval", "5m")
        rules.append({"record": f"r{len(rules)}", "expr": re.sub(r"\$\w+", ".*", expression)})
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    assert f"{len(rules)} rules found" in succeeds("promtool", "check", "rules", path)


def test_panels_fit_and_say_what_they_show():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    titles = [panel["title"] for panel in PANELS]
    assert len(set(ids)) == len(ids) and len(set(titles)) == len(titles) >= 40
    for panel, target in TARGETS:
        assert panel["description"] and target["datasource"]["uid"] == "${datasource}"
    for panel in PANELS:
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]),
                                      range(at["y"], at["y"] + at["h"])))
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_variables_of_the_dashboard_are_defined():
    names = {v["name"] for v in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD)))
    assert used - {"__rate_interval", "__all"} == names
