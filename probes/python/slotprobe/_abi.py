# SPDX-License-Identifier: Apache-2.0
"""slotprobe.h in Python: numbers, structures, and where the calls are found.

The preload is in the process or it is not: its calls are looked up once, when the package is imported, and nothing is ever loaded.
"""
import ctypes
import struct

ENOSYS, EINVAL = 38, 22

# enum slotprobe_dtype
F64, F32, F16, BF16, F8E4M3, F8E5M2, I8, I32, RAW = range(9)
# slot events
ALLOC, CLEAR, COPY, DISCARD, FREE = range(1, 6)
# struct slotprobe_step.mode
MODE_EAGER, MODE_GRAPH, MODE_SEEN = 1, 2, 3
# slotprobe_hit's outcomes
HIT_COMMITTED, HIT_FILTERED, HIT_ERROR = range(3)


class Plane(ctypes.Structure):
    """struct slotprobe_plane"""
    _fields_ = [("tensor", ctypes.c_char_p), ("layer", ctypes.c_int32), ("dtype", ctypes.c_uint32), ("base", ctypes.c_uint64),
                ("slot_stride", ctypes.c_int64), ("elems", ctypes.c_uint64)]


class Pool(ctypes.Structure):
    """struct slotprobe_pool"""
    _fields_ = [("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("device", ctypes.c_int32), ("first_slot", ctypes.c_int64),
                ("n_slots", ctypes.c_int64), ("planes", ctypes.POINTER(Plane)), ("n_planes", ctypes.c_uint32),
                ("flags", ctypes.c_uint64)]


class Claim(ctypes.Structure):
    """struct slotprobe_claim"""
    _fields_ = [("size", ctypes.c_uint32), ("pool", ctypes.c_int32), ("slot", ctypes.c_int64), ("slot_ptr", ctypes.c_uint64),
                ("slot_ptr_bytes", ctypes.c_uint32), ("claimed_len", ctypes.c_int64), ("key", ctypes.c_uint64),
                ("key_text", ctypes.c_char_p), ("stream", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("key_len", ctypes.c_int64),
                ("state", ctypes.c_uint64), ("src_ptr", ctypes.c_uint64), ("src_ptr_bytes", ctypes.c_uint32)]


class Step(ctypes.Structure):
    """struct slotprobe_step"""
    _fields_ = [("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("value", ctypes.c_uint64), ("batch", ctypes.c_int32),
                ("padded", ctypes.c_int32), ("mode", ctypes.c_uint32)]


# Claims and steps are packed into bytes of their own, one call each: as fast as filling a structure that a thread keeps, and no signal
# handler, finalizer or other thread can come between the filling and the call. "@": aligned as the C compiler does; the 0 at the
# end pads to the structure's size.
CLAIM = struct.Struct("@IiqQIqQPQIqQQI0q")
STEP = struct.Struct("@IPQiiI0q")


_POINTER_IN = ctypes.c_void_p.from_buffer


def address_of(text):
    """Address of a bytes object's characters, which end with a zero. It is valid as long as the object is."""
    return _POINTER_IN(ctypes.c_char_p(text)).value  # ctypes.cast takes three times as long, and leaves a cycle to the collector


class Calls:
    """The C calls by name; each is None where nothing is recorded."""

    # What may reach the driver lets other threads run meanwhile: a full launch queue waits for the device, which may wait for a host
    # callback that needs the interpreter. What only counts and queues keeps the lock, which is cheaper.
    FOUND = {
        "pool_add": (ctypes.CDLL, ctypes.c_int, [ctypes.POINTER(Pool)]),
        "pool_remove": (ctypes.CDLL, ctypes.c_int, [ctypes.c_int]),
        "donate": (ctypes.CDLL, ctypes.c_int64, [ctypes.c_char_p]),
        "restore": (ctypes.CDLL, ctypes.c_int, [ctypes.c_char_p]),
        "slot": (ctypes.CDLL, ctypes.c_int, [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_int64]),
        "region": (ctypes.CDLL, ctypes.c_int, [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32]),
        "tap": (ctypes.CDLL, ctypes.c_int, [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64]),
        "rank": (ctypes.CDLL, ctypes.c_int, [ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32]),
        "hash": (ctypes.CDLL, ctypes.c_int, [ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64)]),
        "point": (ctypes.CDLL, ctypes.c_int, [ctypes.c_char_p]),
        "step": (ctypes.PyDLL, ctypes.c_int, [ctypes.c_char_p]),
        "hit": (ctypes.PyDLL, ctypes.c_int, [ctypes.c_int, ctypes.c_uint32]),
    }

    def __init__(self):
        for name in self.FOUND:
            setattr(self, name, None)
        found = self._look_up()
        # An axis without a name is refused before anything happens, unless there is no recording to refuse it.
        if found and found["rank"](None, 0, 0) != -ENOSYS:
            vars(self).update(found)

    def _look_up(self):
        found, libraries = {}, {}
        try:
            for name, (kind, result, arguments) in self.FOUND.items():
                if kind not in libraries:
                    libraries[kind] = kind(None)
                found[name] = getattr(libraries[kind], "slotprobe_" + name)
                found[name].restype, found[name].argtypes = result, arguments
        except (AttributeError, OSError, TypeError):  # no such symbol; no such handle on this system
            return None
        return found


CALLS = Calls()
