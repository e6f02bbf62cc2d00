#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/tutorial.md on the CPU driver and compares what they print with what the page shows:
docs/tutorial.py BUILD. With --write it puts what they print into the page."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parent / "tutorial.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


def tidy(text: str, build: pathlib.Path) -> str:
    """As it would look on the reader's machine: no folder of ours, one process id, one host."""
    text = text.replace(str(build), "build")
    text = re.sub(re.escape(os.uname().nodename) + r"\.\d+", "gpu1.4242", text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def comparable(text: str) -> str:
    """Offsets into the toy differ from compiler to compiler, sizes of compressed logs from run to run."""
    return re.sub(r"[0-9.]+ KiB written", "? KiB written", re.sub(r"\+0x[0-9a-f]+", "+0x?", text))


def run(block: str, build: pathlib.Path, folder: str) -> str:
    """The block again, with what its commands print now."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
    environment |= {"PATH": f"{build}:{build / 'toyserver'}:{environment['PATH']}", "LD_LIBRARY_PATH": str(build / "cpudriver"), "NO_COLOR": "1"}
    out = ""
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line[2:]], cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        out += line + "\n" + tidy(done.stdout, build) + (f"[exit status {done.returncode}]\n" if done.returncode else "")
    return out


def main() -> int:
    build, write = pathlib.Path(sys.argv[1]).resolve(), "--write" in sys.argv[2:]
    text = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        now = BLOCK.sub(lambda m: "```console\n" + run(m.group(1), build, folder) + "```", text)
    if write:
        PAGE.write_text(now)
        return 0
    for shown, found in zip(BLOCK.findall(text), BLOCK.findall(now), strict=True):
        if comparable(shown) != comparable(found):
            print(f"docs/tutorial.md shows\n{shown}\nbut its commands print\n{found}\n'docs/tutorial.py BUILD --write' writes it anew.")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
