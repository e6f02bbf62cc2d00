# SPDX-License-Identifier: Apache-2.0
"""slotprobe's adapter for SGLang, loaded by SGLang itself: entry point `slotprobe` of the group `sglang.srt.plugins`.

Where nothing is recorded it does nothing. README.md of probes/servers/sglang says what it sees.
"""
import sys

SCHEDULER = "sglang.srt.managers.scheduler"


def plugin():
    """Called in every process of the server. Only those that know the scheduler are hooked: in a tokenizer's or detokenizer's process it
    would have to be imported for that."""
    import slotprobe
    if not slotprobe.available() or SCHEDULER not in sys.modules:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from .attach import attach
    attach(slotprobe, HookRegistry, HookType)
