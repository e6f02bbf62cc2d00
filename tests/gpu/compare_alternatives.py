#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slotprobe's donation against what people do instead to look at a slot: same pools, same run.

    tests/gpu/compare_alternatives.py [--build FOLDER] [--driver cuda|cpu] [--turns N] [--json FILE]

Pools have the shapes of real models (0.08 to 147 MiB a slot) and the one that the bars were set at, random data, slots rotated over
2 GiB and more. Of each way: time on the device (between events, behind other work), time of the host, whether the host waits for the
device, what of planted faults it tells, and what becomes of a graph capture with it inside. The ways take turns; printed are medians and
the 10th and 90th percentiles, and ratios of what a way takes (the longer of both times) to what slotprobe does, called from C.

Exit status 1 where a bar of docs/performance.md is missed, a donation was not recorded, slotprobe waited or missed a planted fault. On
the CPU driver the parts are tried, and no time means anything.
"""
import argparse
import concurrent.futures
import errno
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "bench")]

import runs  # noqa: E402

BARS = {"absmax_item": 5, "layers_item": 150}  # times slotprobe's, of the pool named here, from which they were taken
JUDGED = "72 MiB of 96 layers"
BASE = "slotprobe_from_c"
OURS = "slotprobe_"
WAITS = "absmax_item"  # that a wait is seen


def work(args, run, *options):
    """Runs the worker recorded; what it printed, as one object."""
    build = args.build.resolve()
    env = runs.surroundings()
    if args.driver == "cpu":
        env["LD_LIBRARY_PATH"] = f"{build / 'cpudriver'}:{env.get('LD_LIBRARY_PATH', '')}"
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "probes" / "python"), *filter(None, [env.get("PYTHONPATH")])])
    command = [build / "slotprobe", "record", "-o", run, "--arm", "graph-off", "--min-free", "64M", "--", sys.executable, "-B",
               ROOT / "tests/gpu/alternatives.py", "--driver", args.driver, "--loop", build / "tests/bench/donate_loop.so", *options]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, env=env, check=False, timeout=args.seconds)
    found = {"rows": [], "captures": {}, "exit": done.returncode}
    for line in done.stdout.splitlines():
        said = json.loads(line)
        found["rows"] += said.pop("rows", [])
        found["captures"] |= said.pop("captures", {})
        found |= said
    return found


def captures(args, folder, names):
    """What becomes of a capture with each of these inside: a process each, since a capture that failed may spoil the next."""
    groups = [[name] for name in names] if args.driver == "cuda" else [names]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda g: work(args, folder / f"capture-{g[0]}", *(f"--capture={name}" for name in g)), groups))
    found = {}
    for group, one in zip(groups, done):
        found |= one["captures"] or {name: {"capture": "fails", "error": f"the process ended with {one['exit']}"} for name in group}
    return found


def takes(row):
    """us: the longer of what the host and the device are kept for."""
    return max(row[t]["median"] for t in ("host_us", "gpu_us") if row[t])


def ratios(rows):
    """Each way's time against slotprobe's in the same pool."""
    for row in rows:
        base = next(r for r in rows if r["pool"] == row["pool"] and r["way"] == BASE)
        row["times_slotprobe"] = takes(row) / takes(base)


def judge(args, found, probes):
    """What is missed."""
    missed = [f"the worker ended with {found['exit']}"] if found["exit"] else []
    donate = probes["core.donate"]
    if donate["attempted"] == 0 or donate["committed"] != donate["attempted"]:
        missed.append(f"not every donation was recorded: {donate}")
    return missed + judge_rows(args, found["rows"]) + judge_findings(found)


def judge_rows(args, rows):
    """Of the times: who waits, and the bars. A row that is not there holds no bar."""
    missed, seen = [], {(row["pool"], row["way"]): row for row in rows}
    for (pool, way), row in seen.items():
        if way.startswith(OURS) and (row["synchronises"] or row["refused"]):
            missed.append(f"{pool}, {way}: waits {row['synchronises']}, {row['refused']} refused")
    for pool in {pool for pool, _ in seen}:
        if not seen.get((pool, WAITS), {"synchronises": False})["synchronises"]:
            missed.append(f"{pool}: {WAITS} was not seen to wait: nothing shows that a wait is seen")
    for way, bar in BARS.items() if args.driver == "cuda" else ():
        times = seen.get((JUDGED, way), {"times_slotprobe": 0})["times_slotprobe"]
        if not times >= bar:
            missed.append(f"{way} takes {times:.1f} x slotprobe's time, {bar} x was the bar")
    return missed


def judge_findings(found):
    """Of what each way sees, and of captures: slotprobe says there that it is busy."""
    missed = []
    for plant, by_way in found.get("seen", {}).items():
        for way, said in by_way.items():
            if way.startswith(OURS) and said != ("missed" if plant == "nothing" else "found"):
                missed.append(f"{plant}: {way} {said} it")
    for way, said in found.get("captures", {}).items():
        if way.startswith(OURS) and said != {"capture": "survives", "said": -errno.EBUSY}:
            missed.append(f"a capture with {way}: {said}")
    if not any(way.startswith(OURS) for way in found.get("captures", {})) or not any(
            way.startswith(OURS) for way in found.get("seen", {}).get("nothing", {})):
        missed.append("the worker did not get as far as the planted faults")
    return missed


def table(found):
    """Lines to read."""
    def cell(said):
        return f"{said['median']:10.1f} ({said['p10']:.1f} to {said['p90']:.1f})" if said else f"{'-':>10}"

    yield f"{'pool':22}{'MiB':>7}  {'way':24}{'device us':>10}{'':18}{'host us':>10}{'':18}{'ratio':>8}  waits"
    for r in found["rows"]:
        yield (f"{r['pool']:22}{r['slot_MiB']:7.2f}  {r['way']:24}{cell(r['gpu_us']):28}{cell(r['host_us']):28}{r['times_slotprobe']:8.1f}  "
               f"{'yes' if r['synchronises'] else 'no'}")
    plants = list(found.get("seen", {}))
    for way in found.get("seen", {}).get("nothing", {}):
        yield f"{way:24}" + "; ".join(f"{p}: {found['seen'][p][way]}" for p in plants) + f"; in a capture: {found['captures'][way]}"


def main():
    """Runs it, prints it, judges it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        found = work(args, folder / "run", "--turns", args.turns)
        probes = runs.probes(args.build.resolve() / "slotprobe", folder / "run")
        found["captures"] = captures(args, folder, list(found.get("seen", {}).get("nothing", {})))
    ratios(found["rows"])
    missed = judge(args, found, probes)
    print("\n".join(table(found)))
    for line in missed:
        print(f"MISSED  {line[:400]}")
    if args.json:
        args.json.write_text(json.dumps({"driver": args.driver, **found, "missed": missed}, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
