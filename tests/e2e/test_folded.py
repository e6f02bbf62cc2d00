# SPDX-License-Identifier: Apache-2.0
"""What reads a run without keeping it is not led astray by logs that nobody recorded so: each answer is held against that of the whole
reading (asking.py does so for every question)."""
import os
import subprocess

import pytest

from loggen import ALLOC, COPY, DISCARD, FREE, U64, Process, Run, mix64, number
from test_compare import proven


def of(arm):
    return Process(pid=4194301 + (arm == "graph-on"))


def donate(p, pool, n, key=None):
    p.launch(p.pid == 4194302)
    pool.write(1 + n % 4, f"c{n}")
    p.donate(pool, 1 + n % 4, 8 * n + 8, key or number("k", n), key_len=8 * n + 8)


def test_a_discard_of_an_id_far_ahead_moves_the_window(tool):
    def run(arm):
        p = of(arm)
        pool = p.pool(slots=16)
        p.hold = True  # the first fingerprint comes late, so that nothing leaves
        donate(p, pool, 0)
        for n in range(1, 9):
            p.ids += 3000
            donate(p, pool, n)
        p.event(DISCARD, pool, 1, src=60000)
        p.flush_late()
        p.hold = False
        p.ids = 59999
        donate(p, pool, 10)
        return Run(arm, p)
    tool.diff(run("graph-on"), run("graph-off"))
    tool.check(run("graph-on"))


@pytest.mark.parametrize("then, status", [("twice", 3), ("low", 0)])
def test_ids_up_to_the_last_one(tool, then, status):
    def run(arm):
        p, n = of(arm), 1300
        pool = p.pool(slots=16)
        p.ids = U64 - n
        for i in range(n):
            if i == n - 6:
                p.ids += 1
            else:
                donate(p, pool, i)
        p.ids = U64 - 6
        p.event(FREE, pool, 3)  # all that was held leaves
        p.ids = U64 - 1 if then == "twice" else 4
        donate(p, pool, n)
        return Run(arm, p)
    assert tool.diff(run("graph-on"), run("graph-off"))["exit_status"] == status
    tool.check(run("graph-on"))


def folds(tool, run):
    """Nothing has to be loaded for it."""
    done = subprocess.run([tool.command, "check", run], capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | {"SLOTPROBE_READING": "folded"})
    return "cannot be judged without its events" not in done.stderr


@pytest.mark.parametrize("claim, content, discarded, checked, broken", [
    (4, "c4", False, 1, 0),  # what the slot got last
    (4, "c0", False, 1, 1),
    (0, "c0", False, 1, 0),  # what it got before
    (0, "c4", False, 1, 1),
    (0, "c0", True, 1, 0),  # and then something that was not taken
    (4, "c4", True, None, None),
    (8, "c4", False, None, None),  # what it never got
])
def test_a_restore_is_held_against_the_last_donation_of_its_claim(tool, claim, content, discarded, checked, broken):
    p = of("graph-off")
    pool = p.pool(slots=16)
    donate(p, pool, 0)
    donate(p, pool, 4)
    if discarded:
        p.event(DISCARD, pool, 1, src=p.ids)
    donate(p, pool, 1)  # another slot
    pool.write(1, content)
    p.restore(pool, 1, 8 * claim + 8, number("k", claim), key_len=8 * claim + 8)
    run = tool.put(Run("graph-off", p))
    said = tool.check(run)
    found = next(i for i in said["invariants"] if i["code"] == "restore_differs")
    assert (found["checked"], found["broken"]) == (checked, broken)
    # and where all holds, nothing had to be loaded
    assert folds(tool, run) != bool(broken)


def checked(said, code):
    return next(i for i in said["invariants"] if i["code"] == code)["checked"]


@pytest.mark.parametrize("itself", [None, 1])
def test_slots_that_no_pool_announces_are_told_apart(tool, itself):
    """Whatever their numbers are: what one slot was allocated with is not held against what another one is given."""
    p = of("graph-off")
    pools = [p.pool("a", slots=16), p.pool("b", slots=16)]
    apart = 0x9E3779B97F4A7C15 - (1 << 64)
    for slot in (100, 1000):
        for pool, at in ((pools[0], slot + apart), (pools[1], slot - 1), (pools[0], slot + 1)):
            p.event(ALLOC, pool, at)
        if itself and slot == 100:
            p.event(ALLOC, pools[1], slot)
        pools[1].write(slot, f"c{slot}")
        p.donate(pools[1], slot, 8, number("k", slot), key_len=8)
    assert checked(tool.check(Run("graph-off", p)), "never_written") == itself


