# SPDX-License-Identifier: Apache-2.0
"""One key at thousands of lengths, all of them wrong: what explains a row lies in thousands of places, and diff does not look at each of
them for each row."""
import resource
import subprocess

import pytest

from loggen import Process, Run

KEY = 7
SIZES = 4000, 16000  # four times the rows: a linear walk takes 4 times as long, a quadratic one 16 times


def donated(arm, n, tensors, content):
    p = Process(pid=4194301 + (arm == "graph-on"))
    p.chunk, p.recorded = 400, 1 + (arm == "graph-on")
    pool = p.pool(planes=[(t, 0, 1, 64) for t in tensors], slots=n + 1)
    for i in range(n):
        p.launch(arm == "graph-on")
        for t, held in zip(tensors, content(i)):
            pool.write(1 + i, held, t)
        p.donate(pool, 1 + i, 8 + i, KEY, key_len=8 + i)
    return Run(arm, p)


def seconds(command, runs):
    """Of the processor, in diff; and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([command, "diff", *runs], capture_output=True, text=True, timeout=100)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1, done.stdout + done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


@pytest.mark.parametrize("tensors, off, on, said", [
    # the bytes of each row lie in a quarter of the slots of either run, rightly in none of them
    (["ssm"], lambda i: [f"right {i % 4}"], lambda i: [f"right {(i + 1) % 4}"], "misplaced"),
    # a quarter of the rows has the same bytes, which nothing explains
    (["ssm"], lambda i: [f"right {i % 4}"], lambda i: [f"wrong {i % 4}"], "unknown"),
    # half of the questions have the same first plane
    (["conv", "ssm"], lambda i: [f"a{i % 2}", f"right {i}"], lambda i: [f"b{i % 2}", f"wrong {i}"], "unknown"),
], ids=["swapped", "few contents", "one plane of few contents"])
def test_explaining_is_nearly_linear(build, tmp_path, tensors, off, on, said):
    taken = []
    for n in SIZES:
        runs = [donated(arm, n, tensors, content).write(tmp_path / f"{arm}.{n}") for arm, content in (("graph-off", off), ("graph-on", on))]
        took, text = min(seconds(build / "slotprobe", runs) for _ in range(2))
        assert f"{n} of {n} slots differ" in text and f"{said} in {n} slots" in text
        taken.append(took)
    assert taken[1] < 8 * taken[0], taken
