# SPDX-License-Identifier: Apache-2.0
"""Nothing is perturbed: what slotprobe adds to the driver calls of a server, counted by the CPU driver, and the storm of captures. Each test
has its red twin: the same check with a probe that does what no probe may do (tests/bench/perturb.c)."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import storm  # noqa: E402

# What waits for the device or asks whether it is done: never.
WAITS = ("Synchronize", "cuStreamQuery", "cuEventQuery", "cuStreamWaitEvent", "DtoH", "cuEventRecord")
# Graphs stay as they are: looked at, never changed, made or launched.
GRAPHS = ("cuGraphInstantiate", "cuGraphLaunch", "cuGraphClone", "cuGraphAdd", "cuGraphExec", "cuGraphDestroy", "cuGraphCreate",
          "cuGraphNodeSet", "cuGraphKernelNodeSet", "cuStreamBeginCapture", "cuStreamEndCapture")
MEMORY = ("cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemHostAlloc")
ONCE = {"cuMemAlloc_v2": 1}  # the arena
ARENA_BYTES = 8 << 20


class Counted:
    """The toy server's driver calls, bare and recorded."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def calls(self, requests, arm="graph-on", record=True, perturb=""):
        """{function: calls} and the journal's events, but for the ids that slotprobe gave."""
        out, journal = self.folder / "counts", self.folder / "journal.jsonl"
        toy = [str(self.build / "toyserver/toyserver"), "--arm", arm, "--requests", str(requests), "--journal", str(journal)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
        env |= {"LD_LIBRARY_PATH": str(self.build / "cpudriver"), "CPUDRIVER_COUNTS": str(out)}
        if record:
            run = self.folder / f"run{len(list(self.folder.iterdir()))}"
            inner = ["env", f"LD_PRELOAD={self.build}/tests/bench/perturb.so:{self.build}/libslotprobe.so", f"PERTURB={perturb}"]
            toy = [str(self.build / "slotprobe"), "record", "-o", str(run), "--arm", arm, "--min-free", "64M", "--",
                   *(inner if perturb else []), *toy]
        done = subprocess.run(toy, capture_output=True, text=True, env=env, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        counts = {name: int(n) for name, n in (line.split() for line in out.read_text().splitlines())}
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        assert events[-1]["device_agrees"]
        return counts, [{k: v for k, v in event.items() if k != "id"} for event in events if event["event"] in ("donate", "restore", "request")]

    def added(self, requests, **how):
        bare, journal = self.calls(requests, record=False)
        recorded, same = self.calls(requests, **how)
        assert same == journal and len(journal) > 20  # outputs, launches and the bytes of every slot that changed hands, as the toy has them
        return {name: recorded[name] - bare[name] for name in recorded if recorded[name] != bare[name]}, bare


@pytest.fixture
def counted(build, tmp_path):
    return Counted(build, tmp_path)


def of(added, parts):
    return {name: n for name, n in added.items() if any(part in name for part in parts)}


def faults(added):
    """What was added that may not be."""
    found = of(added, WAITS) | of(added, GRAPHS) | of(added, ("legacy_stream_work",))
    memory = of(added, MEMORY)
    if memory != ONCE:
        found |= memory
    if added.get("device_bytes_peak", 0) > ARENA_BYTES:
        found["device_bytes_peak"] = added["device_bytes_peak"]
    return found


def test_no_wait_no_allocation_no_legacy_work(counted):
    added, bare = counted.added(24)
    assert bare["cuGraphLaunch"] and added["cuLaunchKernel"] > 20  # it was measured
    assert faults(added) == {}


def test_what_is_added_does_not_grow_with_requests_but_for_fingerprints(counted):
    few, bare_few = counted.added(12)
    many, bare_many = counted.added(36)
    assert bare_many["cuGraphLaunch"] > 2 * bare_few["cuGraphLaunch"]
    grows = {name for name in many if many[name] != few.get(name, 0)}
    per_event = {"cuLaunchKernel", "cuStreamIsCapturing", "cuStreamGetCtx", "cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode",
                 "cuPointerGetAttribute"}
    assert grows <= per_event, grows - per_event


@pytest.mark.parametrize("perturb, named", [("sync", "cuStreamSynchronize"), ("alloc", "cuMemAlloc_v2"), ("legacy", "legacy_stream_work")])
def test_a_probe_that_perturbs_is_seen(counted, perturb, named):
    added, _ = counted.added(24, perturb=perturb)
    assert named in faults(added)


def test_storm(build, tmp_path):
    _, found = storm.measure(storm.Storm(build, "cpu", tmp_path), 6)
    assert not found
