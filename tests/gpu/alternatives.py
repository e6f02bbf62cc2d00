# SPDX-License-Identifier: Apache-2.0
"""The worker of compare_alternatives.py: what people do to look at a slot, and slotprobe's donation, on the same pools in one process.

Each way is a function of (tensors of the pool, slot): it does its work and returns what it learnt, on the device where it can stay there.
"""
import argparse
import ctypes
import json
import math
import pathlib
import statistics
import sys
import tempfile
import time

from cold import step

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MIB = 1 << 20
BUSY_S = 0.006  # what the device is kept busy with, where the host's wait is looked for

# name: layers, [heads, head size, state size] in fp32 or None, [channels, width] of the bf16 window or None
MODELS = {
    "72 MiB of 96 layers": (96, (12, 128, 128), None),  # no model: what the bars were set at
    "Qwen3-Next-80B": (36, (32, 128, 128), (8192, 3)),
    "Nemotron-H-8B": (24, (128, 64, 128), (10240, 3)),
    "Nemotron-Nano-9B-v2": (27, (128, 80, 128), (12288, 3)),
    "Kimi-Linear": (20, (32, 128, 128), (12288, 3)),
    "Granite-4-H-small": (36, (128, 64, 128), (8448, 3)),
    "LFM2-1.2B": (10, None, (2048, 2)),
}
# where only the parts are tried
SMALL = {"small": (3, (2, 8, 8), (32, 3)), "small, no temporal": (2, None, (32, 2)), "small, no conv": (2, (2, 8, 8), None)}


class OnGpu:
    """PyTorch's device."""

    def __init__(self, torch):
        self.torch, self.rate = torch, None
        begin, end = self.event(), self.event()
        torch.cuda._sleep(1 << 20)
        begin.record()
        torch.cuda._sleep(1 << 22)
        end.record()
        self.finish()
        self.rate = (1 << 22) / (begin.elapsed_time(end) * 1e-3)  # cycles a second

    def event(self):
        """One that is timed."""
        return self.torch.cuda.Event(enable_timing=True)

    def finish(self):
        """Waits for the device."""
        self.torch.cuda.synchronize()

    def busy(self):
        """Gives the device something to do."""
        self.torch.cuda._sleep(int(BUSY_S * self.rate))

    def stream(self):
        """The current one's handle. Not the legacy stream, on which nothing may be captured."""
        return self.torch.cuda.current_stream().cuda_stream

    def make(self, shape, dtype):
        """Random data."""
        made = self.torch.empty(shape, dtype=dtype, device="cuda")  # filled a layer at a time
        for layer in made:
            layer.normal_()
        return made

    def gpu_us(self, work):
        """(time on the device between events in a stream that had something to do, seconds that the host was in `work`)"""
        begin, end = self.event(), self.event()
        self.busy()
        begin.record()
        at = time.perf_counter()
        work()
        host = time.perf_counter() - at
        end.record()
        self.finish()
        return begin.elapsed_time(end) * 1e3, host

    def waited(self, host_s):
        """Whether the host waited for the device."""
        return host_s > BUSY_S / 2

    def capture(self, work, _ours):
        """What becomes of a capture with `work` in it."""
        graph, said = self.torch.cuda.CUDAGraph(), None
        try:
            with self.torch.cuda.graph(graph):
                said = work()
        except Exception as error:
            return {"capture": "fails", "error": str(error).splitlines()[0][:160]}
        if isinstance(said, int) and said < 0:
            return {"capture": "survives", "said": said}
        return {"capture": "survives", "said": "part of the graph"}


