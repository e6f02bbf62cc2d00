#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long one fingerprint takes on the GPU, against 5 us + bytes / (0.95 x the copy rate of the same run).

Slots are rotated over at least 2 GiB, far more than any L2. Three times are taken of each shape, all enqueued behind a copy, so that
the host is never waited for:

  added   what a fingerprint adds to a stream that has work before and after it: pairs of (memset of 16 MiB, fingerprint) against the
          memsets alone. This is what a server feels, and what is judged.
  events  between two events around one launch: the events themselves and an idle GPU are in it (an empty kernel: about 3.5 us).
  batch   one of 200 launches back to back.

Judged are the shapes that servers have; the others are printed to be known. None may be quicker than memory allows.

--tune builds fingerprint.cu with other constants (nvcc is needed) and times the shapes with each, and with chunks of other sizes.
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

from cold import step, too_quick
from fingerprint_device import DTYPES, ELEM_BYTES, KERNEL, ROOT, Device, Plane, Slots, host_twin

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
VARIANTS = [{}, {"FP_AHEAD": 4}, {"FP_AHEAD": 5}, {"FP_AHEAD": 7}, {"FP_AHEAD": 8, "FP_BLOCKS": 2}, {"FP_BLOCKS": 4}]
CHUNKS = [24, 48, 96, 144, 168, 192, 216, 288, 432]  # KiB


class Bench:
    def __init__(self, device: Device):
        self.device, self.twin = device, host_twin()
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
        return Slots(self.device, self.twin, planes, 0, n_slots, chunk=chunk)

    def spans(self, work, n: int, repeats: int) -> float:
        """Median us of n calls of work, between two events."""
        times = []
        for begin, end in self.events[:repeats]:
            self.busy()
            self.device.record(begin)
            for _ in range(n):
                work()
            self.device.record(end)
            self.device.sync()
            times.append(self.device.elapsed_us(begin, end))
        return statistics.median(times) / n

    def time(self, name: str, chunk: int = 0, thorough: bool = True) -> dict:
        """us by each of the three ways; by `added` alone unless thorough."""
        shape = SHAPES[name][0]
        slots = self.slots(shape, int(name.split(" at +")[1]) if " at +" in name else 0, chunk)
        launch, number, stride = slots.launch, 0, step(slots.launch.n_slots)

        def one() -> None:
            nonlocal number
            number += 1
            launch.slot = number * stride % launch.n_slots
            launch.sequence += 1
            self.device.run(launch)

        def between() -> None:
            self.device.call("cuMemsetD8Async", c.c_uint64(self.spare), c.c_ubyte(1), c.c_size_t(16 * MIB), self.device.stream)

        def both() -> None:
            between()
            one()

        for _ in range(20):
            one()
        found = {"added_us": self.spans(both, 60, 7 if thorough else 3) - self.spans(between, 60, 7 if thorough else 3)}
        if thorough:
            times = []
            for _ in range(3):
                self.busy()
                for begin, end in self.events:
                    self.device.record(begin)
                    one()
                    self.device.record(end)
                self.device.sync()
                times += [self.device.elapsed_us(begin, end) for begin, end in self.events]
            found |= {"events_us": statistics.median(times), "batch_us": self.spans(one, 200, 3)}
        self.device.sync()
        if not slots.over() or slots.status()[0]:
            raise RuntimeError(f"{name}: the launch is not over, or status {slots.status()}")
        found |= {"bytes": sum(n * size for n, size, _ in shape), "chunk_bytes": slots.chunk, "blocks": launch.n_chunks}
        slots.free()
        return found


def tune(bench: Bench) -> dict:
    """added us of each shape for each way to build the kernel, and with chunks of other sizes."""
    table, plain = {}, {name: shape for name, shape in SHAPES.items() if shape[1] or "MiB, 36 planes" in name}

    def row(title: str, chunk: int) -> None:
        table[title] = {name: bench.time(name, chunk, False)["added_us"] for name in plain} | bench.device.attributes
        print(f"{title:30}" + "".join(f"{table[title][name]:8.2f}" for name in plain) +
              f"   {bench.device.attributes['registers']} registers, {bench.device.attributes['local_bytes']} local", flush=True)

    print("columns: " + "; ".join(plain))
    for chunk in CHUNKS:
        row(f"chunks of {chunk} KiB", chunk * KIB)
    for variant in VARIANTS:
        with tempfile.NamedTemporaryFile(suffix=".ptx") as out:
            subprocess.run([os.environ.get("NVCC", "nvcc"), "-ptx", "-arch=compute_75", "-O3", f"-I{ROOT}",
                            *(f"-D{k}={v}" for k, v in variant.items()), KERNEL / "fingerprint.cu", "-o", out.name], check=True)
            bench.device.load(out.read())
        row(" ".join(f"{k}={v}" for k, v in variant.items()) or "as committed", 0)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the result there")
    parser.add_argument("--tune", action="store_true", help="time other builds of the kernel and other chunks too")
    args = parser.parse_args()
    device = Device()
    jit_ms, attributes = device.jit_ms, device.attributes
    bench = Bench(device)
    rate = bench.copy_rate()
    rows, failed = [], 0
    print(f"{device.name}: copy {rate * 1e-12:.2f} TB/s, JIT {jit_ms:.0f} ms, {attributes}")
    print(f"{'slot':44}{'added us':>9}{'bound us':>10}{'ratio':>8}{'events us':>10}{'batch us':>10}")
    for name, (_, judged) in SHAPES.items():
        row = bench.time(name)
        row |= {"slot": name, "judged": judged, "bound_us": 5 + row["bytes"] / (0.95 * rate) * 1e6}
        row["ratio"] = row["added_us"] / row["bound_us"]
        row["too_quick"] = too_quick(row["added_us"], row["bytes"], rate)
        bad = row["too_quick"] or (judged and not row["ratio"] <= 1)
        failed += bad
        rows.append(row)
        note = "  TOO QUICK" if row["too_quick"] else "  OVER" if bad else "" if judged else "  (not judged)"
        print(f"{name:44}{row['added_us']:9.2f}{row['bound_us']:10.2f}{row['ratio']:8.2f}{row['events_us']:10.2f}{row['batch_us']:10.2f}{note}",
              flush=True)
    tuned = tune(bench) if args.tune else None
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"device": device.name, "copy_bytes_per_second": rate, "jit_ms": jit_ms, "kernel": attributes, "rows": rows,
                       "tune": tuned}, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
