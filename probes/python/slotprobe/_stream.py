# SPDX-License-Identifier: Apache-2.0
"""Which stream a claim is made on. Frameworks are used where they are loaded, never loaded."""
import sys

from ._tensor import host_int


def handle(stream):
    """The CUstream of a torch.cuda.Stream, a cupy.cuda.Stream, an object with __cuda_stream__ or .handle, or an integer. TypeError otherwise."""
    for attribute in ("cuda_stream", "ptr"):
        found = getattr(stream, attribute, None)
        if found is not None:
            return int(found)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    found = getattr(stream, "handle", None)
    if found is not None:
        return int(getattr(found, "value", found) or 0)
    if hasattr(stream, "__index__"):
        return host_int(stream, "stream")
    raise TypeError(f"stream: a stream of a framework, a handle or None is expected, not {type(stream).__name__}")


def _torch(device):
    """None: PyTorch is not there or has not initialised CUDA, which this does not do either."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return None
    if device is None:
        device = cuda.current_device()
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None) if hasattr(torch, "_C") else None
    return raw(device) if raw else cuda.current_stream(device).cuda_stream


def _cupy(device):
    cuda = getattr(sys.modules.get("cupy"), "cuda", None)
    if cuda is None:
        return None
    if device is not None and cuda.Device().id != device:
        with cuda.Device(device):
            return cuda.get_current_stream().ptr
    return cuda.get_current_stream().ptr


def current(device, framework):
    """The stream that is current on `device` (None: the current device) in `framework`, else in PyTorch, else in CuPy, else 0, the legacy
    stream, as for the host's memory (-1). What a framework raises goes through."""
    if device == -1:
        return 0
    for ask in (_cupy, _torch) if framework == "cupy" else (_torch, _cupy):
        found = ask(device)
        if found is not None:
            return found
    return 0
