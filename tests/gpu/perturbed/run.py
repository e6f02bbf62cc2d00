#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is perturbed: the toy server's calls to this machine's driver, bare and recorded, and the device memory in use.

    tests/gpu/perturbed/run.py [--build FOLDER] [--driver cuda|cpu] [--cupti LIBRARY] [--json FILE]

A real driver's calls are counted through CUPTI (calls.c), which sees those past any preload too; the CPU driver counts its own. Holds when, on equal
journals of the toy, what recording adds is on the judge's list (tests/bench/perturbed.py): nothing that waits, no graph made, changed, launched
or captured, one allocation, nothing on the legacy stream; when what grows with requests is a fingerprint's launch and the questions before
it; and when the most that is in use on the device is more by at most the arena (8 MiB), 64 bytes for each plane of the pools and, on
a real driver, 2 MiB: it takes memory from the device in units of that size, and one of them may have to be begun. The JSON says after which calls
more was in use than ever before ("grew").

Red twins: probes that wait, allocate, use the legacy stream and keep 16 MiB must each be named. Two bare runs must have the same calls and the same
memory in use, or nothing is resolved; and a server on the legacy stream must be counted there. What cannot be measured is a failure.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "bench"))

import runs  # noqa: E402
from perturbed import ARENA_BYTES, DRIVER_UNIT, FIGURES, TABLE_BYTES, TWINS, Counted, faults, grown  # noqa: E402

REQUESTS, FEW, MANY = 24, 12, 36
TROUBLE = (RuntimeError, OSError, subprocess.SubprocessError, ValueError, LookupError)  # of one process: the others are measured all the same
ON_LEGACY = "on_legacy"  # the toy server itself
PARTS = ("recorded", "again", ON_LEGACY, "few", "many", *TWINS)


def usable(args, folder: pathlib.Path) -> tuple[str, dict]:
    """The first libcupti that lets us count, and what each of those before it said."""
    said = {}
    for library in [args.cupti] if args.cupti else runs.cupti_libraries():
        try:
            Counted(args.build, folder, library).calls(2, record=False)
            return library, said
        except TROUBLE as trouble:
            said[library] = str(trouble)
    return "", said


def play(counted: Counted, part: str) -> dict:
    """What one more process has that the bare one has not, and the counts of that."""
    if part in ("few", "many"):
        added, bare = counted.added(FEW if part == "few" else MANY)
    elif part in ("again", ON_LEGACY):
        added, bare = counted.added(REQUESTS, record=False, stream="default" if part == ON_LEGACY else "created")
    else:
        added, bare = counted.added(REQUESTS, perturb=TWINS.get(part) and part or "")
    found = {"added": added, "bare": {name: n for name, n in bare.items() if n},
             "grew": {name: n for name, n in counted.latest.items() if name.startswith("grew:")}}
    return found | ({"planes": counted.planes()} if part == "recorded" else {})


def measure(counted: Counted, driver: str) -> dict:
    found = {"driver": driver, "parts": {}, "trouble": {}}
    for part in PARTS:
        try:
            found["parts"][part] = play(counted, part)
        except TROUBLE as trouble:
            found["trouble"][part] = f"{type(trouble).__name__}: {trouble}"
    return found


def memory(found: dict) -> dict:
    """What is in use at most, and what may be added to it."""
    part, unit = found["parts"]["recorded"], DRIVER_UNIT if found["driver"] == "cuda" else 0
    bar = ARENA_BYTES + unit + (TABLE_BYTES * part["planes"] if unit else 0)  # the CPU driver has the table in the arena's own bytes
    return {"bare": part["bare"].get("device_bytes_peak", 0), "added": part["added"].get("device_bytes_peak", 0), "bar": bar,
            "planes": part["planes"]}


