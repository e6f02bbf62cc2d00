# SPDX-License-Identifier: Apache-2.0
"""The clock of the wall jumps, at any of the times that it is read and by days either way. Nothing but dates may follow it: durations,
deadlines and the order of records are the monotonic clock's."""
import json

import pytest

DAY = 86400


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seconds", [-30 * DAY, -3600, 3600, 30 * DAY, -10**10])
def test_the_clock_jumps(toy, at, seconds):
    run = toy.run(f"clock{at}{seconds}", FAULT_CLOCK=f"{at}:{seconds}")
    toy.server_unchanged(run)
    assert toy.honest(run) == (0, 0, [])
    for verb in ("check", "report"):
        status, _ = toy.ask(verb, run.path)
        assert status == 0


def test_the_jump_is_seen(toy):
    """The positive control: the dates do follow."""
    there = toy.run("there", FAULT_CLOCK=f"1:{10000 * DAY}")
    assert json.loads((there.path / "run.json").read_text())["started"] > "2050"
    assert json.loads((toy.good.path / "run.json").read_text())["started"] < "2050"
