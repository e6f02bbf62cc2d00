# SPDX-License-Identifier: Apache-2.0
"""Every route that the CPU driver has: each launch is counted once, against the program's own count; and what cannot be seen is said."""
import os
import pathlib
import struct
import sys

import pytest

from routes import N, ROUTES, Route, driver, run_route

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from toylab import Lab, codes  # noqa: E402

HERE_TOO = [r for r in ROUTES if r.needs == "driver"]


@pytest.fixture(scope="module")
def place(build, tmp_path_factory):
    """Runs a route on the CPU driver."""
    folder = tmp_path_factory.mktemp("routes")

    def run(route):
        return run_route(route, build, build / "tests" / "routes", folder, build / "cpudriver")
    run.folder = folder
    return run


@pytest.mark.parametrize("route", HERE_TOO, ids=lambda r: r.name)
def test_route(place, route):
    """Counted exactly; or, past RTLD_DEEPBIND, said."""
    row = place(route)
    assert row["ok"], row


def test_the_check_can_fail(place):
    """A launch too few, a process that is not hooked, a bypass that is not expected: each makes a row fail, for that reason."""
    def wrong(route):
        row = place(route)
        assert not row["ok"], row
        return row["wrong"]
    assert wrong(driver("unhooked child", "dlsym", "plain", "plugin", "deepbind", "{out}/plugin-linked.so", "linked")) == [
        f"counted {N} launches, not {2 * N}", "1 objects said to be bound past slotprobe"]
    assert wrong(Route("no preload", ["env", "-u", "LD_PRELOAD", "{out}/driver", "dlsym", "plain", "5"])) == ["counted 0 launches, not 5"]
    assert wrong(driver("two too few", "dlsym", bypassed=2))[0] == f"counted {N} launches, not {N - 2}"
    assert wrong(driver("runtime hits", "dlsym", runtime="own")) == ["the runtime's wrapper saw 0"]
    assert wrong(Route("fails", ["{out}/driver", "dlsym", "nonesuch", "5"]))[0] == "exit status 2"


@pytest.mark.parametrize("name, command", [("hooked", ["{out}/driver", "dlsym", "plain", "5"]),
                                           ("no such work", ["env", "-u", "LD_PRELOAD", "{out}/driver", "dlsym", "nonesuch", "5"]),
                                           ("no such program", ["env", "-u", "LD_PRELOAD", "{out}/nonesuch"])])
def test_a_red_twin_is_red_for_its_own_reason(place, name, command):
    """A program that cannot run counts nothing either."""
    row = place(Route(f"red and {name}", command, red=True))
    assert not row["ok"], row


def test_a_program_without_a_count_is_judged_by_ten_more_calls(script):
    """And by all else that is wrong with either."""
    difference = script("gpu/routes/run.py").difference

    def row(counted, *wrong):
        return {"counted": counted, "ok": False, "wrong": [*wrong, "the program said no count of its own", f"counted {counted} launches, not 0"]}
    assert difference(row(40), row(50))["ok"] and difference(row(40), row(60))["ok"]
    for first, second in ((row(40), row(40)), (row(40), row(47)), (row(40), row(30)), (row(40, "exit status 1"), row(50)), (row(40), row(50, "exit status 1")),
                          (row(40), row(50, "1 unrouted")), (row(40, "3 launches are not committed"), row(50))):
        assert not difference(first, second)["ok"], (first, second)


# ---- the verdict ----


def records(lab, opener, arm, *options):
    """A clean run of the toy server, in whose process a library is opened with RTLD_DEEPBIND before main; and the same without."""
    before = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = str(opener)
    try:
        return lab.record(arm, options=options, again=str(opener))
    finally:
        os.environ.pop("LD_PRELOAD") if before is None else os.environ.update(LD_PRELOAD=before)


@pytest.mark.parametrize("arm", ["graph-on", "graph-off"])
def test_diff_is_not_proven_where_an_object_is_bound_past_us(build, tmp_path, arm):
    """Two equal runs: equal, without such an object; not proven for that reason alone, with its name and the remedy, with one; and equal
    again by the remedy. A call site in the object that is opened does not matter, its bindings do."""
    out, lab = build / "tests" / "routes", Lab(build, "cpu", tmp_path)
    other = lab.record("graph-on" if arm == "graph-off" else "graph-off")
    assert lab.diff(other, lab.record(arm))[0] == 0
    status, found = lab.diff(other, records(lab, out / "opener.so", arm))
    assert status == 3 and codes(found) == ["bypassed_object"]
    (reason,) = found["reasons"]
    assert "plugin-linked.so for cu" in reason["text"] and "run B" in reason["text"] and "--audit" in reason["remedy"]
    status, found = lab.diff(other, records(lab, out / "opener.so", arm, "--audit"))
    assert (status, codes(found)) == (0, [])
    (said,) = lab.exported(records(lab, out / "opener.so", arm), "bypassed")
    assert said["object"].endswith("/plugin-linked.so") and said["symbol"].startswith("cu")


def test_a_page_that_does_not_say_is_no_proof(build, tmp_path):
    """A page without the counter's row says nothing of what was bound past slotprobe: what was not looked for was not found absent."""
    lab = Lab(build, "cpu", tmp_path)
    off, on = lab.record("graph-off"), lab.record("graph-on")
    for run in (off, on):
        (page,) = run.path.glob("*.ctr")
        content = bytearray(page.read_bytes())
        at = content.index(b"bypassed_objects\0")
        assert (at - 496) % 256 == 0
        content[at:496 + 240 * 256] = content[at + 256:496 + 240 * 256] + bytes(256)
        (rows,) = struct.unpack_from("<I", content, 268)
        struct.pack_into("<I", content, 268, rows - 1)
        page.write_bytes(content)
    assert lab.diff(off, on)[0] == 3
