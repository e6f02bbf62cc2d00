# SPDX-License-Identifier: Apache-2.0
"""What a call of the hot path costs, in instructions, on the CPU driver under callgrind; and that none of them allocates or takes a lock.
Counts do not depend on the machine's load. The figures stand in docs/performance.md."""
import pytest

from callgrind import CALLS, profile

OURS = "libslotprobe.so"
DRIVER = "libcuda.so.1"
# At most so many instructions of the library itself for one call.
MOST = {"launch": 80, "donate": 400, "restore": 400, "alloc": 430, "free": 430, "step": 180}
# What stops a thread until another one lets it go, or goes to the allocator.
FORBIDDEN = ("malloc", "calloc", "realloc", "free", "memalign", "mmap", "pthread_mutex", "pthread_rwlock", "pthread_cond", "sem_", "futex",
             "lll_lock", "dl_iterate_phdr", "syscall", "nanosleep", "sched_yield", "poll")
# libunwind's own, which no thread of ours takes: the writer unwinds nothing.
UNWINDER = "libunwind.so"


@pytest.fixture(scope="module")
def profiles(build, tmp_path_factory):
    """Profiles by what is called and which library it runs with, each made once."""
    made = {}

    def get(what, library="libslotprobe.so"):
        key = (what, library)
        if key not in made:
            made[key] = profile(build, tmp_path_factory.mktemp("hotpath"), what, build / library if library else None)
        return made[key]
    return get


def forbidden(found):
    """Functions that no hot path may reach."""
    return {f for f in found if not f[0].startswith(UNWINDER) and any(name in f[1] for name in FORBIDDEN)}


def reached(p):
    """What the library's functions reach but for the driver's and, from there, the unwinder's."""
    for caller in [f for f in p.edges if f[0].startswith(UNWINDER)]:
        del p.edges[caller]
    return p.reached(OURS, DRIVER)


def test_nothing_costs_nothing(profiles):
    """The loop itself has none of ours in it, and the bare program has none of ours at all."""
    assert profiles("nothing").own[OURS] == 0
    assert profiles("launch", None).own[OURS] == 0 and profiles("launch", None).own[DRIVER] > 100


@pytest.mark.parametrize("what", MOST)
def test_instructions(profiles, what):
    p = profiles(what)
    assert 20 < p.own[OURS] <= MOST[what], dict(p.own)


def test_a_launch_is_ours_alone(profiles):
    """Nothing but the driver is called on its way, so that its own instructions are all that is added."""
    assert not reached(profiles("launch"))
    bare, on = profiles("launch", None).own, profiles("launch").own
    assert on["hotpath"] == bare["hotpath"]


@pytest.mark.parametrize("what", MOST)
def test_no_allocation_and_no_lock(profiles, what):
    assert not forbidden(reached(profiles(what)))


@pytest.mark.parametrize("what", ["launch", "donate"])
def test_what_is_planted_is_found(profiles, what):
    """The same on a library in which each launch and each claim loops ten times, allocates and locks."""
    good, bad = profiles(what), profiles(what, "bench/planted/libslotprobe.so")
    assert bad.own[OURS] > good.own[OURS] + 20
    assert what != "launch" or bad.own[OURS] > MOST[what]
    names = {f[1] for f in forbidden(reached(bad))}
    assert any("malloc" in n for n in names) and any("pthread_mutex_lock" in n for n in names), names
    assert CALLS > 64