def judge_memory(found: dict) -> list[str]:
    """Whether the memory in use was seen at all, and by two equal processes alike."""
    wrong, used = [], memory(found)
    if used["bare"] <= 0 or not used["planes"]:
        wrong.append(f"memory: not measured: {used}")
    elif used["added"] <= 0:
        wrong.append(f"memory: not resolved: not even the arena shows: {used}")
    for name, part in found["parts"].items():
        bare, added = part["bare"], part["added"]
        samples = bare.get("memory_samples", 0) + added.get("memory_samples", 0)
        if found["driver"] == "cuda" and min(samples, bare.get("memory_samples", 0)) < bare.get("cuGraphLaunch", 0):
            wrong.append(f"{name}: memory: not measured: asked {bare.get('memory_samples', 0)} and {samples} times")
    noise = abs(found["parts"]["again"]["added"].get("device_bytes_peak", 0))
    if noise >= (DRIVER_UNIT if found["driver"] == "cuda" else 1):
        wrong.append(f"memory: not resolved: two bare processes differ by {noise} bytes")
    return wrong


def judge_calls(found: dict) -> list[str]:
    """What recording added, and whether a count that would show it was there."""
    parts, wrong = found["parts"], []
    bar = memory(found)["bar"]
    for name in ("recorded", "few", "many"):
        wrong += [f"{name}: {what} {n:+d}" for what, n in faults(parts[name]["added"], bar).items()]
        if parts[name]["added"].get("cuLaunchKernel", 0) <= 20 or not parts[name]["bare"].get("cuGraphLaunch"):
            wrong.append(f"{name}: nothing was measured: {parts[name]['added'].get('cuLaunchKernel', 0)} launches of a fingerprint, "
                         f"{parts[name]['bare'].get('cuGraphLaunch', 0)} of a graph")
    same = {what: n for what, n in parts["again"]["added"].items() if what not in FIGURES}
    wrong += [f"not resolved: two bare processes differ: {what} {n:+d}" for what, n in same.items()]
    more = grown(parts["few"]["added"], parts["many"]["added"])
    wrong += [f"grows with requests: {what}" for what in sorted(more)]
    if parts["many"]["bare"].get("cuGraphLaunch", 0) <= 2 * parts["few"]["bare"].get("cuGraphLaunch", 0):
        wrong.append("many requests launch no more graphs than few")
    legacy = parts[ON_LEGACY]["added"].get("legacy_stream_work", 0)
    if legacy < parts[ON_LEGACY]["bare"].get("cuGraphLaunch", 0) or not legacy:
        wrong.append(f"a server on the legacy stream: counted {legacy} there")
    for name, what in TWINS.items():
        if what not in faults(parts[name]["added"], bar):
            wrong.append(f"a probe that does {name} is not seen: {faults(parts[name]['added'], bar)}")
    return wrong


def judge(found: dict) -> list[str]:
    missing = [part for part in PARTS if part not in found["parts"]]
    if missing:
        return [f"{part}: not measured: {found['trouble'].get(part, '')}" for part in missing]
    return judge_calls(found) + judge_memory(found)


def lines(found: dict) -> list[str]:
    """As text: what was added, and the memory."""
    said = [f"{name:10} {' '.join(f'{what} {n:+d}' for what, n in part['added'].items()) or 'nothing more'}" for name, part in found["parts"].items()]
    return said + ([f"memory     {memory(found)}"] if "recorded" in found["parts"] else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), default=ROOT / "build")
    parser.add_argument("--driver", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--cupti", default="", help="the libcupti to count with (default: the first of this machine that can)")
    parser.add_argument("--json", help="write the result there")
    args = parser.parse_args()
    found = {"driver": args.driver, "parts": {}, "trouble": {}}
    with tempfile.TemporaryDirectory() as name:
        folder, cupti, said = pathlib.Path(name), "", {}
        if args.driver == "cuda":
            cupti, said = usable(args, folder)
        if cupti or args.driver == "cpu":
            found = measure(Counted(args.build, folder, cupti), args.driver)
        wrong = judge(found) if cupti or args.driver == "cpu" else ["not measured: no libcupti counts here"]
    found |= {"cupti": cupti, "cupti_refused": said, "faults": wrong}
    print(*lines(found), *(f"{library}: {text}" for library, text in said.items()), *(f"FAIL  {fault}" for fault in wrong), sep="\n")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
