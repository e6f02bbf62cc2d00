# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a captured graph, replayed; the device counts too. Usage: torch_route.py N"""
import os
import sys

import torch

launches = int(sys.argv[1])
counter = torch.zeros(1, dtype=torch.int64, device="cuda")
counter += 1  # loaded before the capture
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    counter += 1
counter.zero_()
for _ in range(launches):
    graph.replay()
torch.cuda.synchronize()
assert counter.item() == launches, counter
print(f"launches {launches} pid {os.getpid()}", flush=True)
