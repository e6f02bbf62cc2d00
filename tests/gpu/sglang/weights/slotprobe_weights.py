# SPDX-License-Identifier: Apache-2.0
"""Widens SGLang's dummy weights, as a plugin of its own hook registry: at their size of 0.001 what a state says of its tokens would be lost
in bf16 next to the biases. Not so wide that a state grows without bounds."""

TARGET = "sglang.srt.model_loader.weight_utils.initialize_dummy_weights"
WIDEST = 0.05


def wider(model, *_args, **_kwargs):
    """The arguments of the filling."""
    return (model, -WIDEST, WIDEST), {}


def register():
    """The plugin's entry point."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(TARGET, wider, HookType.BEFORE)
