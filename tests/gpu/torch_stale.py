#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program with recurrent state, captured graphs and, with --bug, a stale-index bug: the subject of torch_run.py.

It keeps conv and SSM state in a layer-major pair of tensors, decodes in padded batches, copies checkpoints inside the graph and hands
them over. It reports to slotprobe by ctypes alone, with every slot id in a CUDA int64 tensor. With --bug the captured copy takes its
destinations from the tail of the static index tensor, of which only the front is refreshed: the checkpoints go to slot 0.

A second pool, never registered, gets the same updates without the graph path: what it holds is right, and the journal says which
hand-overs were not.
"""
import argparse
import collections
import ctypes
import json
import sys

import torch

LAYERS, SLOTS, HEADS, DIM, STATE, WINDOW = 4, 24, 4, 16, 8, 3
CHANNELS, VOCAB, MAX_BATCH, INTERVAL = HEADS * DIM, 256, 8, 8
F32, BF16 = 1, 3
ALLOC, CLEAR, COPY, DISCARD, FREE = 1, 2, 3, 4, 5


class Plane(ctypes.Structure):
    """struct slotprobe_plane"""
    _fields_ = [("tensor", ctypes.c_char_p), ("layer", ctypes.c_int32), ("dtype", ctypes.c_uint32), ("base", ctypes.c_uint64),
                ("slot_stride", ctypes.c_int64), ("elems", ctypes.c_uint64)]


class PoolOf(ctypes.Structure):
    """struct slotprobe_pool"""
    _fields_ = [("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("device", ctypes.c_int32), ("first_slot", ctypes.c_int64),
                ("n_slots", ctypes.c_int64), ("planes", ctypes.POINTER(Plane)), ("n_planes", ctypes.c_uint32)]


class Claim(ctypes.Structure):
    """struct slotprobe_claim"""
    _fields_ = [("size", ctypes.c_uint32), ("pool", ctypes.c_int32), ("slot", ctypes.c_int64), ("slot_ptr", ctypes.c_uint64),
                ("slot_ptr_bytes", ctypes.c_uint32), ("claimed_len", ctypes.c_int64), ("key", ctypes.c_uint64),
                ("key_text", ctypes.c_char_p), ("stream", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("key_len", ctypes.c_int64)]


class Step(ctypes.Structure):
    """struct slotprobe_step"""
    _fields_ = [("size", ctypes.c_uint32), ("name", ctypes.c_char_p), ("value", ctypes.c_uint64), ("batch", ctypes.c_int32),
                ("padded", ctypes.c_int32), ("mode", ctypes.c_uint32)]


class Reporter:
    """Calls slotprobe where it is preloaded; counts the calls."""

    def __init__(self, pool):
        self.calls = collections.Counter()
        self.refused = collections.Counter()
        try:
            self.lib = ctypes.CDLL(None)
            self.lib.slotprobe_donate.restype = ctypes.c_int64
            self.lib.slotprobe_slot.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int64]
        except AttributeError:
            self.lib = None
            return
        planes = []
        for layer in range(LAYERS):
            for name, tensor, dtype in (("conv", pool.conv, BF16), ("temporal", pool.ssm, F32)):
                planes.append(Plane(name.encode(), layer, dtype, tensor[layer].data_ptr(), tensor.stride(1) * tensor.element_size(),
                                    tensor[layer, 0].numel()))
        what = PoolOf(ctypes.sizeof(PoolOf), b"mamba", torch.cuda.current_device(), 0, SLOTS + 1, (Plane * len(planes))(*planes),
                      len(planes))
        self.pool = self.lib.slotprobe_pool_add(ctypes.byref(what))
        if self.pool < 0:
            sys.exit(f"torch_stale: slotprobe_pool_add: {self.pool}")

    def claim(self, slot, length=0, key=0):
        """slot: a CUDA int64 tensor of one element. It stays unread on the host; the allocator gives its memory away in stream order."""
        return Claim(ctypes.sizeof(Claim), self.pool, -1, slot.data_ptr(), 8, length, key, None,
                     torch.cuda.current_stream().cuda_stream, 0, length if key else 0)

    def count(self, name, result):
        """Counts a call; hands its result on."""
        self.calls[name] += 1
        self.refused[name] += result < 0
        return result

    def donate(self, slot, length, key):
        """A hand-over."""
        return self.count("donate", self.lib.slotprobe_donate(ctypes.byref(self.claim(slot, length, key)))) if self.lib else 0

    def restore(self, slot, length, key):
        """Before a hand-over's copy to its next user."""
        if self.lib:
            self.count("restore", self.lib.slotprobe_restore(ctypes.byref(self.claim(slot, length, key))))

    def event(self, kind, name, slot, source=-1):
        """A slot event."""
        if self.lib:
            self.count(name, self.lib.slotprobe_slot(kind, ctypes.byref(self.claim(slot)), source))

    def step(self, number, batch, padded, graph):
        """One forward."""
        if self.lib:
            step = Step(ctypes.sizeof(Step), b"decode", number, batch, padded, 2 if graph else 1)
            self.count("step", self.lib.slotprobe_step(ctypes.byref(step)))


