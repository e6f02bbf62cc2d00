# SPDX-License-Identifier: Apache-2.0
"""run.py of "nothing is perturbed": all of it once on the CPU driver, what counts calls on a real one with CUPTI played, and what is made of what a
GPU might say."""
import copy
import json
import os
import subprocess
import sys

import pytest

MIB = 1 << 20


def start(build, root, tmp_path, *options, **env):
    report = tmp_path / "perturbed.json"
    done = subprocess.run([sys.executable, "-B", root / "tests/gpu/perturbed/run.py", "--build", build, "--json", report, *options],
                          capture_output=True, text=True, timeout=200, check=False, env=os.environ | env)
    return done, json.loads(report.read_text())


def test_it_runs(build, root, tmp_path):
    done, found = start(build, root, tmp_path, "--driver", "cpu")
    assert done.returncode == 0 and found["faults"] == [], done.stdout + done.stderr
    assert found["parts"]["recorded"]["added"]["device_bytes_peak"] == 8 * MIB and found["parts"]["recorded"]["planes"] == 8
    assert found["parts"]["hoard"]["added"]["device_bytes_peak"] == 24 * MIB and not found["parts"]["again"]["added"]


@pytest.mark.parametrize("played, said", [("", "not called once"), ("refuse", "CUPTI refuses")])
def test_no_cupti_is_a_failure(build, root, tmp_path, played, said):
    """The way of a real driver, up to the counts."""
    done, found = start(build, root, tmp_path, "--cupti", str(build / "tests/perturbed/played.so"), LD_LIBRARY_PATH=str(build / "cpudriver"),
                        PLAYED=played)
    assert done.returncode == 1 and found["faults"] == ["not measured: no libcupti counts here"], done.stdout
    assert all("status 9" in text and said in text for text in found["cupti_refused"].values())


def test_calls_that_are_not_the_servers(build, root, tmp_path):
    """The counter is in each process, bare and recorded, and its counts come back; they are of nothing that recording adds."""
    done, found = start(build, root, tmp_path, "--cupti", str(build / "tests/perturbed/played.so"), LD_LIBRARY_PATH=str(build / "cpudriver"),
                        PLAYED="replay")
    assert done.returncode == 1 and set(found["parts"]) == {"recorded", "again", "on_legacy", "few", "many", "sync", "alloc", "legacy", "hoard"}
    assert found["parts"]["recorded"]["bare"]["cuGraphLaunch"] == 1 and not found["parts"]["recorded"]["added"]
    assert found["parts"]["recorded"]["grew"] == {}
    for text in ("nothing was measured", "memory: not measured", "a probe that does sync is not seen", "counted 0 there"):
        assert any(text in fault for fault in found["faults"]), found["faults"]


PLAYER = """
import ctypes, os, struct, sys
played, cuda = ctypes.CDLL(os.environ["CALLS_CUPTI"]), ctypes.CDLL("libcuda.so.1")
def call(name, where=0, stream=5, result=0, site=None):
    params = ctypes.create_string_buffer(bytes([7]) * where + struct.pack("Q", stream) + bytes([7]) * 64)
    for one in (0, 1) if site is None else (site,):
        played.played_call(name.encode(), one, params, result)
def need(code):
    assert code == 0, code
context, memory = ctypes.c_void_p(), ctypes.c_void_p()
if hasattr(cuda, "cuInit"):
    need(cuda.cuInit(0))
    need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    need(cuda.cuCtxSetCurrent(context))
def allocate(mib):
    need(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib << 20)))
exec(sys.argv[1])
"""


