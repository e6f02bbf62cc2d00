# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver by ctypes, and the structures of fingerprint.h, for the two scripts that run the fingerprint kernel alone."""
import ctypes as c
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNEL = ROOT / "probes/core/kernel"
DTYPES = ["F64", "F32", "F16", "BF16", "F8E4M3", "F8E5M2", "I8", "I32", "RAW"]
ELEM_BYTES = [8, 4, 2, 2, 1, 1, 1, 4, 1]
MAX_REGIONS, REGION_VALUES, SAMPLES, THREADS = 8, 64, 4, 256
OK, PADDING, OUT_OF_RANGE = 0, 1, 2


class Plane(c.Structure):
    """One plane of a pool: what the scripts say of it. The kernel sees its chunks."""
    _fields_ = [("base", c.c_uint64), ("stride", c.c_int64), ("bytes", c.c_uint64), ("elems", c.c_uint64), ("dtype", c.c_uint32)]


class Chunk(c.Structure):
    _fields_ = [("address", c.c_uint64), ("stride", c.c_int64), ("start", c.c_uint64), ("elems", c.c_uint64), ("bytes", c.c_uint32),
                ("dtype", c.c_uint32), ("record", c.c_uint32), ("reserved", c.c_uint32)]


class Region(c.Structure):
    _fields_ = [("base", c.c_uint64), ("n_values", c.c_uint32), ("value_bytes", c.c_uint32)]


class Print(c.Structure):
    """The floats as their bits: they are compared as such."""
    _fields_ = [("absmax", c.c_uint64), ("l2", c.c_uint64), ("nan", c.c_uint64), ("inf", c.c_uint64), ("hash", c.c_uint64),
                ("sample", c.c_uint64 * SAMPLES)]


class Record(c.Structure):
    _fields_ = [("word", c.c_uint64 * 7), ("check", c.c_uint64)]


class RegionValues(c.Structure):
    _fields_ = [("value", c.c_int64 * REGION_VALUES), ("check", c.c_uint64)]


class Entry(c.Structure):
    _fields_ = [("region", RegionValues * MAX_REGIONS)]


class Launch(c.Structure):
    _fields_ = [("chunks", c.c_uint64), ("entry", c.c_uint64), ("regions", c.c_uint64), ("slot_ptr", c.c_uint64), ("slot", c.c_int64),
                ("first_slot", c.c_int64), ("n_slots", c.c_int64), ("slot_ptr_bytes", c.c_uint32), ("n_chunks", c.c_uint32),
                ("n_regions", c.c_uint32), ("sequence", c.c_uint32)]


assert (c.sizeof(Chunk), c.sizeof(Print), c.sizeof(Launch), c.sizeof(Record)) == (48, 72, 72, 64)


def constant(name: str) -> int:
    """An unsigned constant of fingerprint.h."""
    for line in (KERNEL / "fingerprint.h").read_text().splitlines():
        if line.startswith(f"#define {name} "):
            return int(line.split()[2].rstrip("u"))
    raise ValueError(f"fingerprint.h has no {name}")


def host_twin() -> c.CDLL:
    """fingerprint_host.c as a library."""
    folder = tempfile.mkdtemp(prefix="fingerprint")
    library = f"{folder}/host.so"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{ROOT}", "-o", library, KERNEL / "fingerprint_host.c",
                    KERNEL / "fingerprint_read.c", KERNEL / "fingerprint_chunks.c"], check=True)
    twin = c.CDLL(library)
    twin.fp_host_plane_of.argtypes = [c.c_void_p, c.c_uint64, c.c_uint64, c.c_uint32, c.c_uint32, c.c_void_p]
    twin.fp_records_in.argtypes = [c.c_void_p, c.c_uint32, c.c_uint32, c.c_uint32]
    twin.fp_regions_in.argtypes = [c.c_void_p, c.c_uint32, c.c_void_p, c.c_uint32]
    twin.fp_read_status.argtypes = [c.c_void_p, c.c_uint32, c.c_void_p]
    twin.fp_read_plane.argtypes = [c.c_void_p, c.c_uint32, c.c_uint32, c.c_uint64, c.c_void_p]
    twin.fp_chunk_bytes.argtypes = [c.POINTER(c.c_uint64), c.c_size_t, c.c_uint32]
    twin.fp_chunk_bytes.restype = c.c_uint32
    twin.fp_host_plane_of.restype = twin.fp_read_plane.restype = None
    return twin


class CudaError(RuntimeError):
    pass


