# SPDX-License-Identifier: Apache-2.0
"""The committed PTX is what its source makes, assembles for old and new GPUs and keeps to registers."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
PTX = ROOT / "probes/core/kernel/fingerprint.ptx"


def check(script: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([script, "check"], capture_output=True, text=True, timeout=300)


def test_header():
    lines = PTX.read_text().splitlines()
    assert lines[1].startswith("// made by `make ptx` from fingerprint.cu with nvcc release ")
    assert lines[2:5] == [".version 7.0", ".target sm_70", ".address_size 64"]
    assert not [line for line in lines[2:] if line.lstrip().startswith("//")]


@pytest.mark.skipif(not shutil.which("ptxas"), reason="there is no ptxas")
def test_ptx_check():
    done = check(ROOT / "probes/core/kernel/ptx.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "registers" in done.stdout


@pytest.mark.skipif(not shutil.which("ptxas"), reason="there is no ptxas")
@pytest.mark.parametrize("old, new", [("FP_STEP        0x9e3779b97f4a7c15ull", "FP_STEP        0x9e3779b97f4a7c17ull"),
                                      ("#define FP_BLOCKS 3", "#define FP_BLOCKS 8")])
def test_ptx_check_sees_a_change(tmp_path, old, new):
    """A source that moved on; a kernel that spills, committed as it is made."""
    kernel = tmp_path / "probes/core/kernel"
    shutil.copytree(ROOT / "probes/core/kernel", kernel)
    name = "fingerprint.cu" if "BLOCKS" in old else "fingerprint_ops.h"
    text = (kernel / name).read_text()
    assert old in text
    (kernel / name).write_text(text.replace(old, new))
    if "BLOCKS" in old:
        if not shutil.which("nvcc"):
            pytest.skip("there is no nvcc")
        subprocess.run([kernel / "ptx.sh", "build"], check=True, timeout=300)
        expected = "uses local memory"
    else:
        expected = "is not what its source makes"
        if not shutil.which("nvcc") or check(kernel / "ptx.sh").stdout.startswith("ptx-check: made by another nvcc"):
            pytest.skip("another nvcc made it")
    done = check(kernel / "ptx.sh")
    assert done.returncode == 1 and expected in done.stderr, done.stdout + done.stderr
