# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fault tests: a server, run bare and well once, and faulty as often as the tests ask."""
import pathlib

import pytest

from faultlab import Faults, Toy, Tour


@pytest.fixture(scope="module")
def faults(build, tmp_path_factory):
    """Makes a lab for one server."""
    def make(server, **settings):
        return Faults(pathlib.Path(build), tmp_path_factory.mktemp("faults"), server, settings)
    return make


@pytest.fixture(scope="module")
def toy(faults):
    """The toy server as it is."""
    return faults(Toy("--requests", "24"))


@pytest.fixture(scope="module")
def tour(faults):
    """The server that takes every road once."""
    return faults(Tour())
