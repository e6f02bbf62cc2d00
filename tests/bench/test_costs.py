# SPDX-License-Identifier: Apache-2.0
"""run.py: the whole of it once on the CPU driver; and what it makes of what processes on a GPU might say."""
import argparse
import json
import subprocess
import sys

import pytest


def test_it_runs(build, root, tmp_path):
    """Few rounds; its counts are slotprobe's. Nothing is judged here."""
    report = tmp_path / "costs.json"
    done = subprocess.run([sys.executable, "-B", root / "tests/bench/run.py", "--build", build, "--quick", "--json", report], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(report.read_text())["rows"]
    assert len(rows) == 9 and rows["donation, 8 threads"]["donations"] == 4000 and rows["launch of 200 nodes"]["recorded / bare"]["pairs"] == 3


@pytest.fixture(name="missed")
def fixture_missed(build, script, tmp_path, monkeypatch):
    """What a bench on a GPU has missed, where each process says this line for each round, and its counters are those."""
    run = script("bench/run.py")

    def play(what, line, attempted, dropped=0, past=None):
        class Worker:
            def __init__(self, *_args, **_how):
                pass

            def round(self, said=""):
                return past if past and said.endswith("past") else line

            def close(self):
                return {"core.donate": {"attempted": attempted, "committed": attempted - dropped, "dropped": {"ring_full": dropped}},
                        "core.graph_launch": {"committed": attempted}}
        monkeypatch.setattr(run, "Worker", Worker)
        bench = run.Bench(argparse.Namespace(build=build, driver="cuda", quick=True), tmp_path)
        what(bench)
        return bench.missed
    return play


@pytest.mark.parametrize("line, attempted, dropped, said", [
    ([100, 200, 120, 240, 50, 0], 100, 0, None),
    ([100, 200, 160, 240, 50, 0], 100, 0, "median"),
    ([100, 200, 120, 340, 50, 0], 100, 0, "p99"),
    ([100, 200, float("nan"), 240, 50, 0], 100, 0, "median"),
    ([100, 200, 20, 40, 50, 50], 100, 100, "refused donations"),  # the quickest of all
    ([100, 200, 20, 40, 50, 50], 100, 0, "counted"),  # paused: 0 is answered, and nothing dropped
])
def test_donations(missed, line, attempted, dropped, said):
    found = missed(lambda bench: bench.donate(1), line, attempted, dropped)
    assert bool(found) == bool(said) and (not said or any(said in miss for miss in found)), found


@pytest.mark.parametrize("line, dropped, said", [
    ([500, 0, 99990], 0, None),
    ([500, 0, 50000], 0, "reached"),  # no drops at half the rate are no drops at that rate
    ([500, 5, 99990], 5, "drops at"),
])
def test_floods(missed, line, dropped, said):
    found = missed(lambda bench: bench.flood(1, 100000, 5, False), line, 500, dropped)
    assert bool(found) == bool(said) and (not said or said in found[0]), found


@pytest.mark.parametrize("line, past, counted, said", [
    ([101.0, 100.0], [100.0, 100.5], 1600, []),
    ([103.0, 100.0], [100.0, 100.5], 1600, ["4 nodes in one", "200 nodes in one"]),
    ([101.0, 100.0], [100.0, 90.0], 1600, ["past and past"] * 2),  # what is the same differs: nothing can be told
    ([101.0, 100.0], [100.0, 100.5], 3200, ["counted 3200"] * 2),  # nothing went past the preload
    ([101.0, 100.0], [100.0, 100.5], 0, ["counted 0"] * 2),
])
def test_launches_in_one_process(missed, line, past, counted, said):
    found = missed(lambda bench: bench.past(), line, counted, past=past)
    assert len(found) == len(said) and all(s in f for s, f in zip(said, found)), found
