# SPDX-License-Identifier: Apache-2.0
"""The CPU driver answers as the H200's driver did, and conform asks about every call that slotprobe makes."""
import copy
import os
import pathlib
import re
import subprocess

import pytest

from compare import ALLOWED, CRASH, differences, judge, load

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
H200 = ROOT / "tests" / "conform" / "h200.json"
TABLES = ["shim/hook/entry.h", "shim/hook/driver.h"]
# groups whose cases are not made by the call that they are named after
INDIRECT = {"exports", "matrix"}


def run(build, path: pathlib.Path, **environment) -> dict[str, dict]:
    done = subprocess.run([build / "conform" / "conform", "-o", path], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_LIBRARY_PATH": str(build / "cpudriver"), **environment})
    assert done.returncode == 0, done.stderr[-4000:]
    return load(path)


@pytest.fixture(scope="module")
def cpu(build, tmp_path_factory) -> dict[str, dict]:
    """What the CPU driver answers."""
    return run(build, tmp_path_factory.mktemp("conform") / "cpu.json")


def calls_of_slotprobe() -> set[str]:
    """Every symbol that the shim intercepts or resolves."""
    return {symbol for table in TABLES for symbol in re.findall(r"^\tX\((?:\w+, )?(cu[A-Z]\w+),", (ROOT / table).read_text(), re.M)}


def calls_made(cases: dict[str, dict]) -> set[str]:
    split = [name.split("/", 1) for name in cases]
    return {rest.split(" ")[0] for group, rest in split if group not in INDIRECT}


def test_every_call_of_slotprobe_is_made(cpu):
    """A row that is added to the shim's tables needs its cases here."""
    wanted = calls_of_slotprobe()
    assert len(wanted) > 80 and {"cuGraphLaunch", "cuLaunchKernel", "cuGreenCtxDestroy"} <= wanted
    made = calls_made(cpu)
    assert not wanted - made, f"conform makes no case of {sorted(wanted - made)}"
    without = {name: case for name, case in cpu.items() if "cuGraphExecDestroy" not in name}
    assert wanted - calls_made(without) == {"cuGraphExecDestroy"}


def named(text: str) -> set[str]:
    """Driver calls that a source names in strings, as who resolves them would."""
    return set(re.findall(r'"(cu[A-Z]\w+)"', text))


def test_no_call_is_resolved_outside_of_the_tables():
    known = calls_of_slotprobe()
    assert named('dlsym(library, "cuMadeUp") ?: dlsym(library, "cuInit")') - known == {"cuMadeUp"}  # so it would be seen
    for folder in ("shim", "probes"):
        for path in [*(ROOT / folder).rglob("*.c"), *(ROOT / folder).rglob("*.h")]:
            stray = named(path.read_text()) - known
            assert not stray, f"{path} names {stray}, which conform does not know of"


def test_every_case_came_to_its_end(cpu):
    assert len(cpu) > 2000
    assert not [name for name, case in cpu.items() if case["result"] < 0 or name.endswith("/setup")]


def test_it_says_the_same_again_however_slow_the_device_is(build, cpu, tmp_path):
    again = run(build, tmp_path / "again.json", CPUDRIVER_DELAY_US="700")
    assert not differences(cpu, again)


def test_what_is_missing_says_so(build):
    """A call that there is no code for is an error and a line with its name."""
    done = subprocess.run([build / "conform" / "conform", "other_nodes"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_LIBRARY_PATH": str(build / "cpudriver")})
    assert re.search(r'cuGraphAddExternalSemaphoresWaitNode no params",\s*"result": 801', done.stdout)
    assert "cpudriver: cuGraphAddExternalSemaphoresWaitNode is not implemented" in done.stderr


def altered(cases, name, **values):
    other = copy.deepcopy(cases)
    other[name].update(values)
    return other


def test_an_altered_line_is_found(cpu):
    """The comparer sees a result, a value, a key, a case more and a case less; and nothing where nothing is."""
    name = "graphs/cuGraphGetNodes count"
    assert cpu[name] == {"case": name, "result": 0, "seen": {"n": 8}}
    assert differences(cpu, copy.deepcopy(cpu)) == []
    assert differences(cpu, altered(cpu, name, result=1)) == [(name, "result", 0, 1)]
    assert differences(cpu, altered(cpu, name, seen={"n": 7})) == [(name, "n", 8, 7)]
    assert differences(cpu, altered(cpu, name, seen={})) == [(name, "n", 8, "absent")]
    less = {n: case for n, case in cpu.items() if n != name}
    assert differences(cpu, less) == [(name, "case", "there", "absent")]
    assert differences(less, cpu) == [(name, "case", "absent", "there")]


def test_only_what_is_allowed_passes():
    found = [("a/x", "result", 0, 1), ("a/y", "n", 2, 3)]
    assert judge(found, [(r"a/x", "result", "why"), (r"a/.", "n", "why")]) == ([], [])
    assert judge(found, [(r"a/x", "result", "why")]) == ([found[1]], [])
    assert judge(found, [(r"a/.*", "result", "why"), (r"b/y", "n", "why")]) == ([found[1]], [(r"b/y", "n", "why")])
    assert judge(found[:1], [(r"a", "result", "why")])[0] == found[:1], "a pattern is of the whole name"


def test_only_what_ends_a_process_there_is_excused_by_it(cpu):
    there = load(H200)
    rows = [(pattern, what) for pattern, what, why in ALLOWED if why.startswith(CRASH)]
    excused = {name for name in there for pattern, what in rows if re.fullmatch(pattern, name)}
    assert excused == {name for name, case in there.items() if case["result"] == -2} and len(excused) == 8
    assert all(cpu[name]["result"] == 1 for name in excused), "an error, and not a success"


def test_the_cpu_driver_answers_as_the_h200(cpu):
    """tests/gpu/run.py --only conform wrote h200.json."""
    there = load(H200)
    assert len(there) > 2000
    bad, unused = judge(differences(there, cpu), ALLOWED)
    assert not bad, "\n".join(f"{name}: {what} is {a!r} on the H200, {b!r} here" for name, what, a, b in bad[:200])
    assert not unused, f"allowed, and no longer needed: {unused}"
