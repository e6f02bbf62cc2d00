# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports share: pinned readers of the formats, runs of a fleet, a toy recording."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "build" / "pytools"), str(ROOT / "tests" / "e2e")]

from toylab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def lab(build, tmp_path_factory) -> Lab:
    """The CPU driver is enough."""
    return Lab(pathlib.Path(build), "cpu", tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="session")
def toy(lab):
    """A recording with every record type that the toy can cause."""
    return lab.record("graph-on", "--bug", "stale-index-tail", options=("--watch-slot", "0", "--keep-keys", "--level", "launches"))


@pytest.fixture(scope="session")
def fleet(build, tmp_path_factory):
    """off and on: two runs of 1,000 processes, the second with what biglog calls flawed; with their exports."""
    folder = tmp_path_factory.mktemp("fleet")
    for run, arm, *flawed in (("off", "graph-off"), ("on", "graph-on", "flawed")):
        subprocess.run([build / "tests/export/biglog", run, arm, "1000", "48", "8", "4", *flawed], cwd=folder, check=True, timeout=60)
        for name in ("csv", "jsonl"):
            done = subprocess.run([build / "slotprobe", "export", run, "--format", name, "-o", f"{run}.{name}"], cwd=folder,
                                  capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (0, ""), done
    return folder
