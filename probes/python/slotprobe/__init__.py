# SPDX-License-Identifier: Apache-2.0
"""Tells slotprobe where a server's state slots lie and when they are handed over.

Leave the calls in for good: where slotprobe is not preloaded or not asked to record, each returns -38 (-ENOSYS) at once. No call reads
device memory, waits for the device or raises anything but TypeError and ValueError, for arguments of the wrong kind; whatever else goes
wrong is a negative errno: -11 (-EAGAIN) dropped, a queue was full; -16 (-EBUSY) the stream is capturing; -22 (-EINVAL) a value makes no
sense. Any thread may call. No framework is imported.

Tensors are PyTorch's, CuPy's, or any with data_ptr/stride/shape/dtype/element_size/device, __cuda_array_interface__ or, in host memory,
__array_interface__. docs/python.md has an example.
"""
import ctypes
import struct
import sys

from . import _abi, _invariance
from ._abi import (ALLOC, BF16, CLEAR, COPY, DISCARD, F8E4M3, F8E5M2, F16, F32, F64, FREE, HIT_COMMITTED, HIT_ERROR, HIT_FILTERED, I8, I32,
                   MODE_EAGER, MODE_GRAPH, MODE_SEEN, RAW)
from ._claim import MASK, POOLS, framework_of, pack, pack_each, slot_of, stream_of
from ._layout import Layout, flat
from ._stream import current
from ._tensor import host_int, whole

__all__ = ["available", "pool", "pool_remove", "donate", "restore", "slot", "slots", "step", "rank", "region", "tap", "point", "hit", "batch_invariance",
           "ALLOC", "CLEAR", "COPY", "DISCARD", "FREE", "MODE_EAGER", "MODE_GRAPH", "MODE_SEEN", "HIT_COMMITTED", "HIT_FILTERED",
           "HIT_ERROR", "F64", "F32", "F16", "BF16", "F8E4M3", "F8E5M2", "I8", "I32", "RAW"]

_CALLS = _abi.CALLS
_INERT, _WRONG = -_abi.ENOSYS, -_abi.EINVAL
_names = {}  # of steps: name -> (bytes, their address)
_NAMES_MAX = 1024


def available():
    """Whether slotprobe is in this process and was asked to record it."""
    return _CALLS.donate is not None


def _text(value, name):
    """A C string."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        raise TypeError(f"{name}: str is expected, not {type(value).__name__}")
    if b"\0" in value:
        raise ValueError(f"{name}: holds a zero byte")
    return value


def _fits(bits, *values):
    """Whether signed integers of so many bits hold these."""
    return all(-(1 << (bits - 1)) <= value < 1 << (bits - 1) for value in values)


def pool(name, tensors, layer_axis=0, slot_axis=1, first_slot=0):
    """Registers the tensors that hold the slots' state; returns the pool's id, >= 0.

    tensors: dict of name -> tensor, all on one device (or all on the host) with as many slots along slot_axis; a list of tensors counts
    as NAME.0, NAME.1, ... By default a tensor is [layers, slots, ...]; layer_axis=None: it has no layers (then slot_axis is often 0). Both
    axes may be dicts by name. Strides are the tensor's own: slots and layers may lie anywhere, and a slot's elements in one layer in
    any order as long as they leave no gaps; otherwise each dense run becomes a plane NAME@I, up to 64 of them.
    first_slot: the id of the slot at index 0.

    The layout is copied, no reference is kept; freeing the memory ends the pool. Float and int8/int32 tensors are measured by value,
    others are hashed. Runs of two servers pair by `name`.

    ValueError: the tensors do not make one pool (the text says why). -28 (-ENOSPC): too many pools, or over 1024 planes.
    -110 (-ETIMEDOUT): the device did not answer.
    """
    if _CALLS.pool_add is None:
        return _INERT
    name, first_slot = _text(name, "name"), host_int(first_slot, "first_slot")
    layout = Layout(tensors, layer_axis, slot_axis)
    if not _fits(64, first_slot):
        return _WRONG
    said = layout.structure(name, first_slot)
    found = _CALLS.pool_add(ctypes.byref(said))
    if found >= 0:
        POOLS[found] = layout.device, framework_of(one for _, one, _ in flat(tensors))
    return found


def pool_remove(pool):
    """Ends a pool; donations in flight still count. Returns 0."""
    if _CALLS.pool_remove is None:
        return _INERT
    pool = host_int(pool, "pool")
    POOLS.pop(pool, None)
    return _CALLS.pool_remove(pool) if _fits(32, pool) else _WRONG


def donate(pool, slot, claimed_len, key=0, key_len=-1, stream=None):
    """A request hands a slot over for reuse. The slot is fingerprinted on `stream`; returns the donation's id, > 0 (0: recording is paused).

    slot: an int, or an int32/int64 tensor of one element on the pool's device, which is never read on the host: the fingerprint
    kernel reads it. Its memory must stay until then. It does by itself where the tensor was made on `stream`: the allocators of PyTorch
    and CuPy reuse memory in stream order. A tensor of another stream needs what any kernel would need: that `stream` waits for it,
    and record_stream (called here where `stream` is a torch.cuda.Stream other than the current one) or a reference until the
    stream got there.
    claimed_len: tokens that the state is said to stand for. key: the request's or prefix's identity, an int (its low 64 bits), str or
    bytes; 0 or empty: none. key_len: tokens that the key stands for; -1: unknown.
    stream: the one that every writer of the pool uses: a stream of the framework, a handle, or None: current on the pool's device.
    """
    call = _CALLS.donate
    if call is None:
        return _INERT
    claim, _kept = pack(pool, slot, claimed_len, key, key_len, stream)
    return call(claim)


def restore(pool, slot, claimed_len, key=0, key_len=-1, stream=None):
    """A request starts from a donated slot: call it before the server's copy is enqueued. Arguments as in donate; returns 0."""
    call = _CALLS.restore
    if call is None:
        return _INERT
    claim, _kept = pack(pool, slot, claimed_len, key, key_len, stream)
    return call(claim)


