#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the pages of runs with a million donations: how long slotprobe takes, how large the page is, and how long Chromium takes
until everything is drawn. size.py BUILD [DONATIONS]; exits 1 over 10 MB or 3 seconds (the best of five)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import browser as chromium

MOST_BYTES, MOST_SECONDS = 10e6, 3.0


def open_times(browser, page):
    """Seconds from the start of navigation until the script has drawn everything, five times."""
    times = []
    for _ in range(5):
        browser.get("about:blank")
        chromium.opened(browser, page)
        times.append(browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
    return times


def measure(build, donations, folder, browser):
    biglog, slotprobe = build / "tests/export/biglog", build / "slotprobe"
    for arm in ("graph-off", "graph-on"):
        subprocess.run([biglog, folder / arm, arm, "1", str(donations), "1000", "4"], check=True)
    verbs = {"report": ["report", folder / "graph-on"], "check": ["check", folder / "graph-on"],
             "diff": ["diff", folder / "graph-off", folder / "graph-on"]}
    for verb, arguments in verbs.items():
        page = folder / f"{verb}.html"
        begun = time.monotonic()
        done = subprocess.run([slotprobe, *arguments, "--format", "html", "-o", page], capture_output=True, text=True, timeout=600)
        took = time.monotonic() - begun
        assert done.returncode in (0, 1, 3) and not done.stderr, done.stderr
        times = open_times(browser, page)
        yield {"verb": verb, "donations": donations, "status": done.returncode, "make_s": round(took, 2), "bytes": page.stat().st_size,
               "open_s": [round(t, 2) for t in times], "ok": page.stat().st_size < MOST_BYTES and min(times) < MOST_SECONDS}


def main():
    build, donations = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
    browser, ok = chromium.start(), True
    try:
        with tempfile.TemporaryDirectory() as folder:
            for found in measure(build, donations, pathlib.Path(folder), browser):
                print(json.dumps(found), flush=True)
                ok &= found["ok"]
    finally:
        browser.quit()
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
