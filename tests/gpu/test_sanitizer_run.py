# SPDX-License-Identifier: Apache-2.0
"""What sanitizer_run.py makes of what a compute-sanitizer says; a stand-in says it, since the real one needs a GPU."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent / "sanitizer_run.py"
CLEAN = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
         "initcheck": "ERROR SUMMARY: 0 errors", "synccheck": "ERROR SUMMARY: 0 errors"}
PLANTED = {"memcheck-past": (9, "ERROR SUMMARY: 64 errors"), "initcheck-unwritten": (9, "ERROR SUMMARY: 1 error")}


def run(tmp_path, **says):
    """Each tool prints its line, and ends with the status that may stand before it. With a fault planted it is TOOL-FAULT."""
    cases = "".join(f"{tool}) echo '========= {line}'; exit {status} ;;\n" for tool, (status, line) in
                    {**{t: (0, line) for t, line in CLEAN.items()}, **PLANTED, **says}.items())
    stand_in = tmp_path / "compute-sanitizer"
    stand_in.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Version 2025.1.0.0" && exit\n'
                        f'tool=$2\nwhile [ $# -gt 1 ]; do [ "$1" = --plant ] && tool=$tool-$2; shift; done\ncase "$tool" in\n{cases}esac\n')
    stand_in.chmod(0o755)
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--json", tmp_path / "out.json", "--seconds", "5"], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    return done.returncode, json.loads((tmp_path / "out.json").read_text())


def test_clean(tmp_path):
    status, said = run(tmp_path)
    assert status == 0 and said["version"] == "2025.1.0.0"
    assert {tool: (t["ok"], t["errors"]) for tool, t in said["tools"].items()} == {tool: (True, 0) for tool in CLEAN}
    assert {tool: (t["ok"], t["errors"]) for tool, t in said["planted"].items()} == {"memcheck": (True, 64), "initcheck": (True, 1)}


@pytest.mark.parametrize("fault, status, line", [("memcheck-past", 0, "ERROR SUMMARY: 0 errors"), ("initcheck-unwritten", 0, "ERROR SUMMARY: 0 errors"),
                                                 ("memcheck-past", 9, "Error: No attachable process found"), ("initcheck-unwritten", 1, "no GPU")])
def test_a_tool_that_sees_nothing_fails(tmp_path, fault, status, line):
    exit_status, said = run(tmp_path, **{fault: (status, line)})
    assert exit_status == 1 and all(t["ok"] for t in said["tools"].values())
    assert not said["planted"][fault.split("-")[0]]["ok"]


@pytest.mark.parametrize("tool, status, line, errors", [
    ("memcheck", 9, "ERROR SUMMARY: 3 errors", 3), ("racecheck", 0, "RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)", 2),
    ("synccheck", 0, "Error: No attachable process found", None), ("initcheck", 1, "ERROR SUMMARY: 0 errors", 0)])
def test_a_finding_or_no_answer_fails(tmp_path, tool, status, line, errors):
    exit_status, said = run(tmp_path, **{tool: (status, line)})
    assert exit_status == 1
    assert not said["tools"][tool]["ok"] and said["tools"][tool]["errors"] == errors
    assert all(t["ok"] for name, t in said["tools"].items() if name != tool)
