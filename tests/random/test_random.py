# SPDX-License-Identifier: Apache-2.0
"""Pairs of runs with a fault that was planted in bytes: does diff find the slots, the first divergence and the cause? The number of
seeds is SLOTPROBE_SEEDS (default 100; `make random` takes 1,000)."""
import collections
import concurrent.futures
import json
import os
import random
import subprocess

import pytest

from simulator import FAULTS, PLANES, Server

SEEDS = int(os.environ.get("SLOTPROBE_SEEDS", "100"))
BATCH = 20

# What each fault is to be called. "unknown": its bytes are the right answer to no question.
CALLED = {"write goes to slot 0": "not_written", "write is left out": "not_written", "rows of a batch are swapped": "misplaced",
          "an older snapshot is written": "wrong_length", "a clear multiplies": "non_finite", "bits flip": "unknown",
          "conv is not cleared": "unknown"}


class Truth:
    """What the bytes of both runs say, event by event; the two served the same requests, so that the n-th is the n-th."""

    def __init__(self, off, on):
        assert [(e[1], e[3], e[4]) for e in off.history] == [(e[1], e[3], e[4]) for e in on.history]
        self.past = on.past
        self.wrong = [(a, b) for a, b in zip(off.history, on.history) if a[5] != b[5]]

    def by_slot(self):
        """The first wrong event of each slot of graph-off: the row that shows it."""
        first = {}
        for pair in self.wrong:
            first.setdefault(pair[0][2], pair)
        return first

    @staticmethod
    def planes(pair):
        return [p for p in range(len(PLANES)) if pair[0][5][p] != pair[1][5][p]]

    def lay_there_before(self, pair):
        """The wrong bytes are what that very slot held before: whatever wrote them, it may as well not have been written."""
        event, slot, state = pair[1][0], pair[1][2], pair[1][5]
        return any(all(old[p] == state[p] for p in self.planes(pair)) for at, old in self.past.get(slot, []) if at < event)


def make(seed, folder):
    pick = random.Random(seed)
    fault = pick.choice(["bits flip", "conv is not cleared"]) if seed % 5 == 0 else FAULTS[pick.randrange(6)]
    watch, moved = pick.random() < 0.4, pick.random() < 0.3
    off = Server("graph-off", seed, seed, fault, watch).serve()
    on = Server("graph-on", seed, seed + moved, fault, watch).serve()
    for arm, server in (("off", off), ("on", on)):
        server.process.recorded = 2 * seed + (arm == "on")
        server.run().write(folder / f"{seed}.{arm}")
    return fault, watch, moved, off, on


def ask(command, folder, seed):
    done = subprocess.run([command, "diff", "--json", folder / f"{seed}.off", folder / f"{seed}.on"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stdout, done.stderr
    # what it did not load for that did not matter
    whole = subprocess.run(done.args, capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"SLOTPROBE_READING": "whole"})
    assert (done.returncode, done.stdout) == (whole.returncode, whole.stdout)
    return done.returncode, json.loads(done.stdout)


def judge(seed, made, answer):
    """One pair: the verdict, the slots, their planes, the first divergence, the findings."""
    fault, watch, moved, off, on = made
    status, said = answer
    truth = Truth(off, on)
    about = f"seed {seed}: {fault}{', watched' if watch else ''}{', moved' if moved else ''}: "
    differ = {s["slot"]: s for s in said["slots"] if s["verdict"] == "differs"}
    if not truth.wrong:
        assert (status, said["verdict"], said["findings"]) == (0, "equal", []), about + str(said["reasons"])
        return "equal"
    assert (status, said["verdict"]) == (1, "differs"), about + str(said["reasons"])
    first = truth.by_slot()
    assert moved or said["alignment"]["mode"] == "slot", about
    assert set(differ) == set(first), about + "slots"
    for slot, pair in first.items():
        named = {(p["tensor"], p["layer"]) for p in differ[slot]["planes_differing"]}
        assert named == {PLANES[p][:2] for p in truth.planes(pair)}, about + f"planes of slot {slot}"
    assert int(said["first_divergence"]["id"], 16) == truth.wrong[0][1][0], about + "first divergence"
    called = [f["cause"] for f in said["findings"]]
    sentences = "\n".join(f["sentence"] for f in said["findings"])
    assert CALLED[fault] in called, about + sentences
    for i, finding in enumerate(said["findings"]):
        if finding["cause"] == CALLED[fault]:
            continue
        rows = [first[s["slot"]] for s in differ.values() if s["finding"] == i]
        # what follows from a wrong state that came back is no second cause, and is said to follow
        follows = finding["cause"] == "unknown" and any(e["part"] == "inherited" for e in finding["events"])
        stale = finding["cause"] == "not_written" and all(map(truth.lay_there_before, rows))
        assert follows or stale, about + sentences
    assert len(called) == len(set(called)), about + sentences
    assert sum(f["n_rows"] for f in said["findings"]) == len(differ), about
    return CALLED[fault]


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_planted_faults_are_found(build, tmp_path, first):
    seeds = range(first, min(first + BATCH, SEEDS))
    made = {seed: make(seed, tmp_path) for seed in seeds}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = dict(zip(seeds, pool.map(lambda seed: ask(build / "slotprobe", tmp_path, seed), seeds)))
    found = collections.Counter(judge(seed, made[seed], answers[seed]) for seed in seeds)
    assert found["unknown"] >= len(seeds) // 5 - 1 and len(found) > 2, f"these seeds test too little: {found}"