def test_a_place_in_the_window_begins_anew(tool):
    """What was said of an event, that it was discarded, its source or a watched slot, is not said of the one that has its place later."""
    p = of("graph-off")
    pools = [p.pool("a", slots=16), p.pool("b", slots=16)]
    restored = 0

    def serve(pool, n):
        nonlocal restored
        pool.write(1 + n % 4, f"c{n}")
        taken = p.donate(pool, 1 + n % 4, 8 * n + 8, number("k", n), key_len=8 * n + 8)
        p.restore(pool, 1 + n % 4, 8 * n + 8, number("k", n), key_len=8 * n + 8)
        restored += 1
        return taken

    for n in range(40):
        p.watch = [5] if n < 20 else []
        taken = serve(pools[0], n)
        if n == 30:
            p.event(DISCARD, pools[0], 1 + n % 4, src=taken)
            p.event(FREE, pools[0], 9)
            restored -= 1
    for pool in (pools[0], pools[1]):
        for i in range(2, 10):
            pools[0].memory[i] = pools[0].memory[1]
            p.event(COPY, pools[0], i, src=1)
            p.event(FREE, pools[0], i)
        for n in range(200):
            serve(pool, 100 + n)
        for i in range(20):
            p.event(FREE, pool, 9)
    run = tool.put(Run("graph-off", p))
    assert checked(tool.check(run), "restore_differs") == restored
    assert folds(tool, run)


@pytest.mark.parametrize("apart", [-256, -128, -64, 64, 127, 128, 129, 256, 512])
def test_a_discard_speaks_of_no_other_id(tool, apart):
    """Of one that has left the window, or that has not come: its place there may be another's."""
    p = of("graph-off")
    pool = p.pool(slots=16)
    for n in range(300):
        donate(p, pool, n)
    pool.write(9, "here")
    p.donate(pool, 9, 8, number("here"), key_len=8)
    p.event(DISCARD, pool, 1, src=p.ids + apart)
    p.restore(pool, 9, 8, number("here"), key_len=8)
    for n in range(300, 900):
        donate(p, pool, n)
    assert checked(tool.check(Run("graph-off", p)), "restore_differs") == 1


def unmixed(x):
    """The word that mix64 makes x of."""
    back = pow(0xD6E8FEB86659FD93, -1, 1 << 64)
    for _ in range(2):
        x = (x ^ x >> 32) * back & U64
    return x ^ x >> 32


def twin(word, place):
    """Another word whose mix differs in the highest bit alone."""
    turned = 0x9E3779B97F4A7C15 * (2 * place + 1) & U64
    return unmixed(mix64(word ^ turned) ^ 1 << 63) ^ turned


def test_words_whose_mixes_cancel_in_a_sum(tool):
    assert unmixed(mix64(12345)) == 12345

    def run(arm, forged):
        p = of(arm)
        pool = p.pool(slots=16)
        rollup = pool.rollup
        for n in range(10):
            key = number("k", n)
            pool.rollup = rollup
            if forged and n < 6:  # not the last one of a slot, which is shown
                pool.rollup = lambda prints: twin(rollup(prints), 4)
                key = twin(key, 1)
            donate(p, pool, n, key)
        return Run(arm, p)
    proven(tool.diff(run("graph-on", True), run("graph-off", False)), "not_proven", 3)
    proven(tool.diff(run("graph-on", False), run("graph-off", False)), "equal", 0)


def test_a_rank_that_is_missing_is_explained_alike(tool):
    """Processes side by side that say no rank; one run has one more, with a pool and nothing donated."""
    def run(n, arm, silent):
        processes = []
        for i in range(n):
            p = Process(pid=4194301 + 1000 * (arm == "graph-on") + i, ranks=())
            p.starttime, p.now = 7 + i, 1000000 + i * 50
            pool = p.pool(slots=16)
            for k in range(10 if i < n - silent else 0):
                p.launch(arm == "graph-on")
                pool.write(1 + k % 4, f"s{i}c{k}")
                p.donate(pool, 1 + k % 4, 8 * k + 8, number("k", k), key_len=8 * k + 8)
            processes.append(p)
        return Run(arm, *processes)
    said = tool.diff(run(3, "graph-on", 1), run(2, "graph-off", 0))
    proven(said, "not_proven", 3)
    assert any("side by side" in r["text"] for r in said["reasons"])
