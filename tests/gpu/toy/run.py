#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The toy server's cases on the machine's CUDA driver: records, concludes, holds the conclusions against the toy's own journal.

    tests/gpu/toy/run.py [--build FOLDER] [--driver cuda|cpu] [--json FILE]

Prints a table; exit status 0 when every row holds. Needs a built tree and nothing but Python's own library. --driver cpu is for trying
this script itself.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from toylab import Lab, codes, kinds, slots  # noqa: E402

STALE = ("--bug", "stale-index-tail")
WALK = ("--bug", "path-never-walked")
SWITCH = ("--bug", "switch-ignored")
FULL = ("--waves", "--concurrency", "8", "--slots", "40", "--requests", "32")
DEVICE_IDS = ("--slot-ids", "device")
FIXED = ("--fixed-answers",)
SLOT_0 = (*FIXED, "--use-slot-0")
THREE = (*SLOT_0, "--waves", "--concurrency", "3")
FOUR = (*SLOT_0, "--waves", "--concurrency", "4")
SHORT = (*FIXED, "--chunk", "2", "--track-interval", "2")
SINGLE = (*FIXED, "--chunk", "1", "--track-interval", "1", "--requests", "6", "--slots", "320")
WATCH = {"options": ("--watch-slot", "0")}

# case, arm and options of the toy for A and for B, exit status, reason code, how it is recorded
ROWS = [
    ("clean", ("graph-off",), ("graph-on",), 0, None, {}),
    ("clean, device slot ids", ("graph-off", *DEVICE_IDS), ("graph-on", *DEVICE_IDS), 0, None, {}),
    ("clean, legacy stream", ("graph-off", "--stream", "default"), ("graph-on", "--stream", "default"), 0, None, {}),
    ("clean, per-thread stream", ("graph-off", "--stream", "per-thread"), ("graph-on", "--stream", "per-thread"), 0, None, {}),
    ("clean, cuGetProcAddress", ("graph-off", "--resolve", "proc"), ("graph-on", "--resolve", "proc"), 0, None, {}),
    ("clean, padded-eager", ("padded-eager",), ("graph-on",), 0, None, {}),
    ("A/A", ("graph-on",), ("graph-on",), 0, None, {"again": 1}),
    ("stale-index-tail", ("graph-off", *STALE), ("graph-on", *STALE), 1, None, WATCH),
    ("stale-index-tail, device slot ids", ("graph-off", *STALE, *DEVICE_IDS), ("graph-on", *STALE, *DEVICE_IDS), 1, None, {}),
    ("stale-index-tail, graph-path-eager", ("graph-off", *STALE), ("graph-path-eager", *STALE), 1, None, {}),
    ("stale-index-tail, full batch", ("graph-off", *STALE, *FULL), ("graph-on", *STALE, *FULL), 0, None, {}),
    ("path-never-walked", ("graph-off", *WALK), ("graph-on", *WALK), 3, "probe_never_fired", {}),
    ("switch-ignored", ("graph-off", *SWITCH), ("graph-on", *SWITCH), 3, "switch_had_no_effect", {}),
    ("probe disabled", ("graph-off",), ("graph-on", "--no-donate"), 3, "probe_never_fired", {}),
    ("one slot perturbed", ("graph-off",), ("graph-on", "--perturb-slot", "5"), 1, None, {}),
]


def bug(name, *options, arms=("graph-off", "graph-on"), status=1, **how):
    """A row that plays this bug in both arms."""
    code = "slot_differs" if status == 1 else None
    text = name + (", full batch" if options == FOUR else "") + (f", {arms[0]}" if arms[0] != "graph-off" else "")
    return text, (arms[0], "--bug", name, *options), (arms[1], "--bug", name, *options), status, code, how


ROWS += [
    bug("nan-survives-clear", *FIXED, kinds={"non_finite"}),
    bug("capture-writes-slot0", *SLOT_0),
    bug("conv-leak", *SHORT),
    bug("padding-aliases-live", *THREE),
    bug("padding-aliases-live", *FOUR, status=0),
    bug("wrong-position", *FIXED, "--chunk", "8", kinds={"wrong_length"}),
    bug("snapshot-too-early", *FIXED, kinds={"zero", "stale"}),
    bug("graph-wipes-state", *SINGLE, kinds={"wrong_length"}),
    bug("two-bugs", *FIXED, kinds={"non_finite", "zero", "stale"}),
    bug("padded-eager-equal", *FIXED),
    bug("padded-eager-equal", *FIXED, arms=("padded-eager", "graph-on"), status=0, in_both=True),
    bug("aliased-write", *FIXED),
]


