# SPDX-License-Identifier: Apache-2.0
"""What slotprobe adds to the driver calls of the toy server, and which of it may not be: the judge of "nothing is perturbed", for the CPU
driver, which counts its calls itself, and for a real one, where CUPTI does (tests/gpu/perturbed/calls.c)."""
import json
import pathlib
import subprocess

import runs

# What waits for the device or asks whether it is done: never.
WAITS = ("Synchronize", "cuStreamQuery", "cuEventQuery", "cuStreamWaitEvent", "DtoH", "cuEventRecord")
# Graphs stay as they are: looked at, never changed, made or launched.
GRAPHS = ("cuGraphInstantiate", "cuGraphLaunch", "cuGraphClone", "cuGraphAdd", "cuGraphExec", "cuGraphDestroy", "cuGraphCreate",
          "cuGraphNodeSet", "cuGraphKernelNodeSet", "cuStreamBeginCapture", "cuStreamEndCapture")
MEMORY = ("cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemHostAlloc")
ONCE = {"cuMemAlloc_v2": 1}  # the arena
ARENA_BYTES = 8 << 20
TABLE_BYTES = 64  # of a plane
DRIVER_UNIT = 2 << 20  # what a real driver takes from the device at a time
# What grows with requests: a fingerprint's launch, and the questions before it.
PER_EVENT = {"cuLaunchKernel", "cuStreamIsCapturing", "cuStreamGetCtx", "cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode"}
# Everything else that may be added, by the exact name, and why. What is on no list is a fault.
MAY_BE = {
    "which device this is, once for each context": {
        "cuDriverGetVersion", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDeviceGetUuid_v2", "cuCtxGetDevice"},
    "the fingerprint kernel and its buffers, once for each context": {
        "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncLoad", "cuStreamCreate", "cuMemAlloc_v2", "cuMemHostRegister_v2",
        "cuMemHostGetDevicePointer_v2", "cuMemcpyHtoDAsync_v2"},
    "the memory of a pool, when it is registered": {"cuPointerGetAttribute"},
    "a graph is read when it is instantiated": {
        "cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphKernelNodeGetParams_v2", "cuFuncGetName", "cuFuncGetParamInfo", "cuKernelGetName",
        "cuKernelGetParamInfo"},
}
ALLOWED = PER_EVENT.union(*MAY_BE.values())
FIGURES = {"device_bytes_peak", "memory_first", "memory_samples"}  # of the counts, what is no number of calls
# What a probe of perturb.c does, and what must be named for it.
TWINS = {"sync": "cuStreamSynchronize", "alloc": "cuMemAlloc_v2", "legacy": "legacy_stream_work", "hoard": "device_bytes_peak"}


class Counted:
    """The toy server's driver calls, bare and recorded. With a libcupti: those of this machine's driver."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path, cupti: str = ""):
        self.build, self.folder, self.runs, self.kept, self.latest = build, folder, 0, {}, {}
        self.out, self.env, self.preload = folder / "counts", runs.surroundings(), []
        if cupti:
            self.env |= {"CALLS_OUT": str(self.out), "CALLS_CUPTI": cupti}
            self.preload = [f"{build}/tests/perturbed/calls.so"]  # the last: it ends after those before it
        else:
            self.env |= {"LD_LIBRARY_PATH": str(build / "cpudriver"), "CPUDRIVER_COUNTS": str(self.out)}

    def calls(self, requests: int, record=True, perturb="", stream="created") -> tuple[dict, list[dict]]:
        """{function: calls} and the journal's events, but for the ids that slotprobe gave."""
        self.runs += 1
        journal, arm = self.folder / f"journal{self.runs}.jsonl", ("--arm", "graph-on")
        command = [str(self.build / "toyserver/toyserver"), *arm, "--requests", str(requests), "--stream", stream, "--journal", str(journal)]
        probe = [f"{self.build}/tests/bench/perturb.so"] if perturb else []
        if probe or self.preload:
            before = [*probe, *([f"{self.build}/libslotprobe.so"] if record else []), *self.preload]
            command = ["env", f"LD_PRELOAD={':'.join(before)}", f"PERTURB={perturb}", *command]
        if record:
            command = [str(self.build / "slotprobe"), "record", "-o", str(self.folder / f"run{self.runs}"), *arm, "--min-free", "64M", "--", *command]
        self.out.unlink(missing_ok=True)  # of another process
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=40)
        if done.returncode or not self.out.exists():
            raise RuntimeError(f"status {done.returncode}, {'no ' * (not self.out.exists())}counts: {(done.stdout + done.stderr)[-2000:]}")
        counts = {name: int(n) for name, n in (line.split() for line in self.out.read_text().splitlines())}
        self.latest = counts
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        if not events[-1]["device_agrees"]:
            raise RuntimeError(f"the device has not what the toy server has: {events[-1]}")
        return counts, [{k: v for k, v in event.items() if k != "id"} for event in events if event["event"] in ("donate", "restore", "request")]

    def bare(self, requests: int) -> tuple[dict, list[dict]]:
        if requests not in self.kept:
            self.kept[requests] = self.calls(requests, record=False)
        return self.kept[requests]

    def added(self, requests: int, **how) -> tuple[dict, dict]:
        """What one more process has that the bare one has not, and the counts of the bare one."""
        bare, journal = self.bare(requests)
        counts, same = self.calls(requests, **how)
        if same != journal or len(journal) <= 20:  # outputs, launches and the bytes of every slot that changed hands, as the toy has them
            raise RuntimeError(f"the toy server's journal is another: {len(journal)} events bare, {len(same)} then")
        return difference(bare, counts), bare

    def planes(self) -> int:
        """Of the pools of the latest process, which was recorded."""
        done = subprocess.run([str(self.build / "slotprobe"), "export", str(self.folder / f"run{self.runs}"), "--format", "jsonl"],
                              capture_output=True, text=True, check=True)
        return sum('"type":"plane"' in line for line in done.stdout.splitlines())


def difference(bare: dict, counts: dict) -> dict:
    return {name: counts.get(name, 0) - bare.get(name, 0) for name in sorted(bare | counts)
            if counts.get(name, 0) != bare.get(name, 0) and not name.startswith("grew:")}


def of(added: dict, parts: tuple[str, ...]) -> dict:
    return {name: n for name, n in added.items() if any(part in name for part in parts)}


def faults(added: dict, bar: int = ARENA_BYTES) -> dict:
    """What was added that may not be, or is not there any more."""
    found = of(added, WAITS) | of(added, GRAPHS) | of(added, ("legacy_stream_work",))
    found |= {name: n for name, n in added.items() if name not in FIGURES and (n < 0 or name not in ALLOWED)}
    memory = of(added, MEMORY)
    if memory != ONCE:
        found |= memory or {"cuMemAlloc_v2": 0}
    if added.get("device_bytes_peak", 0) > bar:
        found["device_bytes_peak"] = added["device_bytes_peak"]
    return found


def grown(few: dict, many: dict) -> set:
    """What there is more or less of with more requests, and may not be."""
    return {name for name in few | many if many.get(name, 0) != few.get(name, 0)} - PER_EVENT - FIGURES
