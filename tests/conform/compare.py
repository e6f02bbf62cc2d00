#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two transcripts of conform, the second against the first.

    tests/conform/compare.py H200.json OTHER.json

Exit status 0 when every difference is one of ALLOWED.
"""
import json
import pathlib
import re
import sys

# The real driver ends the process where this one answers with an error.
CRASH = "signal 11 there: "

# Where the CPU driver may differ from the H200: pattern of the whole case, what differs ("result", a key of "seen", or "case" where
# only one side has it), and why. A row that no difference uses any more is an error too.
ALLOWED: list[tuple[str, str, str]] = [
    (r"devices/cuDeviceGetName", "name", "each device has its own name"),
    (r"devices/cuDeviceGetAttribute 16", "value", "how many multiprocessors it has is no behaviour"),
    (r"procaddr/cuGetProcAddress(_v2)? no (name|place)", "result", CRASH + "NULL is dereferenced"),
    (r"devices/cuDeviceGetName 0 bytes", "result", CRASH + "a buffer of no bytes is written to"),
    (r"streams/cuThreadExchangeStreamCaptureMode no place", "result", CRASH + "NULL is dereferenced"),
    (r"batch_nodes/cuStreamBatchMemOp_v2 no list", "result", CRASH + "NULL is dereferenced"),
    (r"children/cuGraphAddChildGraphNode itself", "result", CRASH + "a graph that is in itself has no end"),
    # where the H200 answers both ways
    (r"capture/cuStreamGetCaptureInfo_v3 thread-local: empty", "edges",
     "a pointer to no edges: NULL in one capture, left over from the one before in the next"),
    (r"matrix/(module_load|library_load|func_load) during (own )?GLOBAL", "end",
     "one load more of a known image leaves the capture alone there, a loop of loads answers 0 and ends it (measured in a loop, see "
     "tests/unit/cpudriver/test_matrix.c): the CPU driver always does the worse of the two"),
    # what has no code
    (r"other_nodes/cuGraph(Add|Exec)ExternalSemaphores(Signal|Wait)Node(SetParams)? no params", "result",
     "not implemented is answered before any argument is looked at"),
]


def load(path: pathlib.Path) -> dict[str, dict]:
    """The cases of a transcript by name, whether it stands alone or in the report of tests/gpu/run.py."""
    document = json.loads(path.read_text())
    document = document.get("result", document)
    assert document["format"] == 1, document["format"]
    cases = {case["case"]: case for case in document["cases"]}
    assert len(cases) == len(document["cases"]), "a case stands there twice"
    return cases


def differences(one: dict[str, dict], other: dict[str, dict]) -> list[tuple[str, str, object, object]]:
    """(case, what, value there, value here), in the order of the first."""
    found = []
    for name in [*one, *(name for name in other if name not in one)]:
        if name not in one or name not in other:
            found.append((name, "case", "there" if name in one else "absent", "there" if name in other else "absent"))
            continue
        a, b = one[name], other[name]
        if a["result"] != b["result"]:
            found.append((name, "result", a["result"], b["result"]))
        seen_a, seen_b = a.get("seen", {}), b.get("seen", {})
        for key in {**seen_a, **seen_b}:
            if seen_a.get(key, "absent") != seen_b.get(key, "absent"):
                found.append((name, key, seen_a.get(key, "absent"), seen_b.get(key, "absent")))
    return found


def judge(found: list[tuple], allowed: list[tuple[str, str, str]]) -> tuple[list[tuple], list[tuple]]:
    """What of it is not allowed, and the rows of `allowed` that nothing used."""
    used = set()
    bad = []
    for difference in found:
        rows = [i for i, (pattern, what, _) in enumerate(allowed) if re.fullmatch(pattern, difference[0]) and what == difference[1]]
        used.update(rows)
        if not rows:
            bad.append(difference)
    return bad, [row for i, row in enumerate(allowed) if i not in used]


def main() -> int:
    one, other = (load(pathlib.Path(path)) for path in sys.argv[1:3])
    bad, unused = judge(differences(one, other), ALLOWED)
    for name, what, there, here in bad:
        print(f"{name}: {what} is {there!r} there, {here!r} here")
    for row in unused:
        print(f"allowed, and no longer needed: {row}")
    print(f"{len(one)} cases, {len(bad)} differences that are not allowed")
    return 1 if bad or unused else 0


if __name__ == "__main__":
    sys.exit(main())
