# SPDX-License-Identifier: Apache-2.0
"""Every call that libslotprobe.so makes into the C library and, of its own, into the driver fails once, each in a run of its own. The
server notices nothing, nothing hangs, and no verdict is `equal` where something that it needs was lost.

`make faults` fails every call of every server; without it (FAULTS=all) the toy's calls are a spread sample, those of the tour all."""
import concurrent.futures
import os
import re
import subprocess

import pytest

from faultlab import Tour, Toy, calls, codes

ALL = os.environ.get("FAULTS") == "all"
SERVERS = {"tour": (Tour(), None, 350), "toy": (Toy(), 5, 150), "device_ids": (Toy("--requests", "3", "--layers", "1", "--slots", "12",
           "--concurrency", "2", "--slot-ids", "device"), 3, 100)}
# Calls that put back what is the server's: once they may fail, for good they may not.
UNDO = {"pthread_sigmask", "cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode"}


def spread(n, most):
    """The numbers from 1 to n, or that many of them, first and last included."""
    if most is None or ALL or n <= most:
        return range(1, n + 1)
    return sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})


def fail_one(lab, name, which):
    """One run in which these calls of that name fail; None or what is wrong with it."""
    run_name = f"{name}-{which}"
    count = lab.folder / f"{run_name}.count"
    try:
        run = lab.run(run_name, FAULT=f"{name}:{which}", FAULT_COUNT=count)
        reached = calls(count).get(name, 0) >= int(str(which).split("-", maxsplit=1)[0])
        lab.server_unchanged(run)
        judged = lab.honest(run)
        assert reached or judged == (0, 0, []), judged
    except (AssertionError, subprocess.TimeoutExpired) as wrong:
        return f"{name} call {which}: {type(wrong).__name__} {str(wrong)[:300]}"
    return None


def fail_all(lab, jobs):
    """Does them, two at a time; returns what is wrong."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(filter(None, pool.map(lambda job: fail_one(lab, *job), jobs)))


@pytest.mark.parametrize("which", SERVERS)
def test_each_call_fails_once(faults, which):
    server, most, least = SERVERS[which]
    lab = faults(server)
    assert lab.honest(lab.good) == (0, 0, [])
    made = calls(lab.folder / "good.count")
    jobs = [(name, k) for name, n in made.items() for k in spread(n, most)]
    assert len(jobs) >= least
    wrong = fail_all(lab, jobs)
    assert not wrong, f"{len(wrong)} of {len(jobs)}\n" + "\n".join(wrong)


def test_a_call_fails_for_good(tour):
    """From the first on, and from the middle of a run on."""
    made = calls(tour.folder / "good.count")
    jobs = [(name, f"{k}-") for name, n in made.items() if name not in UNDO for k in sorted({1, n // 2 + 1})]
    assert len(jobs) >= 100
    wrong = fail_all(tour, jobs)
    assert not wrong, f"{len(wrong)} of {len(jobs)}\n" + "\n".join(wrong)


def test_every_import_is_known(build, root):
    """A function that the library begins to call is failed, or said to be harmless, before this passes."""
    done = subprocess.run(["nm", "-D", "--undefined-only", str(build / "libslotprobe.so")], capture_output=True, text=True, check=True)
    imported = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()} - {"__gmon_start__"}
    imported = {name for name in imported if not name.startswith("_ITM_")}
    table = (root / "tests" / "faults" / "inject.c").read_text()
    known = set(re.findall(r"^\tX\((\w+)", table, re.M))
    assert len(imported) > 50 and imported <= known, imported - known


def test_the_faults_are_felt(tour):
    """The positive controls: what must be lost is lost, and said."""
    for fault, code in (("pwritev:4", "records_dropped"), ("cuLaunchKernel:4", "skipped_needed"), ("pthread_create:1", "never_loaded"),
                        ("mmap:3", "internal_error"), ("cuGraphGetNodes:1", None)):
        run = tour.run(f"felt-{fault}", FAULT=fault)
        tour.server_unchanged(run)
        _, differs, found = tour.honest(run)
        assert differs == 3 and code in found if code else differs == 0, (fault, found)
    status, found = tour.ask("report", run.path)
    assert status == 0 and any("unreadable" in str(g) for g in found["graphs"]), codes(found)
