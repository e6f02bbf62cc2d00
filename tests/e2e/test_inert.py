# SPDX-License-Identifier: Apache-2.0
"""A program that never touches CUDA is not touched either: same output, status and open files, no run directory, no thread."""
import os
import subprocess
import sys

import pytest

PROGRAMS = {
    "ls": ["/bin/ls", "-la", "/usr"],
    "open files": ["/bin/ls", "/proc/self/fd"],
    "status": ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"],
    "signal": ["/bin/sh", "-c", "kill -SEGV $$"],
    "python": [sys.executable, "-c", "import ctypes, os; print(len(os.listdir('/proc/self/task')), ctypes.CDLL(None).getpid() == os.getpid())"],
    "feature test": [sys.executable, "-c", "import ctypes; print(hasattr(ctypes.CDLL(None), 'cuInitNoSuch'))"],
}


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, **environment}, cwd="/")
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_without_cuda_is_untouched(build, before_ours, tmp_path, name):
    recorded = {"LD_PRELOAD": f"{before_ours}{build}/libslotprobe.so", "SLOTPROBE_DIR": str(tmp_path / "run"), "SLOTPROBE_ARM": "graph-on",
                "SLOTPROBE_RECORDING": "1"}
    assert run(PROGRAMS[name], **recorded) == run(PROGRAMS[name])
    assert not (tmp_path / "run").exists()


def test_the_same_program_with_cuda_is_recorded(build, before_ours, tmp_path):
    """The red twin: what leaves no trace above leaves one as soon as CUDA is initialised."""
    code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    status, out, _ = run([sys.executable, "-c", code], LD_PRELOAD=f"{before_ours}{build}/libslotprobe.so", SLOTPROBE_DIR=str(tmp_path / "run"),
                         LD_LIBRARY_PATH=str(build / "cpudriver"))
    assert (status, out.strip()) == (0, b"0")
    assert list((tmp_path / "run").glob("*.ctr")) and list((tmp_path / "run").glob("*.log"))


@pytest.mark.parametrize("wanted, said", [("run", b"slotprobe: recording into "), ("file/run", b"slotprobe: nothing is recorded, no use of ")])
def test_what_the_library_says_when_asked(build, before_ours, tmp_path, wanted, said):
    (tmp_path / "file").touch()
    code = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"
    told = {"LD_PRELOAD": f"{before_ours}{build}/libslotprobe.so", "SLOTPROBE_DIR": str(tmp_path / wanted), "LD_LIBRARY_PATH": str(build / "cpudriver")}
    line = said + str(tmp_path / wanted).encode() + (b"\n" if wanted == "run" else b": error 20 (see errno(3))\n")
    assert run([sys.executable, "-c", code], **told, SLOTPROBE_DEBUG="1")[2] == line
    assert run([sys.executable, "-c", code], **told)[2] == b""


def test_nobody_need_listen_to_what_the_library_says(build, before_ours, tmp_path):
    """Into a pipe that nobody reads: the program, which ignores no SIGPIPE, goes on."""
    reads, writes = os.pipe()
    os.close(reads)
    told = {"LD_PRELOAD": f"{before_ours}{build}/libslotprobe.so", "SLOTPROBE_DIR": str(tmp_path / "run"), "LD_LIBRARY_PATH": str(build / "cpudriver"),
            "SLOTPROBE_DEBUG": "1"}
    done = subprocess.run([build / "toyserver" / "toyserver", "--requests", "1"], stdout=subprocess.DEVNULL, stderr=writes, timeout=60,
                          env={**os.environ, **told}, check=False)
    os.close(writes)
    assert done.returncode == 0 and list((tmp_path / "run").glob("*.ctr"))
