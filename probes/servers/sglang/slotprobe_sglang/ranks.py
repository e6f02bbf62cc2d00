# SPDX-License-Identifier: Apache-2.0
"""Which rank a scheduler is."""


def _parallel(scheduler):
    """Where the release keeps them: on the scheduler, or in the process's context."""
    found = getattr(scheduler, "ps", None)
    if found is None:
        from sglang.srt.runtime_context import get_parallel
        found = get_parallel()
    return found


def _number(parallel, name, otherwise):
    try:
        found = getattr(parallel, name)
    except Exception:  # a context that was not given this group
        return otherwise
    return otherwise if found is None else int(found)


def of(scheduler):
    """(axis, index, count) of each axis. The axes are independent, each combination of indices is one process: where attention is
    data-parallel, its groups divide tp."""
    parallel = _parallel(scheduler)

    def pair(name):
        return _number(parallel, name + "_rank", 0), _number(parallel, name + "_size", 1)

    divided = pair("attn_dp")[1] > 1 or pair("attn_cp")[1] > 1
    yield ("tp", *pair("attn_tp" if divided else "tp"))
    yield ("pp", *pair("pp"))
    dp, replicas = pair("dp")
    if pair("attn_dp")[1] > 1:
        dp, replicas = pair("attn_dp")
    yield "dp", dp, max(replicas, 1)
    if pair("attn_cp")[1] > 1:
        yield ("cp", *pair("attn_cp"))
