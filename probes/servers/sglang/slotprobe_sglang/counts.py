# SPDX-License-Identifier: Apache-2.0
"""The adapter's own counters, and the guard that every hook runs in."""
import functools
import logging

GROUP = "sglang."
NAMES = ("hooked", "hook_missing", "hook_error", "scheduler", "pool", "cache_finished_req", "cache_unfinished_req", "donate", "discard",
         "restore", "alloc", "clear", "copy", "free", "step")
LOG = logging.getLogger("slotprobe.sglang")
TOLD_MAX = 8  # lines that hook errors may write to the server's log


class Counts:
    """Counts by name. Nothing here raises."""

    def __init__(self, api):
        self.api, self.hit = api, api.hit
        self.good, self.bad = api.HIT_COMMITTED, api.HIT_ERROR
        self.ids = {name: api.point(GROUP + name) for name in NAMES}
        self.told = 0

    def done(self, name):
        """One attempt, and what it was for is done."""
        self.hit(self.ids[name], self.good)

    def left_out(self, name):
        """One attempt that is none of slotprobe's business."""
        self.hit(self.ids[name], self.api.HIT_FILTERED)

    def failed(self, name):
        """One attempt that went wrong."""
        self.hit(self.ids[name], self.bad)

    def outcome(self, name, returned):
        """By what a call of slotprobe returned."""
        self.hit(self.ids[name], self.good if returned >= 0 else self.bad)

    def outcomes(self, name, attempts, refused):
        """Of so many calls."""
        point = self.ids[name]
        for i in range(attempts):
            self.hit(point, self.bad if i < refused else self.good)

    def wrong(self, where):
        """A hook raised; the server does not notice. To be called in the exception's handler."""
        try:
            self.failed("hook_error")
            self.told += 1
            if self.told <= TOLD_MAX:
                LOG.warning("slotprobe: the hook %s failed; the server goes on", where, exc_info=True)
        except Exception:  # a logger of the server's own that fails
            pass


def guarded(method):
    """A hook's body: whatever goes wrong in it is counted, and the hook says nothing to the registry."""
    @functools.wraps(method)
    def body(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Exception:
            self.counts.wrong(method.__name__)
            return None
    return body
