# SPDX-License-Identifier: Apache-2.0
"""Contexts and devices that go, and processes that end, while results are out: each operation takes 20 ms, so that a hundred donations
take longer than anybody waits for them."""
import pytest

from faultlab import Tour, some

DELAY = {"CPUDRIVER_DELAY_US": "20000"}
# What the attempts that never came count as, and the reason that verify gives.
ENDS = {"destroy": ("context_gone", 3, "records_dropped"), "reset": ("context_gone", 3, "records_dropped"),
        "exit": ("exit", 3, "records_dropped"), "exit-now": (None, 0, None)}


@pytest.mark.parametrize("how", ENDS)
def test_results_are_out(faults, how):
    dropped, status, code = ENDS[how]
    lab = faults(Tour(how), **DELAY)
    lab.server_unchanged(lab.good)
    verified, found = lab.ask("verify", lab.good.path)
    assert verified == status and (not code or code in {r["code"] for r in found["reasons"]}), found
    row = lab.good_probes["core.donate"]
    assert row["attempted"] > 100
    if dropped:
        assert row["dropped"][dropped] > 0 and row["in_flight"] == 0, row
    else:
        assert row["in_flight"] > 0 and found["processes"][0]["lost_in_flight"]["core.donate"] == row["in_flight"]
    differs, found = lab.ask("diff", lab.other.path, lab.good.path)
    assert differs == 3, found
    if how in ("destroy", "reset"):
        # After it: the pool that went is refused, the other one is measured.
        assert row["skipped"]["pool_gone"] + row["skipped"]["no_context"] == 1, row
        assert lab.measured(lab.good)["donate"][-1] is not None


@pytest.mark.parametrize("how", ["tour", "destroy", "reset", "exit"])
def test_results_are_in(faults, how):
    """The same with a driver that is quick: nothing is lost."""
    lab = faults(Tour(how))
    lab.server_unchanged(lab.good)
    verified, found = lab.ask("verify", lab.good.path)
    assert verified == 0, found
    row = lab.good_probes["core.donate"]
    assert not some(row["dropped"]) and not row["in_flight"] and row["committed"] > 10


def test_captures_are_left_alone(faults):
    """Donations on streams that capture, and on the legacy stream meanwhile, are counted and not made."""
    lab = faults(Tour("capturing"))
    lab.server_unchanged(lab.good)
    donate, restore = lab.good_probes["core.donate"], lab.good_probes["core.restore"]
    assert some(donate["skipped"]) == {"capturing": 1, "legacy_stream": 1} and some(restore["skipped"]) == {"capturing": 1}
    differs, found = lab.ask("diff", lab.other.path, lab.good.path)
    assert differs == 3 and "skipped_needed" in {r["code"] for r in found["reasons"]}