def counters_differ(lab, run):
    """Counters that are not the toy's own counts, or are not reconciled."""
    wrong = []
    probes = lab.probes(run)
    expected = {f"core.{name}": n for name, n in run.end["calls"].items()}
    expected["core.graph_launch"] = run.end["graph_launches"]
    for name, n in expected.items():
        probe = probes[name]
        lost = probe["errors"] + sum(probe["skipped"].values()) + sum(probe["dropped"].values())
        if probe["attempted"] != n or probe["committed"] != n or probe["in_flight"] or lost:
            wrong.append({"probe": name, "toy": n, "counted": probe})
    return wrong


def wrong_explanations(found, run):
    """Differing slots whose explanation is not what the toy knows of the slot's first wrong hand-over."""
    wrong = []
    for number, slot in slots(found, "differs").items():
        first = run.first_wrong(number)
        if first["expect"] in ("zero", "stale") and first["expect"] not in kinds(slot):
            wrong.append({"slot": number, "expected": first["expect"], "explain": slot["explain"]})
    return wrong


def row(lab, case, a, b, status, code, how):
    """Plays one row; returns what was found, `ok` among it."""
    begun = time.time()
    options = how.get("options", ())
    first = lab.record(a[0], *a[1:], options=options)
    second = lab.record(b[0], *b[1:], options=options, again=how.get("again", 0))
    got, found = lab.diff(first, second)
    differing = sorted(slots(found, "differs"))
    expected = sorted(second.slots_differing) if not how.get("in_both") else []
    planted = not how.get("in_both") or first.slots_differing == second.slots_differing != set()
    result = {"case": case, "a": " ".join(a), "b": " ".join(b), "expected_status": status, "status": got, "verdict": found["verdict"],
              "reasons": codes(found), "slots_differing": differing, "toy_slots_differing": expected, "planted": planted,
              "explain": sorted({k for s in slots(found, "differs").values() for k in kinds(s)}),
              "wrong_explanations": wrong_explanations(found, second) if got == 1 else [],
              "counters_wrong": counters_differ(lab, first) + counters_differ(lab, second),
              "graph_launches": [r["graph_launches"] for r in found["runs"]], "donations": [r["donations"] for r in found["runs"]],
              "driver": found["runs"][1]["driver"], "device": found["runs"][1]["device"]}
    result["ok"] = (got == status and planted and (code is None or code in result["reasons"])
                    and (status == 3 or differing == result["toy_slots_differing"])
                    and (status != 1 or (bool(differing) and not first.slots_differing))
                    and not result["wrong_explanations"] and not result["counters_wrong"]
                    and (options == () or "misplaced" in result["explain"])
                    and how.get("kinds", set()) <= set(result["explain"]))
    result["seconds"] = round(time.time() - begun, 2)
    return result


def main() -> int:
    """Plays every row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(args.build.resolve(), args.driver, pathlib.Path(folder))
        for case in ROWS:
            try:
                results.append(row(lab, *case))
            except Exception as trouble:  # pylint: disable=broad-except; one row's trouble must not hide the others
                results.append({"case": case[0], "ok": False, "trouble": traceback.format_exc()})
                print(f"{case[0]}: {trouble}", file=sys.stderr)
    print(f"{'case':38} {'exit':>4} {'verdict':11} {'launches':>9} {'donations':>9} {'differ':>6}  reasons, explanations")
    for r in results:
        if "trouble" in r:
            print(f"FAIL {r['case']:33} {r['trouble'].splitlines()[-1]}")
            continue
        print(f"{'ok  ' if r['ok'] else 'FAIL'} {r['case']:33} {r['status']:4} {r['verdict']:11} "
              f"{'/'.join(map(str, r['graph_launches'])):>9} {'/'.join(map(str, r['donations'])):>9} {len(r['slots_differing']):6}  "
              f"{' '.join(dict.fromkeys(r['reasons'] + r['explain']))}")
        if not r["ok"]:
            print("     " + json.dumps({k: r[k] for k in ("expected_status", "slots_differing", "toy_slots_differing",
                                                          "wrong_explanations", "counters_wrong")}))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if results and all(r["ok"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
