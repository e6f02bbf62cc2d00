# SPDX-License-Identifier: Apache-2.0
"""Nothing is perturbed: what slotprobe adds to the driver calls of a server, counted by the CPU driver, and the storm of captures. Each test
has its red twin: the same check with a probe that does what no probe may do (tests/bench/perturb.c)."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import storm  # noqa: E402
from perturbed import GRAPHS, PER_EVENT, TWINS, WAITS, Counted, faults, grown, of, ALLOWED  # noqa: E402


@pytest.fixture
def counted(build, tmp_path):
    return Counted(build, tmp_path)


def test_no_wait_no_allocation_no_legacy_work(counted):
    added, bare = counted.added(24)
    assert bare["cuGraphLaunch"] and added["cuLaunchKernel"] > 20  # it was measured
    assert faults(added) == {}


def test_what_is_added_does_not_grow_with_requests_but_for_fingerprints(counted):
    few, bare_few = counted.added(12)
    many, bare_many = counted.added(36)
    assert bare_many["cuGraphLaunch"] > 2 * bare_few["cuGraphLaunch"]
    assert many["device_bytes_peak"] == few["device_bytes_peak"]
    assert grown(few, many) == set() and many["cuLaunchKernel"] > few["cuLaunchKernel"]


@pytest.mark.parametrize("perturb, named", TWINS.items())
def test_a_probe_that_perturbs_is_seen(counted, perturb, named):
    added, _ = counted.added(24, perturb=perturb)
    assert named in faults(added)


def test_no_list_allows_what_another_forbids():
    assert of(dict.fromkeys(ALLOWED), WAITS + GRAPHS) == {} and PER_EVENT < ALLOWED


def test_storm(build, tmp_path):
    _, found = storm.measure(storm.Storm(build, "cpu", tmp_path), 6)
    assert not found
