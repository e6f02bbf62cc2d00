#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the collector costs at size: donations read a second of CPU, bytes of records a second, and the most memory.

    tests/bench/collector.py [--build FOLDER] [--folder FOLDER] [--size N]... [--repeat R] [--at-size] [--json FILE]

Pairs of runs of each size are made by biglog: roll-ups (one plane) with the events around them, roll-ups alone, and slots of 48
planes at a tenth of the size. `diff` reads both runs of a pair, `check` one. CPU seconds are those of the process, user and system, on the
CPU that is the fastest just then; of the repeats, in which the two take turns, the best counts, because others on the machine can only
add. All stand in the JSON, and beside each what a fixed loop took just before and after it, the mean: `loop_s`. Memory is the peak of the resident
set. `whole` is the same command made to load every event. `--at-size`: 1 and 10 million donations of each kind, with planes too, and 100 million roll-ups alone,
which takes 45 GB of disk and six minutes; then the bars are judged, and the exit status is 1 where one is missed.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLOTS = 1000
KINDS = {"roll-ups": (1, 1, []), "roll-ups alone": (1, 1, ["bare"]), "48 planes": (48, 10, [])}  # planes, divisor of the size, words
AT_SIZE = [("roll-ups", 1_000_000), ("roll-ups", 10_000_000), ("roll-ups alone", 1_000_000), ("roll-ups alone", 10_000_000),
           ("48 planes", 10_000_000), ("48 planes", 100_000_000), ("roll-ups alone", 100_000_000)]
REPEATS = ((1e9, 9), (2e10, 3), (float("inf"), 1))  # bytes of records, and how often they are read
ROLLUPS_PER_S, RECORDS_GB_PER_S = 3e6, 1.0  # of one core
PEAK_MB = {"diff": 8, "check": 160}
SLOWER = 0.7  # the rate at ten times the size, at least
SHARED = 1.15  # of the loop's shortest time: others are on that core


