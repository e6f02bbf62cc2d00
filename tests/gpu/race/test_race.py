# SPDX-License-Identifier: Apache-2.0
"""run.py of the race: all of it once on the CPU driver, and what it makes of what processes on a GPU might say."""
import copy
import json
import subprocess
import sys

import pytest


def test_it_runs(build, root, tmp_path):
    """The program's counts are slotprobe's, what is past the preload is in neither, and no order lets it show; rates are not judged here."""
    report = tmp_path / "race.json"
    done = subprocess.run([sys.executable, "-B", root / "tests/gpu/race/run.py", "--build", build, "--driver", "cpu", "--processes", "1", "--sweeps", "1",
                           "--json", report], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    (process,) = found["processes"]
    assert process["counted"]["launches"] == process["launches"] == 4 * 2 * 5 * (200 + 2 * 33)  # of 5 of the 8 kinds, the settling rounds too
    assert process["kinds"]["past"]["sweep"]["trials"] == 99 and process["kinds"]["past"]["edge"]["stale"] > 0
    assert all(sum(map(int, kind["by_offset"].split())) == kind["sweep"]["stale"] for kind in process["kinds"].values())


SOUND = {"past": 500, "again": 502, "recorded": 490, "through": 492, "late": 460, "ordered": 0, "wait": 0, "spin": 3}  # at the edge and in the sweep
SPREAD = (-9, 6, 3, -4, 8, -7, 0, 5, -2, 0)


def play(n=10, each=lambda number, stale: stale, sweep=(), edge=()):
    """Processes of 1000 trials of each kind, of which so many were stale, and a few more or less in one than in another."""
    made = []
    for number, more in enumerate(SPREAD[:n]):
        kinds = {}
        for at, (kind, stale) in enumerate((SOUND | dict(sweep)).items()):
            own = stale + (SPREAD[number - at] + more if stale > 10 else 0)
            at_edge = dict(edge).get(kind, own)
            kinds[kind] = {"sweep": {"trials": 1000, "stale": each(number, own)}, "edge": {"trials": 1000, "stale": at_edge}}
        made.append({"kinds": kinds, "late_ns": 125.0, "launches": 80, "donations": 40, "counted": {"launches": 80, "donations": 40}})
    return made


@pytest.fixture(name="run")
def fixture_run(script):
    return script("gpu/race/run.py")


@pytest.mark.parametrize("told, said", [
    ({}, None),
    ({"sweep": {"recorded": 530}}, None),  # more often is no loss
    ({"edge": {"recorded": 300}}, None),  # printed, not judged
    ({"sweep": {"recorded": 440}}, "less often while recording"),
    ({"sweep": {"recorded": 453}}, "up to 0.10"),  # 0.9 of it are there, but not for certain
    ({"sweep": {"again": 440}}, "that are the same differ"),
    ({"sweep": {"again": 560}}, "that are the same differ"),
    ({"sweep": {"spin": 490}}, "2 us would not be seen"),
    ({"sweep": {"spin": 448}}, "2 us would not be seen"),  # more than a tenth, but not for certain
    ({"n": 6}, "not resolved: 6 of 6"),
    ({"each": lambda number, stale: 0 if number > 5 else stale}, "not resolved: 6 of 10"),  # it never shows there: nothing can be lost
    ({"sweep": dict.fromkeys(SOUND, 0)}, "not resolved: 0 of 10"),
    ({"sweep": dict.fromkeys(SOUND, 995)}, "not resolved: 0 of 10"),  # it shows whatever is done
    ({"sweep": {"past": 0}}, "not resolved"),
    ({"each": lambda number, stale: stale if stale < 480 else stale + (-1) ** number * 17 * (stale % 10)}, "not resolved"),  # ten processes that differ as much
])
def test_rates(run, told, said):
    judged, faults = run.judge_rates(play(**told))
    assert (said is None and not faults) or (said and any(said in fault for fault in faults)), (judged, faults)
    assert run.lines(judged)


def test_ten_processes_of_one_kind_each(run):
    """What the check was before, as an H200 said it: the processes of a pair are no pair. Nothing can be said of it, and nothing is."""
    bare, recorded = [0.77, 0.76, 0.72, 0.58, 0.635, 0.625, 0.825, 0.62, 0.0, 0.01], [0.205, 0.025, 0.705, 0.19, 0.765, 0.86, 0.775, 0.0, 0.84, 0.035]
    processes = play()
    for process, past, then in zip(processes, bare, recorded):
        process["kinds"]["past"]["sweep"]["stale"], process["kinds"]["recorded"]["sweep"]["stale"] = 1000 * past, 1000 * then
        process["kinds"]["past"]["sweep"]["stale"] += 1  # not refused for that
    row = run.losses(processes, "sweep")["recorded"]
    assert row["least"] < 0 and row["most"] > 0.4


def test_the_loss_in_time(run):
    assert run.judge_rates(play(sweep={"recorded": 480, "late": 460}))[0]["ns"] == pytest.approx(62.5, rel=0.1)
    assert "ns" not in run.judge_rates(play(sweep={"late": 500}))[0]  # a time that makes no difference tells none


@pytest.mark.parametrize("change, said", [
    (lambda p: None, None),
    (lambda p: p["counted"].update(launches=160), "counted"),  # what went past it was seen
    (lambda p: p["counted"].update(donations=39), "counted"),
    (lambda p: p.update(donations=0, counted={"launches": 80, "donations": 0}), "counted"),  # nothing was recorded
    (lambda p: p["kinds"]["ordered"]["sweep"].update(stale=1), "ordered"),
    (lambda p: p["kinds"]["wait"]["edge"].update(stale=1), "wait"),
])
def test_counts(run, change, said):
    processes = copy.deepcopy(play(2))
    change(processes[1])
    faults = run.judge_counts(processes)
    assert len(faults) == bool(said) and all(said in fault for fault in faults)
