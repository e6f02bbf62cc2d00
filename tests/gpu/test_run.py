# SPDX-License-Identifier: Apache-2.0
"""run.py: what a check's own exit status and report make of it."""
import importlib.util
import json
import pathlib

import pytest

SPEC = importlib.util.spec_from_file_location("gpu_run", pathlib.Path(__file__).resolve().parent / "run.py")
gpu_run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gpu_run)


@pytest.mark.parametrize("does, ok", [("open(sys.argv[2], 'w').write('[1]')", True), ("open(sys.argv[2], 'w').write('[1]'); sys.exit(1)", False),
                                      ("pass", False), ("open(sys.argv[2], 'w').write('[]')", False), ("__import__('time').sleep(60)", False)])
def test_only_what_measured_holds(tmp_path, monkeypatch, does, ok):
    """A report that was left there by another run is none."""
    script = tmp_path / "script.py"
    script.write_text(f"import sys\n{does}\n")
    (tmp_path / "made.result.json").write_text("[2]")
    monkeypatch.setitem(gpu_run.CHECKS, "made", ([str(script)], 2))
    monkeypatch.setattr(gpu_run, "machine", dict)
    assert gpu_run.check("made", tmp_path) is ok
    said = json.loads((tmp_path / "made.json").read_text())
    assert said["ok"] is ok and said["result"] in ([1], [], None)
