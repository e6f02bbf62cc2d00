# SPDX-License-Identifier: Apache-2.0
"""The package's structures and numbers are those of slotprobe.h, as a C compiler sees them."""
import ctypes
import pathlib
import struct
import subprocess

import pytest

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2] / "probes" / "python")

STRUCTURES = {"plane": "Plane", "pool": "Pool", "claim": "Claim", "step": "Step"}
NUMBERS = ["F64", "F32", "F16", "BF16", "F8E4M3", "F8E5M2", "I8", "I32", "RAW", "ALLOC", "CLEAR", "COPY", "DISCARD", "FREE", "MODE_EAGER",
           "MODE_GRAPH", "MODE_SEEN", "HIT_COMMITTED", "HIT_FILTERED", "HIT_ERROR"]


@pytest.fixture(scope="module")
def package():
    """The package, which finds no preload here."""
    import sys
    sys.path.insert(0, PACKAGE)
    import slotprobe
    yield slotprobe
    sys.path.remove(PACKAGE)


@pytest.fixture(scope="module")
def header(package, root, tmp_path_factory):
    """What a C program prints of the header: {expression: number}."""
    from slotprobe import _abi
    rows = []
    for c, python in STRUCTURES.items():
        rows.append(f"sizeof(struct slotprobe_{c})")
        for name, _ in getattr(_abi, python)._fields_:
            rows += [f"offsetof(struct slotprobe_{c}, {name})", f"sizeof(((struct slotprobe_{c} *)0)->{name})"]
    rows += [f"SLOTPROBE_{n}" for n in NUMBERS]
    folder = tmp_path_factory.mktemp("abi")
    lines = "".join(f'\tprintf("%zu\\n", (size_t)({row}));\n' for row in rows)
    (folder / "abi.c").write_text("#include <stddef.h>\n#include <stdio.h>\n#include \"probes/core/slotprobe.h\"\n"
                                  f"int main(void)\n{{\n{lines}\treturn 0;\n}}\n")
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", root, "-o", folder / "abi", folder / "abi.c", "-ldl"], check=True, timeout=60)
    printed = subprocess.run([folder / "abi"], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    return dict(zip(rows, map(int, printed)))


def test_structures(header):
    """Sizes, offsets and widths of every field; no field is missing at the end, since the sizes agree."""
    from slotprobe import _abi
    for c, python in STRUCTURES.items():
        made = getattr(_abi, python)
        assert ctypes.sizeof(made) == header[f"sizeof(struct slotprobe_{c})"]
        for name, _ in made._fields_:
            field = getattr(made, name)
            assert (field.offset, field.size) == (header[f"offsetof(struct slotprobe_{c}, {name})"],
                                                  header[f"sizeof(((struct slotprobe_{c} *)0)->{name})"]), f"{c}.{name}"


@pytest.mark.parametrize("packer, structure", [("CLAIM", "Claim"), ("STEP", "Step")])
def test_packed(header, packer, structure):
    """What is packed by hand lies where the structure has it."""
    from slotprobe import _abi
    packer, made = getattr(_abi, packer), getattr(_abi, structure)
    assert packer.size == ctypes.sizeof(made)
    letters = [c for c in packer.format.lstrip("@") if c.isalpha()]
    if letters[-1] == "q" and packer.format.endswith("0q"):
        letters.pop()  # the end's alignment
    assert len(letters) == len(made._fields_)
    values = list(range(1, len(letters) + 1))
    packed = packer.pack(*values)
    for (name, _), value in zip(made._fields_, values):
        field = getattr(made, name)
        assert struct.unpack_from("<" + {4: "I", 8: "Q"}[field.size], packed, field.offset) == (value,), name
    signs = {ctypes.c_int32: "i", ctypes.c_int64: "q", ctypes.c_uint32: "I", ctypes.c_uint64: "Q", ctypes.c_char_p: "P"}
    assert letters == [signs[kind] for _, kind in made._fields_]


def test_numbers(package, header):
    """Dtypes, events, modes and outcomes."""
    for name in NUMBERS:
        assert getattr(package, name) == header[f"SLOTPROBE_{name}"], name
    assert set(NUMBERS) < set(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
