# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests. The CPU driver is always used; with SLOTPROBE_TEST_CUDA=1 every test that takes the `lab` fixture
runs on the machine's CUDA driver too."""
import os
import pathlib

import pytest

from toylab import Lab

DRIVERS = ["cpu"] + (["cuda"] if os.environ.get("SLOTPROBE_TEST_CUDA") == "1" else [])


@pytest.fixture(scope="session", params=DRIVERS)
def lab(request, build, tmp_path_factory) -> Lab:
    """A place to record in and to ask from, on each driver."""
    return Lab(pathlib.Path(build), request.param, tmp_path_factory.mktemp(request.param))
