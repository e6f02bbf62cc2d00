# SPDX-License-Identifier: Apache-2.0
"""The routes by which a program reaches cuGraphLaunch, each recorded and held against the program's own count of its launches. Shared by
the pytest beside it, on the CPU driver, and by tests/gpu/routes/run.py."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
N = 37
XLA_LAUNCH = re.compile(r"Launch command buffer executable graph")
JAX_ENV = {"XLA_FLAGS": "--xla_gpu_graph_min_graph_size=1", "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE":
           "cuda_command_buffer=3,gpu_command_buffer=3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


@dataclasses.dataclass
class Route:
    """A command, and what is expected beyond attempted == committed == own."""
    name: str
    command: list  # {out}: the built programs; {python}, {here}
    needs: str = "driver"  # cudart: what nvcc built; else the Python module
    runtime: str | int | None = 0  # launches that the runtime's wrapper must see: a number, "own", None: any
    options: tuple = ()  # of record
    bypassed: int = 0  # launches that cannot be seen; then the coverage must say so
    env: dict = dataclasses.field(default_factory=dict)
    red: bool = False  # the hooks are disabled: the check must fail


def driver(name, how, what="plain", *rest, program="driver", n=N, **more):
    return Route(name, [f"{{out}}/{program}", how, what, str(n), *rest], **more)


def plugin(name, mode, library, how, first="none", **more):
    return driver(name, first, "plain", "plugin", mode, f"{{out}}/{library}", how, **more)


def python(name, script, *args, **more):
    return Route(name, ["{python}", f"{{here}}/{script}", *map(str, args)], **more)


def runtime(name, program, *args, **more):
    return Route(name, [f"{{out}}/{program}", *map(str, args)], needs="cudart", **more)


ROUTES = [
    driver("driver, linked", "linked", program="linked"),
    driver("driver, dlopened", "dlsym"),
    driver("driver, cuGetProcAddress", "proc"),
    driver("driver, cuGetProcAddress_v2", "proc_v2"),
    driver("driver, per-thread default stream", "per-thread"),
    driver("driver, 8 threads at once", "dlsym", "threads", n=2003),
    driver("driver, 8 threads at once, per-thread stream", "per-thread", "threads", n=2003),
    driver("driver, cuGraphExecUpdate each iteration", "dlsym", "update"),
    driver("driver, SetParams each iteration", "dlsym", "set"),
    driver("driver, memory nodes", "dlsym", "memory"),
    driver("driver, conditional node", "proc_v2", "conditional"),
    driver("fork, then init", "dlsym", "plain", "fork"),
    driver("exec", "dlsym", "plain", "exec"),
    driver("spawn", "dlsym", "plain", "spawn"),
    plugin("RTLD_LOCAL plugin, linked", "local", "plugin-linked.so", "linked"),
    plugin("RTLD_LOCAL plugin, linked, by address", "local", "plugin-address.so", "linked"),
    plugin("RTLD_LOCAL plugin, dlopened", "local", "plugin.so", "proc_v2"),
    python("ctypes", "ctypes_route.py", N),
    plugin("RTLD_DEEPBIND plugin, linked", "deepbind", "plugin-linked.so", "linked", "dlsym", bypassed=N),
    plugin("RTLD_DEEPBIND plugin, linked, lazy", "deepbind-lazy", "plugin-linked.so", "linked", "dlsym", bypassed=N),
    plugin("RTLD_DEEPBIND plugin, by address", "deepbind", "plugin-address.so", "linked", "dlsym", bypassed=N),
    plugin("RTLD_DEEPBIND plugin, dlopened", "deepbind", "plugin.so", "dlsym", "dlsym", bypassed=N),
    plugin("RTLD_DEEPBIND plugin, linked, --audit", "deepbind", "plugin-linked.so", "linked", "dlsym", options=("--audit",)),
    plugin("RTLD_DEEPBIND plugin, linked, lazy, --audit", "deepbind-lazy", "plugin-linked.so", "linked", "dlsym", options=("--audit",)),
    plugin("RTLD_DEEPBIND plugin, dlopened, --audit", "deepbind", "plugin.so", "proc_v2", "dlsym", options=("--audit",)),
    plugin("RTLD_DEEPBIND plugin alone, --audit", "deepbind", "plugin-linked.so", "linked", options=("--audit",)),
    plugin("RTLD_DEEPBIND plugin, by address, --audit", "deepbind", "plugin-address.so", "linked", "dlsym", bypassed=N,
           options=("--audit",)),
    driver("driver, 8 threads at once, --audit", "dlsym", "threads", n=2003, options=("--audit",)),
    Route("hooks disabled", ["env", "-u", "LD_PRELOAD", "{out}/driver", "dlsym", "plain", str(N)], red=True),
    runtime("static cudart", "runtime-static", N),
    runtime("shared cudart", "runtime-shared", N, runtime="own"),
    runtime("static cudart, per-thread default stream", "runtime-static-ptds", N),
    runtime("shared cudart, per-thread default stream", "runtime-shared-ptds", N, runtime="own"),
    runtime("shared cudart, 8 threads at once", "runtime-shared-ptds", 2003, 8, runtime="own"),
    plugin("RTLD_LOCAL plugin, static cudart", "local", "runtime-plugin.so", "", needs="cudart"),
    plugin("RTLD_DEEPBIND plugin, static cudart", "deepbind", "runtime-plugin.so", "", "dlsym", needs="cudart", bypassed=N),
    plugin("RTLD_DEEPBIND plugin, static cudart, --audit", "deepbind", "runtime-plugin.so", "", "dlsym", needs="cudart",
           options=("--audit",)),
    python("PyTorch", "torch_route.py", N, needs="torch", runtime="own"),
    python("PyTorch, --audit", "torch_route.py", N, needs="torch", runtime="own", options=("--audit",)),
    python("CuPy", "cupy_route.py", N, needs="cupy", runtime=None),
    python("JAX command buffers", "jax_route.py", N, needs="jax", runtime=None, env=JAX_ENV),
]

NVCC_BUILDS = {"runtime-static": ["-cudart", "static"], "runtime-shared": ["-cudart", "shared"],
               "runtime-static-ptds": ["-cudart", "static", "--default-stream", "per-thread"],
               "runtime-shared-ptds": ["-cudart", "shared", "--default-stream", "per-thread"],
               "runtime-plugin.so": ["-cudart", "static", "-shared", "-DPLUGIN", "-Xcompiler", "-fPIC,-fvisibility=hidden"]}


def start_nvcc(nvcc, out):
    """Begins to build the runtime's programs, all at once: name -> process."""
    libraries = pathlib.Path(nvcc).resolve().parent.parent / "lib64"
    return {name: subprocess.Popen([nvcc, "-O1", "-std=c++17", *flags, "-Xlinker", f"-rpath={libraries}", "-o", str(out / name),
                                    str(HERE / "runtime.cu")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for name, flags in NVCC_BUILDS.items()}


def environment(route, cpu_driver):
    """Of the program: slotprobe's own variables are not inherited; the CPU driver comes first where it is wanted."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")} | route.env
    if cpu_driver:
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(cpu_driver), env.get("LD_LIBRARY_PATH")]))
    return env


def counters(build, run):
    """What the counters pages of a run say: per pid, and summed."""
    done = subprocess.run([str(build / "slotprobe"), "status", str(run), "--json"], capture_output=True, text=True, timeout=60, check=False)
    processes = json.loads(done.stdout)["processes"] if done.returncode == 0 else []
    total = {"attempted": 0, "committed": 0, "other": 0, "runtime": 0, "unrouted": 0, "bypassed": 0, "processes": len(processes)}
    by_pid = {}
    for process in processes:
        launch = next(p for p in process["probes"] if p["name"] == "core.graph_launch")
        plain = process["counters"]
        total["attempted"] += launch["attempted"]
        total["committed"] += launch["committed"]
        total["other"] += launch["attempted"] - launch["committed"]
        total["runtime"] += plain["runtime_graph_launches"]
        total["unrouted"] += plain["unrouted_entries"] + plain["runtime_without_driver"]
        total["bypassed"] += plain["bypassed_objects"]
        by_pid[process["pid"]] = by_pid.get(process["pid"], 0) + launch["attempted"]
    return total, {pid: n for pid, n in by_pid.items() if n}


def own_count(route, out, err):
    """The program's own count: per pid, and summed. XLA's is the number of lines in its log."""
    said = {}
    for n, pid in re.findall(r"^launches (\d+) pid (\d+)$", out, re.M):
        said[int(pid)] = said.get(int(pid), 0) + int(n)
    if route.needs == "jax":
        calls = re.search(r"^calls (\d+) pid (\d+)$", out, re.M)
        lines = len(XLA_LAUNCH.findall(err))
        said = {int(calls[2]): lines} if calls and lines else {}
    return said


def judge(route, total, by_pid, own_by_pid):
    """What does not hold; empty: the route is counted exactly."""
    own, wrong = sum(own_by_pid.values()), []
    seen = own - route.bypassed
    if not own:
        wrong.append("the program said no count of its own")
    if total["attempted"] != seen:
        wrong.append(f"counted {total['attempted']} launches, not {seen}")
    elif not route.bypassed and by_pid != own_by_pid:
        wrong.append(f"by process {by_pid}, not {own_by_pid}")
    if total["other"]:
        wrong.append(f"{total['other']} launches are not committed")
    if route.runtime is not None and total["runtime"] != (own if route.runtime == "own" else route.runtime):
        wrong.append(f"the runtime's wrapper saw {total['runtime']}")
    if total["unrouted"]:
        wrong.append(f"{total['unrouted']} unrouted")
    if bool(total["bypassed"]) != bool(route.bypassed):
        wrong.append(f"{total['bypassed']} objects said to be bound past slotprobe")
    return wrong


def no_row(name):
    """Of a route that did not run."""
    return {"route": name, "own": None, "counted": None, "runtime_hits": None, "unrouted": None, "bypassed": None, "ok": False}


def holds(route, wrong, total, own):
    """Whether a row is as it must be. The red twin's program ends well, counts its launches, and that none was counted is all that is wrong."""
    if not route.red:
        return not wrong
    return own > 0 and wrong == [f"counted 0 launches, not {own}"] and not total["processes"]


def run_route(route, build, out, folder, cpu_driver=None):
    """Records one route. Returns its row; never raises for what the route does."""
    run = folder / re.sub(r"\W+", "-", route.name)
    fill = {"out": str(out), "here": str(HERE), "python": sys.executable}
    command = [str(build / "slotprobe"), "record", "-o", str(run), "--arm", "graph-on", *route.options, "--",
               *[part.format(**fill) for part in route.command]]
    begun = time.time()
    row = no_row(route.name)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=90, env=environment(route, cpu_driver),
                              check=False)
        total, by_pid = counters(build, run)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, StopIteration) as trouble:
        return row | {"wrong": [f"{type(trouble).__name__}: {trouble}"[:500]], "seconds": round(time.time() - begun, 1)}
    own = own_count(route, done.stdout, done.stderr)
    wrong = judge(route, total, by_pid, own)
    if done.returncode:
        wrong.insert(0, f"exit status {done.returncode}")
    row |= {"own": sum(own.values()) or None, "counted": total["attempted"], "runtime_hits": total["runtime"],
            "unrouted": total["unrouted"], "bypassed": total["bypassed"], "processes": total["processes"],
            "seconds": round(time.time() - begun, 1), "ok": holds(route, wrong, total, sum(own.values()))}
    if route.red:
        row["red_twin"] = True
    if wrong:
        row["wrong"] = wrong
    if wrong and not route.red:
        row["stderr"] = done.stderr[-1500:]
    return row
