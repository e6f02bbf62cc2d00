# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of HTML pages: a browser, a toy recording with a bug, and pages made of it."""
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests" / "e2e"), str(pathlib.Path(__file__).parent)]

import browser as chromium  # noqa: E402
import loggen  # noqa: E402
from toylab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def lab(build, tmp_path_factory) -> Lab:
    """The CPU driver is enough: pages are made from logs."""
    return Lab(pathlib.Path(build), "cpu", tmp_path_factory.mktemp("html"))


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests."""
    one = chromium.start()
    yield one
    one.quit()


@pytest.fixture(scope="session")
def toy(lab):
    """Both arms of the toy with the bug in its captured graphs."""
    return {arm: lab.record(arm, "--bug", "stale-index-tail", options=("--watch-slot", "0")) for arm in ("graph-off", "graph-on")}


@pytest.fixture(scope="session")
def make_page(lab):
    """Runs a verb with --format html; returns the file."""
    def make(name, *args, status=0):
        page = lab.folder / f"{name}.html"
        done = lab.slotprobe(*args, "--format", "html", "-o", page)
        assert done.returncode == status and not done.stderr and not done.stdout, (done.returncode, done.stderr)
        return page
    return make


@pytest.fixture(scope="session")
def pages(toy, make_page):
    """A page of each verb."""
    off, on = toy["graph-off"].path, toy["graph-on"].path
    return {"diff": make_page("diff", "diff", off, on, status=1), "equal": make_page("equal", "diff", off, copy_of(off), status=3),
            "check": make_page("check", "check", on, status=1), "report": make_page("report", "report", on)}


def copy_of(run):
    """The same run elsewhere: a comparison that is void, and so has reasons."""
    return shutil.copytree(run, run.with_name(run.name + "-copy"))


@pytest.fixture(scope="session")
def large(build, tmp_path_factory):
    """100,000 donations of 2,500 slots."""
    run = tmp_path_factory.mktemp("large") / "run"
    done = subprocess.run([build / "tests/export/biglog", run, "graph-on", "1", "100000", "2500", "4"], timeout=60)
    assert done.returncode == 0
    yield run
    shutil.rmtree(run)


# ---- a run whose every name wants to be markup ----

EVIL = ["</script><script>document.documentElement.dataset.owned=1</script>", "\"><img src=x onerror=document.documentElement.dataset.owned=1>",
        "<!--TITLE--> ' --> ]]>", "&lt;b&gt; &#x3c;"]


def hostile(folder, arm, wrong):
    """A run whose every name wants to be markup."""
    p = loggen.Process(host="ho<st>\"'&", pid=4194301 + (arm == "graph-on"))
    p.recorded += arm == "graph-on"
    planes = [(EVIL[0][:60], 0, 1, 64), (EVIL[1][:60], 1, 1, 64), (EVIL[2], 2, 1, 64), (b"\xff\xfe<i>\xc3".decode("latin-1"), 3, 1, 64)]
    pool = p.pool(name=EVIL[1][:62], planes=planes)
    for n in range(8):
        p.launch() if arm == "graph-on" else None
        p.step(name=EVIL[3])
        p.event(loggen.ALLOC, pool, n % 3)
        pool.write(n % 3, f"content {n}" if not (wrong and n == 5) else "nan" + EVIL[0])
        p.donate(pool, n % 3, 8 * n + 8, key=n + 1)
    run = loggen.Run(arm, p).write(folder)
    manifest = json.loads((run / "run.json").read_text())
    manifest["argv"] = ["srv", EVIL[0], EVIL[1]]
    (run / "run.json").write_text(json.dumps(manifest))
    return run


@pytest.fixture(scope="session")
def hostile_pages(tmp_path_factory, make_page):
    folder = tmp_path_factory.mktemp("hostile")
    a, b = hostile(folder / "a'\"<u>&amp;", "graph-off", False), hostile(folder / "b<title><script>", "graph-on", True)
    return {"diff": make_page("evil-diff", "diff", a, b, status=1), "check": make_page("evil-check", "check", b, status=1),
            "report": make_page("evil-report", "report", b)}
