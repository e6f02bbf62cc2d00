#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long one fingerprint takes on the GPU, against 5 us + bytes / (0.95 x the copy rate of the same run).

Slots are rotated over at least 2 GiB, far more than any L2. Each launch is timed by a pair of events; all of a batch are enqueued
behind a copy, so that the host is never waited for. `batch us` is the time of back-to-back launches, a launch. Judged are the shapes
that servers have; the others are printed to be known.

--variants builds fingerprint.cu with other constants (nvcc is needed) and times a few shapes with each: for tuning.
"""
import argparse
import ctypes as c
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from fingerprint_device import DTYPES, ELEM_BYTES, KERNEL, ROOT, Device, Plane, Slots, chunk_bytes

MIB, KIB = 1 << 20, 1 << 10
POOL_BYTES = 5 << 29  # 2.5 GiB
ROTATE_BYTES = 2 << 30

# name: ([(planes, bytes of each, dtype)], judged)
SHAPES = {
    "72 MiB, 36 planes": ([(36, 2 * MIB, "F32")], True),
    "72 MiB, 72 planes": ([(72, MIB, "F32")], True),
    "72 MiB, 96 planes": ([(96, 768 * KIB, "F32")], True),
    "72 MiB, 96 planes bf16": ([(96, 768 * KIB, "BF16")], True),
    "73.7 MiB, 36 x (f32 2 MiB + bf16 48 KiB)": ([(36, 2 * MIB, "F32"), (36, 48 * KIB, "BF16")], True),
    "64 MiB, 1 plane": ([(1, 64 * MIB, "F32")], True),
    "150 MiB, 96 planes": ([(96, 1600 * KIB, "F32")], True),
    "4.7 MiB, 200 planes": ([(200, 24 * KIB, "F32")], True),
    "2.25 MiB, 48 planes": ([(48, 48 * KIB, "F32")], True),
    "0.84 MiB, 36 planes": ([(36, 24 * KIB, "BF16")], True),
    "4 KiB, 1 plane": ([(1, 4 * KIB, "F32")], True),
    "4.5 MiB, 36 planes": ([(36, 128 * KIB, "F32")], False),
    "18 MiB, 36 planes": ([(36, 512 * KIB, "F32")], False),
    "72 MiB, 96 planes raw": ([(96, 768 * KIB, "RAW")], False),
    "72 MiB, 96 planes f16": ([(96, 768 * KIB, "F16")], False),
    "72 MiB, 96 planes f64": ([(96, 768 * KIB, "F64")], False),
    "72 MiB, 96 planes i32": ([(96, 768 * KIB, "I32")], False),
    "72 MiB, 96 planes i8": ([(96, 768 * KIB, "I8")], False),
    "72 MiB, 96 planes f8e4m3": ([(96, 768 * KIB, "F8E4M3")], False),
    "72 MiB, 96 planes f32 at +4": ([(96, 768 * KIB, "F32")], False),
    "72 MiB, 96 planes bf16 at +2": ([(96, 768 * KIB, "BF16")], False),
}
TUNING = ["72 MiB, 96 planes", "72 MiB, 96 planes bf16", "64 MiB, 1 plane", "4.7 MiB, 200 planes", "2.25 MiB, 48 planes", "4 KiB, 1 plane"]
VARIANTS = [{}, {"FP_AHEAD": 6}, {"FP_AHEAD": 4, "FP_BLOCKS": 5}, {"FP_CHUNK_BYTES": 196608, "FP_AHEAD": 6},
            {"FP_CHUNK_BYTES": 131072, "FP_AHEAD": 6}, {"FP_CHUNK_BYTES": 98304, "FP_AHEAD": 6},
            {"FP_CHUNK_BYTES": 65536, "FP_AHEAD": 6}, {"FP_CHUNK_BYTES": 32768, "FP_AHEAD": 4, "FP_BLOCKS": 5}]


class Bench:
    def __init__(self, device: Device):
        self.device = device
        self.pool = device.alloc(POOL_BYTES + 4096)
        self.fill()
        self.events = [(device.event(), device.event()) for _ in range(100)]
        self.spare = device.alloc(1 << 28)

    def fill(self) -> None:
        """Random bytes that are finite in every dtype: never time on zeros."""
        piece = (np.frombuffer(np.random.default_rng(5).bytes(64 * MIB), np.uint8) & 0xBB).tobytes()
        for at in range(0, POOL_BYTES, len(piece)):
            self.device.put(self.pool + at, piece)

    def copy_rate(self) -> float:
        """Bytes read and written a second by a device-to-device copy of 1 GiB; the median of several."""
        call, gib = self.device.call, 1 << 30
        for begin, end in self.events[:12]:
            self.device.record(begin)
            call("cuMemcpyDtoDAsync_v2", c.c_uint64(self.pool + gib), c.c_uint64(self.pool), c.c_size_t(gib), self.device.stream)
            self.device.record(end)
        self.device.sync()
        times = [self.device.elapsed_us(begin, end) for begin, end in self.events[2:12]]
        self.fill()
        return 2 * gib / (statistics.median(times) * 1e-6)

    def busy(self) -> None:
        """Keeps the stream busy for a moment, so that what is enqueued next is all there when its turn comes."""
        for _ in range(40):
            self.device.call("cuMemsetD8Async", c.c_uint64(self.spare), c.c_ubyte(1), c.c_size_t(1 << 28), self.device.stream)

    def slots(self, shape: list[tuple[int, int, str]], shift: int, chunk: int) -> Slots:
        slot_bytes = sum(n * size for n, size, _ in shape)
        n_slots = max(ROTATE_BYTES // slot_bytes, 3)
        planes, at = [], self.pool + shift
        for n, size, dtype in shape:
            for _ in range(n):
                number = DTYPES.index(dtype)
                planes.append(Plane(base=at, stride=size, bytes=size, elems=size // ELEM_BYTES[number], dtype=number))
                at += n_slots * size
        return Slots(self.device, planes, 0, n_slots, chunk=chunk)

    def time(self, name: str, chunk: int = 0) -> tuple[float, float, int]:
        """(median us by events, us a launch back to back, bytes)."""
        shape = SHAPES[name][0]
        slots = self.slots(shape, int(name.split(" at +")[1]) if " at +" in name else 0, chunk)
        launch, number, times = slots.launch, 0, []
        step = max(launch.n_slots * 7 // 19, 1) | 1

        def one() -> None:
            nonlocal number
            number += 1
            launch.slot = number * step % launch.n_slots
            launch.sequence += 1
            self.device.run(launch)

        for _ in range(20):
            one()
        for _ in range(3):
            self.busy()
            for begin, end in self.events:
                self.device.record(begin)
                one()
                self.device.record(end)
            self.device.sync()
            times += [self.device.elapsed_us(begin, end) for begin, end in self.events]
        begin, end = self.events[0]
        self.busy()
        self.device.record(begin)
        for _ in range(200):
            one()
        self.device.record(end)
        self.device.sync()
        if slots.entry.done != launch.sequence or slots.entry.status:
            raise RuntimeError(f"{name}: done {slots.entry.done} status {slots.entry.status}")
        batch = self.device.elapsed_us(begin, end) / 200
        slots.free()
        return statistics.median(times), batch, sum(n * size for n, size, _ in shape)


def variants(bench: Bench, rate: float) -> dict:
    """Median us of a few shapes for each way to build the kernel."""
    table = {}
    for variant in VARIANTS:
        name = " ".join(f"{k}={v}" for k, v in variant.items()) or "as committed"
        with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
            subprocess.run([os.environ.get("NVCC", "nvcc"), "-ptx", "-arch=compute_75", "-O3", f"-I{ROOT}",
                            *(f"-D{k}={v}" for k, v in variant.items()), KERNEL / "fingerprint.cu", "-o", out.name], check=True)
            bench.device.load(out.read())
        table[name] = {shape: bench.time(shape, variant.get("FP_CHUNK_BYTES", 0))[0] for shape in TUNING} | bench.device.attributes
        print(f"{name:56}" + "".join(f"{table[name][shape]:9.2f}" for shape in TUNING) +
              f"   {table[name]['registers']} registers, {table[name]['local_bytes']} local", flush=True)
    print("columns: " + "; ".join(TUNING) + f"; copy rate {rate * 1e-12:.2f} TB/s")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the result there")
    parser.add_argument("--variants", action="store_true", help="time other builds of the kernel too")
    args = parser.parse_args()
    device = Device()
    jit_ms, attributes = device.jit_ms, device.attributes
    bench = Bench(device)
    rate = bench.copy_rate()
    rows, failed = [], 0
    print(f"{device.name}: copy {rate * 1e-12:.2f} TB/s, JIT {jit_ms:.0f} ms, {attributes}, chunk {chunk_bytes()}")
    print(f"{'slot':44}{'us':>9}{'bound us':>10}{'ratio':>8}{'batch us':>10}")
    for name, (_, judged) in SHAPES.items():
        us, batch, size = bench.time(name)
        bound = 5 + size / (0.95 * rate) * 1e6
        bad = judged and us > bound
        failed += bad
        rows.append({"slot": name, "bytes": size, "us": us, "bound_us": bound, "ratio": us / bound, "batch_us": batch, "judged": judged})
        note = "  OVER" if bad else "" if judged else "  (not judged)"
        print(f"{name:44}{us:9.2f}{bound:10.2f}{us / bound:8.2f}{batch:10.2f}{note}", flush=True)
    tuned = variants(bench, rate) if args.variants else None
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"device": device.name, "copy_bytes_per_second": rate, "jit_ms": jit_ms, "kernel": attributes,
                       "chunk_bytes": chunk_bytes(), "rows": rows, "variants": tuned}, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
