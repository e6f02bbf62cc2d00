# SPDX-License-Identifier: Apache-2.0
"""Stands in for four compiled packages, which have nothing to do without a GPU: whatever is asked of them is there and does nothing.

Only SGLang's own files see them; what probes for an optional package still finds none.
"""
import importlib.abc
import importlib.machinery
import sys
import types
import unittest

COMPILED = ("sgl_kernel", "cuda", "flashinfer", "torchvision")


class Nothing:
    """Any object, function, decorator or class of such a package."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else Nothing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __getitem__(self, key):
        return Nothing()

    def __or__(self, other):
        return Nothing()

    def __mro_entries__(self, bases):
        return (object,)


class Module(types.ModuleType):
    """Any module of such a package."""
    __path__, __version__ = [], "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds them for SGLang."""

    def find_spec(self, name, path, target=None):
        """A top-level package only where one of SGLang's files imports it."""
        if name.split(".")[0] not in COMPILED:
            return None
        frame = sys._getframe(1)
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if "." not in name and not (frame and "/sglang/" in frame.f_code.co_filename):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def install():
    """To be called before SGLang is imported."""
    sys.meta_path.append(Finder())
    sys.modules["sglang.test.test_utils"] = utilities = types.ModuleType("sglang.test.test_utils")  # it would load benchmarks' data sets
    utilities.CustomTestCase = unittest.TestCase
