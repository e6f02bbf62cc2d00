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
    _fields_ = [("base", c.c_uint64), ("stride", c.c_int64), ("bytes", c.c_uint64), ("elems", c.c_uint64), ("dtype", c.c_uint32),
                ("first_chunk", c.c_uint32), ("n_chunks", c.c_uint32), ("reserved", c.c_uint32)]


class Region(c.Structure):
    _fields_ = [("base", c.c_uint64), ("n_values", c.c_uint32), ("value_bytes", c.c_uint32)]


class Print(c.Structure):
    """The floats as their bits: they are compared as such."""
    _fields_ = [("absmax", c.c_uint64), ("l2", c.c_uint64), ("nan", c.c_uint64), ("inf", c.c_uint64), ("hash", c.c_uint64),
                ("sample", c.c_uint64 * SAMPLES)]


class Entry(c.Structure):
    _fields_ = [("done", c.c_uint32), ("status", c.c_uint32), ("slot", c.c_int64),
                ("region_value", (c.c_int64 * REGION_VALUES) * MAX_REGIONS), ("region_values", c.c_uint32 * MAX_REGIONS)]


class Launch(c.Structure):
    _fields_ = [("planes", c.c_uint64), ("chunks", c.c_uint64), ("scratch", c.c_uint64), ("entry", c.c_uint64), ("regions", c.c_uint64),
                ("slot_ptr", c.c_uint64), ("slot", c.c_int64), ("first_slot", c.c_int64), ("n_slots", c.c_int64),
                ("slot_ptr_bytes", c.c_uint32), ("n_planes", c.c_uint32), ("n_chunks", c.c_uint32), ("n_regions", c.c_uint32),
                ("sequence", c.c_uint32), ("reserved", c.c_uint32)]


assert (c.sizeof(Plane), c.sizeof(Print), c.sizeof(Launch)) == (48, 72, 96)


def scratch_bytes(n_planes: int, n_chunks: int) -> int:
    return 64 + n_planes * 64 + (n_chunks * 8 + 63) // 64 * 64


def chunk_bytes() -> int:
    """FP_CHUNK_BYTES, as the header has it."""
    for line in (KERNEL / "fingerprint.h").read_text().splitlines():
        if line.startswith("#define FP_CHUNK_BYTES"):
            return int(line.split()[2].rstrip("u"))
    raise ValueError("fingerprint.h has no FP_CHUNK_BYTES")


def host_twin() -> c.CDLL:
    """fingerprint_host.c as a library."""
    folder = tempfile.mkdtemp(prefix="fingerprint")
    library = f"{folder}/host.so"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{ROOT}", "-o", library, KERNEL / "fingerprint_host.c"], check=True)
    twin = c.CDLL(library)
    twin.fp_host_plane.argtypes = [c.c_void_p, c.c_uint64, c.c_uint64, c.c_uint32, c.c_void_p]
    twin.fp_host_plane.restype = None
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
        self.call("cuLaunchKernel", self.fingerprint, max(launch.n_chunks, 1), 1, 1, THREADS, 1, 1, 0, self.stream, params, None)

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

    def __init__(self, device: Device, planes: list[Plane], first_slot: int, n_slots: int, regions: list[Region] = (), chunk: int = 0):
        self.device, chunk = device, chunk or chunk_bytes()
        chunks = []
        for number, plane in enumerate(planes):
            plane.first_chunk, plane.n_chunks = len(chunks), (plane.bytes + chunk - 1) // chunk
            chunks += [number] * plane.n_chunks
        self.n_planes, self.entry_bytes = len(planes), c.sizeof(Entry) + len(planes) * c.sizeof(Print)
        self.scratch_bytes = scratch_bytes(len(planes), len(chunks))
        self.here, there = device.mapped(self.entry_bytes)
        self.launch = Launch(planes=device.upload(bytes((Plane * len(planes))(*planes))),
                             chunks=device.upload(bytes((c.c_uint32 * len(chunks))(*chunks))), scratch=device.zeros(self.scratch_bytes),
                             entry=there, regions=device.upload(bytes((Region * len(regions))(*regions))), first_slot=first_slot,
                             n_slots=n_slots, n_planes=len(planes), n_chunks=len(chunks), n_regions=len(regions))

    def arm(self) -> None:
        c.memset(self.here, 0xA5, self.entry_bytes)
        c.cast(self.here, c.POINTER(c.c_uint32))[0] = 0
        self.launch.sequence += 1

    @property
    def entry(self) -> Entry:
        return Entry.from_address(self.here)

    @property
    def prints(self):
        return (Print * self.n_planes).from_address(self.here + c.sizeof(Entry))

    def scratch_is_zero(self) -> bool:
        return not any(self.device.get(self.launch.scratch, self.scratch_bytes))

    def free(self) -> None:
        for pointer in (self.launch.planes, self.launch.chunks, self.launch.scratch, self.launch.regions):
            self.device.free(pointer)
        self.device.call("cuMemFreeHost", c.c_void_p(self.here))
