#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every route to cuGraphLaunch on this machine's driver, each recorded and held against the program's own count of its launches.

    tests/gpu/routes/run.py [--build FOLDER] [--driver cuda|cpu] [--nvcc PATH] [--saver FOLDER] [--json FILE]

Prints a table; exit status 0 when every route is counted exactly. Needs a built tree, nvcc for the routes through cudart, and PyTorch,
CuPy and JAX in this Python for theirs; a route whose needs are missing fails. --saver: where torch_memory_saver
lies (build/pytools), for the routes beside it. --driver cpu runs what the CPU driver has, for trying this script itself.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "routes"))

from routes import JAX_ENV, N, ROUTES, Route, no_row, run_route, start_nvcc  # noqa: E402

AT_ONCE = 4  # the Python ones spend their time in imports


def saver_routes(installed, folder, nvcc):
    """PyTorch under torch_memory_saver: before slotprobe, as its own helper puts it, and behind. Its library needs a libcudart.so.13 in
    every process that it is preloaded into."""
    (folder / "saver").mkdir()
    for part in installed.glob("torch_memory_saver*"):  # and nothing else that lies there
        (folder / "saver" / part.name).symlink_to(part.resolve())
    (library,) = (folder / "saver").glob("torch_memory_saver_hook_mode_preload_cu13*")
    runtime = pathlib.Path(nvcc or "/usr/local/cuda/bin/nvcc").resolve().parent.parent / "lib64"
    script, env = "{here}/saver_route.py", {"PYTHONPATH": str(folder / "saver"), "LD_LIBRARY_PATH": ":".join(
        filter(None, [str(runtime), os.environ.get("LD_LIBRARY_PATH")]))}
    first = f'LD_PRELOAD="{library}:$LD_PRELOAD" exec "$@"'
    return [Route("PyTorch, torch_memory_saver was there", ["{python}", script, str(N)], needs="torch", runtime="own",
                  env=env | {"LD_PRELOAD": str(library)}),
            Route("PyTorch, torch_memory_saver puts itself first", ["sh", "-c", first, "sh", "{python}", script, str(N)], needs="torch",
                  runtime="own", env=env)]


def finish_nvcc(builds):
    """Waits for the compiler: what failed, by program."""
    failed = {}
    for name, process in builds.items():
        try:
            text, _ = process.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            text = "nvcc took too long"
        if process.returncode:
            failed[name] = text[-1500:]
    return failed


def by_difference(row, route, args, folder, out):
    """Where XLA's log does not say its launches: ten more calls must add a whole multiple of ten."""
    if row["ok"] or row["own"] is not None or not row["counted"]:
        return row
    more = Route(route.name + ", more calls", [*route.command[:-1], str(N + 10)], needs="jax", runtime=None, env=JAX_ENV)
    return difference(row, run_route(more, args.build, out, folder))


def difference(row, second):
    """The row of a program without a count of its own, judged by a second one. Nothing else may be wrong with either."""
    wrong = [w for one in (row, second) for w in one.get("wrong", [])
             if w not in ("the program said no count of its own", f"counted {one['counted']} launches, not 0")]
    added = (second["counted"] or 0) - row["counted"]
    if added < 10 or added % 10:
        wrong.append(f"10 more calls added {added} launches")
    return row | {"method": "difference", "counted_with_10_more_calls": second["counted"], "wrong": wrong, "ok": not wrong}


def run_all(args, folder):
    """A row for each route, in order."""
    out = args.build / "tests" / "routes"
    cpu = args.build / "cpudriver" if args.driver == "cpu" else None
    routes = [r for r in ROUTES if not cpu or r.needs == "driver"]
    if list(args.saver.glob("torch_memory_saver_hook_mode_preload_cu13*")) and not cpu:
        routes += saver_routes(args.saver, folder, args.nvcc)
    builds = start_nvcc(args.nvcc, out) if args.nvcc and not cpu else {}

    def one(route):
        row = run_route(route, args.build, out, folder, cpu)
        return by_difference(row, route, args, folder, out) if route.needs == "jax" else row
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        rows = {r.name: pool.submit(one, r) for r in routes if r.needs != "cudart"}
        failed = finish_nvcc(builds)
        rows |= {r.name: pool.submit(one, r) for r in routes if r.needs == "cudart"}
        done = [rows[r.name].result() for r in routes]
    if not cpu and not any("torch_memory_saver" in r.name for r in routes):
        done.append(no_row("PyTorch, torch_memory_saver") | {"seconds": 0, "wrong": [f"it is not in {args.saver}: give --saver"]})
    if failed:
        print("\n".join(f"nvcc, {name}: {text}" for name, text in failed.items()))
    return done, failed


def version(module):
    """Of an installed Python package, without importing it."""
    code = f"import importlib.metadata as m; print(m.version('{module}'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def cupy_version():
    """Its packages are named after the toolkit."""
    return next(filter(None, map(version, ("cupy-cuda13x", "cupy-cuda12x", "cupy"))), None)


def main() -> int:
    """Runs every route; one that fails stops no other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or next(filter(os.path.exists, ["/usr/local/cuda/bin/nvcc"]), None))
    parser.add_argument("--saver", type=pathlib.Path, default=ROOT / "build" / "pytools")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.build = args.build.resolve()
    begun = time.time()
    with tempfile.TemporaryDirectory() as folder:
        rows, nvcc_failed = run_all(args, pathlib.Path(folder))
    for row in rows:
        print(f"{'ok  ' if row['ok'] else 'FAIL'} {row['route']}: own {row['own']}, counted {row['counted']}, runtime {row['runtime_hits']}, "
              f"unrouted {row['unrouted']}, bypassed {row['bypassed']}, {row['seconds']} s"
              + ("" if row["ok"] and not row.get("red_twin") else f"  {row.get('wrong')}"))
        if not row["ok"] and row.get("stderr"):
            print("     " + row["stderr"].strip().replace("\n", "\n     "))
    result = {"seconds": round(time.time() - begun, 1), "torch": version("torch"), "cupy": cupy_version(), "jax": version("jax"),
              "nvcc_failed": nvcc_failed,
              "torch_memory_saver": any("torch_memory_saver" in r["route"] for r in rows), "rows": rows,
              "ok": bool(rows) and all(r["ok"] for r in rows) and not nvcc_failed}
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{sum(r['ok'] for r in rows)} of {len(rows)} routes, {result['seconds']} s")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
