# SPDX-License-Identifier: Apache-2.0
"""The collector at size, as ratios: memory follows the slots and not the donations, time follows the donations and nothing steeper.
The figures stand in docs/performance.md; `make bench` prints them."""
import subprocess
import sys

import pytest

import collector

SMALL, TIMES = 20_000, 4


@pytest.fixture(scope="module")
def sizes(build, tmp_path_factory):
    """Both sizes of roll-ups: the runs, donations and bytes of records."""
    folder = tmp_path_factory.mktemp("sizes")
    return [collector.make(build, folder, "roll-ups", n) for n in (SMALL, SMALL * TIMES)]


def grown(build, sizes, words, **env):
    """By what the peak of memory grows with four times the donations."""
    small, large = (collector.spend(build, words(runs), **env)[1] for runs, _, _ in sizes)
    return large / small


def diff(runs):
    return ["diff", *runs]


def check(runs):
    return ["check", runs[0]]


def test_memory_of_diff(build, sizes):
    assert grown(build, sizes, diff) < 1.2
    assert grown(build, sizes, diff, SLOTPROBE_READING="whole") > 2  # and it would show


def test_memory_of_check(build, sizes):
    """Entries of a table a donation, in no more than is allowed: several readings with so little, one without."""
    little = {"SLOTPROBE_CHECK_MEMORY": str(500_000)}
    assert grown(build, sizes, check, **little) < 1.2
    assert grown(build, sizes, check, SLOTPROBE_READING="whole") > 2
    (_, donations, _), peak = sizes[1], collector.spend(build, check(sizes[1][0]))[1]
    assert peak < 6e6 + 80 * donations


def test_the_best_reading_counts(build, sizes):
    runs, donations, bytes_of = sizes[0]
    for verb, found in collector.measure(build, runs, donations, bytes_of, 4).items():
        assert len(found["cpu_s_each"]) == len(found["loop_s"]) == 4 and found["cpu_s"] == min(found["cpu_s_each"]) < max(found["cpu_s_each"])
        assert found["donations_per_s"] == donations * {"diff": 2, "check": 1}[verb] / found["cpu_s"]


@pytest.mark.parametrize("words", [diff, check])
def test_time_is_nearly_linear(build, sizes, words):
    """Best of five. Quadratic would be 16."""
    small, large = (min(collector.spend(build, words(runs))[0] for _ in range(5)) for runs, _, _ in sizes)
    assert large < 2.5 * TIMES * small


@pytest.mark.parametrize("kind", collector.KINDS)
def test_what_it_says_is_the_same(build, tmp_path, kind):
    """Text and JSON, to the byte, with every event loaded; in several readings too."""
    runs, _, _ = collector.make(build, tmp_path, kind, SMALL)
    for words in (diff(runs), check(runs)):
        for form in ("text", "json"):
            command = [build / "slotprobe", *words, "--format", form]
            said = {how: subprocess.run(command, capture_output=True, timeout=60, check=True, env=env).stdout for how, env in {
                "folded": {"SLOTPROBE_READING": "folded"}, "whole": {"SLOTPROBE_READING": "whole"},
                "parts": {"SLOTPROBE_READING": "folded", "SLOTPROBE_CHECK_MEMORY": "500000"}}.items()}
            assert said["folded"] == said["whole"] == said["parts"] != b""


def test_a_difference_is_loaded_whole(build, tmp_path):
    """One slot of one donation differs: nothing may be folded, and it is found."""
    runs, _, _ = collector.make(build, tmp_path, "roll-ups", SMALL)
    other = tmp_path / "other"
    subprocess.run([build / "tests/export/biglog", other, "graph-on", "18", str(SMALL // 10), "10", "1", "flawed", "lz4"], check=True,
                   stdout=subprocess.DEVNULL)
    same = tmp_path / "same"
    subprocess.run([build / "tests/export/biglog", same, "graph-off", "18", str(SMALL // 10), "10", "1", "lz4"], check=True,
                   stdout=subprocess.DEVNULL)
    done = subprocess.run([build / "slotprobe", "diff", same, other], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "1 of 180 slots differ" in done.stdout, done.stdout
    done = subprocess.run([build / "slotprobe", "diff", same, other], capture_output=True, text=True, timeout=60, check=False,
                          env={"SLOTPROBE_READING": "folded"})
    assert done.returncode == 2 and "cannot be folded" in done.stderr


def test_cpu_of_the_child_on_one_cpu(build):
    """The child's own seconds, without those of the loops; and it stays where the loop was measured."""
    said = {}
    for name, code in {"busy": "import time\nwhile time.process_time() < 0.5: pass", "idle": "import time; time.sleep(0.5)",
                       "where": "import os, sys; sys.exit(len(os.sched_getaffinity(0)) != 1)"}.items():
        status, (user, system, _, before, after) = collector.said_by_spend(build, [sys.executable, "-I", "-c", code])
        assert status == 0 and 0 < min(before, after) < 1
        said[name] = user + system
    assert 0.5 <= said["busy"] < 1 and said["idle"] < 0.4


def row(verb="diff", million_per_s=4.0, kind="roll-ups", peak=4.0, loops=(1e-3, 1e-3), donations=1_000_000, gb=2.0):
    return {"kind": kind, "donations": donations, "verb": verb, "cpu_s": 1.0, "cpu_s_each": (2.0, 1.0), "loop_s": loops,
            "donations_per_s": million_per_s * 1e6, "records_GB_per_s": gb, "peak_MB": peak}


@pytest.mark.parametrize("rows, said", [
    ([row(), row("check"), row(donations=10_000_000)], []),
    ([row(million_per_s=2.9)], ["donations_per_s 2,900,000.00 under 3,000,000.00"]),
    ([row(million_per_s=2.9, loops=(1e-3, 1.4e-3))], ["under 3,000,000.00, on a core that others shared: 1.40"]),
    ([row(million_per_s=2.9, loops=(1.4e-3, 1e-3))], ["under 3,000,000.00"]),  # the reading that counts had the core for itself
    ([row(million_per_s=0.3, kind="48 planes")], []),
    ([row(million_per_s=0.3, kind="48 planes", gb=0.9)], ["records_GB_per_s 0.90 under 1.00"]),
    ([row(peak=9)], ["9 MB over 8"]),
    ([row("check", peak=161)], ["161 MB over 160"]),
    ([row(million_per_s=6), row(million_per_s=4.1, donations=10_000_000)], ["0.68 of the rate at the size before"]),
])
def test_bars(rows, said):
    found = collector.faults(rows)
    assert len(found) == len(said) and all(fault.endswith(text) for fault, text in zip(found, said)), found
