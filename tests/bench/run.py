#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What slotprobe costs the server's threads, as ratios within one run.

    tests/bench/run.py [--build FOLDER] [--driver cpu|cuda] [--quick] [--json FILE]

A donation is paired with a bare kernel launch by the same thread. A graph launch is timed in pairs of processes, bare and recorded, with a second
bare one beside them: what two equal processes differ by is the noise; and in one process, through the preload and past it. Printed are the medians and the 5th and 95th percentiles of the pairs' ratios;
the counters must agree with the program's own counts.
Exit status 1 where a bar of docs/performance.md is missed, or where what was measured cannot show it (a rate that was not reached, refused
donations, past and past the preload that differ). On the CPU driver the figures show that the benchmark works and how the parts compare; what counts is measured on a GPU.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import runs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODES = {4: 40, 200: 8}  # of a graph: launches between two waits, as in costs.c


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "p5": quantile(values, 0.05), "p95": quantile(values, 0.95), "pairs": len(values)}


class Worker:
    """One costs process; a line in, a line out."""

    def __init__(self, bench: "Bench", words: list[str], recorded: bool = False, preload: str = "", **env: str):
        self.bench, self.run = bench, None
        command = [str(bench.build / "tests/bench/costs"), *words, *bench.options]
        if recorded:
            bench.runs += 1
            self.run = bench.folder / f"run{bench.runs}"
            command = [str(bench.build / "slotprobe"), "record", "-o", str(self.run), "--arm", "graph-on", "--min-free", "64M", "--", *command]
        env = runs.surroundings() | env | ({"LD_PRELOAD": preload} if preload else {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def round(self, said: str = "") -> list[float]:
        self.process.stdin.write(said + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self) -> dict:
        """The process's counters, by probe, if it was recorded."""
        self.process.stdin.close()
        if self.process.wait(timeout=60):
            raise RuntimeError(f"status {self.process.returncode}")
        return runs.probes(self.bench.build / "slotprobe", self.run) if self.run else {}


class Bench:
    def __init__(self, args, folder: pathlib.Path):
        self.build, self.driver, self.quick, self.folder, self.runs = args.build.resolve(), args.driver, args.quick, folder, 0
        self.options = ["--driver-lib", str(self.build / "cpudriver/libcuda.so.1")] if args.driver == "cpu" else []
        self.found, self.missed = {}, []

    def judge(self, name: str, value: float, bar: float) -> None:
        """At most the bar. Only a GPU's figures are judged."""
        if self.driver == "cuda" and not value <= bar:
            self.missed.append(f"{name}: {value:.3f} is over {bar}")

    def launch(self) -> None:
        """Pairs of processes, one after the other, bare and recorded in an order that changes; after every third pair a second bare one: what
        two equal processes differ by is the noise. Each times graphs of 4 and of 200 nodes."""
        calls, pairs, rounds = (400, 3, 3) if self.quick else (800, 36, 6)
        words = ["launch", "--calls", str(calls), "--cpu", str(max(os.sched_getaffinity(0)))]
        times = {nodes: {} for nodes in NODES}
        launched = sum(calls + -calls % batch for batch in NODES.values()) * rounds

        def one(name: str, **how) -> None:
            worker = Worker(self, words, **how)
            found = [[worker.round(str(nodes))[0] for nodes in NODES] for _ in range(rounds)]
            counters = worker.close()
            for nodes, column in zip(NODES, zip(*found[1:])):
                times[nodes].setdefault(name, []).append(statistics.median(column))
            if counters and counters["core.graph_launch"]["committed"] != launched:
                self.missed.append(f"{launched} launches, counted {counters['core.graph_launch']['committed']}")

        for turn in range(pairs):
            for name in ("bare", "recorded") if turn % 2 else ("recorded", "bare"):
                one(name, recorded=name == "recorded")
            if turn % 3 == 2:
                one("again")
        for name, preload, what in self.cupti():
            try:
                for _ in range(5):
                    one(name, preload=preload, BENCH_CUPTI=what)
            except (RuntimeError, LookupError, OSError) as failure:  # cupti.c ends the process where it sees nothing: no figure then
                self.found[name] = f"not measured: {failure}"
                for column in times.values():
                    column.pop(name, None)
        for nodes, found in times.items():
            row = {"nodes": nodes, "ns": {name: spread(column) for name, column in found.items()}}
            pairs_of = {"recorded": found["bare"], "again": found["bare"][2::3]}
            for name, column in found.items():
                if name != "bare":
                    row[f"{name} / bare"] = spread([a / b for a, b in zip(column, pairs_of.get(name, found["bare"]))])
            self.judge(f"graph launch of {nodes} nodes", row["recorded / bare"]["median"], 1.02)
            self.found[f"launch of {nodes} nodes"] = row

    def past(self) -> None:
        """One recorded process, batches of launches through the preload and past it in turn: two processes differ by more than 2 %, one from
        itself does not. Beside it, past the preload both times."""
        calls, rounds = (400, 3) if self.quick else (4000, 60)
        for nodes, batch in NODES.items():
            worker = Worker(self, ["past", "--calls", str(calls), "--cpu", str(max(os.sched_getaffinity(0)))], recorded=True)
            found = {name: [worker.round(f"{nodes} {word}") for _ in range(rounds + 1)][1:] for name, word in (("through", ""), ("past", "past"))}
            counted = worker.close()["core.graph_launch"]["committed"]
            ratio, same = (spread([a / b for a, b in found[name]]) for name in ("through", "past"))
            half = 2 * statistics.stdev(a / b for a, b in found["through"]) / rounds ** 0.5
            row = {"nodes": nodes, "ns": {name: spread([pair[i] for pair in found["through"]]) for i, name in enumerate(("through", "past"))},
                   "through / past": ratio, "past / past": same, "error of the mean, twice": half}
            if counted != (rounds + 1) * (calls + -calls % batch):
                self.missed.append(f"{(rounds + 1) * (calls + -calls % batch)} launches through the preload, counted {counted}")
            self.judge(f"graph launch of {nodes} nodes in one process", ratio["median"], 1.02)
            self.judge(f"graph launch of {nodes} nodes, past and past, away from 1", abs(same["median"] - 1), 0.01)
            self.found[f"launch of {nodes} nodes in one process"] = row

    def cupti(self) -> list[tuple[str, str, str]]:
        """(name, preload, what it does), where CUPTI is."""
        root = next((path for path in (f"{toolkit}/extras/CUPTI" for toolkit in runs.TOOLKITS) if os.path.exists(path)), None)
        if self.driver == "cpu" or not root:
            return []
        found = next(runs.cupti_libraries(), None)
        library = self.folder / "cupti.so"
        if not library.exists():
            built = subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{root}/include", f"-I{root}/../../include", "-o", library,
                                    ROOT / "tests/bench/cupti.c", *filter(None, [found])], capture_output=True, text=True)
            if built.returncode or not found:
                self.found["cupti"] = built.stderr[-800:] or "no libcupti"
                return []
            self.found["cupti"] = found
            os.environ["LD_LIBRARY_PATH"] = f"{os.path.dirname(found)}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        return [("CUPTI callback", str(library), "callback"), ("CUPTI node trace", str(library), "nodes")]

    def donate(self, threads: int) -> None:
        calls, rounds = (2000, 2) if self.quick else (100000, 10)
        worker = Worker(self, ["donate", "--threads", str(threads), "--calls", str(calls)], recorded=True)
        rows = [worker.round() for _ in range(rounds)]
        probe = worker.close()["core.donate"]
        kernel, kernel99, donation, donation99 = (statistics.median(column) for column in list(zip(*rows))[:4])
        done, refused = sum(row[4] for row in rows), sum(row[5] for row in rows)
        row = {"threads": threads, "donations": done, "refused": refused, "kernel_ns": {"median": kernel, "p99": kernel99},
               "donation_ns": {"median": donation, "p99": donation99}, "median ratio": spread([row[2] / row[0] for row in rows]),
               "p99 ratio": spread([row[3] / row[1] for row in rows]), "dropped": probe["dropped"]}
        if probe["attempted"] != done or sum(probe["dropped"].values()) != refused:
            self.missed.append(f"{done} donations of which {refused} were refused, counted {probe}")
        self.judge(f"refused donations of {threads} threads, in a hundred", 100 * refused / done, 1)  # one that is refused costs next to nothing
        self.judge(f"donation, {threads} threads, median", row["median ratio"]["median"], 1.5)
        self.judge(f"donation, {threads} threads, p99", row["p99 ratio"]["median"], 1.5)
        self.found[f"donation, {threads} threads"] = row

    def flood(self, threads: int, rate: int, seconds: int, may_drop: bool) -> None:
        worker = Worker(self, ["flood", "--threads", str(threads), "--rate", str(rate), "--seconds", str(seconds)], recorded=True)
        donated, refused, reached = worker.round()
        probe = worker.close()["core.donate"]
        row = {"threads": threads, "asked": rate, "reached": reached, "donated": donated, "refused": refused, "dropped": probe["dropped"],
               "committed": probe["committed"]}
        if probe["attempted"] != donated or sum(probe["dropped"].values()) != refused or probe["committed"] != donated - refused:
            self.missed.append(f"flood of {rate}: {donated} donated, {refused} refused, counted {probe}")
        self.judge(f"asked for {rate} a second, against what was reached", rate / reached, 1.1)
        if not may_drop:
            self.judge(f"drops at {rate} a second, {threads} threads", refused, 0)
        self.found[f"flood of {rate} a second, {threads} threads"] = row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="few rounds: does it work?")
    parser.add_argument("--json", help="write the result there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, pathlib.Path(folder))
        bench.launch()
        bench.past()
        for threads in (1, 8):
            bench.donate(threads)
        full = args.driver == "cuda" and not args.quick
        bench.flood(1, 100000 if full else 2000, 5 if full else 1, False)
        bench.flood(8, 100000 if full else 2000, 5 if full else 1, False)
        bench.flood(8, 1000000 if full else 20000, 3 if full else 1, True)
    for name, row in bench.found.items():
        print(f"{name}: {json.dumps(row)}")
    for missed in bench.missed:
        print(f"MISSED  {missed}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"driver": args.driver, "rows": bench.found, "missed": bench.missed}, indent=1) + "\n",
                                           encoding="utf-8")
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
