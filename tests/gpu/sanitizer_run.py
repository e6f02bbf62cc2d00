#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer's four tools over the fingerprint kernel: memcheck, racecheck, initcheck, synccheck, all at once, each with the quick set
of fingerprint_check.py; and memcheck and initcheck over a launch that reads what it may not. The check holds when each ran to its end and
reports no error, and what was planted is reported."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
PLANTED = {"memcheck": "past", "initcheck": "unwritten"}
FOUND = 9  # exit status that means: the tool found something
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


def find() -> str:
    """compute-sanitizer of the PATH or of a toolkit."""
    places = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    found = shutil.which("compute-sanitizer") or next(
        (str(p) for place in places if place for p in [pathlib.Path(place, "bin", "compute-sanitizer"),
                                                       pathlib.Path(place, "compute-sanitizer", "compute-sanitizer")] if p.exists()), None)
    if not found:
        sys.exit("sanitizer_run: no compute-sanitizer in PATH, CUDA_HOME or /usr/local/cuda: install the CUDA toolkit")
    return found


def start(sanitizer: str, tool: str, *options: str) -> subprocess.Popen:
    return subprocess.Popen([sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, "-B", HERE / "fingerprint_check.py",
                             *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen, until: float, planted: bool = False) -> dict:
    """Status, how many errors the tool's own summary counts (null: it printed none), and the end of what it said if that is not 0."""
    begun = time.monotonic()
    try:
        text, _ = process.communicate(timeout=max(1.0, until - begun))
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    summaries = SUMMARY.findall(text)
    errors = sum(int(a or b) for a, b in summaries) if summaries else None
    ok = bool(errors) if planted else process.returncode == 0 and errors == 0
    return {"ok": ok, "status": process.returncode, "errors": errors, **({} if ok else {"said": text[-3000:]})}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the result there")
    parser.add_argument("--seconds", type=float, default=110, help="how long the tools may take")
    args = parser.parse_args()
    sanitizer = find()
    version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True).stdout
    until = time.monotonic() + args.seconds
    running = {tool: start(sanitizer, tool, "--quick") for tool in TOOLS}
    planted = {tool: start(sanitizer, tool, "--plant", how) for tool, how in PLANTED.items()}
    tools = {tool: finish(process, until) for tool, process in running.items()}
    seen = {tool: finish(process, until, planted=True) for tool, process in planted.items()}
    for tool, said in [*tools.items(), *((f"{tool}, planted", said) for tool, said in seen.items())]:
        print(f"{'ok  ' if said['ok'] else 'FAIL'}  {tool}: {said['errors']} errors, status {said['status']}\n{said.get('said', '')}")
    if args.json:
        number = re.search(r"Version (\S+)", version)
        pathlib.Path(args.json).write_text(json.dumps({"version": number.group(1) if number else version.strip(), "tools": tools,
                                                      "planted": seen}, indent=1))
    return 0 if all(said["ok"] for said in [*tools.values(), *seen.values()]) else 1


if __name__ == "__main__":
    sys.exit(main())
