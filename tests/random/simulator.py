# SPDX-License-Identifier: Apache-2.0
"""A server that exists only here: slots are bytes, requests are served in small batches, states are handed over and come back. One of
several faults can be planted in it. It knows what bytes are where and nothing of how slotprobe explains them; what it did is in
`Server.history`, and its recording is written by loggen with fingerprints of the real bytes."""
import ctypes
import hashlib
import math
import os
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))

import loggen  # noqa: E402
from loggen import ALLOC, CLEAR, COPY, FREE, Process, number  # noqa: E402

LIB = ctypes.CDLL(str(ROOT / os.environ.get("BUILD", "build") / "tests/random/libprints.so"))
LIB.prints_crc32c.restype = ctypes.c_uint32
LIB.prints_crc32c.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
LIB.prints_plane.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p]
loggen.crc32c = lambda data: LIB.prints_crc32c(bytes(data), len(data))

# (tensor, layer, dtype, elements): fp32 and fp64, so that an element is what struct packs
PLANES = [("conv", 0, 1, 12), ("ssm", 0, 1, 24), ("conv", 1, 1, 12), ("ssm", 1, 0, 16)]
FORM = {0: "d", 1: "f"}
SLOTS, CHUNK = 16, 8

# What may go wrong in the run with graphs: each changes bytes, or where they go.
FAULTS = ["nothing", "write goes to slot 0", "write is left out", "rows of a batch are swapped", "an older snapshot is written",
          "a clear multiplies", "bits flip", "conv is not cleared"]


def elements(plane: int, data: bytes) -> tuple:
    return struct.unpack(f"<{PLANES[plane][3]}{FORM[PLANES[plane][2]]}", data)


def packed(plane: int, values) -> bytes:
    return struct.pack(f"<{PLANES[plane][3]}{FORM[PLANES[plane][2]]}", *values)


ZERO = tuple(packed(p, [0.0] * PLANES[p][3]) for p in range(len(PLANES)))


def forward(state: tuple, tokens: tuple) -> tuple:
    """The state after more tokens: every element depends on the plane's whole past; what is not finite stays so."""
    out = []
    for p, data in enumerate(state):
        stream = hashlib.shake_128(data + bytes(tokens) + bytes([p])).digest(PLANES[p][3])
        out.append(packed(p, [(s - 127.5) / 32 + 0 * old for s, old in zip(stream, elements(p, data))]))
    return tuple(out)


class Memory(loggen.Pool):
    """A pool of real bytes."""

    def __init__(self, index, name, planes, slots, first=0):
        super().__init__(index, name, planes, slots, first)
        self.bytes = [ZERO] * slots
        self.known = {}

    def prints(self, slot):
        return [self.plane_print(p, data) for p, data in enumerate(self.bytes[slot])]

    def plane_print(self, plane, data):
        if (plane, data) not in self.known:
            out = ctypes.create_string_buffer(72)
            LIB.prints_plane(data, len(data), PLANES[plane][3], PLANES[plane][2], out)
            self.known[plane, data] = list(struct.unpack("<ddQQQ4Q", out.raw))
        return self.known[plane, data]


class Request:
    def __init__(self, tokens, interval):
        self.tokens, self.interval, self.done = tokens, interval, 0
        self.live = None
        self.snapshots = []  # (length, state) of its checkpoints so far


