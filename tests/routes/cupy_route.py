# SPDX-License-Identifier: Apache-2.0
"""CuPy: a captured graph, launched; the device counts too. Usage: cupy_route.py N"""
import os
import sys

import cupy

launches = int(sys.argv[1])
stream = cupy.cuda.Stream(non_blocking=True)
counter = cupy.zeros(1, dtype=cupy.int64)
counter += 1  # compiled before the capture
cupy.cuda.Device().synchronize()
with stream:
    stream.begin_capture()
    counter += 1
    graph = stream.end_capture()
counter.fill(0)
cupy.cuda.Device().synchronize()
for _ in range(launches):
    graph.launch(stream)
stream.synchronize()
assert int(counter[0]) == launches, counter
print(f"launches {launches} pid {os.getpid()}", flush=True)
