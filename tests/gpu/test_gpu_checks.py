# SPDX-License-Identifier: Apache-2.0
"""run.py: what a check's own exit status and report make of it."""
import json

import pytest


@pytest.mark.parametrize("does, ok", [("open(sys.argv[2], 'w').write('[1]')", True), ("open(sys.argv[2], 'w').write('[1]'); sys.exit(1)", False),
                                      ("pass", False), ("open(sys.argv[2], 'w').write('[]')", False), ("__import__('time').sleep(60)", False)])
def test_only_what_measured_holds(script, tmp_path, monkeypatch, does, ok):
    """A report that was left there by another run is none."""
    runner, program = script("gpu/run.py"), tmp_path / "program.py"
    program.write_text(f"import sys\n{does}\n")
    (tmp_path / "made.result.json").write_text("[2]")
    monkeypatch.setitem(runner.CHECKS, "made", ([str(program)], 2))
    monkeypatch.setattr(runner, "machine", dict)
    assert runner.check("made", tmp_path) is ok
    said = json.loads((tmp_path / "made.json").read_text())
    assert said["ok"] is ok and said["result"] in ([1], [], None)