def slot(event, pool, slot, src=-1, stream=None):
    """ALLOC, CLEAR, COPY, DISCARD or FREE of a slot; returns 0.

    src: of COPY the source slot, an int or a tensor like slot (call it after the copy was enqueued); of DISCARD the id of the donation
    that was not taken, an int. slot and stream as in donate.
    """
    call = _CALLS.slot
    if call is None:
        return _INERT
    src_at = src_width = 0
    if type(event) is not int or type(src) is not int:
        event = host_int(event, "event")
        if event == COPY:
            src, src_at, src_width = slot_of(src, stream, pool)
        else:
            src = host_int(src, "src")
    claim, _kept = pack(pool, slot, 0, 0, -1, stream, src_at, src_width)
    if not 0 <= event <= FREE or not _fits(64, src):
        event, src = event if 0 <= event <= FREE else 0, -1
    return call(event, claim, src)


def slots(event, pool, slots, srcs=None, stream=None):
    """ALLOC, CLEAR, COPY or FREE of several slots, in order: one event each, as `slot` says it, for the price of a fraction. Returns how many
    were refused or dropped, 0: none.

    slots: an int32/int64 tensor of one axis, or a list of ints. srcs: of COPY the source slots, as many. stream: as in donate.
    """
    call = _CALLS.slot
    if call is None:
        return _INERT
    refused = 0
    if type(event) is not int:
        event = host_int(event, "event")
    if not 0 <= event <= FREE:
        event = 0
    for claim, src in pack_each(pool, slots, srcs, stream):
        if call(event, claim, src if -(1 << 63) <= src < 1 << 63 else -1) < 0:
            refused += 1
    return refused


def step(name, value, batch=-1, padded=-1, mode=0):
    """One forward of the server; steps are numbered in the order of these calls. Returns 0.

    name: a few fixed ones ("decode", "extend"). value: the server's own number, its low 64 bits. batch: rows with a request; padded: rows
    that run, -1: unknown. mode: MODE_EAGER, MODE_GRAPH, MODE_SEEN (graph if one was launched since the step before), 0: unknown.
    """
    call = _CALLS.step
    if call is None:
        return _INERT
    kept = _names.get(name) or _step_name(name)
    if not type(value) is type(batch) is type(padded) is type(mode) is int:
        value, batch, padded, mode = (host_int(n, "value, batch, padded, mode") for n in (value, batch, padded, mode))
    try:
        said = _abi.STEP.pack(_abi.STEP.size, kept[1], value & MASK, batch, padded, mode)
    except struct.error:  # a number that fits no step: refused and counted
        said = _abi.STEP.pack(_abi.STEP.size, kept[1], 0, -1, -1, 2**32 - 1)
    return call(said)