def make(build: pathlib.Path, folder: pathlib.Path, kind: str, size: int) -> tuple[list[pathlib.Path], int, int]:
    """Two equal runs; donations and bytes of records of one."""
    planes, divisor, words = KINDS[kind]
    arms = ("graph-off", "graph-on")
    runs = [folder / f"{kind}.{size}.{arm}" for arm in arms]
    makers = [subprocess.Popen([build / "tests/export/biglog", run, arm, "1", str(size // divisor), str(SLOTS), str(planes), "lz4", *words],
                               stdout=subprocess.PIPE, text=True) for run, arm in zip(runs, arms)]
    said = [maker.communicate()[0] for maker in makers]
    if any(maker.returncode for maker in makers):
        raise RuntimeError(f"biglog could not write {runs}")
    return runs, size // divisor, int(said[0])


def said_by_spend(build: pathlib.Path, command: list, **env: str) -> tuple[int, list[float]]:
    """The status of any command, and spend.c's numbers of it."""
    read, write = os.pipe()
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")} | env

    def give() -> None:
        os.dup2(write, 3)

    done = subprocess.run([build / "tests/bench/spend", *command], env=surroundings, stdout=subprocess.DEVNULL, close_fds=False,
                          preexec_fn=give, check=False)
    os.close(write)
    with os.fdopen(read) as said:
        return done.returncode, [float(number) for number in said.read().split()]


def spend(build: pathlib.Path, command: list, **env: str) -> tuple[float, int, float]:
    """CPU seconds and peak bytes of a slotprobe command that must end well, and the seconds of the loop beside it."""
    status, numbers = said_by_spend(build, [build / "slotprobe", *command], **env)
    if status:
        raise RuntimeError(f"{command}: status {status}")
    user, system, peak, before, after = numbers
    return user + system, int(peak) * 1024, (before + after) / 2


def measure(build: pathlib.Path, runs: list[pathlib.Path], donations: int, bytes_of: int, repeat: int, **env: str) -> dict:
    """Of diff over both and of check over the first, in turn: a bad moment of the machine is one reading of each, not all of one."""
    operands = {"diff": runs, "check": runs[:1]}
    spent = {verb: [] for verb in operands}
    for _ in range(repeat):
        for verb, of in operands.items():
            spent[verb].append(spend(build, [verb, *of], **env))
    found = {}
    for verb, of in operands.items():
        each, peaks, loops = zip(*spent[verb])
        cpu = min(each)
        found[verb] = {"cpu_s": cpu, "cpu_s_each": each, "loop_s": loops, "donations_per_s": donations * len(of) / cpu,
                       "records_GB_per_s": bytes_of * len(of) / cpu / 1e9, "peak_MB": max(peaks) / 1e6}
    return found


def faults(found: list[dict]) -> list[str]:
    """Which bars are missed."""
    missed, rate = [], {}
    loop = min(min(r["loop_s"]) for r in found)
    for r in found:
        who, planes = f"{r['kind']}, {r['donations']:,} donations, {r['verb']}", r["kind"] == "48 planes"
        figure, bar = ("records_GB_per_s", RECORDS_GB_PER_S) if planes else ("donations_per_s", ROLLUPS_PER_S)
        if r[figure] < bar:
            taken = r["loop_s"][r["cpu_s_each"].index(r["cpu_s"])] / loop
            missed.append(f"{who}: {figure} {r[figure]:,.2f} under {bar:,.2f}" + f", on a core that others shared: {taken:.2f}" * (taken > SHARED))
        if r["peak_MB"] > PEAK_MB[r["verb"]]:
            missed.append(f"{who}: {r['peak_MB']:.0f} MB over {PEAK_MB[r['verb']]}")
        before = rate.get((r["kind"], r["verb"]))
        if before and r["donations_per_s"] < SLOWER * before:
            missed.append(f"{who}: {r['donations_per_s'] / before:.2f} of the rate at the size before")
        rate[r["kind"], r["verb"]] = r["donations_per_s"]
    return missed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, default=ROOT / os.environ.get("BUILD", "build"))
    options.add_argument("--folder", type=pathlib.Path, help="where the runs go: 400 bytes a donation at most")
    options.add_argument("--size", type=int, action="append", help="donations of a run; several times for several")
    options.add_argument("--kind", choices=KINDS, action="append")
    options.add_argument("--repeat", type=int, help="of each; if it is not said, the fewer the larger")
    options.add_argument("--whole", action="store_true", help="beside it, with every event loaded")
    options.add_argument("--at-size", action="store_true", help="the sizes that the bars are for, and judge them")
    options.add_argument("--json", type=pathlib.Path)
    args = options.parse_args()
    wanted = AT_SIZE if args.at_size else [(kind, size) for kind in args.kind or KINDS for size in args.size or [100_000, 400_000]]
    build, found = args.build.resolve(), []
    print(f"{'runs':15} {'donations':>11} {'':6} {'CPU s':>8} {'donations/s':>12} {'records GB/s':>12} {'peak MB':>8}")
    for kind, size in wanted:
        folder = pathlib.Path(tempfile.mkdtemp(dir=args.folder))
        try:
            runs, donations, bytes_of = make(build, folder, kind, size)
            for how in ["", "whole"][:1 + args.whole]:
                results = measure(build, runs, donations, bytes_of, args.repeat or next(n for most, n in REPEATS if bytes_of < most),
                                  SLOTPROBE_READING=how, TMPDIR=str(folder))
                for verb, r in results.items():
                    found.append({"kind": kind, "donations": donations, "records_bytes": bytes_of, "verb": verb, "whole": bool(how)} | r)
                    print(f"{kind:15} {donations:11,} {verb:6} {r['cpu_s']:8.2f} {r['donations_per_s']:12,.0f} {r['records_GB_per_s']:12.2f} "
                          f"{r['peak_MB']:8.1f} {how}", flush=True)
        finally:
            shutil.rmtree(folder)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    missed = faults(found) if args.at_size else []
    for fault in missed:
        print(f"MISSED  {fault}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
