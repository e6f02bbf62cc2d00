# SPDX-License-Identifier: Apache-2.0
"""What a framework's tensor is: an address, a shape, strides, a dtype, a device. No framework is imported, no value is read."""
import ctypes
import operator
import os

from . import _abi

DTYPES = {"float64": _abi.F64, "float32": _abi.F32, "float16": _abi.F16, "bfloat16": _abi.BF16, "float8_e4m3fn": _abi.F8E4M3,
          "float8_e5m2": _abi.F8E5M2, "int8": _abi.I8, "int32": _abi.I32}
# A type string begins with the byte order: "|" none, "<" little.
TYPESTRS = {"<f8": "float64", "<f4": "float32", "<f2": "float16", "|i1": "int8", "<i4": "int32", "<i8": "int64"}
DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class Tensor:
    """Where a tensor lies.

    address: of the element with all indices 0; shape: elements; strides: bytes; itemsize: bytes an element; dtype: its name without
    the framework's; device: CUDA ordinal, -1 host memory.
    """
    __slots__ = ("address", "shape", "strides", "itemsize", "dtype", "device")

    def __init__(self, address, shape, strides, itemsize, dtype, device):
        self.address, self.shape, self.strides = int(address), tuple(map(int, shape)), tuple(map(int, strides))
        self.itemsize, self.dtype, self.device = int(itemsize), dtype, device

    @property
    def code(self):
        """enum slotprobe_dtype."""
        return DTYPES.get(self.dtype, _abi.RAW)

    @property
    def count(self):
        """Elements in all."""
        count = 1
        for n in self.shape:
            count *= n
        return count


def dtype_name(dtype):
    """"torch.bfloat16", numpy.dtype("float32"), numpy.float32: the last part of the name."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).rsplit(".", 1)[-1]


def is_host(device):
    """Of a torch.device or its text."""
    return str(getattr(device, "type", device)).split(":")[0] == "cpu"


def host_int(value, name):
    """An int of whatever holds one on the host. A tensor on a device is refused: reading it would wait for the device."""
    device = getattr(value, "device", None)
    on_device = hasattr(value, "__cuda_array_interface__") if device is None else not is_host(device)
    if on_device or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: an int on the host is expected, not {type(value).__name__}{' on a device' if on_device else ''}")
    return operator.index(value)


def tensor(what, name):
    """A Tensor of any object with data_ptr(), __cuda_array_interface__ or __array_interface__ (host memory).

    TypeError: it is none of these. ValueError: it lies where slotprobe cannot read.
    """
    try:
        if callable(getattr(what, "data_ptr", None)):
            return _of_torch(what, name)
        found = getattr(what, "__cuda_array_interface__", None)
        if found is not None:
            return _of_interface(what, found, name, _device_at(what, found["data"][0]))
        found = getattr(what, "__array_interface__", None)
        if found is not None:
            return _of_interface(what, found, name, -1)
    except (TypeError, ValueError):
        raise
    except Exception as e:  # whatever a tensor without memory says: fake, functional, meta
        raise TypeError(f"{name}: its memory cannot be found: {e}") from e
    raise TypeError(f"{name}: a tensor is expected (data_ptr, __cuda_array_interface__ or __array_interface__), not {type(what).__name__}")


def _of_torch(what, name):
    device, itemsize = what.device, what.element_size()
    kind = str(getattr(device, "type", device)).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"{name}: device {device}: slotprobe reads CUDA and host memory")
    index = -1
    if kind == "cuda":
        index = getattr(device, "index", None)
        if index is None:
            index = _device_at(what, what.data_ptr())
    return Tensor(what.data_ptr(), what.shape, (s * itemsize for s in what.stride()), itemsize, dtype_name(what.dtype), index)


def _of_interface(what, found, name, device):
    typestr, shape, strides = found["typestr"], found["shape"], found.get("strides")
    itemsize = int(typestr[2:]) // (8 if typestr[1] == "t" else 1)
    if found.get("mask") is not None:
        raise ValueError(f"{name}: masked arrays have no one state")
    if strides is None:
        strides, step = [], itemsize
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
    dtype = TYPESTRS.get(typestr)
    if dtype is None and typestr[1] == "V" or typestr[0] == "|" and dtype is None:  # bfloat16 and float8 have no type string of their own
        dtype = dtype_name(getattr(what, "dtype", typestr))
    return Tensor(found["data"][0] or 0, shape, strides, itemsize, dtype or typestr, device)


def _device_at(what, address):
    """The driver knows best; it is there, since its memory is. Then what the object says."""
    ordinal = ctypes.c_int(-1)
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        if address and not driver.cuPointerGetAttribute(ctypes.byref(ordinal), DEVICE_ORDINAL, ctypes.c_uint64(address)):
            return ordinal.value
    except (OSError, AttributeError):
        pass
    device = getattr(what, "device", None)
    for attribute in ("id", "index"):
        if isinstance(getattr(device, attribute, None), int):
            return getattr(device, attribute)
    return 0


def dense_span(shape, strides, itemsize):
    """(offset of the lowest byte, bytes) where these axes cover memory without a gap, in whatever order; else None."""
    low, dense = 0, itemsize
    axes = sorted((abs(stride), n, stride) for n, stride in zip(shape, strides) if n != 1)
    if any(n == 0 for n in shape):
        return 0, 0
    for step, n, stride in axes:
        if step != dense:
            return None
        if stride < 0:
            low += stride * (n - 1)
        dense *= n
    return low, dense


def whole(what, name):
    """(lowest address, bytes, Tensor) of a tensor without gaps. ValueError: it has some."""
    t = tensor(what, name)
    span = dense_span(t.shape, t.strides, t.itemsize)
    if span is None:
        raise ValueError(f"{name}: shape {t.shape} with strides {t.strides} bytes leaves gaps; give a contiguous tensor")
    return t.address + span[0], span[1], t
