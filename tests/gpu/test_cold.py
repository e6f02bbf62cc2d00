# SPDX-License-Identifier: Apache-2.0
"""What the benches say of caches holds: slots are rotated over all of them, whatever their number, and what no memory can do is seen."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cold import step, too_quick  # noqa: E402


def test_every_slot_comes_before_one_comes_again():
    for n in [*range(1, 1000), 2427, 26215]:
        assert len({i * step(n) % n for i in range(n)}) == n, n
    assert 15 * 7 // 19 | 1 == 5 and len({i * 5 % 15 for i in range(15)}) == 3  # what an odd step alone would do


def test_what_no_memory_can_do_is_seen():
    """72 MiB at 4.26 TB/s: measured, from a cache, not at all, no number."""
    assert not too_quick(23.76, 72 << 20, 4.264e12)
    assert all(too_quick(us, 72 << 20, 4.264e12) for us in (12.0, 0.3, 0.0, -0.5, math.nan))
    assert not too_quick(3.69, 4096, 4.264e12) and too_quick(0.0, 4096, 4.264e12)