class Device:
    """The first GPU, its primary context, and one kernel image."""

    def __init__(self, image: bytes | None = None):
        self.cuda = c.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = c.c_int()
        self.call("cuDeviceGet", c.byref(device), 0)
        context = c.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", c.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = c.create_string_buffer(96)
        self.call("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode()
        self.stream = c.c_void_p()
        self.call("cuStreamCreate", c.byref(self.stream), 1)
        self.load(image or (KERNEL / "fingerprint.ptx").read_bytes())

    def call(self, name: str, *args) -> None:
        result = getattr(self.cuda, name)(*args)
        if result:
            raise CudaError(f"{name}: {result}")

    def load(self, image: bytes) -> None:
        """Compiles the PTX; jit_ms says how long that took (the driver may have it cached)."""
        module, begun = c.c_void_p(), time.monotonic()
        self.call("cuModuleLoadData", c.byref(module), c.c_char_p(image + b"\0"))
        self.jit_ms = (time.monotonic() - begun) * 1e3
        self.fingerprint, self.ready = c.c_void_p(), c.c_void_p()
        self.call("cuModuleGetFunction", c.byref(self.fingerprint), module, b"slotprobe_fingerprint")
        self.call("cuModuleGetFunction", c.byref(self.ready), module, b"slotprobe_ready")
        self.attributes = {}
        for key, number in {"registers": 4, "local_bytes": 3, "shared_bytes": 1, "binary": 6}.items():
            value = c.c_int()
            self.call("cuFuncGetAttribute", c.byref(value), number, self.fingerprint)
            self.attributes[key] = value.value

    def alloc(self, size: int) -> int:
        pointer = c.c_uint64()
        self.call("cuMemAlloc_v2", c.byref(pointer), c.c_size_t(max(size, 1)))
        return pointer.value

    def free(self, pointer: int) -> None:
        self.call("cuMemFree_v2", c.c_uint64(pointer))

    def upload(self, data: bytes) -> int:
        pointer = self.alloc(len(data))
        if data:
            self.put(pointer, data)
        return pointer

    def put(self, pointer: int, data: bytes) -> None:
        self.call("cuMemcpyHtoD_v2", c.c_uint64(pointer), c.c_char_p(data), c.c_size_t(len(data)))

    def get(self, pointer: int, size: int) -> bytes:
        data = c.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, c.c_uint64(pointer), c.c_size_t(size))
        return data.raw

    def zeros(self, size: int) -> int:
        pointer = self.alloc(size)
        self.call("cuMemsetD8_v2", c.c_uint64(pointer), c.c_ubyte(0), c.c_size_t(size))
        return pointer

    def mapped(self, size: int) -> tuple[int, int]:
        """Host memory that the device sees: (address here, address there)."""
        here, there = c.c_void_p(), c.c_uint64()
        self.call("cuMemHostAlloc", c.byref(here), c.c_size_t(size), 3)
        self.call("cuMemHostGetDevicePointer_v2", c.byref(there), here, 0)
        return here.value, there.value

    def run(self, launch: Launch) -> None:
        """Enqueues the kernel. The argument is copied at once."""
        params = (c.c_void_p * 1)(c.cast(c.byref(launch), c.c_void_p))
        self.call("cuLaunchKernel", self.fingerprint, launch.n_chunks, 1, 1, THREADS, 1, 1, 0, self.stream, params, None)

    def run_ready(self, word: int, value: int) -> None:
        first, second = c.c_uint64(word), c.c_uint32(value)
        params = (c.c_void_p * 2)(c.cast(c.byref(first), c.c_void_p), c.cast(c.byref(second), c.c_void_p))
        self.call("cuLaunchKernel", self.ready, 1, 1, 1, 1, 1, 1, 0, self.stream, params, None)

    def sync(self) -> None:
        self.call("cuCtxSynchronize")

    def event(self) -> c.c_void_p:
        event = c.c_void_p()
        self.call("cuEventCreate", c.byref(event), 0)
        return event

    def record(self, event: c.c_void_p) -> None:
        self.call("cuEventRecord", event, self.stream)

    def elapsed_us(self, begin: c.c_void_p, end: c.c_void_p) -> float:
        ms = c.c_float()
        self.call("cuEventElapsedTime", c.byref(ms), begin, end)
        return ms.value * 1e3


class Slots:
    """Planes of a pool on the device, with everything that a launch needs."""

    def __init__(self, device: Device, twin: c.CDLL, planes: list[Plane], first_slot: int, n_slots: int, regions: list[Region] = (),
                 chunk: int = 0):
        self.device, self.twin, self.planes = device, twin, planes
        self.chunk = chunk or twin.fp_chunk_bytes((c.c_uint64 * len(planes))(*(plane.bytes for plane in planes)), 8, len(planes))
        chunks, self.first, self.n_records = [], [], 0
        for plane in planes:
            n = max(-(-plane.bytes // self.chunk), 1)
            self.first.append((self.n_records, n))
            for k in range(n):
                start = k * self.chunk
                chunks.append(Chunk(address=plane.base + start, stride=plane.stride, start=start, elems=plane.elems,
                                    bytes=min(plane.bytes - start, self.chunk), dtype=plane.dtype, record=self.n_records + 1 + k))
            self.n_records += 1 + n
        self.entry_bytes = c.sizeof(Entry) + self.n_records * c.sizeof(Record)
        self.here, there = device.mapped(self.entry_bytes)
        self.regions = (Region * max(len(regions), 1))(*regions)
        self.launch = Launch(chunks=device.upload(bytes((Chunk * len(chunks))(*chunks))), entry=there,
                             regions=device.upload(bytes((Region * len(regions))(*regions))), first_slot=first_slot, n_slots=n_slots,
                             n_chunks=len(chunks), n_regions=len(regions))

    def arm(self) -> None:
        c.memset(self.here, 0xA5, self.entry_bytes)
        self.launch.sequence += 1

    def over(self) -> bool:
        """All that the launch has to say is in."""
        return (self.twin.fp_records_in(self.here, self.launch.sequence, 0, self.n_records) == self.n_records
                and bool(self.twin.fp_regions_in(self.here, self.launch.sequence, self.regions, self.launch.n_regions)))

    def status(self) -> tuple[int, int]:
        """(status, slot)."""
        slot = c.c_int64()
        return self.twin.fp_read_status(self.here, self.n_records, c.byref(slot)), slot.value

    @property
    def entry(self) -> Entry:
        return Entry.from_address(self.here)

    def untouched_regions(self) -> bool:
        return bytes(self.entry) == b"\xA5" * c.sizeof(Entry)

    def prints(self) -> list[Print]:
        found = []
        for plane, (first, n) in zip(self.planes, self.first):
            found.append(Print())
            self.twin.fp_read_plane(self.here, first, n, plane.bytes, c.byref(found[-1]))
        return found

    def free(self) -> None:
        for pointer in (self.launch.chunks, self.launch.regions):
            self.device.free(pointer)
        self.device.call("cuMemFreeHost", c.c_void_p(self.here))
