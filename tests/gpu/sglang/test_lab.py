# SPDX-License-Identifier: Apache-2.0
"""What the script for a live SGLang server reads out of a run, held against what another server, which runs here, wrote down itself."""
import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lab import Lab  # noqa: E402


@pytest.mark.parametrize("ids", ["host", "device"])
def test_donated_slots(build, tmp_path, ids):
    """The slots that were donated, and which of them again, wherever their ids were."""
    run, journal = tmp_path / "run", tmp_path / "journal"
    done = subprocess.run([build / "slotprobe", "record", "-o", run, "--", build / "toyserver/toyserver", "--slot-ids", ids, "--journal", journal],
                          env=os.environ | {"LD_LIBRARY_PATH": str(build / "cpudriver")}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in journal.read_text().splitlines()]
    slots = collections.Counter(s["slot"] for s in said if s.get("event") == "donate")
    assert max(slots.values()) > 1 and len(slots) > 1
    assert Lab(build, tmp_path).donated_slots(run) == slots
