# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests. The CPU driver is always used; where the machine has a CUDA driver that works, every test that takes
the `lab` fixture runs on it too (SLOTPROBE_TEST_CUDA=0 leaves it alone, =1 insists)."""
import os
import pathlib
import subprocess
import sys

import pytest

from asking import Tool
from toylab import Lab


def cuda_works() -> bool:
    """Asks libcuda in a process of its own: it does not go away again."""
    if os.environ.get("SLOTPROBE_TEST_CUDA") in ("0", "1"):
        return os.environ["SLOTPROBE_TEST_CUDA"] == "1"
    code = "import ctypes, sys; sys.exit(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, timeout=60).returncode == 0


DRIVERS = ["cpu"] + (["cuda"] if cuda_works() else [])


@pytest.fixture(scope="session", params=DRIVERS)
def lab(request, build, tmp_path_factory) -> Lab:
    """A place to record in and to ask from, on each driver."""
    return Lab(pathlib.Path(build), request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def tool(build, tmp_path) -> Tool:
    """The command, for runs that are written by hand."""
    return Tool(pathlib.Path(build) / "slotprobe", tmp_path)