@pytest.fixture(name="counts")
def fixture_counts(build, before_ours, tmp_path):
    """Plays calls to calls.so in a process that has the CPU driver; returns what it counted."""
    def play(code, driver=build / "cpudriver"):
        out = tmp_path / "counts"
        env = os.environ | {"CALLS_OUT": str(out), "CALLS_CUPTI": str(build / "tests/perturbed/played.so"), "LD_LIBRARY_PATH": str(driver),
                            "LD_PRELOAD": f"{before_ours}{build}/tests/perturbed/calls.so"}
        done = subprocess.run([sys.executable, "-c", PLAYER, code], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return {name: int(n) for name, n in map(str.split, out.read_text().splitlines())}
    return play


@pytest.mark.parametrize("code, legacy", [
    ("call('cuLaunchKernel', 40)", 0),
    ("call('cuLaunchKernel', 40, 0)", 1),
    ("call('cuLaunchKernel', 40, 1)", 1),  # CU_STREAM_LEGACY
    ("call('cuLaunchKernel', 40, 2)", 0),  # CU_STREAM_PER_THREAD
    ("call('cuLaunchKernel_ptsz', 40, 0)", 0),  # the thread's own
    ("call('cuLaunchKernel_ptsz', 40, 1)", 1),
    ("call('cuGraphLaunch', 8, 0)", 1),
    ("call('cuGraphLaunch', 8)", 0),
    ("call('cuGraphLaunch_ptsz', 8, 0)", 0),
    ("call('cuMemsetD8Async', 24, 0); call('cuMemsetD8Async', 24)", 1),
    ("call('cuMemcpyBatchAsync_v2', 56, 0)", 1),
    ("call('cuMemcpyHtoD_v2'); call('cuMemcpyHtoD_v2_ptds')", 1),  # not async: on the legacy stream, or on the thread's own
    ("config = ctypes.create_string_buffer(bytes(64)); call('cuLaunchKernelEx', 0, ctypes.addressof(config))", 1),
    ("config = ctypes.create_string_buffer(bytes([9]) * 64); call('cuLaunchKernelEx', 0, ctypes.addressof(config))", 0),
    ("call('cuMemAlloc_v2', 0, 0); call('cuInit', 0, 0)", 0),
])
def test_legacy_work(counts, code, legacy):
    assert counts(code)["legacy_stream_work"] == legacy


def test_calls_are_counted_when_they_begin(counts):
    found = counts("[call('cuGraphLaunch', 8) for _ in range(3)]; call('cuMemAlloc_v2'); call('no such name'); call('cuInit', site=1)")
    assert (found["cuGraphLaunch"], found["cuMemAlloc_v2"], found["cuInit"], found["unnamed"]) == (3, 1, 0, 1)


@pytest.mark.parametrize("code, mib, samples", [
    ("call('cuMemAlloc_v2'); allocate(32); call('cuGraphLaunch', 8)", 32, 2),
    ("call('cuMemAlloc_v2'); allocate(32); call('cuGraphLaunch', 8); need(cuda.cuMemFree_v2(memory)); call('cuGraphLaunch', 8)", 32, 3),
    ("call('cuMemAlloc_v2'); allocate(32); call('cuLaunchKernel', 40)", 0, 1),  # not asked there
    ("call('cuMemAlloc_v2'); allocate(32); call('cuMemAlloc_v2', result=2)", 0, 1),
    # while anything captures, nothing is asked; a capture that does not begin is none
    ("call('cuMemAlloc_v2'); call('cuStreamBeginCapture_v2'); allocate(32); call('cuGraphLaunch', 8)", 0, 1),
    ("call('cuMemAlloc_v2'); call('cuStreamBeginCapture_v2'); call('cuStreamEndCapture'); allocate(32); call('cuGraphLaunch', 8)", 32, 2),
    ("call('cuMemAlloc_v2'); call('cuStreamBeginCapture_v2', result=1); allocate(32); call('cuGraphLaunch', 8)", 32, 2),
])
def test_memory(counts, code, mib, samples):
    found = counts(code)
    assert found["memory_samples"] == samples and found["device_bytes_peak"] - found["memory_first"] == mib * MIB
    assert found.get("grew:cuGraphLaunch", 0) == mib * MIB


def test_what_it_asks_itself_does_not_count(build, counts, tmp_path):
    """On a real driver its own questions come back to it too."""
    (tmp_path / "libcuda.so.1").symlink_to(build / "tests/perturbed/played.so")
    found = counts("call('cuGraphLaunch', 8); call('cuGraphLaunch', 8)", tmp_path)
    assert (found["memory_samples"], found["device_bytes_peak"]) == (2, 2 * MIB)
    assert not found["cuMemGetInfo_v2"] and not found["cuThreadExchangeStreamCaptureMode"]


@pytest.fixture(name="run")
def fixture_run(script):
    return script("gpu/perturbed/run.py")


def sound():
    """What an H200 may say."""
    def part(launches=128, **more):
        bare = {"cuGraphLaunch": launches, "cuLaunchKernel": 340, "memory_samples": 3 * launches, "memory_first": 500 * MIB, "device_bytes_peak": 520 * MIB}
        added = {"cuMemAlloc_v2": 1, "cuLaunchKernel": 2 * launches, "memory_samples": 4, "device_bytes_peak": 8 * MIB, "cuStreamCreate": 1}
        return {"bare": bare, "added": {name: n for name, n in (added | more).items() if n}}
    again, legacy = part(), part()
    again["added"], legacy["added"] = {"memory_first": 65536}, {"legacy_stream_work": 900, "cuStreamCreate": -1}
    return {"driver": "cuda", "trouble": {}, "parts": {
        "recorded": part() | {"planes": 8}, "again": again, "on_legacy": legacy, "few": part(60), "many": part(200), "sync": part(cuStreamSynchronize=12),
        "alloc": part(cuMemAlloc_v2=13), "legacy": part(legacy_stream_work=12), "hoard": part(device_bytes_peak=24 * MIB)}}


def added(name, **more):
    return lambda found: found["parts"][name]["added"].update(more)


def bare(name, **more):
    return lambda found: found["parts"][name]["bare"].update(more)


@pytest.mark.parametrize("change, said", [
    (lambda found: None, None),
    (added("recorded", device_bytes_peak=10 * MIB + 8 * 64), None),
    (added("recorded", device_bytes_peak=10 * MIB + 8 * 64 + 1), "recorded: device_bytes_peak"),
    (added("recorded", cuStreamSynchronize=1), "recorded: cuStreamSynchronize +1"),
    (added("recorded", cuMemcpyDtoH_v2=1), "recorded: cuMemcpyDtoH_v2 +1"),
    (added("recorded", cuEventQuery=1), "recorded: cuEventQuery +1"),
    (added("recorded", cuMemAlloc_v2=2), "recorded: cuMemAlloc_v2 +2"),
    (added("recorded", cuMemAlloc_v2=0), "recorded: cuMemAlloc_v2 +0"),  # the arena was not seen: nor would another be
    (added("recorded", cuMemAllocAsync=1), "recorded: cuMemAllocAsync +1"),
    (added("recorded", cuMemFree_v2=1), "recorded: cuMemFree_v2 +1"),
    (added("recorded", legacy_stream_work=1), "recorded: legacy_stream_work +1"),
    (added("recorded", cuGraphLaunch=1), "recorded: cuGraphLaunch +1"),
    (added("recorded", cuGraphLaunch=-1), "recorded: cuGraphLaunch -1"),
    (added("recorded", cuGraphInstantiateWithFlags=1), "recorded: cuGraphInstantiateWithFlags +1"),
    (added("recorded", cuGraphExecKernelNodeSetParams_v2=1), "recorded: cuGraphExecKernelNodeSetParams_v2 +1"),
    (added("recorded", cuStreamCreate=-1), "recorded: cuStreamCreate -1"),
    (added("recorded", cuModuleLoadData=1), "recorded: cuModuleLoadData +1"),  # not on the list
    (added("recorded", unnamed=3), "recorded: unnamed +3"),
    (added("many", cuFuncGetName=40), "grows with requests: cuFuncGetName"),
    (added("few", cuMemHostRegister_v2=1), "grows with requests: cuMemHostRegister_v2"),
    (added("recorded", cuLaunchKernel=3), "recorded: nothing was measured"),
    (bare("recorded", cuGraphLaunch=0), "recorded: nothing was measured"),
    (bare("many", cuGraphLaunch=110), "no more graphs than few"),
    (added("again", cuStreamQuery=2), "two bare processes differ: cuStreamQuery +2"),
    (added("again", device_bytes_peak=-2 * MIB), "two bare processes differ by"),
    (bare("recorded", device_bytes_peak=0), "memory: not measured"),
    (added("recorded", device_bytes_peak=0), "not even the arena shows"),
    (bare("sync", memory_samples=0), "sync: memory: not measured"),
    (added("hoard", memory_samples=-300), "hoard: memory: not measured"),
    (added("on_legacy", legacy_stream_work=127), "a server on the legacy stream: counted 127"),
    (added("sync", cuStreamSynchronize=0), "a probe that does sync is not seen"),
    (added("alloc", cuMemAlloc_v2=1), "a probe that does alloc is not seen"),
    (added("legacy", legacy_stream_work=0), "a probe that does legacy is not seen"),
    (added("hoard", device_bytes_peak=10 * MIB), "a probe that does hoard is not seen"),
    (lambda found: found["parts"].pop("hoard"), "hoard: not measured"),
    (lambda found: found["parts"].pop("again"), "again: not measured"),
    (lambda found: found["parts"]["recorded"].update(planes=0), "memory: not measured"),
])
def test_judge(run, change, said):
    found = copy.deepcopy(sound())
    change(found)
    for part in found["parts"].values():  # a difference of 0 is none
        part["added"] = {name: n for name, n in part["added"].items() if n}
    faults = run.judge(found)
    assert (said is None and not faults) or (said and any(said in fault for fault in faults)), faults
    assert run.lines(found)
