# SPDX-License-Identifier: Apache-2.0
"""Device memory of the CPU driver, and objects that look like frameworks' tensors. What would read a value on the host fails."""
import ctypes
import types

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1, "int16": 2,
         "int32": 4, "uint32": 4, "int64": 8, "bool": 1}
TYPESTRS = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "int8": "|i1", "int32": "<i4", "int64": "<i8", "bfloat16": "<V2",
            "int16": "<i2"}


class Device:
    """One CUDA context, and memory in it."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))

    @staticmethod
    def check(result):
        """Of a driver call."""
        assert result == 0, result

    def alloc(self, size):
        """Device address of zeroes."""
        address = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        self.check(self.cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(0), ctypes.c_size_t(size)))
        return address.value

    def write(self, address, data):
        """Bytes to device memory."""
        self.check(self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, ctypes.c_size_t(len(data))))

    def stream(self):
        """The handle of a new stream."""
        made = ctypes.c_void_p()
        self.check(self.cuda.cuStreamCreate(ctypes.byref(made), 1))
        return made.value

    def finish(self):
        """Waits for the device."""
        self.check(self.cuda.cuCtxSynchronize())


def contiguous(shape):
    """Strides in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


class Torch:
    """Looks like a torch.Tensor; strides in elements."""

    def __init__(self, address, shape, dtype="float32", device="cuda", strides=None):
        self.address, self.shape, self.dtype = address, tuple(shape), f"torch.{dtype}"
        self.device = types.SimpleNamespace(type=device, index=0 if device == "cuda" else None)
        self.strides, self.itemsize, self.recorded = tuple(strides or contiguous(shape)), SIZES[dtype], []

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides

    def element_size(self):
        return self.itemsize

    def numel(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def record_stream(self, stream):
        self.recorded.append(stream)

    def __index__(self):
        assert self.device.type == "cpu", "a device tensor was read on the host"
        return ctypes.c_int64.from_address(self.address).value

    item = __int__ = __bool__ = __len__ = __index__


class Interface:
    """Looks like an array with __cuda_array_interface__ (or the host's); strides in bytes."""

    def __init__(self, address, shape, dtype="float32", strides=None, host=False):
        said = {"data": (address, False), "shape": tuple(shape), "typestr": TYPESTRS[dtype], "strides": strides, "version": 3}
        setattr(self, "__array_interface__" if host else "__cuda_array_interface__", said)
        self.dtype = types.SimpleNamespace(name=dtype)

    def __index__(self):
        raise AssertionError("a device array was read on the host")

    item = __int__ = __bool__ = __len__ = __index__
