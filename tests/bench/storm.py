#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The capture storm, bare and under slotprobe: no capture may be invalidated, no driver call may fail, and what slotprobe counted must be
what the program counted.

    tests/bench/storm.py [--build FOLDER] [--driver cpu|cuda] [--seconds S] [--json FILE]

Then once more with a probe that allocates at a donation as a server's thread may not while somebody captures (perturb.c): a capture must be
lost, counted by the storm itself. A driver may end the process for it: then the program's last report counts, and one that had reported no loss
shows nothing. The other two must end well.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import runs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAPTURE_INVALIDATED = 901  # CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
CAPTURING = "launch in a capture"  # as storm.c calls it


class Storm:
    def __init__(self, build: pathlib.Path, driver: str, folder: pathlib.Path):
        self.build, self.folder, self.runs = build.resolve(), folder, 0
        self.options = ["--driver-lib", str(self.build / "cpudriver/libcuda.so.1")] if driver == "cpu" else []
        self.env = runs.surroundings()
        if driver == "cpu":
            self.env["LD_LIBRARY_PATH"] = f"{self.build / 'cpudriver'}:{self.env.get('LD_LIBRARY_PATH', '')}"

    def run(self, seconds: float, recorded: bool, perturb: str = "") -> dict:
        """What the program counted and, if recorded, what slotprobe did."""
        command, run = [str(self.build / "tests/bench/storm"), "--seconds", str(seconds), *self.options], None
        if recorded:
            self.runs += 1
            run = self.folder / f"storm{self.runs}"
            command = [str(self.build / "slotprobe"), "record", "-o", str(run), "--arm", "graph-on", "--min-free", "64M", "--", *command]
        if perturb:
            command = ["env", f"LD_PRELOAD={self.build}/tests/bench/perturb.so", f"PERTURB={perturb}", *command, "--until", "harm"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, timeout=seconds * 4 + 120)
        died = done.returncode < 0 and perturb
        if done.returncode and not died:
            raise RuntimeError(f"status {done.returncode}: {done.stderr[-2000:]}")
        found = last_report(done.stdout)
        if died:
            return found | {"died": done.returncode}
        if not found["final"]:
            raise RuntimeError(f"ended without its final counts: {done.stderr[-2000:]}")
        if run:
            counted = runs.probes(self.build / "slotprobe", run)
            found["counted"] = {name: probe for name, probe in counted.items() if probe["attempted"]}
        return found


def last_report(printed: str) -> dict:
    """The program's last whole line; it may have died in the middle of the next."""
    lines = printed.split("\n")[:-1]
    return json.loads(lines[-1]) if lines else {"final": False, "workers": []}


def total(found: dict, key: str) -> int:
    return sum(worker[key] for worker in found["workers"])


def harm(found: dict) -> list[str]:
    """Which thread had errors or lost a capture; a driver may even end the process for what the red twin does."""
    died = [f"the program ended with {found['died']}"] if found.get("died") else []
    return died + [f"{w['name']}: {w['errors']} errors (first {w['first_error']} in {w['where']}), {w['invalidated']} captures invalidated"
            for w in found["workers"] if w["errors"] or w["invalidated"]]


def lost(found: dict) -> bool:
    """Whether a capture was lost: it did not end well, or was said to be invalid while it went on and the program did not live to end it."""
    return any(w["invalidated"] or (w["first_error"], w["where"]) == (CAPTURE_INVALIDATED, CAPTURING) for w in found["workers"])


def unreconciled(found: dict) -> list[str]:
    """Where slotprobe's counts are not the program's, or do not add up."""
    counted, faults = found["counted"], []
    donate = counted.get("core.donate", {"committed": 0, "skipped": {}})
    own = {"core.donate": total(found, "donations"), "core.restore": total(found, "restores"), "core.graph_launch": total(found, "launches")}
    for name, n in own.items():
        if counted.get(name, {"attempted": 0})["attempted"] != n:
            faults.append(f"{name}: the program {n}, counted {counted.get(name)}")
    for name, probe in counted.items():
        parts = probe["committed"] + probe["filtered"] + sum(probe["skipped"].values()) + sum(probe["dropped"].values()) + probe["errors"]
        if probe["attempted"] != parts + probe["in_flight"]:
            faults.append(f"{name} does not add up: {probe}")
        if probe["in_flight"]:
            faults.append(f"{name}: {probe['in_flight']} in flight after the end")
    # A donation that was accepted may still be lost with its context or pool; one that was refused is never counted as committed.
    if donate["committed"] > total(found, "donated"):
        faults.append(f"{donate['committed']} committed of {total(found, 'donated')} accepted")
    if sum(v for k, v in donate["skipped"].items() if k in ("capturing", "legacy_stream")) != total(found, "busy"):
        faults.append(f"the program was told busy {total(found, 'busy')} times, counted {donate['skipped']}")
    return faults


def missing(bare: dict, recorded: dict) -> list[str]:
    """What did not happen, so that nothing can have been harmed by it."""
    found = [] if total(bare, "launches") else ["bare: nothing was launched"]
    found += [f"recorded: {w['name']}: not one round" for w in recorded["workers"] if not w["rounds"]]
    found += [f"recorded: no {what}" for what in ("launches", "donated", "busy", "restores") if not total(recorded, what)]
    return found + [f"{name}: none was recorded" for name in ("core.graph_launch", "core.donate", "core.restore")
                    if not recorded["counted"].get(name, {"committed": 0})["committed"]]


def judge(bare: dict, recorded: dict, twin: dict) -> list[str]:
    """What does not hold."""
    faults = [f"bare: {h}" for h in harm(bare)] + [f"recorded: {h}" for h in harm(recorded)] + missing(bare, recorded) + unreconciled(recorded)
    faults += [f"{name}: no final counts" for name, found in (("bare", bare), ("recorded", recorded)) if not found["final"]]
    if not lost(twin):
        faults.append(f"a probe that allocates while others capture ended no capture: the storm would not show one ({harm(twin)})")
    return faults


def measure(storm: Storm, seconds: float) -> tuple[dict, list[str]]:
    bare, recorded = storm.run(seconds / 8, False), storm.run(seconds, True)
    twins = []
    while len(twins) < 3 and not any(lost(twin) for twin in twins):  # the driver may die of it before the storm has counted
        twins.append(storm.run(min(seconds, 5), False, perturb="unsafe"))
    return ({"bare": bare, "recorded": recorded, "red_twin": {"perturb": "unsafe", "tries": len(twins), "harm": harm(twins[-1])}},
            judge(bare, recorded, twins[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", help="write the result there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, faults = measure(Storm(args.build, args.driver, pathlib.Path(folder)), args.seconds)
    for name in ("bare", "recorded"):
        print(f"{name}: " + ", ".join(f"{key} {total(found[name], key)}" for key in
                                      ("rounds", "errors", "invalidated", "launches", "donations", "donated", "busy", "restores")))
    print(f"red twin: {found['red_twin']['harm'][:2]}")
    for fault in faults:
        print(f"FAIL  {fault}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found | {"faults": faults}, indent=1) + "\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
