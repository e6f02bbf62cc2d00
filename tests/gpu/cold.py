# SPDX-License-Identifier: Apache-2.0
"""That what a bench reads comes from memory and from no cache: the order in which slots are taken, and times that no memory allows."""
import math


def step(n_slots: int) -> int:
    """How far the next slot is: about 7/19 of them, and no divisor in common with their number, which would leave slots out."""
    wanted = max(n_slots * 7 // 19, 1)
    while math.gcd(wanted, n_slots) != 1:
        wanted += 1
    return wanted


def too_quick(us: float, size: int, copy_rate: float) -> bool:
    """Whether so many bytes were read quicker than memory gives them (copy_rate: bytes read and written a second by a copy in the same run; one
    direction alone is no 15 % quicker). Then they came from a cache, or were not read."""
    return not us > size / (1.15 * copy_rate) * 1e6
