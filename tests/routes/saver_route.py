# SPDX-License-Identifier: Apache-2.0
"""PyTorch with torch_memory_saver preloaded: a captured graph over memory that is paused (unmapped) and resumed between replays.
Usage: saver_route.py N"""
import os
import sys

import torch
from torch_memory_saver import torch_memory_saver

launches = int(sys.argv[1])
torch_memory_saver.hook_mode = "preload"
counter = torch.zeros(1, dtype=torch.int64, device="cuda")
with torch_memory_saver.region(tag="pool"):
    pool = torch.zeros(1 << 20, dtype=torch.float32, device="cuda")
pool += 1  # both kernels are loaded before the capture
counter += 1
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    pool += 1
    counter += 1
counter.zero_()
for _ in range(launches):
    graph.replay()
torch.cuda.synchronize()
torch_memory_saver.pause("pool")
torch_memory_saver.resume("pool")
for _ in range(launches):
    graph.replay()
torch.cuda.synchronize()
assert counter.item() == 2 * launches, counter
print(f"launches {2 * launches} pid {os.getpid()}", flush=True)
