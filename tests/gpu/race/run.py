#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sync-hides-it: does a race show as often while slotprobe records as without it?

    tests/gpu/race/run.py [--build FOLDER] [--driver cuda|cpu] [--json FILE]

First the length of the writing graph is chosen for which the bare program goes wrong about half the time; then --rounds rounds of 200
trials, bare and recorded in turn. Holds when both go wrong, the recorded one at least 0.9 times as often as the bare one; when a wait of the host hides the
bug (the red twin: a probe that waited would do that); when what the recorded program counted is what slotprobe counted; and when `diff`
against an ordered run finds it.
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

TRIALS = 200


class Race:
    def __init__(self, build: pathlib.Path, driver: str, folder: pathlib.Path):
        self.build, self.folder, self.runs = build, folder, 0
        self.options = ["--driver-lib", str(build / "cpudriver/libcuda.so.1")] if driver == "cpu" else []
        self.env = runs.surroundings() | {"CPUDRIVER_KERNELS": str(build / "cpudriver/kernels")}

    def run(self, delay: int, order: str = "none", trials: int = TRIALS, arm: str | None = None) -> dict:
        """One process; recorded if an arm is given."""
        command = [str(self.build / "tests/race"), "--trials", str(trials), "--delay", str(delay), "--order", order, *self.options]
        run = None
        if arm:
            self.runs += 1
            run = self.folder / f"run{self.runs}"
            command = [str(self.build / "slotprobe"), "record", "-o", str(run), "--arm", arm, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=120, check=True)
        _, stale, launches, donations = map(int, done.stdout.split())
        return {"rate": stale / trials, "launches": launches, "donations": donations, "run": run}

    def counted(self, run: pathlib.Path) -> dict:
        """Committed hits of a recorded run, by probe."""
        return {name: probe["committed"] for name, probe in runs.probes(self.build / "slotprobe", run).items()}

    def choose(self) -> int:
        """The delay whose rate is nearest to one half."""
        rates = {delay: self.run(delay, trials=100)["rate"] for delay in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)}
        return min(rates, key=lambda delay: abs(rates[delay] - 0.5))


def measure(race: Race, rounds: int) -> dict:
    delay = race.choose()
    bare, recorded, faults = [], [], []
    for _ in range(rounds):
        bare.append(race.run(delay)["rate"])
        one = race.run(delay, arm="graph-on")
        recorded.append(one["rate"])
        counted = race.counted(one["run"])
        if (counted["core.graph_launch"], counted["core.donate"]) != (one["launches"], one["donations"]):
            faults.append(f"counted {counted}, the program {one}")
    ordered = race.run(delay, "event", arm="graph-on")
    diff = subprocess.run([str(race.build / "slotprobe"), "diff", str(ordered["run"]), str(one["run"]), "--format", "json"],
                          capture_output=True, text=True)
    verdict = json.loads(diff.stdout)
    found = {"delay": delay, "trials": TRIALS, "bare": bare, "recorded": recorded, "bare_rate": sum(bare) / rounds,
             "recorded_rate": sum(recorded) / rounds, "ordered_rate": ordered["rate"], "host_wait_rate": race.run(delay, "host")["rate"],
             "diff": {"exit": diff.returncode, "verdict": verdict["verdict"]}}
    if not found["bare_rate"] or found["recorded_rate"] < 0.9 * found["bare_rate"]:
        faults.append("the bug shows less often while recording")
    if found["ordered_rate"] or found["host_wait_rate"]:
        faults.append("the bug shows where it must not")
    if found["diff"] != {"exit": 1, "verdict": "differs"}:
        faults.append(f"diff: {found['diff']}")
    return found | {"faults": faults}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", help="write the result there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Race(args.build, args.driver, pathlib.Path(folder)), args.rounds)
    print(f"delay {found['delay']}: bare {found['bare_rate']:.3f}, recorded {found['recorded_rate']:.3f}, ordered {found['ordered_rate']:.3f}, "
          f"host wait {found['host_wait_rate']:.3f}, diff {found['diff']}")
    for fault in found["faults"]:
        print(f"FAIL  {fault}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