class OnCpu:
    """The CPU driver, and PyTorch's tensors over its memory: everything but figures."""

    def __init__(self, torch):
        sys.path.insert(0, str(ROOT / "tests" / "bench"))
        import torch_cuda
        self.torch, self.waits = torch, torch_cuda.waits
        self.cuda = torch_cuda.Cuda(torch)

    def finish(self):
        """Waits for the driver."""
        self.cuda.finish()

    def stream(self):
        """The handle."""
        return self.cuda.current.cuda_stream

    def make(self, shape, dtype):
        """Random data."""
        return self.cuda.tensor(shape, dtype).normal_()

    def gpu_us(self, work):
        """No time on a device; and whether a value came to the host."""
        del self.waits[:]
        work()
        return math.nan, bool(self.waits)

    @staticmethod
    def waited(told):
        """As the stand-ins noted it."""
        return told

    def capture(self, work, ours):
        """PyTorch on the CPU captures nothing; the driver does."""
        if not ours:
            return {"capture": None}
        stream, graph = ctypes.c_void_p(self.stream()), ctypes.c_void_p()
        self.cuda.driver("cuStreamBeginCapture_v2", stream, 0)
        said = work()
        ended = self.cuda.driver.library.cuStreamEndCapture(stream, ctypes.byref(graph))
        return {"capture": "fails", "error": str(ended)} if ended else {"capture": "survives", "said": said}


