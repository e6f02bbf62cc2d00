# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md shows what its commands print, and docs/images are small pictures of the page."""
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_the_tutorial_is_true(build):
    done = subprocess.run([sys.executable, "-B", ROOT / "docs" / "tutorial.py", build], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_images():
    images = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert len(images) == 3
    for image in images:
        data = image.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) < 150 * 1024
        assert struct.unpack(">I", data[16:20])[0] > 1000
        assert any(image.name in (ROOT / page).read_text() for page in ("README.md", "docs/tutorial.md")), image.name


def test_the_script_makes_them(build, tmp_path):
    """docs/screenshots.py works here too; pictures differ by fonts, so only that each is made and small."""
    copy = tmp_path / "repository"
    for name in ("docs/screenshots.py", "tests/html/browser.py"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run([sys.executable, "-B", copy / "docs" / "screenshots.py", build], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in (copy / "docs/images").glob("*.png")} == {p.name for p in (ROOT / "docs/images").glob("*.png")}
