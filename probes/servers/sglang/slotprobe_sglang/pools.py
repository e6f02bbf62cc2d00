# SPDX-License-Identifier: Apache-2.0
"""SGLang's state pools as pools of slotprobe, and its index buffers as regions. Strides are the tensors' own, so every layout is served."""

MARK = "_slotprobe"  # attribute of SGLang's objects: what slotprobe calls them
REGIONS_MAX = 32  # batch sizes whose index buffers are named


class Known:
    """What an allocator or a pool of SGLang is to slotprobe: the pool's id, and how its slot ids become places in the pool."""
    __slots__ = ("pool", "translate")

    def __init__(self, pool, translate=None):
        self.pool, self.translate = pool, translate

    def place(self, ids):
        """Slot ids as the pool counts them. The unified pool moves slots and hands out ids of its own."""
        return ids if self.translate is None else self.translate(ids)


def known(thing):
    """Known, or None for what was not registered: pools of draft models, allocators of something else."""
    return getattr(thing, MARK, None)


def state_tensors(cache):
    """The tensors of MambaPool.State; some models have no temporal state, or an empty one."""
    found = {"conv": list(cache.conv), "temporal": cache.temporal}
    return {name: t for name, t in found.items() if (t if isinstance(t, list) else t is not None and t.numel())}


def checkpoint_tensors(pool):
    """The tensors of MambaCheckpointPool: states as int8 with scales, conv windows as they are."""
    return {"qdata": pool.temporal.qdata, "scale": pool.temporal.scale, "conv": list(pool.conv)}


def register(api, requests):
    """Registers what a HybridReqToTokenPool holds, once. Returns how many pools."""
    made = 0
    if known(requests.mamba_pool) is None:
        pool = api.pool("mamba", state_tensors(requests.mamba_pool.mamba_cache))
        if pool < 0:
            raise OSError(-pool, "the Mamba pool was not taken")
        setattr(requests.mamba_pool, MARK, Known(pool))
        made += 1
    kept = getattr(requests, "mamba_ckpt_pool", None)
    if kept is not None and known(kept) is None:
        pool = api.pool("mamba_int8", checkpoint_tensors(kept))
        if pool < 0:
            raise OSError(-pool, "the int8 checkpoint pool was not taken")
        setattr(kept, MARK, Known(pool))
        setattr(kept.allocator, MARK, Known(pool))
        made += 1
    link_allocator(requests)
    return made


def link_allocator(requests):
    """The allocator of the unified pool comes later than the pool."""
    allocator = getattr(requests, "mamba_allocator", None)
    if allocator is not None and known(allocator) is None:
        virtual = getattr(requests, "mamba_v2p_table", None) is not None or hasattr(allocator, "translate")
        translate = requests.translate_mamba_indices if virtual else None
        setattr(allocator, MARK, Known(known(requests.mamba_pool).pool, translate))


def of_cached(requests):
    """The pool that cached states of this HybridReqToTokenPool lie in, or None."""
    kept = getattr(requests, "mamba_ckpt_pool", None)
    if kept is not None:
        return known(kept)
    return known(getattr(requests, "mamba_allocator", None))


def name_region(api, name, tensor):
    """Names a buffer; an absent one is none."""
    if tensor is not None and tensor.numel():
        api.region(name, tensor)


def name_graph_state(api, backend):
    """What the captured track-save reads its destinations from."""
    name_region(api, "mamba_track_indices_buf", getattr(backend, "mamba_track_indices_buf", None))


def name_graph_inputs(api, runner):
    """What the scheduler meant, as the replay copied it in: the destinations, which of them count, and the slots of each size."""
    buffers = runner.buffers
    name_region(api, "mamba_track_indices", getattr(buffers, "mamba_track_indices", None))
    name_region(api, "mamba_track_mask", getattr(buffers, "mamba_track_mask", None))
    for backend in backends(getattr(runner, "attn_backend", None) or getattr(runner.model_runner, "attn_backend", None)):
        by_size = getattr(backend, "state_indices_list", None) or ()
        for size in sorted(getattr(runner, "capture_bs", None) or ())[:REGIONS_MAX]:
            if 0 < size <= len(by_size):
                name_region(api, f"mamba_state_indices.{size}", by_size[size - 1])


def backends(backend, depth=4):
    """An attention backend and those that it is made of."""
    if backend is None or not depth:
        return
    yield backend
    for part in getattr(backend, "attn_backend_list", None) or ():
        yield from backends(part, depth - 1)