class Server:
    """One run. `plan` and `placing` are seeds: of the workload, the same in both runs, and of where slots come from."""

    def __init__(self, arm, plan, placing, fault, watch):
        self.arm, self.fault = arm, fault if arm == "graph-on" else "nothing"
        self.random, self.chance = random.Random(plan), random.Random(plan + 1)
        self.process = Process(pid=4194301 + (arm == "graph-on"))
        self.process.watch = [0] if watch else []
        self.pool = Memory(0, "state", PLANES, SLOTS)
        self.process.pools.append(self.pool)
        self.announce()
        self.free = list(range(1, SLOTS))
        random.Random(placing).shuffle(self.free)
        self.cache = []  # (slot, tokens) of what can be restored, the oldest first
        self.history = []  # (event id, kind, slot, length, key, state)
        self.past = {}  # slot -> states that events have seen in it, with the event's id
        self.trouble_from = self.chance.randrange(2, 8)
        if self.fault == "a clear multiplies":
            self.poison()

    def announce(self):
        """Pool and planes, as loggen's own pools say it."""
        p, width = self.process, {0: 8, 1: 4}
        sizes = [e * width[d] for _, _, d, e in PLANES]
        p.put(loggen.POOL, p.tick(), 0, 0, 0, SLOTS, len(PLANES), 0, sum(sizes), 0, 0, "state")
        for i, (tensor, layer, dtype, elems) in enumerate(PLANES):
            p.put(loggen.PLANE, 0, i, layer, dtype, 0x7f0000000000 + i * 65536, sizes[i], elems, sizes[i], tensor)

    def poison(self):
        slot = self.free[self.chance.randrange(4)]
        state = list(self.pool.bytes[slot])
        values = list(elements(1, state[1]))
        values[self.chance.randrange(len(values))] = math.nan
        state[1] = packed(1, values)
        self.pool.bytes[slot] = tuple(state)

    # ---- slots ----

    def take(self):
        if len(self.free) < 5 and self.cache:
            slot, _ = self.cache.pop(0)
            self.give(slot)
        slot = self.free.pop(0)
        self.saw(self.process.event(ALLOC, self.pool, slot), slot)
        return slot

    def saw(self, event, slot):
        self.past.setdefault(slot, []).append((event, self.pool.bytes[slot]))

    def give(self, slot):
        self.process.event(FREE, self.pool, slot)
        self.free.append(slot)

    def clear(self, slot):
        now = self.pool.bytes[slot]
        if self.fault == "a clear multiplies":
            now = tuple(packed(p, [0 * v if math.isnan(v) else 0.0 for v in elements(p, d)]) for p, d in enumerate(now))
        elif self.fault == "conv is not cleared" and any(any(d) for d in now):
            now = tuple(d if PLANES[p][0] == "conv" else ZERO[p] for p, d in enumerate(now))
        else:
            now = ZERO
        self.pool.bytes[slot] = now
        self.saw(self.process.event(CLEAR, self.pool, slot), slot)

    def note(self, kind, event, slot, length, key):
        self.saw(event, slot)
        self.history.append((event, kind, slot, length, key, self.pool.bytes[slot]))

    # ---- requests ----

    def begin(self, request):
        request.live = self.take()
        self.clear(request.live)
        known = [(s, t) for s, t in self.cache if request.tokens[:len(t)] == t and len(t) < len(request.tokens)]
        if known:
            slot, tokens = max(known, key=lambda k: len(k[1]))
            key = number("key", tokens)
            self.note("restore", self.process.restore(self.pool, slot, len(tokens), key, key_len=len(tokens)), slot, len(tokens), key)
            self.pool.bytes[request.live] = self.pool.bytes[slot]
            self.saw(self.process.event(COPY, self.pool, request.live, src=slot), request.live)
            request.done = len(tokens)
            request.snapshots.append((len(tokens), self.pool.bytes[slot]))

    def step(self, batch):
        """One forward of the batch, and the checkpoints that fall due in it."""
        ends = [(request, min(request.done + CHUNK, len(request.tokens))) for request in batch]
        due = [(request, self.take()) for request, end in ends if end % request.interval == 0 or end == len(request.tokens)]
        self.process.step(batch=len(batch), padded=4)
        if self.arm == "graph-on":
            self.process.launch()
        for request, end in ends:
            self.pool.bytes[request.live] = forward(self.pool.bytes[request.live], request.tokens[request.done:end])
            request.done = end
        self.checkpoint(due)
        for request, slot in due:
            tokens = request.tokens[:request.done]
            key = number("key", tokens)
            self.note("donate", self.process.donate(self.pool, slot, request.done, key, key_len=request.done), slot, request.done, key)
            self.cache.append((slot, tokens))

    def checkpoint(self, due):
        """What the kernel does that writes the states of the rows to where they are to go."""
        trouble = self.process.steps >= self.trouble_from and self.fault
        slots = [slot for _, slot in due]
        if trouble == "write goes to slot 0":
            slots = [0] * len(due)
        if trouble == "rows of a batch are swapped":
            slots = slots[1:] + slots[:1]
        for (request, right), slot in zip(due, slots):
            state = self.pool.bytes[request.live]
            snapshots = request.snapshots[:]
            request.snapshots.append((request.done, state))
            if trouble == "write is left out":
                continue
            if trouble == "an older snapshot is written" and snapshots:
                state = snapshots[-1][1]
            if trouble == "bits flip":
                state = self.flipped(state)
            self.pool.bytes[slot] = state

    def flipped(self, state):
        plane = self.chance.randrange(len(PLANES))
        data = bytearray(state[plane])
        for _ in range(self.chance.randrange(1, 4)):
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(6)
        values = elements(plane, bytes(data))
        out = list(state)
        out[plane] = bytes(data) if all(map(math.isfinite, values)) else packed(plane, [7.0] * len(values))
        return tuple(out)

    def serve(self):
        talks = [tuple(self.random.randrange(256) for _ in range(96)) for _ in range(6)]
        waiting = []
        for _ in range(self.random.randrange(12, 20)):
            talk = self.random.choice(talks)
            waiting.append(Request(talk[:self.random.randrange(12, 80)], CHUNK * self.random.choice([1, 2, 4])))
        while waiting:
            batch = [waiting.pop(0) for _ in range(min(len(waiting), self.random.randrange(1, 4)))]
            for request in batch:
                self.begin(request)
            while batch:
                self.step(batch)
                for request in [r for r in batch if r.done == len(r.tokens)]:
                    batch.remove(request)
                    self.give(request.live)
        return self

    def run(self) -> loggen.Run:
        return loggen.Run(self.arm, self.process)
