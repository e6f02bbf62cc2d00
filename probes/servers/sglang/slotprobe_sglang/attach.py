# SPDX-License-Identifier: Apache-2.0
"""Puts the hooks in place through SGLang's registry, and looks whether they are there."""
import importlib
import inspect

from .counts import LOG
from .targets import ROLES

# By role, or by function where a role's functions differ: (kind of hook, method of Adapter) each.
HOOKS = {
    "scheduler": (("BEFORE", "before_scheduler"), ("AFTER", "after_scheduler")),
    "forward": (("BEFORE", "before_forward"), ("AFTER", "after_forward")),
    "pool": (("AFTER", "after_pool"),),
    "prepare": (("AFTER", "after_prepare"),),
    "insert": (("AROUND", "around_insert"),),
    "checkpoint": (("BEFORE", "before_checkpoint"),),
    "cache_finished_req": (("BEFORE", "before_cache_finished"),),
    "cache_unfinished_req": (("BEFORE", "before_cache_unfinished"),),
    "restore": (("BEFORE", "before_restore"),),
    "alloc": (("AFTER", "after_alloc"),),
    "free": (("BEFORE", "before_free"),),
    "clear": (("AFTER", "after_clear"),),
    "copy": (("AFTER", "after_copy"),),
    "move": (("AFTER", "after_move"),),
    "graph_state": (("AFTER", "after_graph_state"),),
    "graph_runner": (("AFTER", "after_graph_runner"),),
    "graph_batch": (("AFTER", "after_graph_batch"),),
}


def hooks_of(role, target):
    """Of one target."""
    return HOOKS.get(target.function) or HOOKS[role.name]


def owner_of(target):
    """The class, or None: this release does not have it. A function that a class inherits is hooked where it is defined."""
    try:
        found = getattr(importlib.import_module(target.module), target.owner, None)
    except ImportError:
        return None
    return found if found is not None and target.function in vars(found) else None


def fits(function, parameters):
    """Whether a function begins with these parameters."""
    try:
        return tuple(inspect.signature(function).parameters)[:len(parameters)] == parameters
    except (TypeError, ValueError):
        return False


def wrapped_with(function, hook):
    """Whether the registry wrapped `hook` around this function, below whatever else was wrapped around it later."""
    while function is not None:
        for cell in getattr(function, "__closure__", None) or ():
            try:
                if cell.cell_contents is hook:
                    return True
            except ValueError:  # an empty cell
                pass
        function = getattr(function, "__wrapped__", None)
    return False


class Attachment:
    """What was asked of the registry: (target, hook) each."""

    def __init__(self, adapter):
        self.adapter, self.asked, self.missing = adapter, [], []

    def register(self, registry, kinds):
        """Asks for every hook that this release has a place for. The registry applies them when all plugins have asked."""
        for role in ROLES:
            found = [(target, owner_of(target)) for target in role.targets]
            found = [(target, owner) for target, owner in found if owner is not None]
            fitting = [(t, o) for t, o in found if fits(vars(o)[t.function], t.parameters)]
            if (role.required and not fitting) or len(fitting) < len(found):
                self.missing.append(f"{role.name} ({role.why})")
            for target, _ in fitting:
                self._ask(registry, kinds, role, target)

    def _ask(self, registry, kinds, role, target):
        for kind, method in hooks_of(role, target):
            hook = getattr(self.adapter, method)  # an object of its own each time: the registry's wrappers are told apart by it
            registry.register(target.path, hook, getattr(kinds, kind))
            self.asked.append((target, hook))

    def verify(self):
        """Counts what is in place and what is not; each is named once in the server's log."""
        counts = self.adapter.counts
        for target, hook in self.asked:
            owner = owner_of(target)  # again: another plugin may have replaced the class
            if owner is not None and wrapped_with(vars(owner)[target.function], hook):
                counts.done("hooked")
            else:
                self.missing.append(target.path)
        for _ in self.missing:
            counts.failed("hook_missing")
        if self.missing:
            LOG.warning("slotprobe: not seen in this release of SGLang: %s", "; ".join(self.missing))


def attach(api, registry, kinds):
    """Hooks SGLang in this process; returns the Attachment."""
    from .adapter import Adapter
    adapter = Adapter(api)
    attachment = Attachment(adapter)
    adapter.verify = attachment.verify
    attachment.register(registry, kinds)
    return attachment
