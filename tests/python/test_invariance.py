# SPDX-License-Identifier: Apache-2.0
"""batch_invariance: rows that agree and rows that do not, by what lies in device memory; and that no silence reads as a finding."""
import json

import pytest

# A batch in which row 0 holds `first`, and every other row something else.
BATCH = """
import struct
def batch(n, first, dtype="float32", width=16, row=0):
    at = device.alloc(4 * width * n)
    for i in range(n):
        device.write(at + 4 * width * i, struct.pack(f"<{width}f", *[first if i == row else 100.0 + n + i] * width))
    return Torch(at, (n, width), dtype)
def plain(found):
    return [found.invariant, [list(r) for r in found.rows], found.error, bool(found)]
"""


def test_the_same_row(lab):
    """Nothing but the row counts: not the batch around it, not where it lies."""
    run, said = lab.record(BATCH + "said['found'] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5), sizes=(1, 7, 288)))")
    invariant, rows, error, true = said["found"]
    assert (invariant, error, true) == (True, 0, True)
    assert [r[:2] for r in rows] == [[0, 1], [0, 7], [0, 288]] and len({r[2] for r in rows}) == 1
    logged = [p["rollup"] for p in lab.exported(run, "fingerprint")]
    assert [int(h, 16) for h in logged] == [r[2] for r in rows]  # what came back is what was measured
    assert len(lab.exported(run, "pool_remove")) == 3, "an output is a pool for as long as it takes"


def test_another_row(lab):
    """The red twin: one bit of the row depends on the batch."""
    _, said = lab.record(BATCH + "said['found'] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5 if n == 1 else 2.5000002)))")
    invariant, rows, error, true = said["found"]
    assert (invariant, error, true) == (False, 0, False) and [r[1] for r in rows] == [1, 288] and rows[0][2] != rows[1][2]


def test_which_row(lab):
    """Another row than the first, along another axis."""
    _, said = lab.record(BATCH + """
said["third"] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5, row=2), sizes=(3, 5), row=2))
said["first"] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5, row=2), sizes=(3, 5)))
at = device.alloc(4 * 6)
device.write(at, struct.pack("<6f", 1, 2, 3, 1, 2, 4))
said["axis"] = plain(slotprobe.batch_invariance(lambda n: Torch(at + 12 * (n == 2), (1, n), strides=(3, 1)), sizes=(1, 2), row_axis=1))
""")
    assert said["third"][0] is True and said["first"][0] is False and said["axis"][0] is True


def test_two_operators(lab):
    """A prefill kernel against a decode kernel, each with its own batch sizes."""
    _, said = lab.record(BATCH + """
prefill, decode, other = (lambda n: batch(n, 2.5)), (lambda n: batch(n, 2.5)), (lambda n: batch(n, 2.75))
said["same"] = plain(slotprobe.batch_invariance((prefill, decode), sizes=((288,), (1, 4))))
said["other"] = plain(slotprobe.batch_invariance((prefill, other)))
""")
    assert said["same"][0] is True and [r[:2] for r in said["same"][1]] == [[0, 288], [1, 1], [1, 4]]
    assert said["other"][0] is False and len({r[2] for r in said["other"][1]}) == 2


def test_several_outputs(lab):
    """A difference in any of them counts."""
    _, said = lab.record(BATCH + """
said["same"] = plain(slotprobe.batch_invariance(lambda n: (batch(n, 1.0), batch(n, 2.0))))
said["other"] = plain(slotprobe.batch_invariance(lambda n: {"a": batch(n, 1.0), "b": batch(n, float(n))}))
""")
    assert said["same"][0] is True and said["other"][0] is False


def test_not_measured(lab):
    """Paused: nothing is known, and nothing is true."""
    _, said = lab.record(BATCH + "said['found'] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5)))", "--paused")
    assert said["found"] == [None, [], -11, False]


def test_not_recorded(lab):
    """-38, false, and the operator is not called."""
    code = ("import json, slotprobe; f = slotprobe.batch_invariance(lambda n: 1 / 0); "
            "print(json.dumps([f, f == -38, bool(f), f.invariant, list(f.rows), f.error]))")
    assert json.loads(lab.bare(code)) == [-38, True, False, None, [], -38]


@pytest.mark.parametrize("call, error", [
    ("slotprobe.batch_invariance(7)", "TypeError"),
    ("slotprobe.batch_invariance(())", "TypeError"),
    ("slotprobe.batch_invariance(len, sizes=(1,))", "ValueError"),
    ("slotprobe.batch_invariance(len, sizes=(0, 1))", "ValueError"),
    ("slotprobe.batch_invariance((len, len), sizes=((1,), (2,), (3,)))", "ValueError"),
    ("slotprobe.batch_invariance(len, sizes=(1, 2), row=1)", "ValueError"),
    ("slotprobe.batch_invariance(lambda n: 5)", "TypeError"),
])
def test_wrong_arguments(lab, call, error):
    """Of the wrong kind: raised."""
    _, said = lab.record(f"try:\n    {call}\nexcept Exception as e:\n    said['error'] = type(e).__name__\n")
    assert said["error"] == error


def test_outputs_that_cannot_be_compared(lab):
    """Nothing measured is never invariant: no bytes, another dtype, rows that are not those of the batch, other names."""
    _, said = lab.record(BATCH + """
def empty(n):
    return Torch(device.alloc(64), (n, 0), "float32")
said["empty"] = plain(slotprobe.batch_invariance(empty))
said["nothing"] = plain(slotprobe.batch_invariance(lambda n: {}))
said["dtype"] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5, "float32" if n == 1 else "int32")))
said["one row"] = plain(slotprobe.batch_invariance(lambda n: batch(1, 2.5)))
said["wide"] = plain(slotprobe.batch_invariance(lambda n: batch(n, 2.5, width=8 if n == 1 else 16)))
said["names"] = plain(slotprobe.batch_invariance(lambda n: {f"out{n}": batch(n, 2.5)}))
said["alike"] = plain(slotprobe.batch_invariance(lambda n: {"out": batch(n, 2.5)}))
""")
    for name in ("empty", "nothing", "dtype", "one row", "wide", "names"):
        assert said[name][0] is None and said[name][2:] == [-22, False], (name, said[name])
    assert said["alike"][0] is True