def _step_name(name):
    """Keeps the C string: one structure after the other points to it."""
    text = _text(name, "name")
    kept = text, _abi.address_of(text)
    if len(_names) < _NAMES_MAX:
        return _names.setdefault(name, kept)
    return kept


def rank(axis, index, count):
    """Which rank this process is: once for each axis ("tp", "pp", "dp", ...). Returns 0."""
    if _CALLS.rank is None:
        return _INERT
    axis, index, count = _text(axis, "axis"), host_int(index, "index"), host_int(count, "count")
    return _CALLS.rank(axis, index, count) if _fits(32, index, count) else _WRONG


def region(name, tensor):
    """Names a small buffer whose address graphs bind, for instance the indices of a captured kernel; returns its id, >= 0.

    tensor: without gaps (else ValueError). Integers of 4 and 8 bytes are recorded as such, others byte by byte.
    """
    if _CALLS.region is None:
        return _INERT
    name, (address, size, t) = _text(name, "name"), whole(tensor, "tensor")
    dtype = t.code if t.code != RAW else {8: RAW, 4: I32}.get(t.itemsize, I8)
    return _CALLS.region(name, address, size, dtype)


def tap(name, tensor, stream=None):
    """Fingerprints a tensor without gaps (else ValueError) on `stream` (None: current on its device). Returns 0; -38 (-ENOSYS) while taps
    are not built."""
    if _CALLS.tap is None:
        return _INERT
    name, (address, size, t) = _text(name, "name"), whole(tensor, "tensor")
    try:
        handle = stream_of(stream, None) if stream is not None else current(t.device, framework_of([tensor]))
    except (TypeError, ValueError):
        raise
    except Exception:  # as for a claim
        return _WRONG
    return _CALLS.tap(name, address, size if t.code == RAW else size // t.itemsize, t.code, handle & MASK)


def point(name):
    """Registers an adapter's own counted point "GROUP.POINT" at 0; returns its id. -28 (-ENOSPC): too many."""
    if _CALLS.point is None:
        return _INERT
    return _CALLS.point(_text(name, "name"))


def hit(point, outcome=HIT_COMMITTED):
    """Counts one attempt at a point and its outcome, HIT_COMMITTED, HIT_FILTERED or HIT_ERROR. Returns 0."""
    call = _CALLS.hit
    if call is None:
        return _INERT
    if type(point) is not int or type(outcome) is not int:
        point, outcome = host_int(point, "point"), host_int(outcome, "outcome")
    return call(point, outcome) if -0x80000000 <= point < 0x80000000 and 0 <= outcome < 0x100000000 else _WRONG


def batch_invariance(op, sizes=(1, 288), row=0, row_axis=0, name="batch_invariance", stream=None):
    """Does a row of an operator's output change with the batch that it rides in? True where it is measured and does not.

    op(n) runs the operator on n rows, of which row `row` is given the same input each time, and returns its output: a tensor with a row
    for each along row_axis, several, or a dict of them. Two operators that should agree, in a tuple, are compared with each other as
    well: (prefill, decode). sizes: batch sizes, or a sequence of them for each operator. All outputs must have the same names, dtypes and
    shapes of a row, a row for each of the n, and some bytes: else -22, not measured. Only the row's bytes count, which are fingerprinted on `stream` (None: the current one), where op must have left it.

    Returns an object with invariant (True, False; None: not measured), rows (op, size, hash) and error (0 or a negative errno). It is true
    only where invariant is True. Waits for the fingerprints: for tests, not for the hot path. In a process that is not recorded it is -38,
    and false, and op is not called.
    """
    if _CALLS.hash is None:
        return _invariance.Unmeasured(_INERT)
    return _invariance.compare(sys.modules[__name__], op, sizes, row, row_axis, name, stream)
