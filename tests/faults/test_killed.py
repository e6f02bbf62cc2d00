# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments: what is committed reads back, with the bytes of a run that was not killed, and the counters state the
loss."""
import concurrent.futures
import os
import random
import signal
import time

import pytest

from faultlab import EVENTS, Toy, some

KILLS = int(os.environ.get("KILL_ROUNDS", "200"))


@pytest.fixture(scope="module")
def slow(faults):
    """A toy server that takes its time, so that there are moments to choose from."""
    return faults(Toy("--requests", "24"), CPUDRIVER_DELAY_US="50")


def is_prefix(part, whole):
    """Are these the first of those, with the same hash where there is one?"""
    return len(part) <= len(whole) and all(a is None or a == b for a, b in zip(part, whole))


def check(lab, run):
    """Returns the donations that it has and whether some were in flight."""
    status, found = lab.ask("verify", run.path)
    if status == 2:  # killed before it had a run
        return 0, False
    assert status in (0, 3), found
    assert {r["code"] for r in found["reasons"]} <= {"log_truncated", "never_loaded"}, found["reasons"]
    probes = lab.probes(run)
    if probes is None:
        return 0, False
    hashes = lab.measured(run)
    for kind in EVENTS:
        row, events = probes[f"core.{kind}"], hashes[kind]
        assert is_prefix(events, lab.good_hashes[kind]), kind
        whole = sum(h is not None for h in events) if kind in ("donate", "restore", "alloc", "clear", "copy") else len(events)
        assert row["committed"] <= whole <= row["committed"] + row["in_flight"], (kind, row, whole)
        assert not some(row["dropped"]) and not some(row["skipped"]) and not row["errors"], row
    differs, found = lab.ask("diff", lab.other.path, run.path)
    assert differs == 3 or (differs == 0 and lab.complete(run, probes)), found
    return probes["core.donate"]["committed"], probes["core.donate"]["in_flight"] > 0


def kill_one(lab, number, after):
    """One run that is killed so many seconds after its start."""
    started = lab.start(f"killed{number}")
    time.sleep(after)
    started[2].send_signal(signal.SIGKILL)
    run = lab.finish(started)
    assert run.status in (-signal.SIGKILL, 0)
    return run.status, check(lab, run)


def test_killed_at_random_moments(slow):
    began = time.monotonic()
    slow.run("timed")
    length = time.monotonic() - began
    chosen = random.Random(1)
    moments = [chosen.uniform(0, length * 1.05) for _ in range(KILLS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: kill_one(slow, *job), enumerate(moments)))
    killed = [what for status, what in found if status]
    assert len(killed) > KILLS / 2
    assert any(in_flight for _, in_flight in killed), "no moment found anything in flight"
    assert any(0 < committed < slow.good_probes["core.donate"]["committed"] for committed, _ in killed), "no moment lay between two chunks"
