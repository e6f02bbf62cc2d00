# SPDX-License-Identifier: Apache-2.0
"""The collector at size, as ratios: memory follows the slots and not the donations, time follows the donations and nothing steeper.
The figures stand in docs/performance.md; `make bench` prints them."""
import subprocess

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
