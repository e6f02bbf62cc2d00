# SPDX-License-Identifier: Apache-2.0
"""Every route that the CPU driver has: each launch is counted once, against the program's own count; and what cannot be seen is said."""
import json
import subprocess

import pytest

from routes import ROUTES, Route, driver, plugin, run_route

HERE_TOO = [r for r in ROUTES if r.needs == "driver"]
NEEDED = {"driver, memory nodes": "cuGraphAddMemAllocNode", "driver, conditional node": "cuGraphConditionalHandleCreate"}


@pytest.fixture(scope="module")
def place(build, tmp_path_factory):
    """Runs a route on the CPU driver."""
    folder = tmp_path_factory.mktemp("routes")

    def run(route):
        return run_route(route, build, build / "tests" / "routes", folder, build / "cpudriver")
    run.folder = folder
    return run


@pytest.mark.parametrize("route", HERE_TOO, ids=lambda r: r.name)
def test_route(place, root, route):
    """Counted exactly. Where the CPU driver lacks the nodes, the route says so, loudly."""
    row = place(route)
    entry = NEEDED.get(route.name)
    if entry and entry not in (root / "tests/cpudriver/api.h").read_text():
        assert not row["ok"] and f"the driver has no {entry}" in row["stderr"]
        return
    assert row["ok"], row


def test_the_check_can_fail(place):
    """A launch too few, a process that is not hooked, a bypass that is not expected: each makes a row fail."""
    assert not place(driver("unhooked child", "dlsym", "plain", "plugin", "deepbind", "{out}/plugin-linked.so", "linked"))["ok"]
    assert not place(Route("no preload", ["env", "-u", "LD_PRELOAD", "{out}/driver", "dlsym", "plain", "5"]))["ok"]
    assert not place(driver("two too few", "dlsym", bypassed=2))["ok"]
    assert not place(driver("runtime hits", "dlsym", runtime="own"))["ok"]
    assert not place(Route("fails", ["{out}/driver", "dlsym", "nonesuch", "5"]))["ok"]


def verdict(build, place, *routes):
    """diff of a run of the toy server with graphs off, against itself but for the plugin... by the codes of its reasons."""
    runs = []
    for route in routes:
        assert place(route)["counted"] is not None
        runs.append(str(place.folder / "-".join(route.name.split())))
    done = subprocess.run([build / "slotprobe", "diff", *runs, "--json"], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout)["reasons"]


def test_diff_is_not_proven_where_an_object_is_bound_past_us(build, place):
    """With the object's name and the remedy; and with --audit that reason is gone."""
    def other(name, **more):
        return plugin(name, "deepbind", "plugin-linked.so", "linked", "dlsym", **more)
    status, reasons = verdict(build, place, other("past one", bypassed=37), driver("past none", "dlsym"))
    (reason,) = [r for r in reasons if r["code"] == "bypassed_object"]
    assert status == 3 and "plugin-linked.so" in reason["text"] and "run A" in reason["text"] and "--audit" in reason["remedy"]
    status, reasons = verdict(build, place, other("seen one", options=("--audit",)), driver("seen none", "dlsym"))
    assert "bypassed_object" not in [r["code"] for r in reasons]
