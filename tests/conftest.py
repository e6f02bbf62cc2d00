# SPDX-License-Identifier: Apache-2.0
"""What every test folder shares: the repository's root, the build folder, a make that builds once."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build folder; all but the unit tests in it is up to date."""
    folder = ROOT / os.environ.get("BUILD", "build")
    done = subprocess.run(["make", "-s", "-C", str(ROOT), "tests-programs", f"BUILD={folder.name}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
