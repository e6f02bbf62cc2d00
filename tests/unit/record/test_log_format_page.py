# SPDX-License-Identifier: Apache-2.0
"""docs/log-format.md against log_format.h: every structure, field, offset, record type and outcome that the page states."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "log-format.md").read_text()
HEADER = (ROOT / "shim" / "record" / "log_format.h").read_text()


def structures():
    """name -> (bytes, [(offset, bytes or None, field)]) as the page has it"""
    found = {}
    for part in re.split(r"^### ", PAGE, flags=re.M)[1:]:
        head = re.match(r"`struct (\w+)`: (\d+) bytes", part)
        if head:
            rows = re.findall(r"^\| (\d+) \| (\d+|\.\.\.) \| `(\w+)` \|", part, flags=re.M)
            found[head[1]] = (int(head[2]), [(int(o), None if n == "..." else int(n), f) for o, n, f in rows])
    return found


def compiles(statements):
    source = '#include "shim/record/log_format.h"\n' + "\n".join(statements)
    done = subprocess.run(
        ["cc", "-std=gnu11", "-fsyntax-only", f"-I{ROOT}", "-x", "c", "-"], input=source, text=True, capture_output=True
    )
    return done.returncode == 0, done.stderr


def test_every_structure_is_there():
    in_header = set(re.findall(r"^struct (\w+) \{", HEADER, flags=re.M)) | {"log_record"}
    assert in_header == set(structures())


def test_no_byte_is_left_out():
    for name, (size, rows) in structures().items():
        at = 0
        for offset, count, field in rows:
            assert offset == at, f"{name}.{field}"
            at += count or 0
        assert at == size, name


def test_offsets_are_the_compilers():
    lines = []
    for name, (size, rows) in structures().items():
        lines.append(f'_Static_assert(sizeof(struct {name}) == {size}, "{name}");')
        for offset, count, field in rows:
            lines.append(f'_Static_assert(offsetof(struct {name}, {field}) == {offset}, "{name}.{field}");')
            if count is not None:
                lines.append(f'_Static_assert(sizeof(((struct {name} *)0)->{field}) == {count}, "{name}.{field} size");')
    ok, errors = compiles(lines)
    assert ok, errors
    ok, _ = compiles(lines + ['_Static_assert(sizeof(struct log_end) == 1, "must fail");'])
    assert not ok


def test_record_types_and_outcomes():
    types = re.findall(r"^\| (\d+) \| (LOG_\w+) \| `struct (\w+)` \|", PAGE, flags=re.M)
    outcomes = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \|$", PAGE, flags=re.M)
    lines = [f'_Static_assert({name} == {number}, "{name}");' for number, name, _ in types]
    lines.append(f'_Static_assert(LOG_TYPE_COUNT == {len(types) + 1}, "types");')
    lines.append(f'_Static_assert((int)CTR_OUTCOME_COUNT == {len(outcomes)}, "outcomes");')
    ok, errors = compiles(lines)
    assert ok, errors
    table = re.findall(r"^\tX\((\w+), CTR_IN_(\w+), \"(\w+)\"", HEADER, flags=re.M)
    assert [(str(i), label, group.lower()) for i, (_, group, label) in enumerate(table)] == outcomes
