#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own graphs under slotprobe: records torch_stale.py in its arms, holds slotprobe's conclusions against the program's journal.

    tests/gpu/torch_run.py [--build FOLDER] [--json FILE]

Exit status 0 when everything holds. Needs a built tree, PyTorch and a GPU.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from toylab import Lab, Run, codes, kinds, slots  # noqa: E402

PROGRAM = ROOT / "tests" / "gpu" / "torch_stale.py"
ARMS = {
    "off": ("graph-off", "--no-graphs"),
    "on": ("graph-on", "--graphs"),
    "off-bug": ("graph-off", "--no-graphs", "--bug"),
    "on-bug": ("graph-on", "--graphs", "--bug"),
}
# a, b, exit status of diff, exit status of check of b
PAIRS = [("off", "on", 0, 0), ("off-bug", "on-bug", 1, 1), ("off", "off-bug", 0, 0)]


def record(lab, name):
    """Records one arm; returns the run and the seconds it took."""
    arm, *options = ARMS[name]
    path = lab.folder / name
    log = path.with_suffix(".jsonl")
    begun = time.time()
    done = lab.slotprobe("record", "-o", path, "--arm", arm, "--", sys.executable, PROGRAM, *options, "--journal", log)
    if done.returncode:
        raise AssertionError(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return Run(path, log, done), round(time.time() - begun, 1)


def counters_wrong(lab, run):
    """Counters that are not the program's own counts."""
    _, status = lab.ask("status", run.path)
    recorded = [p for p in status["processes"] if any(q["name"] == "core.donate" and q["attempted"] for q in p["probes"])]
    if len(recorded) != 1:
        return [f"{len(recorded)} processes donated"]
    probes = {p["name"]: p for p in recorded[0]["probes"]}
    expected = {f"core.{name}": n for name, n in run.end["calls"].items()}
    expected["core.graph_launch"] = run.end["graph_launches"]
    expected["core.graph_instantiate"] = run.end["graphs"]
    return [{"probe": name, "program": n, "counted": probes[name]} for name, n in expected.items()
            if probes[name]["attempted"] != n or probes[name]["committed"] != n or probes[name]["in_flight"]]


def pair(lab, runs, a, b, status, check_status):
    """Holds one diff against the journals."""
    got, found = lab.diff(runs[a], runs[b])
    checked, invariants = lab.check(runs[b])
    differing = slots(found, "differs")
    unexplained = [n for n, s in differing.items() if not set(kinds(s)) & {"zero", "stale"}]
    not_zero = [n for n in differing if runs[b].first_wrong(n)["zero"] and "zero" not in kinds(differing[n])]
    result = {"a": a, "b": b, "status": got, "expected_status": status, "verdict": found["verdict"], "reasons": codes(found),
              "check_status": checked, "check_reasons": codes(invariants), "slots_differing": sorted(differing),
              "program_slots_differing": sorted(runs[b].slots_differing), "unexplained": unexplained, "not_zero": not_zero,
              "explain": sorted({k for s in differing.values() for k in kinds(s)}),
              "graph_launches": [r["graph_launches"] for r in found["runs"]],
              "pool_graph_launches": [r["pool_graph_launches"] for r in found["runs"]],
              "program_graph_launches": [runs[a].end["graph_launches"], runs[b].end["graph_launches"]],
              "donations": [r["donations"] for r in found["runs"]],
              "program_donations": [runs[a].end["donations"], runs[b].end["donations"]]}
    result["ok"] = (got == status and checked == check_status and result["slots_differing"] == result["program_slots_differing"]
                    and bool(differing) == (status == 1) and not unexplained and not not_zero
                    and result["graph_launches"] == result["pool_graph_launches"] == result["program_graph_launches"]
                    and result["donations"] == result["program_donations"])
    return result


def main() -> int:
    """Records every arm once, then concludes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(args.build.resolve(), "cuda", pathlib.Path(folder))
        runs, seconds, counters = {}, {}, {}
        for name in ARMS:
            runs[name], seconds[name] = record(lab, name)
            counters[name] = counters_wrong(lab, runs[name])
        pairs = [pair(lab, runs, *p) for p in PAIRS]
        result = {"torch": runs["on"].end["torch"], "device": runs["on"].end["device"], "seconds": seconds, "pairs": pairs,
                  "counters_wrong": counters, "ok": all(p["ok"] for p in pairs) and not any(counters.values())}
    for p in pairs:
        print(f"{'ok  ' if p['ok'] else 'FAIL'} diff {p['a']} {p['b']}: exit {p['status']} {p['verdict']}, "
              f"{len(p['slots_differing'])} slots differ, launches {p['graph_launches']}, {' '.join(dict.fromkeys(p['reasons'] + p['explain']))}")
        if not p["ok"]:
            print("     " + json.dumps(p))
    for name, wrong in counters.items():
        print(f"{'FAIL' if wrong else 'ok  '} counters of {name} {json.dumps(wrong) if wrong else ''}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
