#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/images from a real run: the toy server with a bug that lives in its captured graphs, both arms recorded on the CPU driver,
the page of their diff in Chromium. docs/screenshots.py BUILD"""
import os
import pathlib
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests" / "html"))

import browser as chromium  # noqa: E402

MOST_BYTES = 150 * 1024
SHOTS = [("diff-verdict.png", "verdict", "light"), ("diff-map.png", "map", "light"), ("diff-timeline.png", "timeline", "dark")]


def page(build: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The page of the diff of both arms."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")} | {"LD_LIBRARY_PATH": str(build / "cpudriver")}
    for arm in ("graph-off", "graph-on"):
        subprocess.run([build / "slotprobe", "record", "-o", arm, "--arm", arm, "--watch-slot", "0", "--", build / "toyserver/toyserver", "--arm", arm,
                        "--bug", "stale-index-tail"], cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
    done = subprocess.run([build / "slotprobe", "diff", "graph-off", "graph-on", "--format", "html", "-o", "diff.html"], cwd=folder, timeout=120)
    assert done.returncode == 1
    return folder / "diff.html"


def main() -> None:
    build = pathlib.Path(sys.argv[1]).resolve()
    (DOCS / "images").mkdir(exist_ok=True)
    browser = chromium.start(1240, 1000)
    try:
        with tempfile.TemporaryDirectory() as folder:
            made = page(build, pathlib.Path(folder))
            for name, section, scheme in SHOTS:
                chromium.scheme(browser, scheme)
                chromium.opened(browser, made)
                out = DOCS / "images" / name
                out.write_bytes(browser.find_element("id", section).screenshot_as_png)
                assert out.stat().st_size < MOST_BYTES, (name, out.stat().st_size)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
