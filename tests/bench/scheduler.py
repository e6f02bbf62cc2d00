#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the adapter for SGLang adds to a scheduler's thread: microseconds for each hook, on the CPU driver, and what takes them.

    tests/bench/scheduler.py [--build FOLDER] [--quick] [--json FILE]

SGLang's own hook registry wraps functions that do nothing, with the names and parameters that the adapter asks for; tensors are PyTorch's own, over
memory of the CPU driver. Each function is called bare and hooked in turn, and with hooks that are cut short at one layer more each time:
what a layer takes is the difference.

  registry   the registry's wrappers around a hook that does nothing
  adapter    the adapter, told to a slotprobe that does nothing
  package    the Python package, with calls of C that do nothing
  library    the call of C, the library, the driver's launch

The CPU driver takes a launch in about 2 us; a GPU's takes about 3. What counts is measured with a live server.
Exit status 1 where a hook missed its bar, dropped something, or brought a value to the host.
"""
import argparse
import ctypes
import functools
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEPTH = 12  # calls from C to Python on the scheduler's stack
TOKENS = 2048
STEP_BAR, DONATION_BAR = 30.0, 25.0  # us
SIZES = (1, 8, 64, 256)
LAYERS = ("registry", "adapter", "package", "library")


# ---- the worker ----

def no_operation(*_args, **_kwargs):
    """A hook that does nothing."""


class Nowhere:
    """slotprobe, as it would be if nothing were left to do."""

    def __init__(self, api):
        for name in dir(api):
            value = getattr(api, name)
            setattr(self, name, value if isinstance(value, int) else self.yes)
        self.slots = lambda *_args, **_kwargs: 0

    @staticmethod
    def yes(*_args, **_kwargs):
        """Whatever is said."""
        return 1


def load_registry(site):
    """The release's own hook registry."""
    path = pathlib.Path(site) / "sglang/srt/plugins/hook_registry.py"
    spec = importlib.util.spec_from_file_location("sglang.srt.plugins.hook_registry", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stand_in(target):
    """A function of SGLang that answers at once, and its class, where they are looked for."""
    parts = target.module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    module = sys.modules[target.module]
    owner = getattr(module, target.owner, None) or type(target.owner, (), {"answer": None})
    setattr(module, target.owner, owner)
    answer = "" if target.function == "__init__" else " return self.answer"
    made = {}
    exec(f"def {target.function}({', '.join(target.parameters)}, *args, **kwargs):\n {answer or 'pass'}", made)
    setattr(owner, target.function, made[target.function])
    return owner


def below(function, levels=DEPTH):
    """Calls it as far down the stack as a scheduler would."""
    if levels:
        for _ in map(functools.partial(below, function), (levels - 1,)):
            pass
    else:
        function()


class Scheduler:
    """What the hooks are given: the objects of a scheduler."""

    def __init__(self, torch, cuda, overlap):
        from array import array
        from slotprobe_sglang import targets
        self.torch, self.cuda = torch, cuda
        owners = {t.owner: stand_in(t) for role in targets.ROLES for t in role.targets}
        self.owners, self.bare = owners, {}
        make = {name: owner.__new__(owner) for name, owner in owners.items()}
        self.make = make
        n = types.SimpleNamespace
        pool, requests, allocator, cache, runner = (make[name] for name in (
            "MambaPool", "HybridReqToTokenPool", "MambaSlotAllocator", "UnifiedRadixCache", "ModelRunner"))
        pool.mamba_cache = n(conv=[cuda.tensor((4, 1025, 4, 16), torch.bfloat16)], temporal=cuda.tensor((4, 1025, 2, 8, 8), torch.float32))
        requests.mamba_pool, requests.mamba_allocator, requests.mamba_v2p_table, requests.mamba_ckpt_pool = pool, allocator, None, None
        cache.req_to_token_pool, cache.components, cache.disable = requests, {}, False
        runner.is_draft_worker, runner.forward_pass_id = False, 0
        scheduler = make["Scheduler"]
        scheduler.req_to_token_pool, scheduler.enable_overlap, scheduler.forward_stream = requests, overlap, cuda.forward
        scheduler.ps = n(tp_rank=0, tp_size=1, pp_rank=0, pp_size=1, dp_rank=0, dp_size=1)
        self.graphs = make["DecodeCudaGraphRunner"]
        self.graphs.model_runner, self.graphs.bs, self.graphs.buffers = runner, 8, n()
        self.regions = {name: cuda.tensor((256,), dtype) for name, dtype in (
            ("mamba_track_indices_buf", torch.int64), ("mamba_track_indices", torch.int64), ("mamba_track_mask", torch.bool),
            ("mamba_state_indices.8", torch.int32))}
        self.ids = cuda.tensor((1024,), torch.int64)
        self.ids.copy_(torch.arange(1, 1025))
        tokens = array("q", range(TOKENS))
        self.key = TokenKey(tokens)
        self.reqs = [n(kv=n(mamba_cow_src_index=self.ids[i:i + 1]), extra_key=None, full_untruncated_fill_ids=tokens, prefix_len=TOKENS,
                       finished=lambda: True, prefix_indices=tokens) for i in range(SIZES[-1])]
        self.batch = make["ScheduleBatch"]
        self.batch.req_to_token_pool = requests
        self.overlap = overlap

    def call(self, owner, function, layer, *args):
        """A function of the stand-ins as far as `layer` has it hooked."""
        return getattr(self.owners[owner], f"{function}:{layer}")(self.make[owner], *args)

    # Each of these is one thing that a scheduler does, for `n` requests.

    def step(self, layer, n):
        """A forward through a graph."""
        cuda = self.cuda
        cuda.current = cuda.forward if self.overlap else cuda.schedule
        batch = types.SimpleNamespace(forward_mode=MODE.DECODE, batch_size=n)
        runner, graphs = self.owners["ModelRunner"], self.owners["DecodeCudaGraphRunner"]
        self.graphs.bs = n
        getattr(runner, "forward:" + layer)(self.make["ModelRunner"], batch)
        getattr(graphs, "load_batch:" + layer)(self.graphs, batch)
        cuda.current = cuda.schedule

    def alloc(self, layer, n):
        """Slots in one call."""
        self.make["MambaSlotAllocator"].answer = self.ids[:n]
        self.call("MambaSlotAllocator", "alloc", layer, n)

    def free(self, layer, n):
        """Slots in one call."""
        self.call("MambaSlotAllocator", "free", layer, self.ids[:n])

    def clear(self, layer, n):
        """In the forward, on its stream."""
        self.call("MambaPool", "clear_slots", layer, self.ids[:n])

    def copy(self, layer, n):
        """In the forward, on its stream."""
        self.call("MambaPool", "copy_from", layer, self.ids[:n], self.ids[n:2 * n])

    def donate(self, layer, n):
        """Requests that end: each is brought to the cache, asked for its state's length, and kept."""
        cache, component = self.make["UnifiedRadixCache"], self.make["MambaComponent"]
        component.answer, cache.answer = TOKENS, RESULT
        for i in range(n):
            req, params = self.reqs[i], types.SimpleNamespace(mamba_value=self.ids[i:i + 1], key=self.key)
            vars(req).pop("_slotprobe", None)  # its tokens were never hashed
            self.call("UnifiedRadixCache", "checkpoint", layer, req)
            self.call("MambaComponent", "prepare_for_caching_req", layer, req, params, TOKENS, True)
            self.call("UnifiedRadixCache", "insert", layer, params)

    def restore(self, layer, n):
        """Requests that go on from a state."""
        for req in self.reqs[:n]:
            vars(req).pop("_slotprobe", None)
        self.call("ScheduleBatch", "_collect_deferred_mamba_cow_and_clear", layer, self.reqs[:n])


class TokenKey:
    """A radix key."""

    def __init__(self, tokens):
        self.token_ids = tokens

    def __len__(self):
        return len(self.token_ids)


RESULT = types.SimpleNamespace(mamba_exist=False)


def modes():
    """ForwardMode"""
    import enum
    return enum.IntEnum("ForwardMode", ["EXTEND", "DECODE"])


MODE = modes()


class Layers:
    """The stand-ins' functions once for each layer that is left in: FUNCTION:LAYER of their classes."""

    def __init__(self, scheduler, registry):
        import slotprobe
        from slotprobe_sglang import adapter, attach, targets
        self.package, self.calls = slotprobe, dict(vars(slotprobe._abi.CALLS))
        self.adapters = {name: adapter.Adapter(api) for name, api in (
            ("adapter", Nowhere(slotprobe)), ("package", slotprobe), ("library", slotprobe))}
        for role in targets.ROLES:
            for target in role.targets:
                owner = scheduler.owners[target.owner]
                setattr(owner, target.function + ":bare", vars(owner)[target.function])
                for layer in LAYERS:
                    function = vars(owner)[target.function]
                    for kind, method in attach.hooks_of(role, target):
                        function = registry._wrap_fn(function, self.hook(layer, kind, method), registry.HookType[kind])
                    setattr(owner, f"{target.function}:{layer}", function)
        for layer in reversed(LAYERS[1:]):  # the one that registers pools first
            getattr(scheduler.owners["Scheduler"], f"__init__:{layer}")(scheduler.make["Scheduler"], None, None)
            assert self.adapters[layer].ready
        for name, tensor in scheduler.regions.items():
            slotprobe.region(name, tensor)
        self.scheduler = scheduler

    def hook(self, layer, kind, method):
        """One of the adapter's, or nothing."""
        if layer == "registry":
            return (lambda function, *args, **kwargs: function(*args, **kwargs)) if kind == "AROUND" else no_operation
        return getattr(self.adapters[layer], method)

    def enter(self, layer):
        """C does nothing at the layer `package`, and the driver nothing below the last one."""
        calls = self.package._abi.CALLS
        self.scheduler.cuda.quiet = layer != "library"
        vars(calls).update(self.calls if layer != "package" else {name: lambda *_args: 1 for name in self.calls})

    def settle(self):
        """Until the writer has taken all results, however busy the machine is: it meets one that comes last."""
        from slotprobe_sglang import pools
        pool, stream = pools.known(self.scheduler.make["MambaPool"]).pool, self.scheduler.cuda.forward.cuda_stream
        self.scheduler.cuda.finish()
        deadline, said, found = time.monotonic() + 10, 0, ctypes.c_uint64()
        while time.monotonic() < deadline and (said <= 0 or self.calls["hash"](said, found)):
            if said <= 0:
                said = self.package.donate(pool, 1, 1, 1, 1, stream)
            time.sleep(0.0005)

    def time(self, what, n, rounds):
        """{layer: us for one call}: medians of rounds, layers in turn."""
        thing, times = getattr(self.scheduler, what), {layer: [] for layer in ("bare", *LAYERS)}
        calls = 32 if what == "step" else max(1, 32 // n)
        on_forward = what in ("clear", "copy")
        for turn in range(rounds + 2):
            for layer in times if turn % 2 else reversed(times):
                def many():
                    begin = time.thread_time()
                    for _ in range(calls):
                        thing(layer, n)
                    if turn > 1:
                        times[layer].append((time.thread_time() - begin) / calls * 1e6)
                self.enter(layer)
                self.scheduler.step(layer, n)  # between hand-overs there are forwards
                self.scheduler.cuda.current = self.scheduler.cuda.forward if on_forward and self.scheduler.overlap else self.scheduler.cuda.schedule
                below(many)
                self.enter("library")
                if layer == "library":
                    self.settle()
        return {layer: statistics.median(column) for layer, column in times.items()}


def work(args):
    """In a recorded process."""
    import torch
    import torch_cuda
    cuda = torch_cuda.Cuda(torch)
    torch.set_num_threads(1)
    scheduler = Scheduler(torch, cuda, args.overlap)
    layers = Layers(scheduler, load_registry(args.site))
    del torch_cuda.waits[:]
    rows = []
    for what, sizes in (("step", SIZES), ("alloc", SIZES), ("free", SIZES), ("clear", SIZES[:3]), ("copy", SIZES[:3]), ("donate", SIZES[:3]),
                        ("restore", SIZES[:3])):
        for n in sizes[::3] if args.quick else sizes:
            found = layers.time(what, n, 6 if args.quick else 40)
            row = {"what": what, "n": n, "overlap": args.overlap, "added": found["library"] - found["bare"]}
            before = found["bare"]
            for layer in LAYERS:
                row[layer], before = found[layer] - before, found[layer]
            rows.append(row)
    print(json.dumps({"rows": rows, "waits": sorted(set(torch_cuda.waits)), "record_stream": torch_cuda.made["record_stream"]}))


# ---- the driver of it ----

class Bench:
    """One recorded worker for each way to schedule."""

    def __init__(self, args, folder):
        sys.path[:0] = [str(ROOT / "tests/sglang"), str(HERE)]
        import prepare
        import runs
        self.args, self.folder, self.runs = args, pathlib.Path(folder), runs
        self.release, self.missed, self.rows, self.told = prepare.prepare(), [], [], 0

    def run(self, overlap):
        """One worker."""
        build, run = self.args.build.resolve(), self.folder / f"run{int(overlap)}"
        env = self.runs.surroundings() | {
            "PYTHONPATH": f"{HERE}:{self.release / 'site'}", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(self.release / "compiled"),
            "LD_LIBRARY_PATH": f"{build / 'cpudriver'}:{self.release / 'nvidia'}"}
        env.pop("SGLANG_PLUGINS", None)
        command = [build / "slotprobe", "record", "-o", run, "--arm", "graph-off", "--min-free", "64M", "--probe", "sglang", "--", sys.executable,
                   __file__, "--work", "--site", self.release / "site", *(["--overlap"] if overlap else []), *(["--quick"] if self.args.quick else [])]
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, env=env, timeout=500, check=True)
        said = json.loads(done.stdout.splitlines()[-1])
        self.rows += said["rows"]
        self.told += said["record_stream"]
        self.judge(said, self.runs.probes(build / "slotprobe", run))

    def judge(self, said, probes):
        """What must hold wherever it runs."""
        if said["waits"]:
            self.missed.append(f"values were brought to the host or the device was waited for: {said['waits']}")
        for name, probe in probes.items():
            if probe["errors"] or sum(probe["dropped"].values()):
                self.missed.append(f"{name}: {probe}")
        for name in (f"{group}.{row['what']}" for row in said["rows"] for group in ("sglang", "core")):
            if not probes[name]["committed"] or probes[name]["committed"] != probes[name]["attempted"]:
                self.missed.append(f"nothing, or not all, was recorded of what was timed: {name}: {probes[name]}")
        for row in said["rows"]:
            bar = {"step": STEP_BAR, "donate": DONATION_BAR * row["n"]}.get(row["what"])
            took = row["added"] - row["library"]
            if bar and took > bar and not self.args.quick:
                self.missed.append(f"{row['what']} of {row['n']}: {took:.1f} us are over {bar:.0f}")


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--overlap", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--site", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for overlap in (True, False):
            bench.run(overlap)
    print(f"{'':10}{'n':>5} {'overlap':8}{'added us':>10}{'each':>8}" + "".join(f"{layer:>10}" for layer in LAYERS))
    for row in bench.rows:
        print(f"{row['what']:10}{row['n']:5} {'on' if row['overlap'] else 'off':8}{row['added']:10.2f}{row['added'] / row['n']:8.2f}"
              + "".join(f"{row[layer]:10.2f}" for layer in LAYERS))
    for missed in bench.missed:
        print(f"MISSED  {missed[:300]}")
    if args.json:
        args.json.write_text(json.dumps({"rows": bench.rows, "record_stream": bench.told, "missed": bench.missed}, indent=1) + "\n", encoding="utf-8")
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
