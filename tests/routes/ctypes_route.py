# SPDX-License-Identifier: Apache-2.0
"""Graph launches by ctypes on libcuda, as small tools make them. Usage: ctypes_route.py N"""
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
handle, pointer = ctypes.c_void_p, ctypes.c_uint64


class SetParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS"""
    _fields_ = [("dst", pointer), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint), ("element_bytes", ctypes.c_uint),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


def call(name, *args):
    """One driver call that must succeed."""
    result = getattr(cuda, name)(*args)
    if result:
        sys.exit(f"driver error {result} in {name}")


def launch(launches):
    """Launches a graph that often, and says so."""
    context, stream, graph, node, executable, memory = handle(), handle(), handle(), handle(), handle(), pointer()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuStreamCreate", ctypes.byref(stream), 1)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
    call("cuGraphCreate", ctypes.byref(graph), 0)
    params = SetParams(memory.value, 0, 1, 1, 4096, 1)
    call("cuGraphAddMemsetNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(params), context)
    call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    for _ in range(launches):
        call("cuGraphLaunch", executable, stream)
    call("cuStreamSynchronize", stream)
    print(f"launches {launches} pid {os.getpid()}", flush=True)


if __name__ == "__main__":
    launch(int(sys.argv[1]))
