# SPDX-License-Identifier: Apache-2.0
"""compare_alternatives.py without a GPU: every way runs on the CPU driver and PyTorch's tensors, and what it must say, and refuse, is said."""
import copy
import json
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sglang")]

import compare_alternatives as compare  # noqa: E402

DONATE = {"attempted": 9, "committed": 9, "dropped": {"ring_full": 0}, "errors": 0}
OURS = ("slotprobe_from_c", "slotprobe_from_python", "slotprobe_id_on_device")


@pytest.fixture(scope="module")
def found(build, tmp_path_factory):
    """One run of it."""
    import prepare
    release, report = prepare.prepare(), tmp_path_factory.mktemp("alternatives") / "found.json"
    env = os.environ | {"PYTHONPATH": str(release / "site"), "LD_LIBRARY_PATH": str(release / "nvidia"), "PYTHONPYCACHEPREFIX": str(release / "compiled")}
    done = subprocess.run([sys.executable, "-B", HERE / "compare_alternatives.py", "--build", build, "--driver", "cpu", "--turns", "8", "--json", report],
                          capture_output=True, text=True, env=env, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text())


def test_every_way_runs(found):
    """In each pool, with host times; what waits is told from what does not."""
    assert not found["missed"] and not found["not_able"]
    ways = {r["way"] for r in found["rows"]}
    assert len(ways) == 11 and len(found["rows"]) == 33 and all(r["host_us"]["n"] > 0 and r["times_slotprobe"] > 0 for r in found["rows"])
    assert {r["way"] for r in found["rows"] if r["synchronises"]} == {"absmax_item", "layers_item", "layers_stacked", "copy_pageable"}


def test_what_each_one_sees(found):
    """An absolute maximum is blind where the extremes stay; slotprobe and a copy see everything, and nothing where there is nothing."""
    seen = found["seen"]
    for way in (*OURS, "copy_pageable", "copy_pinned", "dump"):
        assert {plant for plant, by_way in seen.items() if by_way[way] == "missed"} == {"nothing"}
    for plant in ("two elements swapped", "one sign", "another slot's state", "a layer zero"):
        assert seen[plant]["absmax_item"] == seen[plant]["aminmax"] == "missed"
    assert seen["two elements swapped"]["hash_tensor"] == "missed" and seen["one sign"]["hash_tensor"] == "found"


def test_a_capture_survives_a_donation(found):
    """It is refused there, and the driver's capture ends well."""
    assert {way: found["captures"][way] for way in OURS} == {way: {"capture": "survives", "said": -16} for way in OURS}


def judged(found, driver="cpu", probes=None):
    """What the judge has against it."""
    return compare.judge(SimpleNamespace(driver=driver), found, probes or {"core.donate": DONATE})


def spoilt(found, where):
    """A copy with one thing wrong."""
    other = copy.deepcopy(found)
    ours = next(r for r in other["rows"] if r["way"] == OURS[1])
    if where == "waits":
        ours["synchronises"] = True
    elif where == "refused":
        ours["refused"] = 1
    elif where == "blind":
        other["seen"]["one sign"][OURS[0]] = "missed"
    elif where == "sees ghosts":
        other["seen"]["nothing"][OURS[2]] = "found"
    elif where == "capture":
        other["captures"][OURS[1]] = {"capture": "fails"}
    elif where == "captured in silence":
        other["captures"][OURS[0]] = {"capture": "survives", "said": "part of the graph"}
    elif where == "captured unrecorded":
        other["captures"][OURS[0]] = {"capture": "survives", "said": -38}
    elif where == "no wait is seen":
        for row in other["rows"]:
            row["synchronises"] = False
    elif where == "nothing of ours":
        other["captures"] = {way: said for way, said in other["captures"].items() if way not in OURS}
    elif where == "ended":
        other["exit"] = 1
    elif where == "half":
        del other["seen"]
    return other


@pytest.mark.parametrize("where", ["waits", "refused", "blind", "sees ghosts", "capture", "captured in silence", "captured unrecorded",
                                   "no wait is seen", "nothing of ours", "ended", "half"])
def test_the_judge_sees_it(found, where):
    """Each of what it looks at, spoilt."""
    assert not judged(found) and judged(spoilt(found, where))


def test_the_judge_holds_the_bars(found):
    """Of a GPU's figures, in the pool that is named; and that every donation was recorded."""
    other = copy.deepcopy(found)
    for row in other["rows"]:
        row["pool"], row["times_slotprobe"] = compare.JUDGED, {"absmax_item": 5.1, "layers_item": 170}.get(row["way"], 1)
    assert not judged(other, "cuda")
    for row in other["rows"]:
        row["times_slotprobe"] = {"absmax_item": 4.9, "layers_item": 149}.get(row["way"], 1)
    assert len(judged(other, "cuda")) == 2 and not judged(other)
    other["rows"] = [row for row in other["rows"] if row["way"] != "layers_item"]
    assert len(judged(other, "cuda")) == 2, "a way that was not measured holds no bar"
    for row in other["rows"]:
        row["pool"] = "another"
    assert len(judged(other, "cuda")) == 2
    for wrong in ({"attempted": 0, "committed": 0}, {"committed": 8, "errors": 1}, {"committed": 8, "dropped": {"ring_full": 1}},
                  {"committed": 0, "filtered": 9}):  # paused
        assert judged(found, probes={"core.donate": DONATE | wrong})
