#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sync-hides-it: does a race show as often while slotprobe records as without it?

    tests/gpu/race/run.py [--build FOLDER] [--driver cuda|cpu] [--processes N] [--sweeps N] [--json FILE]

How often it shows is a matter of what a launch costs, and that differs from process to process by far more than what is looked for. So
each process is held against itself: trials through the preload and donated ("recorded") take turns with trials past it and not ("past"). The
length of the writing graph, upon which the rate depends, sweeps from where it never shows past the edge, where it shows in every other trial of that
process, to 1.3 us beyond on an H200: the distance of two launches varies by more (tests/bench/run.py, 99th percentile). Judged is the share of the rate that is lost, over all
processes, and twice its standard error, from what the processes differ by: with 7 of them and more, above 95 % of one side.

Holds when less than a tenth is lost for certain, and less than a tenth between two things that are the same ("again" and "past"); when the red
twin, a probe that takes 2 us between the launches ("spin"), loses more for certain, and a probe that waits ("wait"), like a program that orders its
streams ("ordered"), shows nothing; when what the programs counted through the preload, and nothing past it, is what slotprobe counted; and when
`diff` against an ordered run finds the bug, and nothing in another ordered one. On the CPU driver the parts are tried, and no rate is judged but
those that are 0.

Printed beside it and not judged: what is lost at the edge itself, where every nanosecond counts; and how many nanoseconds later the second
graph comes, for trials past the preload that come about 100 ns late ("late") tell what those cost. What recording does to a process as a whole (its threads
beside the program's) is in both arms of a pair and cannot show here: tests/bench/run.py times processes.
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

LOSS = 0.1
ENOUGH = 7  # processes: of 6 degrees of freedom, 95 % of Student's t lie below 1.95
OPEN = {"edge": (0.2, 0.8), "sweep": (0.4, 0.9)}  # the rates that can change both ways
KINDS = ("again", "recorded", "through", "late", "spin")  # what is held against "past"


class Race:
    def __init__(self, build: pathlib.Path, driver: str, folder: pathlib.Path):
        self.build, self.folder, self.runs = build.resolve(), folder, 0
        self.options = ["--driver-lib", str(self.build / "cpudriver/libcuda.so.1")] if driver == "cpu" else []
        self.env = runs.surroundings() | {"CPUDRIVER_KERNELS": str(self.build / "cpudriver/kernels")}

    def run(self, sweeps: int, *options: str) -> dict:
        """What one recorded process said, and what was counted of it."""
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        command = [str(self.build / "slotprobe"), "record", "-o", str(run), "--arm", "graph-on", "--", str(self.build / "tests/race"), "--sweeps",
                   str(sweeps), "--seed", str(self.runs), *options, *self.options]
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=120)
        if done.returncode:
            raise RuntimeError(f"status {done.returncode}: {done.stderr[-2000:]}")
        probes = runs.probes(self.build / "slotprobe", run)
        counted = {"launches": probes["core.graph_launch"]["committed"], "donations": probes["core.donate"]["committed"]}
        return json.loads(done.stdout) | {"counted": counted, "run": run}

    def diff(self, a: pathlib.Path, b: pathlib.Path) -> dict:
        done = subprocess.run([str(self.build / "slotprobe"), "diff", str(a), str(b), "--format", "json"], capture_output=True, text=True)
        return {"exit": done.returncode, "verdict": json.loads(done.stdout)["verdict"]}


def rate(process: dict, kind: str, where: str) -> float:
    found = process["kinds"][kind][where]
    return found["stale"] / found["trials"]


def lost(processes: list[dict], kind: str, where: str) -> dict:
    """What share of the rate past the preload is not there in that kind, and its standard error: of a ratio, over processes."""
    pairs = [(rate(p, "past", where), rate(p, kind, where)) for p in processes]
    bare, n = sum(b for b, _ in pairs), len(pairs)
    share = 1 - sum(k for _, k in pairs) / bare
    error = (n / (n - 1) * sum((b * (1 - share) - k) ** 2 for b, k in pairs)) ** 0.5 / bare
    return {"rate": sum(k for _, k in pairs) / n, "lost": share, "least": share - 2 * error, "most": share + 2 * error}


