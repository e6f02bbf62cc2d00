# SPDX-License-Identifier: Apache-2.0
"""Whether a row of an operator's output changes with the batch that it rides in. Only hashes come to the host.

The output is a pool for a moment, its rows are the slots, and the row in question is donated: so it is fingerprinted by the same kernel as
everything else, on the stream where the operator ran, and stands in the run's log too.
"""
import collections
import ctypes
import math
import operator
import time

from . import _abi
from ._tensor import tensor as tensor_of

EAGAIN, EINVAL, ETIMEDOUT = 11, 22, 110
WAIT_SECONDS = 10  # for one fingerprint

Row = collections.namedtuple("Row", "op size hash")


class Invariance(collections.namedtuple("Invariance", "invariant rows error")):
    """What was found; true where it was measured and the row is the same everywhere.

    invariant: True, False, or None: not measured. rows: one Row(op, size, hash) for each operator and size, as far as it got. error: 0 or
    what went wrong, a negative errno.
    """
    __slots__ = ()

    def __bool__(self):
        return self.invariant is True


class Unmeasured(int):
    """The negative errno of a process that is not recorded: false, so that no assertion takes it for a finding."""
    invariant, rows = None, ()

    @property
    def error(self):
        """Itself."""
        return int(self)

    def __bool__(self):
        return False


def operators(op):
    """As a tuple of callables."""
    ops = tuple(op) if isinstance(op, (tuple, list)) else (op,)
    if not ops or not all(map(callable, ops)):
        raise TypeError("op: a function of the batch size is expected, or several in a tuple")
    return ops


def batches(sizes, ops):
    """The sizes of each operator: the same for all, or a sequence for each."""
    sizes = [tuple(s) if isinstance(s, (tuple, list)) else s for s in sizes]
    nested = any(isinstance(s, tuple) for s in sizes)
    each = sizes if nested else [tuple(sizes)] * len(ops)
    if len(each) != len(ops) or not all(isinstance(s, tuple) and s for s in each):
        raise ValueError(f"sizes: batch sizes are expected, or a sequence of them for each of {len(ops)} operators")
    each = [[operator.index(n) for n in s] for s in each]
    if any(n < 1 for s in each for n in s):
        raise ValueError("sizes: a batch has at least one row")
    if sum(map(len, each)) < 2:
        raise ValueError("sizes: one batch size of one operator leaves nothing to compare")
    return each


def wait(donation):
    """(0, the donation's hash) once it is in, or (a negative errno, None). Polls memory: the device is not waited for."""
    found, until = ctypes.c_uint64(), time.monotonic() + WAIT_SECONDS
    while True:
        said = _abi.CALLS.hash(donation, ctypes.byref(found))
        if said != -EAGAIN:
            return said, found.value if not said else None
        if time.monotonic() > until:
            return -ETIMEDOUT, None
        time.sleep(0.0005)


def form(tensors, n, row_axis):
    """What must be the same in every batch: names, dtypes, and the shape of a row. None: it has not a row for each of the n, or no bytes."""
    found = []
    for name, tensor in tensors.items():
        t = tensor_of(tensor, str(name))
        shape = list(t.shape)
        if not -len(shape) <= row_axis < len(shape) or shape.pop(row_axis) != n or not math.prod(shape):
            return None
        found.append((str(name), t.dtype, tuple(shape)))
    return sorted(found) or None


def measure(api, tensors, name, row, row_axis, stream):
    """(0, hash of the row), or (a negative errno, None). The output stays until its row was read: the caller holds it."""
    pool = api.pool(name, tensors, layer_axis=None, slot_axis=row_axis)
    if pool < 0:
        return pool, None
    try:
        donation = api.donate(pool, row, 1, stream=stream)
        if not donation:  # recording is paused: nothing was read
            return -EAGAIN, None
        return wait(donation) if donation > 0 else (donation, None)
    finally:
        api.pool_remove(pool)


def enumerate_outputs(output):
    """Names for what an operator returned: one tensor, or several."""
    several = output if isinstance(output, (tuple, list)) else (output,)
    return ((f"out{i}", one) for i, one in enumerate(several))


def compare(api, op, sizes, row, row_axis, name, stream):
    """batch_invariance, where there is a recording."""
    ops = operators(op)
    each, row, rows, forms = batches(sizes, ops), operator.index(row), [], []
    if any(not 0 <= row < n for s in each for n in s):
        raise ValueError(f"row: {row} is not in every batch")
    for i, (one, counts) in enumerate(zip(ops, each)):
        for n in counts:
            output = one(n)
            tensors = output if hasattr(output, "items") else dict(enumerate_outputs(output))
            forms.append(form(tensors, n, row_axis))
            error, found = -EINVAL, None
            if forms[-1] is not None and forms[-1] == forms[0]:
                error, found = measure(api, tensors, f"{name}.{i}.{n}", row, row_axis, stream)
            if error:
                return Invariance(None, tuple(rows), error)
            rows.append(Row(i, n, found))
    return Invariance(len({r.hash for r in rows}) == 1, tuple(rows), 0)
