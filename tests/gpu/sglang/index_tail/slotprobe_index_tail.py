# SPDX-License-Identifier: Apache-2.0
"""Puts the index tail fault back into SGLang, as a plugin of its own hook registry; no file of SGLang changes.

The captured track kernel of Mamba2 takes the last `batch` entries of the tensor that it is handed. Releases hand it the front of the static
buffer that was refreshed for this replay; before, it was the whole buffer, whose tail nobody refreshes: zeros, so that every
checkpoint of a batch smaller than the largest captured one goes to slot 0.
"""
import sys

TARGET = "sglang.srt.layers.attention.hybrid_linear_attn_backend.MambaAttnBackendBase._replay_metadata"
PLANTED = "index tail planted"


def whole_buffer(metadata, backend, *_args, **_kwargs):
    """The metadata of a replay, with the buffer in place of its front."""
    if metadata.mamba_track_indices is not None:
        metadata.mamba_track_indices = backend.mamba_track_indices_buf
        if not getattr(backend, "_index_tail_said", False):
            backend._index_tail_said = True
            print(PLANTED, file=sys.stderr, flush=True)
    return metadata


def register():
    """The plugin's entry point."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(TARGET, whole_buffer, HookType.AFTER)