class Pool:
    """One model's slots."""

    def __init__(self, device, name, shape, rotate):
        import slotprobe
        torch, (layers, temporal, conv) = device.torch, shape
        per_slot = layers * ((math.prod(temporal) * 4 if temporal else 0) + (math.prod(conv) * 2 if conv else 0))
        self.name, self.slot_bytes, self.n = name, per_slot, max(-(-rotate // per_slot), 4)
        self.tensors = {"conv": device.make((layers, self.n, *conv), torch.bfloat16)} if conv else {}
        if temporal:
            self.tensors["temporal"] = device.make((layers, self.n, *temporal), torch.float32)
        self.device, self.layers = device, layers
        self.ids = torch.arange(self.n, dtype=torch.int64, device=None if isinstance(device, OnCpu) else "cuda")
        if isinstance(device, OnCpu):
            self.ids = device.cuda.tensor((self.n,), torch.int64).copy_(self.ids)
        self.pinned = {k: torch.empty((t.shape[0], *t.shape[2:]), dtype=t.dtype, pin_memory=isinstance(device, OnGpu)) for k, t in self.tensors.items()}
        self.id = slotprobe.pool(name, self.tensors)
        if self.id < 0:
            raise RuntimeError(f"{name}: the pool was not taken: {self.id}")
        self.at, self.step = 0, step(self.n)

    def next(self):
        """Slots in an order that leaves nothing in a cache."""
        self.at = (self.at + self.step) % self.n
        return self.at

    def close(self):
        """Memory for the next one."""
        import slotprobe
        slotprobe.pool_remove(self.id)
        self.tensors = self.pinned = self.ids = None


class Ways:
    """What can be done with a slot. Public methods are the ways."""

    def __init__(self, device, folder, loop):
        import slotprobe
        self.torch, self.device, self.file, self.slotprobe = device.torch, device, folder / "slot.pt", slotprobe
        self.loop = ctypes.CDLL(str(loop))
        self.loop.donate_timed.restype = ctypes.c_int64
        self.loop.donate_timed.argtypes = [ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
        self.ns = ctypes.c_uint64()

    def slotprobe_from_c(self, pool, slot):
        """slotprobe_donate; its own clock, since Python's call of it is none of it."""
        return self.loop.donate_timed(pool.id, slot, self.device.stream(), self.ns)

    def slotprobe_from_python(self, pool, slot):
        """slotprobe.donate"""
        return self.slotprobe.donate(pool.id, slot, 1, 1, 1)

    def slotprobe_id_on_device(self, pool, slot):
        """slotprobe.donate of a slot whose id is a tensor."""
        return self.slotprobe.donate(pool.id, pool.ids[slot:slot + 1], 1, 1, 1)

    def absmax_item(self, pool, slot):
        """pool[:, slot].abs().max().item()"""
        return [t[:, slot].abs().max().item() for t in pool.tensors.values()]

    def layers_item(self, pool, slot):
        """The same, layer by layer."""
        return [t[layer, slot].abs().max().item() for t in pool.tensors.values() for layer in range(pool.layers)]

    def layers_stacked(self, pool, slot):
        """Layer by layer, one value to the host."""
        found = [t[layer, slot].abs().max().float() for t in pool.tensors.values() for layer in range(pool.layers)]
        return self.torch.stack(found).max().item()

    def aminmax(self, pool, slot):
        """torch.aminmax; its results stay on the device."""
        return [torch_value for t in pool.tensors.values() for torch_value in self.torch.aminmax(t[:, slot])]

    def hash_tensor(self, pool, slot):
        """torch.hash_tensor; its results stay on the device."""
        return [self.torch.hash_tensor(t[:, slot]) for t in pool.tensors.values()]

    def copy_pageable(self, pool, slot):
        """To the host."""
        return [t[:, slot].cpu() for t in pool.tensors.values()]

    def copy_pinned(self, pool, slot):
        """To pinned memory of the host, as asynchronously as it goes."""
        return [pool.pinned[k].copy_(t[:, slot], non_blocking=True) for k, t in pool.tensors.items()]

    def dump(self, pool, slot):
        """torch.save of copies of the views, as SGLang's dumper does it."""
        self.torch.save({k: t[:, slot].clone() for k, t in pool.tensors.items()}, self.file)
        return self.file


OURS = ("slotprobe_from_c", "slotprobe_from_python", "slotprobe_id_on_device")
HEAVY = {"layers_item": 4, "layers_stacked": 4, "copy_pageable": 4, "copy_pinned": 4, "dump": 8}  # one turn of so many


NAMES = [name for name in vars(Ways) if not name.startswith("_")]


def able(ways, pool):
    """({way: None} of those that this PyTorch can do with such a pool, {way: why not})"""
    errors = {}
    for name in NAMES:
        try:
            getattr(ways, name)(pool, 0)
        except (RuntimeError, AttributeError, NotImplementedError, TypeError) as error:
            if name in OURS:
                raise
            errors[name] = str(error).splitlines()[0][:160]
        pool.device.finish()
    return [name for name in NAMES if name not in errors], errors


def spread(values):
    """Median, 10th and 90th percentile."""
    ordered = sorted(v for v in values if not math.isnan(v))
    if not ordered:
        return None
    return {"median": statistics.median(ordered), "p10": ordered[len(ordered) // 10], "p90": ordered[min(len(ordered) * 9 // 10, len(ordered) - 1)],
            "n": len(ordered)}


def timed(device, ways, pool, names, turns):
    """Rows of one pool, the ways in an order that changes."""
    host, gpu, waited, refused = ({n: [] for n in names} for _ in range(4))
    for turn in range(-2, turns):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            if turn >= 0 and turn % HEAVY.get(name, 1):
                continue
            way = getattr(ways, name)
            slot = pool.next()
            device.finish()
            at = time.perf_counter()
            said = way(pool, slot)
            took = (time.perf_counter() - at) * 1e6 if name != "slotprobe_from_c" else ways.ns.value * 1e-3
            device.finish()
            slot = pool.next()
            on_gpu, told = device.gpu_us(lambda: way(pool, slot))
            if turn >= 0:
                host[name].append(took)
                gpu[name].append(on_gpu)
                waited[name].append(device.waited(told))
                if name in OURS and said <= 0:
                    refused[name].append(said)
    return [{"pool": pool.name, "slot_MiB": pool.slot_bytes / MIB, "slots": pool.n, "way": n, "host_us": spread(host[n]), "gpu_us": spread(gpu[n]),
             "synchronises": sum(waited[n]) * 2 > len(waited[n]), "refused": len(refused[n])} for n in names]


# ---- what each one sees ----

def learnt(ways, name, pool, slot):
    """What a way says of a slot, as something that can be compared."""
    said = getattr(ways, name)(pool, slot)
    pool.device.finish()
    if name in OURS:
        found, deadline = ctypes.c_uint64(), time.monotonic() + 5
        while ways.slotprobe._CALLS.hash(said, found):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name}: no fingerprint of donation {said}")
            time.sleep(0.001)
        return found.value
    if isinstance(said, pathlib.Path):
        said = list(ways.torch.load(said).values())
    return [bytes(one.contiguous().reshape(-1).view(ways.torch.uint8).cpu().numpy()) if isinstance(one, ways.torch.Tensor) else repr(one)
            for one in (said if isinstance(said, list) else [said])]


def plant_element(value):
    """One element of the last layer."""
    def plant(pool, slot):
        at = list(pool.tensors.values())[-1]
        at[-1, slot].reshape(-1)[5] = value
    return plant


def plant_zero(pool, slot):
    """The whole slot."""
    for t in pool.tensors.values():
        t[:, slot] = 0


def plant_zero_layer(pool, slot):
    """The first layer, whose extremes are not the slot's."""
    for t in pool.tensors.values():
        t[0, slot] = 0


def plant_permutation(pool, slot):
    """Two elements change places."""
    row = list(pool.tensors.values())[-1][-1, slot].reshape(-1)
    row[5], row[9] = row[9].clone(), row[5].clone()


def plant_sign(pool, slot):
    """Of one element."""
    row = list(pool.tensors.values())[-1][-1, slot].reshape(-1)
    row[5] = -row[5]


def plant_other(pool, slot):
    """Another slot's state. States have the same extremes, as those of one model often do."""
    for t in pool.tensors.values():
        t[:, slot] = t[:, (slot + 1) % pool.n]


PLANTS = {"a NaN": plant_element(math.nan), "an Inf": plant_element(math.inf), "all zero": plant_zero, "a layer zero": plant_zero_layer,
          "two elements swapped": plant_permutation, "one sign": plant_sign, "another slot's state": plant_other, "nothing": lambda pool, slot: None}


def like_states(pool):
    """The extremes of all slots are the same, in the last layer."""
    for t in pool.tensors.values():
        for slot in range(3):
            row = t[-1, slot].reshape(-1)
            t[:, slot] = t[:, slot].clamp(-3, 3)
            row[0], row[1] = 4, -4


def seen(ways, pool, names):
    """{plant: {way: found or missed}}"""
    table = {}
    like_states(pool)
    kept = {k: t[:, 1].clone() for k, t in pool.tensors.items()}
    for plant, do in PLANTS.items():
        before = {name: learnt(ways, name, pool, 1) for name in names}
        do(pool, 1)
        table[plant] = {name: "found" if learnt(ways, name, pool, 1) != before[name] else "missed" for name in before}
        for k, t in pool.tensors.items():
            t[:, 1] = kept[k]
    return table


def compare(device, ways, models, rotate, turns):
    """Everything but captures; yields what is to be printed."""
    for name, shape in models.items():
        pool = Pool(device, name, shape, rotate)
        names, errors = able(ways, pool)
        yield {"rows": timed(device, ways, pool, names, turns)}
        if name == next(iter(models)):
            yield {"seen": seen(ways, pool, names), "not_able": errors}
        device.finish()
        pool.close()


def captured(device, ways, names):
    """Of a small pool."""
    pool = Pool(device, "captured", SMALL["small"], 0)
    for name in names:
        way = getattr(ways, name)
        way(pool, 1)  # what is loaded and allocated once is
        device.finish()
        yield {"captures": {name: device.capture(lambda: way(pool, 1), name in OURS)}}


def main():
    """Prints JSON objects, one a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--loop", required=True)
    parser.add_argument("--capture", action="append", choices=NAMES, help="only what becomes of captures; one that fails may spoil the next")
    args = parser.parse_args()
    import torch
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        device = OnGpu(torch) if args.driver == "cuda" else OnCpu(torch)
        models, rotate = (MODELS, 2 << 30) if args.driver == "cuda" else (SMALL, 1 << 18)
        if args.driver == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream())
        ways = Ways(device, pathlib.Path(folder), args.loop)
        print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name() if args.driver == "cuda" else "cpu"}))
        for said in captured(device, ways, args.capture) if args.capture else compare(device, ways, models, rotate, args.turns):
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
