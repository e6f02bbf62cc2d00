# SPDX-License-Identifier: Apache-2.0
"""A claim: what is said of one slot at one moment, packed for the C call. Every line here is paid at each hand-over."""
import hashlib
import operator
import struct
import sys

from . import _abi, _stream
from ._tensor import dtype_name, host_int, is_host, tensor

MASK = 2**64 - 1
TEXT_MAX = 1 << 20  # of a key's text, longer ones would be cut
SIZE = _abi.CLAIM.size
WIDTHS = {}  # bytes of the integer dtypes met so far, 0 for what is no slot id
POOLS = {}  # pool id -> (device, framework) as this process registered it
UNKNOWN_POOL = (None, None)
WRONG = _abi.CLAIM.pack(SIZE, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)  # counted as an error of argument, -EINVAL


def key_of(key):
    """(number, bytes or None) of a key."""
    if isinstance(key, (str, bytes)):
        text = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        if not text:
            return 0, None
        if len(text) >= TEXT_MAX or b"\0" in text:  # C would not see the rest
            return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1, None
        return 0, text
    if isinstance(key, (bytearray, memoryview)):
        return key_of(bytes(key))
    number = host_int(key, "key")
    return (number & MASK or 1) if number else 0, None


def width_of(dtype):
    """Bytes of a slot id's dtype. TypeError: it is none."""
    if dtype not in WIDTHS:
        WIDTHS[dtype] = {"int32": 4, "int64": 8}.get(dtype_name(dtype), 0)
    if not WIDTHS[dtype]:
        raise TypeError(f"slot: dtype {dtype}: a slot id on a device is int32 or int64")
    return WIDTHS[dtype]


def slot_of(slot, stream, pool):
    """(number, address on the device, bytes there) of a slot that is no plain int."""
    try:
        if callable(getattr(slot, "data_ptr", None)):
            if getattr(slot, "is_cuda", None) is not True and is_host(slot.device):
                return operator.index(slot), 0, 0
            if slot.numel() != 1:
                raise ValueError(f"slot: one slot id is expected, not {slot.numel()}")
            found = -1, slot.data_ptr(), width_of(slot.dtype)
            hold(slot, stream, pool)
            return found
        if hasattr(slot, "__cuda_array_interface__"):
            t = tensor(slot, "slot")
            if t.count != 1:
                raise ValueError(f"slot: one slot id is expected, not {t.count}")
            return -1, t.address, width_of(t.dtype)
    except (TypeError, ValueError):
        raise
    except Exception as e:  # a tensor without memory
        raise TypeError(f"slot: its memory cannot be found: {e}") from e
    return host_int(slot, "slot"), 0, 0


def hold(slot, stream, pool):
    """Where another stream than the current one reads a PyTorch tensor, the allocator is told, as for any kernel: else it could give
    the memory away before the read. Streams given as numbers are the caller's to care for."""
    if not (hasattr(stream, "cuda_stream") and hasattr(slot, "record_stream")):
        return
    try:
        if stream.cuda_stream != _stream.current(*POOLS.get(pool, UNKNOWN_POOL)):
            slot.record_stream(stream)
    except Exception:  # memory that is not the allocator's does not come back to it either
        pass


def stream_of(stream, pool):
    """The CUstream as a number."""
    if stream is not None:
        return _stream.handle(stream)
    return _stream.current(*POOLS.get(pool, UNKNOWN_POOL))


def handle_of(stream, pool):
    """As stream_of; None: the framework cannot say which. A measurement on another stream would mislead."""
    try:
        return stream_of(stream, pool)
    except (TypeError, ValueError):
        raise
    except Exception:
        return None


def pack(pool, slot, claimed_len, key, key_len, stream, src_at=0, src_width=0):
    """(struct slotprobe_claim, what it points to: to be kept until the call returned). TypeError, ValueError: an argument of the wrong
    kind; numbers that fit no claim give one that is refused, so that the attempt is counted."""
    text, at, width, text_at = None, 0, 0, 0
    if not type(pool) is type(claimed_len) is type(key_len) is int:
        pool, claimed_len, key_len = host_int(pool, "pool"), host_int(claimed_len, "claimed_len"), host_int(key_len, "key_len")
    if type(key) is not int:
        key, text = key_of(key)
        if text is not None:
            text_at = _abi.address_of(text)
    elif not 0 <= key <= MASK:
        key = key & MASK or 1
    if type(slot) is not int:
        if type(stream) is int and getattr(slot, "is_cuda", None) is True and slot.numel() == 1:  # PyTorch's; the rest of slot_of is not for it
            slot, at, width = -1, slot.data_ptr(), WIDTHS.get(slot.dtype) or width_of(slot.dtype)
        else:
            slot, at, width = slot_of(slot, stream, pool)
    if type(stream) is not int:
        stream = handle_of(stream, pool)
        if stream is None:
            return WRONG, None
    try:
        return _abi.CLAIM.pack(SIZE, pool, slot, at, width, claimed_len, key, text_at, stream, 0, key_len, 0, src_at, src_width), text
    except struct.error:
        return WRONG, None


def ids_of(slots, name):
    """(first address, bytes from one to the next, bytes of one, None) and how many, of slot ids in a tensor of one axis on a device; of ids on
    the host the address is 0, and their list takes the place of None."""
    if getattr(slots, "is_cuda", None) is True and slots.dim() == 1:  # PyTorch's, without a look at everything that it is
        width = WIDTHS.get(slots.dtype) or width_of(slots.dtype)
        return (slots.data_ptr(), slots.stride(0) * width, width, None), slots.numel()
    if isinstance(slots, (list, tuple, range)):
        return (0, 0, 0, [host_int(one, name) for one in slots]), len(slots)
    t = tensor(slots, name)
    if len(t.shape) != 1:
        raise ValueError(f"{name}: one axis is expected, not {len(t.shape)}")
    if t.device == -1:
        return (0, 0, 0, list(map(operator.index, slots.tolist()))), t.count
    return (t.address, t.strides[0], width_of(t.dtype), None), t.count


def pack_each(pool, slots, srcs, stream):
    """(struct slotprobe_claim, number of the source) for each slot of a tensor, all on one stream. TypeError, ValueError: as for one."""
    if type(pool) is not int:
        pool = host_int(pool, "pool")
    (at, step, width, numbers), count = ids_of(slots, "slots")
    src_at = src_step = src_width = 0
    sources, n = None, count
    if srcs is not None:
        (src_at, src_step, src_width, sources), n = ids_of(srcs, "srcs")
    if n != count:
        raise ValueError(f"srcs: {count} source slots are expected, not {n}")
    if type(stream) is not int:
        for one in (slots, srcs):
            hold(one, stream, pool)
        stream = handle_of(stream, pool)
        if stream is None:
            return [(WRONG, -1)] * count

    def packed(i):
        return _abi.CLAIM.pack(SIZE, pool, -1 if numbers is None else numbers[i], at + i * step, width, 0, 0, 0, stream, 0, -1, 0,
                               src_at + i * src_step, src_width), -1 if sources is None else sources[i]

    try:
        return [packed(i) for i in range(count)]
    except struct.error:
        return [wrong_or(packed, i) for i in range(count)]


def wrong_or(packed, i):
    """A number that fits no claim costs that claim alone."""
    try:
        return packed(i)
    except struct.error:
        return WRONG, -1


def framework_of(tensors):
    """Whose stream is meant where none is given: "torch", "cupy" or None."""
    for one in tensors:
        name = type(one).__module__.split(".")[0]
        if name in ("torch", "cupy") and name in sys.modules:
            return name
    return None
