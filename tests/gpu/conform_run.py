#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes every driver call that slotprobe makes on this machine's driver, and writes the transcript (tests/conform).

    tests/gpu/conform_run.py [--build FOLDER] [--driver cuda|cpu] [--json FILE]

Exit status 0 when every group ran to its end. The committed transcript is compared with, for information.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "conform"))

from compare import differences, load  # noqa: E402


def transcribe(build: pathlib.Path, driver: str, path: pathlib.Path) -> bool:
    environment = dict(os.environ)
    if driver == "cpu":
        environment["LD_LIBRARY_PATH"] = f"{build}/cpudriver:" + environment.get("LD_LIBRARY_PATH", "")
    done = subprocess.run([build / "conform" / "conform", "-o", path], env=environment, capture_output=True, text=True, timeout=600)
    print(done.stderr[-8000:])
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--driver", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", help="write the transcript there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "transcript.json"
        good = transcribe(args.build.resolve(), args.driver, path)
        if not path.exists():
            return 1
        cases = load(path)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(json.loads(path.read_text()), indent=1) + "\n")
    committed = ROOT / "tests" / "conform" / "h200.json"
    for name, what, there, here in differences(load(committed), cases)[:100] if committed.exists() else []:
        print(f"{name}: {what} is {there!r} in the committed transcript, {here!r} here")
    counted = collections.Counter(name.split("/")[0] for name in cases)
    crashed = [name for name, case in cases.items() if case["result"] == -2]
    print(f"{len(cases)} cases in {len(counted)} groups: {dict(counted)}")
    print(f"crashed: {crashed}\nsetup that failed: {[c for n, c in cases.items() if n.endswith('/setup')]}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
