# SPDX-License-Identifier: BSD-2-Clause
"""The metrics that docs/openmetrics.md lists, and what PromQL expressions make of them."""
import re

import gbpf

TEXT = (gbpf.ROOT / "docs/openmetrics.md").read_text()
LABEL_SET = {"comm", "container", "pod", "namespace", "slurm_job", "rank", "gpu"}
ADDED = {"instance", "job"}  # by whoever scrapes


class Family:
    def __init__(self, name, kind, labels):
        self.name, self.kind = name, kind
        self.labels, self.values = set(), {}
        for part in re.split(r", (?=`)|(?<=set), ", labels):
            if part.startswith("label set"):
                self.labels |= LABEL_SET
            for label, values in re.findall(r"`(\w+)`(?:: ([\w, ]+))?", part):
                self.labels.add(label)
                if values:
                    self.values[label] = set(values.split(", "))

    def samples(self):
        """The series it is made of, with the labels of each."""
        yield self.name, self.labels
        if self.kind == "histogram":
            yield self.name + "_bucket", self.labels | {"le"}
            yield self.name + "_sum", self.labels
            yield self.name + "_count", self.labels


def read():
    for row in TEXT.split("\n"):
        if not row.startswith("| `gbpf_"):
            continue
        row = row.strip("|").split(" | ")
        name, kind, _, labels = (cell.strip() for cell in row[:4])
        yield Family(name.strip("`"), kind, labels)


FAMILIES = list(read())
SAMPLES = {name: labels for family in FAMILIES for name, labels in family.samples()}
VALUES = {family.name: family.values for family in FAMILIES}

SELECTOR = re.compile(r"\b(gbpf_\w+|up)\b(?:\s*\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def selectors(expression):
    """(metric, [(label, operator, value)]) of each selector."""
    for metric, matchers in SELECTOR.findall(expression):
        yield metric, MATCHER.findall(matchers or "")


def grouped(expression):
    """Labels that the expression groups or joins by."""
    for _, labels in GROUPING.findall(expression):
        yield from (label.strip() for label in labels.split(",") if label.strip())


def labels_of(expression):
    """Those that any of its series may have."""
    found = set(ADDED)
    for metric, _ in selectors(expression):
        found |= SAMPLES.get(metric, set())
    return found


def faults(expression):
    """What in it is not as documented."""
    for metric, matchers in selectors(expression):
        if metric == "up":
            continue
        if metric not in SAMPLES:
            yield f"{metric} is not documented"
            continue
        for label, operator, value in matchers:
            if label not in SAMPLES[metric] | ADDED:
                yield f"{metric} has no label {label}"
            known = VALUES.get(metric, {}).get(label)
            if known and value and not value.startswith("$"):
                words = value.split("|") if "~" in operator else [value]
                yield from (f"{label} is never {w}" for w in words if w not in known)
    for label in grouped(expression):
        if label not in labels_of(expression):
            yield f"nothing in it has a label {label}"