class Pool:
    """conv[layers, slots, channels, window] in bf16 and ssm[layers, slots, heads, dim, state] in fp32; slot 0 is for padded rows."""

    def __init__(self):
        self.conv = torch.zeros(LAYERS, SLOTS + 1, CHANNELS, WINDOW, dtype=torch.bfloat16, device="cuda")
        self.ssm = torch.zeros(LAYERS, SLOTS + 1, HEADS, DIM, STATE, dtype=torch.float32, device="cuda")

    def clear(self, slot):
        """Zeroes a slot; its number is known on the host."""
        self.conv[:, slot].zero_()
        self.ssm[:, slot].zero_()

    def copy(self, to, source):
        """Copies a slot."""
        self.conv[:, to].copy_(self.conv[:, source])
        self.ssm[:, to].copy_(self.ssm[:, source])

    def taken(self, slot):
        """The slot's bytes as of now, in stream order, without waiting."""
        return self.conv[:, slot].clone(), self.ssm[:, slot].clone()


class Model:
    """One token for each row. Only element-wise arithmetic and an integer sum: a row's bits do not depend on the batch."""

    def __init__(self):
        source = torch.Generator().manual_seed(7)

        def random(*shape):
            return torch.rand(*shape, generator=source)

        self.embedding = (random(VOCAB, CHANNELS) * 2 - 1).cuda()
        self.gain = (random(VOCAB, 1, 1, STATE) * 2 - 1).cuda()
        self.decay = (random(LAYERS, HEADS, DIM, STATE) * 0.45 + 0.5).cuda()
        self.keys = torch.randint(1, 1 << 40, (CHANNELS,), generator=source).cuda()

    def step(self, pool, tokens, rows, track):
        """tokens, rows (slots), track (destination slots, 0: nowhere): int64 tensors of one length. Returns the next tokens."""
        n = tokens.shape[0]
        hidden = self.embedding.index_select(0, tokens)
        gain = self.gain.index_select(0, tokens)
        for layer in range(LAYERS):
            conv = pool.conv[layer].index_select(0, rows)
            conv = torch.cat([conv[:, :, 1:], hidden.to(torch.bfloat16).unsqueeze(-1)], dim=-1)
            pool.conv[layer].index_copy_(0, rows, conv)
            window = conv.float()
            mixed = window[:, :, 0] * 0.25 + window[:, :, 1] * 0.5 + window[:, :, 2]
            ssm = pool.ssm[layer].index_select(0, rows)
            ssm = ssm * self.decay[layer] + mixed.view(n, HEADS, DIM, 1) * gain
            pool.ssm[layer].index_copy_(0, rows, ssm)
            out = ssm[..., :4] + ssm[..., 4:]
            out = out[..., :2] + out[..., 2:]
            hidden = hidden * 0.5 + (out[..., 0] + out[..., 1]).reshape(n, CHANNELS) * (1 / 64)
        pool.conv.index_copy_(1, track, pool.conv.index_select(1, rows))
        pool.ssm.index_copy_(1, track, pool.ssm.index_select(1, rows))
        bits = hidden.contiguous().view(torch.int32).to(torch.int64)
        return ((bits * self.keys).sum(dim=1) >> 9).remainder(VOCAB)


