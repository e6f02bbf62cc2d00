# SPDX-License-Identifier: Apache-2.0
"""The preload built for aarch64, and the C unit tests of shim and probes under qemu-user. `make check-aarch64` sets TEST_RUNNER (the
emulator) and BUILD; the tests of the interposition layer, tests/unit/hook, run beside these with the same two."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ["BUILD"]
RUNNER = os.environ["TEST_RUNNER"].split()
PROGRAMS = sorted(p for folder in ("tests/unit", "unit") for p in (BUILD / folder).rglob("*")
                  if p.is_file() and os.access(p, os.X_OK) and p.suffix == "")


def test_there_are_programs():
    assert len([p for p in PROGRAMS if "record-" in p.name]) >= 5 and len(PROGRAMS) >= 10


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_unit(program):
    done = subprocess.run([*RUNNER, program], cwd=ROOT, capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    assert re.search(r"PASSED  \] [1-9]\d* test", said), f"{program} passed no test\n{said[-2000:]}"


def test_the_library_is_for_aarch64():
    """Its machine, its exports (dlsym in assembly among them), and symbol versions that userlands of 2018 have."""
    def ask(*command):
        return subprocess.run([*command, BUILD / "libslotprobe.so"], capture_output=True, text=True, check=True).stdout
    assert "AArch64" in ask("readelf", "-h")
    names = {line.split()[-1].split("@")[0] for line in ask("aarch64-linux-gnu-nm", "-D", "--defined-only").splitlines()}
    assert {"dlsym", "cuGraphLaunch", "cuGetProcAddress_v2", "slotprobe_donate"} <= names
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", ask("aarch64-linux-gnu-objdump", "-T"))}
    assert versions and max(versions) <= (2, 28), max(versions)