def losses(processes: list[dict], where: str) -> dict:
    return {"past": {"rate": sum(rate(p, "past", where) for p in processes) / len(processes)}} | {
        kind: lost(processes, kind, where) for kind in KINDS}


def judge_rates(processes: list[dict]) -> tuple[dict, list[str]]:
    """What came of it, and what is wrong with it. Which processes can show a loss is told by trials that are not judged themselves."""
    used = [p for p in processes if all(low <= rate(p, "again", where) <= high for where, (low, high) in OPEN.items())]
    judged = {"processes": len(processes), "open": len(used)}
    if len(used) < ENOUGH or not all(rate(p, "past", where) for p in used for where in ("edge", "sweep")):
        return judged, [f"not resolved: {len(used)} of {len(processes)} processes came to rates within {OPEN}"]
    judged |= {where: losses(used, where) for where in ("sweep", "edge")}
    found, faults = judged["sweep"], []
    if found["late"]["least"] > 0:
        judged["ns"] = sum(p["late_ns"] for p in used) / len(used) * found["recorded"]["lost"] / found["late"]["lost"]
    if max(found["again"]["most"], -found["again"]["least"]) >= LOSS:
        faults.append(f"not resolved: two things that are the same differ by {found['again']['least']:.3f} to {found['again']['most']:.3f}")
    if found["recorded"]["lost"] >= LOSS:
        faults.append(f"the bug shows less often while recording: {found['recorded']['lost']:.3f} of it is lost")
    elif found["recorded"]["most"] >= LOSS:
        faults.append(f"not resolved: while recording, up to {found['recorded']['most']:.3f} of it may be lost")
    if found["spin"]["least"] <= LOSS:
        faults.append(f"a probe that takes 2 us would not be seen: it may lose no more than {found['spin']['least']:.3f}")
    return judged, faults


def judge_counts(processes: list[dict]) -> list[str]:
    faults = []
    for process in processes:
        said = {name: process[name] for name in ("launches", "donations")}
        if process["counted"] != said or not all(said.values()):
            faults.append(f"counted {process['counted']}, the program {said}")
        faults += [f"the bug shows where it must not: {kind}, {found}" for kind, found in process["kinds"].items()
                   if kind in ("ordered", "wait") and (found["edge"]["stale"] or found["sweep"]["stale"])]
    return faults


def measure(race: Race, processes: int, sweeps: int) -> dict:
    found = [race.run(sweeps) for _ in range(processes)]
    alone = {name: race.run(2, "--kind", kind) for name, kind in (("ordered", "ordered"), ("again", "ordered"), ("recorded", "recorded"))}
    diff = {name: race.diff(alone["ordered"]["run"], alone[name]["run"]) for name in ("again", "recorded")}
    every = [*found, *alone.values()]
    judged, unsure = judge_rates(found)
    faults = judge_counts(every)
    if diff != {"again": {"exit": 0, "verdict": "equal"}, "recorded": {"exit": 1, "verdict": "differs"}}:
        faults.append(f"diff: {diff}, of {alone['recorded']['kinds']['recorded']}")
    for process in every:
        del process["run"]
    return {"judged": judged, "unsure": unsure, "faults": faults, "diff": diff, "processes": found, "alone": alone}


def lines(judged: dict) -> list[str]:
    """As text, a line for each kind."""
    said = [f"{judged['open']} of {judged['processes']} processes with rates that can change both ways"]
    for where in ("sweep", "edge"):
        for kind, row in judged.get(where, {}).items():
            less = f", lost {row['lost']:+.4f} ({row['least']:+.4f} to {row['most']:+.4f})" if "lost" in row else ""
            said.append(f"{where:5} {kind:8} stale {row['rate']:.4f}{less}")
    if "ns" in judged:
        said.append(f"recording lets the second graph come {judged['ns']:.0f} ns later")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--sweeps", type=int, default=10, help="of each process: 99 trials of each kind, and as many at the edge")
    parser.add_argument("--json", help="write the result there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Race(args.build, args.driver, pathlib.Path(folder)), args.processes, args.sweeps)
    print(*lines(found["judged"]), f"diff against an ordered run {found['diff']}", sep="\n")
    if args.driver == "cuda":
        found["faults"] += found["unsure"]
    for fault in found["faults"]:
        print(f"FAIL  {fault}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