class Graphs:
    """The model captured for each padded batch size, over static index tensors."""

    def __init__(self, model, pool, bug):
        self.tokens, self.rows, self.track = (torch.zeros(MAX_BATCH, dtype=torch.int64, device="cuda") for _ in range(3))
        self.graph, self.out, self.launches = {}, {}, 0
        for padded in (8, 4, 2, 1):
            tokens, rows = self.tokens[:padded], self.rows[:padded]
            track = self.track[MAX_BATCH - padded:] if bug else self.track[:padded]
            model.step(pool, tokens, rows, track)  # warm-up on slot 0
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.out[padded] = model.step(pool, tokens, rows, track)
            self.graph[padded] = graph

    def step(self, tokens, rows, track):
        """Refreshes the front of the static tensors, replays."""
        padded = padded_size(len(tokens))
        pads = [0] * (padded - len(tokens))
        for static, values in ((self.tokens, tokens), (self.rows, rows), (self.track, track)):
            static[:padded].copy_(torch.tensor(values + pads, dtype=torch.int64))
        self.graph[padded].replay()
        self.launches += 1
        return self.out[padded][:len(tokens)]


def padded_size(n):
    """The captured size that serves n rows."""
    padded = 1
    while padded < n:
        padded *= 2
    return padded


def key_of(tokens):
    """Identity of a prefix: 64 bits, never 0."""
    h = len(tokens)
    for token in tokens:
        h = ((h ^ (token + 1)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        h ^= h >> 31
    return h or 1


class Request:
    """A prompt, what was generated, and the slots that it owns."""

    def __init__(self, number, prompt, generate):
        self.number, self.tokens, self.prompt_len, self.generate = number, list(prompt), len(prompt), generate
        self.len, self.live, self.track = 0, None, None

    @property
    def done(self):
        """Everything was generated."""
        return len(self.tokens) >= self.prompt_len + self.generate


class Server:
    """Decodes a few requests at a time; checkpoints go to a cache that gives up its oldest slot when none is free."""

    def __init__(self, args):
        self.pool, self.right, self.model = Pool(), Pool(), Model()
        self.report = Reporter(self.pool)
        self.graphs = Graphs(self.model, self.pool, args.bug) if args.graphs else None
        self.pool.clear(0)
        self.free = collections.deque(range(1, SLOTS + 1))
        self.ids = torch.arange(SLOTS + 1, device="cuda")
        self.cache = collections.OrderedDict()  # (key, length) -> slot
        self.occurrences = collections.Counter()
        self.steps, self.seen = 0, []  # seen: event, what the slot held, what it should have held

    def id_of(self, slot):
        """The slot id as a framework passes it around: a tensor of its own."""
        return self.ids[slot:slot + 1].clone()

    def note(self, event, slot, **more):
        """Keeps the slot's bytes for the journal; they are compared at the end."""
        self.seen.append(({"event": event, "slot": slot, "occurrence": self.occurrences[slot], **more}, self.pool.taken(slot),
                          self.right.taken(slot)))

    def give(self, slot):
        """Frees a slot."""
        self.report.event(FREE, "free", self.id_of(slot))
        self.free.append(slot)

    def take(self):
        """A free slot, as its last owner left it."""
        if not self.free:
            self.give(self.cache.popitem(last=False)[1])
        slot = self.free.popleft()
        self.report.event(ALLOC, "alloc", self.id_of(slot))
        return slot

    def start(self, request, parent):
        """Gives a request its slots; one that continues another starts from the state that the other left."""
        key = (key_of(parent.tokens[:parent.len]), parent.len) if parent else None
        hit = self.cache.get(key)
        if hit is not None:
            self.cache.move_to_end(key)  # not the next to be given up
        request.live = self.take()
        for pool in (self.pool, self.right):
            pool.clear(request.live)
        self.report.event(CLEAR, "clear", self.id_of(request.live))
        if hit is not None:
            self.report.restore(self.id_of(hit), key[1], key[0])
            self.note("restore", hit, claimed_len=key[1], key=f"0x{key[0]:016x}")
            for pool in (self.pool, self.right):
                pool.copy(request.live, hit)
            self.report.event(COPY, "copy", self.id_of(request.live), hit)
            request.len = key[1]
        request.track = self.take()

    def hand_over(self, request, slot):
        """Donates a slot that stands for request.tokens[:request.len]; a prefix that is there already is not taken again."""
        key = key_of(request.tokens[:request.len])
        donation = self.report.donate(self.id_of(slot), request.len, key)
        self.occurrences[slot] += 1
        self.note("donate", slot, claimed_len=request.len, key=f"0x{key:016x}", request=request.number)
        if (key, request.len) not in self.cache:
            self.cache[key, request.len] = slot
            return
        if donation > 0:
            self.report.event(DISCARD, "discard", self.id_of(slot), donation)
        self.give(slot)

    def forward(self, running):
        """One token for each running request."""
        tokens = [r.tokens[r.len] for r in running]
        rows = [r.live for r in running]
        track = [r.track if (r.len + 1) % INTERVAL == 0 else 0 for r in running]
        fresh = [torch.tensor(v, dtype=torch.int64, device="cuda") for v in (tokens, rows, track)]
        self.steps += 1
        self.report.step(self.steps, len(running), padded_size(len(running)) if self.graphs else len(running), self.graphs)
        out = self.graphs.step(tokens, rows, track) if self.graphs else self.model.step(self.pool, *fresh)
        self.model.step(self.right, *fresh)
        for request, checkpoint in zip(running, track):
            request.len += 1
            if checkpoint:
                self.hand_over(request, request.track)
                request.track = self.take()
        for request, token in zip(running, out.tolist()):
            if request.len == len(request.tokens):
                request.tokens.append(token)
            if request.done:
                self.give(request.track)
                self.hand_over(request, request.live)

    def serve(self, requests, lanes):
        """requests: list of (request, parent or None, tokens of a new turn)."""
        waiting, running = collections.deque(requests), []
        while waiting or running:
            if waiting and len(running) < lanes and (waiting[0][1] is None or waiting[0][1].done):
                request, parent, turn = waiting.popleft()
                if parent:
                    request.tokens = parent.tokens[:parent.len] + turn
                    request.prompt_len = len(request.tokens)
                self.start(request, parent)
                running.append(request)
            if running:
                self.forward(running)
            running = [r for r in running if not r.done]


def workload(n):
    """Fresh requests and continuations of the ones three before, from a fixed seed."""
    source = torch.Generator().manual_seed(11)

    def draw(low, high, size=1):
        return torch.randint(low, high, (size,), generator=source).tolist()

    requests = []
    for number in range(n):
        follows = number % 6 >= 3
        prompt = draw(0, VOCAB, draw(5, 12)[0])
        request = Request(number, [] if follows else prompt, draw(14, 28)[0])
        requests.append((request, requests[number - 3][0] if follows else None, prompt[:4]))
    return requests


def journal(server, path):
    """Compares what was kept and writes one JSON object a line."""
    torch.cuda.synchronize()
    events = []
    for event, held, right in server.seen:
        wrong = [[name, layer] for name, a, b in (("conv", held[0], right[0]), ("temporal", held[1], right[1]))
                 for layer in range(LAYERS) if not torch.equal(a[layer], b[layer])]
        events.append({**event, "differs": bool(wrong), "zero": not any(t.count_nonzero().item() for t in held),
                       "planes_differing": wrong})
    end = {"event": "end", "graph_launches": server.graphs.launches if server.graphs else 0,
           "graphs": len(server.graphs.graph) if server.graphs else 0, "calls": dict(server.report.calls),
           "refused": sum(server.report.refused.values()), "donations": sum(e["event"] == "donate" for e in events),
           "slots_differing": sorted({e["slot"] for e in events if e["differs"]}), "torch": torch.__version__,
           "device": torch.cuda.get_device_name()}
    print(f"{end['donations']} donations, {sum(e['differs'] for e in events)} wrong events, {end['graph_launches']} graph launches")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            for event in events + [end]:
                file.write(json.dumps(event) + "\n")


def main() -> int:
    """Serves the workload on a stream of its own, as servers do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--bug", action="store_true", help="only shows with graphs")
    parser.add_argument("--requests", type=int, default=18)
    parser.add_argument("--lanes", type=int, default=3, choices=range(1, MAX_BATCH + 1))
    parser.add_argument("--journal")
    args = parser.parse_args()
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
        server = Server(args)
        server.serve(workload(args.requests), args.lanes)
        journal(server, args.journal)
    return 0


if __name__ == "__main__":
    sys.exit(main())
