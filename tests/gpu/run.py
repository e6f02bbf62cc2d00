#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can show, in one command: builds, runs every GPU check, prints a table, writes one JSON per check.

    tests/gpu/run.py -o FOLDER [--only NAME]... [--deps FOLDER]

FOLDER receives NAME.json for each check: {date, machine, script, ok, seconds, result}. --deps names a folder with include/ and lib/
for a machine on which liblz4, jansson and libunwind are not installed. Exit status 0 when every check holds.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# name -> (command, seconds it may take); each command takes `--json FILE`, writes it, and exits 0 when its check holds
CHECKS = {
    "fingerprint_check": (["tests/gpu/fingerprint_check.py"], 180),
    "fingerprint_bench": (["tests/gpu/fingerprint_bench.py"], 180),  # a measurement against a bar: only when asked for
    "conform": (["tests/gpu/conform_run.py"], 300),
    "toy_cases": (["tests/gpu/toy/run.py"], 240),
    "torch_cases": (["tests/gpu/torch_run.py"], 240),
    "batch_invariance": (["tests/gpu/batch_invariance.py"], 240),
    "race": (["tests/gpu/race/run.py"], 120),
    "perturbed": (["tests/gpu/perturbed/run.py"], 120),
    "python_donate": (["tests/python/bench_donate.py", "build", "--torch"], 120),
    "costs": (["tests/bench/run.py", "--driver", "cuda"], 330),
    "alternatives": (["tests/gpu/compare_alternatives.py"], 300),
    "collector": (["tests/bench/collector.py", "--at-size"], 600),  # only when asked for: it has no use for the GPU
    "storm": (["tests/bench/storm.py", "--driver", "cuda"], 200),
    "routes": (["tests/gpu/routes/run.py"], 240),
    "sanitizer": (["tests/gpu/sanitizer_run.py"], 120),  # only when asked for: it needs the CUDA toolkit
}


def machine() -> dict:
    """GPU, driver and CPU of this machine."""
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True,
                           text=True)
    return {"gpu": asked.stdout.strip() or None, "cpus": os.cpu_count(), "kernel": platform.release(), "libc": platform.libc_ver()[1],
            "python": platform.python_version()}


def build(deps: pathlib.Path | None) -> None:
    flags = [f"CPPFLAGS=-I{deps}/include", f"LDFLAGS=-L{deps}/lib"] if deps else []
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "-C", str(ROOT), "tests-programs", *flags], check=True)


def check(name: str, out: pathlib.Path) -> bool:
    command, limit = CHECKS[name]
    report = out / f"{name}.result.json"
    report.unlink(missing_ok=True)  # of another time
    begun = time.time()
    try:
        done = subprocess.run([sys.executable, *command, "--json", str(report)], cwd=ROOT, capture_output=True, text=True, timeout=limit)
        status, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        status, text = 124, str(late.stdout or "") + str(late.stderr or "")
    print(f"==== {name}: status {status}\n{text[-6000:]}", flush=True)
    result = json.loads(report.read_text()) if report.exists() else None
    report.unlink(missing_ok=True)
    ok = status == 0 and bool(result)  # who measured has something to say
    (out / f"{name}.json").write_text(json.dumps({
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "machine": machine(), "script": " ".join(command),
        "ok": ok, "seconds": round(time.time() - begun, 1), "result": result}, indent=1) + "\n")
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=sorted(CHECKS))
    parser.add_argument("--deps", type=lambda p: pathlib.Path(p).resolve())
    args = parser.parse_args()
    args.o.mkdir(parents=True, exist_ok=True)
    if args.deps:
        os.environ["LD_LIBRARY_PATH"] = f"{args.deps}/lib:" + os.environ.get("LD_LIBRARY_PATH", "")
    build(args.deps)
    wanted = args.only or [name for name in CHECKS if name not in ("fingerprint_bench", "sanitizer", "collector")]
    verdicts = {name: check(name, args.o) for name in wanted}
    for name, ok in verdicts.items():
        print(f"{'ok  ' if ok else 'FAIL'}  {name}")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
