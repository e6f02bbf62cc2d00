#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a donation costs in Python: `bench_donate.py [BUILD] [--json FILE]` prints microseconds per call, with the preload on the CPU driver and without;
`bench_donate.py [BUILD] --torch` with PyTorch's tensors and streams on the machine's GPU. Fails if a call does, or if nothing was recorded.

"package" is the package's own part, packing the claim; the rest of "recorded" is the library's and the driver's.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import slotprobe
    from slotprobe import _claim
except ImportError:
    assert "--work" not in sys.argv  # only the worker has it on its path

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BATCH, ROUNDS = 32, 60  # fewer in a row than may be in flight


def per_call(call, between=lambda: None):
    """Microseconds: the median of the rounds' means."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        times.append((time.perf_counter() - start) / BATCH * 1e6)
        between()
    return sorted(times)[ROUNDS // 2]


def on_fakes():
    """(wait, pool, forms of a donation) on the CPU driver."""
    from fakes import Device, Torch
    device = Device()
    conv, temporal = Torch(device.alloc(1 << 16), (4, 8, 64), "bfloat16"), Torch(device.alloc(1 << 16), (4, 8, 128))
    pool = slotprobe.pool("pool", {"conv": conv, "temporal": temporal})
    stream, ids = device.stream(), Torch(device.alloc(8), (1,), "int64")
    return device.finish, pool, {"slot and key int": (pool, 1, 7, 5, 7, stream), "slot a tensor, key int": (pool, ids, 7, 5, 7, stream),
                                 "slot a tensor, key str": (pool, ids, 7, "prefix", 7, stream)}


def on_torch():
    """The same with PyTorch. A temporary tensor as slot id, on the current stream and on another one."""
    import torch
    conv, temporal = torch.zeros(4, 8, 64, dtype=torch.bfloat16, device="cuda"), torch.zeros(4, 8, 128, device="cuda")
    pool = slotprobe.pool("pool", {"conv": conv, "temporal": temporal})
    ids, other = torch.arange(8, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")  # reading a value on the host raises
    forms = {"slot and key int": (pool, 1, 7, 5, 7, torch.cuda.current_stream()), "current stream": (pool, 1, 7, 5, 7),
             "slot a tensor, key int": (pool, ids[1:2], 7, 5, 7), "slot a tensor, key str": (pool, ids[1:2], 7, "prefix", 7),
             "int32 slot id": (pool, ids.int()[2:3], 7, 5, 7), "slot a tensor, other stream": (pool, ids[1:2], 7, 5, 7, other)}
    return torch.cuda.synchronize, pool, forms


def work():
    """In a process with or without the preload."""
    if slotprobe.available() != ("--recorded" in sys.argv):
        sys.exit(f"bench_donate: slotprobe is {'' if slotprobe.available() else 'not '}there")
    if not slotprobe.available():
        print(json.dumps({"without preload": per_call(lambda: slotprobe.donate(0, 1, 2, "key", 2))}))
        return
    refused, (finish, pool, forms) = [], on_torch() if "--torch" in sys.argv else on_fakes()

    def settle():
        finish()
        time.sleep(0.02)  # the results are taken

    said = {}
    for name, arguments in forms.items():
        said[f"recorded, {name}"] = per_call(lambda: slotprobe.donate(*arguments) > 0 or refused.append(1), settle)
        said[f"package, {name}"] = per_call(lambda: _claim.pack(*(*arguments, None)[:6]))
    said["step"] = per_call(lambda: slotprobe.step("decode", 1, 2, 4, 2) and refused.append(1), settle)
    said["refused calls"] = len(refused)
    print(json.dumps(said))
    sys.exit(bool(refused) or pool < 0)


def main():
    """Both processes."""
    parser = argparse.ArgumentParser(description="What a donation costs in Python, in microseconds per call.")
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=os.environ.get("BUILD", "build"))
    parser.add_argument("--torch", action="store_true", help="PyTorch's tensors and streams, on the machine's GPU")
    parser.add_argument("--json", type=pathlib.Path, help="write what was measured there")
    args = parser.parse_args()
    build, options = ROOT / args.build, ["--torch"] if args.torch else []
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'probes' / 'python'}:{HERE}", "PYTHONDONTWRITEBYTECODE": "1"}
    if not options:
        env["LD_LIBRARY_PATH"] = str(build / "cpudriver")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        record = [build / "slotprobe", "record", "-o", pathlib.Path(folder) / "run", "--arm", "graph-off", "--"]
        for before, after in (([], []), (record, ["--recorded"])):
            done = subprocess.run([*before, sys.executable, __file__, "--work", *after, *options], stdout=subprocess.PIPE, text=True, env=env, check=False,
                                  timeout=300)
            said = json.loads(done.stdout or "{}")
            for name, value in said.items():
                print(f"{name:36} {value:8.2f}{' us' if 'calls' not in name else ''}")
            if done.returncode:
                sys.exit(done.returncode)
            found |= said
    if args.json:
        refused = found.pop("refused calls")
        args.json.write_text(json.dumps({"us_per_call": found, "refused_calls": refused}, indent=1) + "\n")


if __name__ == "__main__":
    work() if "--work" in sys.argv else main()
