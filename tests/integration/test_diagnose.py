# SPDX-License-Identifier: BSD-2-Clause
"""What diagnose and diff say of recordings of simulated jobs whose nature is known."""
import html
import html.parser
import json
import re
import shutil
import subprocess

import gbpf
import pytest

pytestmark = [pytest.mark.root, pytest.mark.parallel]

# CPU time of a launch, GPU time of its kernel, launches between two waits: as nanoseconds.
OVERHEAD = ["--pattern", "steady", "--dispatch-ns", 8000, "--kernel-ns", 1000, "--sync-every", 40]
GPU = ["--pattern", "steady", "--dispatch-ns", 4000, "--kernel-ns", 400_000, "--sync-every", 10]


def record(tmp_path, name, *options, duration=0.7):
    folder = tmp_path / name
    folder.mkdir()
    done, path, _ = gbpf.trace_job(folder, *options, "--duration", duration, "--truth-mib", 0,
                                   options=["-d", "0"], nice=-19)
    assert done.returncode == 0, done.stderr
    return path, done.stdout


def diagnose(path, *options):
    done = gbpf.gbpf("diagnose", path, *options)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


KEYS = {"pid", "command", "rank", "verdict", "why_inconclusive", "confidence", "basis", "window_ns",
        "shares", "step_ns", "steps", "steps_confidence", "could_be_won_ns", "findings", "next"}


@pytest.mark.parametrize("options, verdict, share", [
    (OVERHEAD, "overhead_bound", "overhead"), (GPU, "gpu_bound", "gpu")])
def test_verdict_and_contract(tmp_path, options, verdict, share):
    path, printed = record(tmp_path, "job", *options)
    told = json.loads(diagnose(path, "--format", "json"))
    assert set(told) == {"window_ns", "processes", "jobs", "quality"} and told["jobs"] == []
    (process,) = told["processes"]
    assert set(process) == KEYS
    assert process["verdict"] == verdict and process["basis"] in ("cpu", "cpu+nvml")
    assert sum(process["shares"].values()) == pytest.approx(1, abs=1e-4)
    assert max(process["shares"], key=process["shares"].get) == share
    assert process["steps"] > 10
    for finding in process["findings"]:
        assert set(finding) == {"rule", "title", "severity", "share", "evidence", "advice",
                                "refuted_by"}
    word = "suspected " + verdict.replace("_", "-")
    assert word in printed, "trace says it, too"
    text = diagnose(path)
    assert word in text and "next: sudo gbpf trace --gpu-time" in text
    assert f"## simjob (pid {process['pid']}): {word}" in diagnose(path, "--format", "markdown")


def test_what_was_lost_is_no_basis(tmp_path):
    path, _ = record(tmp_path, "few", "--pattern", "steady", "--launches", 3,
                     duration=0.1)
    (process,) = json.loads(diagnose(path, "--format", "json"))["processes"]
    if process["verdict"] == "inconclusive":
        assert process["why_inconclusive"] and process["could_be_won_ns"] is None
    whole = path.read_bytes()
    (tmp_path / "cut.gbpf").write_bytes(whole[:len(whole) // 2])
    done = gbpf.gbpf("diagnose", tmp_path / "cut.gbpf")
    assert done.returncode == 0 and "ends early" in done.stderr


class Page(html.parser.HTMLParser):
    """Complains about tags that do not match, and about anything from elsewhere."""

    def __init__(self):
        super().__init__()
        self.stack, self.captions, self.charts = [], 0, 0

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert name not in ("src", "href") and "url(" not in (value or ""), (tag, attrs)
        self.captions += tag == "caption"
        if tag == "svg":
            self.charts += 1
            assert "aria-label" in dict(attrs) or "aria-hidden" in dict(attrs)
        if tag not in ("meta", "rect"):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def test_page_needs_nothing_else(tmp_path):
    path, _ = record(tmp_path, "page", *OVERHEAD)
    text = diagnose(path, "--format", "html")
    page = Page()
    page.feed(text)
    assert not page.stack and page.captions >= 3 and page.charts >= 3
    assert "suspected overhead-bound" in text and "http" not in text and "<script" not in text


BROWSERS = ["chromium", "chromium-browser", "google-chrome"]
# Run in the page: what is wider than the window, and what has no size.
MEASURE = """
<pre id="measured"></pre><script>
const page = document.documentElement;
const drawn = [...document.querySelectorAll("svg, table, h1, h2")].map(
    e => [e.tagName.toLowerCase(), e.getBoundingClientRect()]);
document.getElementById("measured").textContent = JSON.stringify({
    window: innerWidth, page: page.scrollWidth, tables: document.querySelectorAll("table").length,
    charts: document.querySelectorAll("svg").length,
    unseen: drawn.filter(d => !(d[1].width > 0 && d[1].height > 0)).map(d => d[0]),
    bars: [...document.querySelectorAll("svg rect")].filter(
        e => e.getBoundingClientRect().width > 1).length,
    fetched: performance.getEntriesByType("resource").length});
</script>
"""


def browse(tmp_path, page, *options):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("no browser is installed: tools/install-deps long")
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={tmp_path / 'profile'}", *options, page.as_uri()],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 600])
def test_page_in_a_browser(tmp_path, width):
    path, _ = record(tmp_path, "page", *OVERHEAD)
    text = diagnose(path, "--format", "html")
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", MEASURE + "</body>"))
    assert MEASURE in page.read_text()
    dom = browse(tmp_path, page, f"--window-size={width},900", "--dump-dom")
    (measured,) = re.findall(r'<pre id="measured">(.*?)</pre>', dom)
    told = json.loads(html.unescape(measured))
    assert told["window"] == width and told["page"] <= width, told
    assert told["unseen"] == [] and told["tables"] >= 3 and told["charts"] >= 3, told
    assert told["bars"] >= 4 and told["fetched"] == 0, told


@pytest.mark.long
def test_page_on_paper(tmp_path):
    path, _ = record(tmp_path, "page", *OVERHEAD)
    page, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(diagnose(path, "--format", "html"))
    browse(tmp_path, page, f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF-") and pdf.stat().st_size > 10_000


def diff(*paths):
    done = gbpf.gbpf("diff", "--format", "json", *paths)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def test_a_change_is_seen_and_its_size_known(tmp_path):
    before, _ = record(tmp_path, "before", *OVERHEAD)
    after, _ = record(tmp_path, "after", *OVERHEAD, "--dispatch-ns", 16000)
    told = diff(before, after)["measures"]["dispatch_p50_ns"]
    assert told["differs"] and told["change"] > 0.5
    assert told["change_ci"][0] < told["change"] < told["change_ci"][1]
    same = diff(before, before)
    assert not same["differs"] and same["changes"] == []


@pytest.mark.parametrize("args", [["diff"], ["diff", "one"], ["diff", "a", "b", "c"],
                                  ["diagnose", "a", "b"]])
def test_wrong_usage(run_gbpf, args):
    done = run_gbpf(*args)
    assert done.returncode == 2 and done.stdout == ""
    assert "--help" in done.stderr


def test_no_file(run_gbpf, tmp_path):
    for args in (["diagnose"], ["diff", "none.gbpf", "none.gbpf"]):
        done = run_gbpf(*args, cwd=tmp_path)
        assert done.returncode == 1 and done.stdout == "" and done.stderr
