#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed PTX on a GPU against the host twin: every field of every plane, bit for bit, and the protocol of a launch.

Each plane lies alone in an allocation that ends with it, so that `compute-sanitizer python3 tests/gpu/fingerprint_check.py --quick`
sees a read past it.
"""
import argparse
import ctypes as c
import json
import sys
import time

import numpy as np

from fingerprint_device import (DTYPES, ELEM_BYTES, OK, OUT_OF_RANGE, PADDING, REGION_VALUES, Device, Plane, Print, Region, Slots,
                                constant, host_twin)

SIZES = [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 33, 100, 255, 1000, 4079, 4080, 4081, 4096, 4097, 4104, 8192, 12288, 24576, 36864, 65521,
         65535, 65536, 65537, 65552, 65560, 70000, 131072, 196608 + 36, 500001]
FILLS = ["ordinary", "special", "bits", "zero", "tiny", "huge", "sparse"]
SPECIALS = {
    "F64": [0, 1 << 63, 1, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8000000000001, 0x7FEFFFFFFFFFFFFF, 0x000FFFFFFFFFFFFF],
    "F32": [0, 0x80000000, 1, 0x7F800000, 0xFF800000, 0xFFC00001, 0x7F800001, 0x7F7FFFFF, 0x007FFFFF],
    "F16": [0, 0x8000, 1, 0x7C00, 0xFC00, 0x7C01, 0xFE00, 0xFBFF, 0x03FF],
    "BF16": [0, 0x8000, 1, 0x7F80, 0xFF80, 0x7F81, 0xFFC0, 0xFF7F, 0x007F],
    "F8E4M3": [0, 0x80, 1, 0x7F, 0xFF, 0x7E, 0xFE, 7],
    "F8E5M2": [0, 0x80, 1, 0x7C, 0xFC, 0x7D, 0xFF, 0xFB, 3],
    "I8": [0, 0x80, 1, 0x7F, 0xFF, 0x81],
    "I32": [0, 0x80000000, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x01000001],
}
WORDS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}


def elements(rng: np.random.Generator, dtype: str, n: int, fill: str) -> np.ndarray:
    """n elements of a dtype, as unsigned integers of its size."""
    word = WORDS[ELEM_BYTES[DTYPES.index(dtype)]]
    if fill == "zero":
        return np.zeros(n, word)
    if fill == "bits" or dtype in ("I8", "I32", "RAW"):
        data = np.frombuffer(rng.bytes(n * word(0).itemsize), word).copy()
    elif dtype.startswith("F8"):
        data = np.frombuffer(rng.bytes(n), np.uint8).copy()
        data[(data & 0x7C) == 0x7C] = 0x34
    else:
        scale = {"tiny": 1e-27, "huge": 1e27}.get(fill, 1.0) if dtype != "F16" else 1.0
        values = rng.standard_normal(n) * (scale**7 if dtype == "F64" else scale)
        if dtype == "F64":
            data = values.view(np.uint64).copy()
        elif dtype == "F16":
            data = values.astype(np.float16).view(np.uint16).copy()
        else:
            data = values.astype(np.float32).view(np.uint32).copy()
            data = (data >> 16).astype(np.uint16) if dtype == "BF16" else data
    if fill == "sparse":  # one lane of 256 has it all: no rounding of its sum is lost in those of others
        data[np.arange(n) * word(0).itemsize // 16 % 256 != 3] = 0
    if fill == "special" and dtype in SPECIALS and n:
        at = rng.integers(0, n, max(1, n // 500))
        data[at] = np.array(SPECIALS[dtype], dtype=word)[rng.integers(0, len(SPECIALS[dtype]), len(at))]
    return data


def plane_bytes(rng: np.random.Generator, dtype: str, size: int, fill: str) -> bytes:
    elem = ELEM_BYTES[DTYPES.index(dtype)]
    return (elements(rng, dtype, size // elem, fill).tobytes() + rng.bytes(size % elem))[:size]


class World:
    """Planes with a copy of their bytes here."""

    def __init__(self, device: Device, twin: c.CDLL, specs: list[tuple], n_slots: int = 2, first_slot: int = 0, regions: list[Region] = (),
                 seed: int = 1):
        rng = np.random.default_rng(seed)
        self.device, self.twin, self.specs, self.first_slot = device, twin, specs, first_slot
        self.data, self.memory, planes = [], [], []
        for dtype, size, shift, gap, fill in specs:
            whole = rng.bytes(gap).join(plane_bytes(rng, dtype, size, fill) for _ in range(n_slots))
            base = device.alloc(shift + len(whole))
            if whole:
                device.put(base + shift, whole)
            self.data.append(whole)
            self.memory.append(base)
            planes.append(Plane(base=base + shift, stride=size + gap, bytes=size, elems=size // ELEM_BYTES[DTYPES.index(dtype)],
                                dtype=DTYPES.index(dtype)))
        self.slots = Slots(device, twin, planes, first_slot, n_slots, regions)

    def free(self) -> None:
        self.slots.free()
        for pointer in self.memory:
            self.device.free(pointer)

    def run(self, slot: int) -> None:
        self.slots.arm()
        self.slots.launch.slot = slot
        self.device.run(self.slots.launch)
        self.device.sync()

    def end_faults(self, slot: int, status: int) -> list[str]:
        if not self.slots.over():
            return ["the launch is not over"]
        found = self.slots.status()
        return [] if found == (status, slot) else [f"status and slot {found}, not {(status, slot)}"]

    def faults(self, slot: int) -> list[str]:
        """What the entry has wrong."""
        faults, prints = self.end_faults(slot, OK), self.slots.prints()
        for number, (dtype, size, shift, gap, fill) in enumerate(self.specs):
            want, at = Print(), (slot - self.first_slot) * (size + gap)
            piece = self.data[number][at:at + size]
            self.twin.fp_host_plane_of(piece, size, size // ELEM_BYTES[DTYPES.index(dtype)], DTYPES.index(dtype), self.slots.chunk,
                                       c.byref(want))
            got = prints[number]
            where = f"{dtype} {size} bytes shift {shift} {fill}"
            for field in ("absmax", "l2", "nan", "inf", "hash"):
                if getattr(got, field) != getattr(want, field):
                    faults.append(f"{where}: {field} {getattr(got, field):#x}, not {getattr(want, field):#x}")
            if list(got.sample) != list(want.sample):
                faults.append(f"{where}: samples {list(got.sample)}, not {list(want.sample)}")
        return faults

    def nothing_faults(self, slot: int, status: int) -> list[str]:
        faults = self.end_faults(slot, status)
        if not self.slots.untouched_regions():
            faults.append("region values for a slot that was not read")
        if any(p.nan or p.inf or p.absmax or p.l2 or any(p.sample) for p in self.slots.prints()):
            faults.append("values of a slot that was not read")
        return faults


def check_values(device: Device, twin: c.CDLL, quick: bool) -> tuple[int, list[str]]:
    """dtype x size x alignment x kind of data, many planes to a launch."""
    sizes = SIZES[::5] if quick else SIZES
    specs = []
    for number, dtype in enumerate(DTYPES):
        for k, size in enumerate(sizes):
            for m, fill in enumerate(FILLS):
                aligned = (k + m + number) % 3 == 0
                gap = -size % 16 if aligned else (k * 3 + m) % 24
                specs.append((dtype, size, 0 if aligned else (k * 5 + m * 7 + number) % 17, gap, fill))
    planes, faults = 0, []
    for at in range(0, len(specs), 97):
        world = World(device, twin, specs[at:at + 97], seed=at)
        for slot in (1, 0):
            world.run(slot)
            faults += world.faults(slot)
            planes += len(world.specs)
        world.free()
    return planes, faults


def check_alignments(device: Device, twin: c.CDLL) -> list[str]:
    specs = [(dtype, 4096 * 3 + shift * 5, shift, 0, "special") for dtype in DTYPES for shift in range(16)]
    specs += [(dtype, 65536, 0, 0, "sparse") for dtype in DTYPES for _ in range(8)]
    world = World(device, twin, specs, n_slots=3, seed=7)
    faults = []
    for slot in range(3):
        world.run(slot)
        faults += world.faults(slot)
    world.free()
    return faults


def check_large(device: Device, twin: c.CDLL) -> list[str]:
    """More chunks than lanes in a plane, many blocks at once, often: what a race would spoil; each dtype in chunks of several rounds."""
    specs = [("F32", (64 << 20) + 20, 0, 12, "ordinary"), ("BF16", 20 << 20, 0, 0, "special"), ("F32", 0, 0, 16, "zero"),
             ("RAW", 4096, 0, 0, "bits")]
    specs += [("F32", 200000, 0, 0, "special")] * 40
    world = World(device, twin, specs, n_slots=1, seed=3)
    world.run(0)
    faults = world.faults(0)
    first = [bytes(p) for p in world.slots.prints()]
    for _ in range(200):
        world.run(0)
        if world.end_faults(0, OK) or [bytes(p) for p in world.slots.prints()] != first:
            faults.append("two launches over the same bytes differ")
            break
    world.free()
    specs = [(dtype, (4 << 20) + 4 * number, 0, 16 - 4 * number % 16, fill) for number, dtype in enumerate(DTYPES) for fill in ("ordinary", "special")]
    world = World(device, twin, specs, n_slots=1, seed=5)
    if world.slots.chunk < 4 * constant("FP_CHUNK_UNIT"):
        faults.append(f"chunks of {world.slots.chunk} bytes have no rounds in a row")
    world.run(0)
    faults += world.faults(0)
    world.free()
    return faults


def check_protocol(device: Device, twin: c.CDLL) -> list[str]:
    values = np.arange(-1, -1 - 100, -1, dtype=np.int64)
    regions = [Region(base=device.upload(values.astype(kind).tobytes()), n_values=n, value_bytes=kind(0).itemsize)
               for kind, n in ((np.int64, 100), (np.int32, 5), (np.int8, 64))]
    specs = [("F32", 5000, 0, 8, "ordinary"), ("BF16", 0, 0, 16, "zero"), ("F32", 150000, 0, 0, "ordinary")]
    world = World(device, twin, specs, n_slots=4, first_slot=10, regions=regions)
    launch, faults = world.slots.launch, []
    pointer = device.alloc(8)
    launch.slot_ptr = pointer
    for size in (4, 8):
        launch.slot_ptr_bytes = size
        for slot in (12, 10, 13, -1, 9, 14, 12):
            device.put(pointer, slot.to_bytes(8, "little", signed=True))
            world.run(99)
            if 10 <= slot <= 13:
                faults += world.faults(slot)
                for r, region in enumerate(regions):
                    n = min(region.n_values, REGION_VALUES)
                    if list(world.slots.entry.region[r].value[:n]) != list(values[:n]):
                        faults.append(f"region {r} of slot {slot}")
            else:
                faults += world.nothing_faults(slot, PADDING if slot < 0 else OUT_OF_RANGE)
    launch.slot_ptr = 0
    for slot in (1 << 62, -(1 << 62), 11):
        world.run(slot)
        faults += world.faults(slot) if slot == 11 else world.nothing_faults(slot, PADDING if slot < 0 else OUT_OF_RANGE)
    world.free()
    for specs in ([("F32", 0, 0, 16, "zero")], [("F32", 4096, 0, 0, "ordinary")]):
        world = World(device, twin, specs)
        for slot in (0, 1, 1):
            world.run(slot)
            faults += world.faults(slot)
        world.free()
    here, there = device.mapped(8)
    c.memset(here, 0, 8)
    device.run_ready(there, 77)
    device.sync()
    if list((c.c_uint32 * 2).from_address(here)) != [77, 0]:
        faults.append("slotprobe_ready")
    return faults


def plant(device: Device, twin: c.CDLL, how: str) -> int:
    """One launch that reads what it may not, for compute-sanitizer to see: past an allocation, in the bytes up to where the next may begin, or
    what nobody has written. Nothing is compared."""
    pointer = device.alloc(4000)
    if how == "past":
        device.put(pointer, bytes(4000))
    size = 4064 if how == "past" else 4000
    slots = Slots(device, twin, [Plane(base=pointer, stride=0, bytes=size, elems=size, dtype=DTYPES.index("RAW"))], 0, 1)
    slots.arm()
    device.run(slots.launch)
    device.sync()
    return 0 if slots.over() else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the result there")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, no large planes: for compute-sanitizer")
    parser.add_argument("--plant", choices=("past", "unwritten"), help="read what may not be read instead, and no more")
    args = parser.parse_args()
    begun = time.monotonic()
    device, twin = Device(), host_twin()
    if args.plant:
        return plant(device, twin, args.plant)
    planes, values = check_values(device, twin, args.quick)
    faults = {"values": values, "alignments": check_alignments(device, twin), "protocol": check_protocol(device, twin)}
    if not args.quick:
        faults["large"] = check_large(device, twin)
    for name, found in faults.items():
        print(f"{'FAIL' if found else 'ok  '}  {name}" + "".join(f"\n      {fault}" for fault in found[:12]))
    print(f"{planes} planes, {device.name}, JIT {device.jit_ms:.0f} ms, {device.attributes}")
    if device.attributes["local_bytes"]:
        faults["resources"] = ["the kernel uses local memory"]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"device": device.name, "planes": planes, "jit_ms": device.jit_ms, "kernel": device.attributes,
                       "faults": {k: v[:50] for k, v in faults.items()}, "seconds": time.monotonic() - begun}, out, indent=1)
    return 1 if any(faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
