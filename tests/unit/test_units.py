# SPDX-License-Identifier: Apache-2.0
"""Runs every C unit test program: as it is, or with SAN=asan or SAN=tsan built with sanitizers that end it at the first finding."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


SAN = os.environ.get("SAN", "")
# Unlike in a server, where the writer's thread stops LeakSanitizer, everything that a test program forgot is a finding.
ENV = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"} if SAN else None


def programs() -> list[str]:
    """The unit test programs that the Makefile knows, relative to the root."""
    asked = ["make", "-s", "--no-print-directory", "-C", str(ROOT), "print-UNIT_TESTS", f"SAN={SAN}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def run(program: str) -> None:
    done = subprocess.run([ROOT / program], cwd=ROOT, capture_output=True, text=True, timeout=300, env=ENV)
    assert done.returncode == 0, f"{program}: status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    assert "[  PASSED  ]" in done.stdout + done.stderr, f"{program} ran no test"


@pytest.fixture(scope="module")
def built(build):
    """The unit tests of the build folder, up to date."""
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "unit-programs", f"SAN={SAN}", f"BUILD={build.name}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", programs())
def test_unit(built, program):
    run(program)


def test_there_are_unit_tests():
    assert len(programs()) >= 5
