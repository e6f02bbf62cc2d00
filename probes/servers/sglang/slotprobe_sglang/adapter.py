# SPDX-License-Identifier: Apache-2.0
"""What happens in SGLang, told to slotprobe: one method for each hook.

None raises into the server. A hook that only looks returns nothing, which the hook registry takes for "as it was".
"""
from . import pools, ranks
from .counts import Counts, guarded
from .keys import Prefix
from .streams import Streams, capturing

TAG = "_slotprobe"  # attribute of SGLang's requests and insert parameters


class Adapter:
    """The hooks of one process. `api`: the package slotprobe, or what stands in for it."""

    def __init__(self, api):
        self.api, self.counts, self.streams = api, Counts(api), Streams()
        self.ready = False  # set once the scheduler stands: what happens before is warm-up
        self.padded, self.modes = -1, {}
        self.verify = None  # called once, when the first hook fires

    # ---- the process ----

    @guarded
    def before_scheduler(self, *_args, **_kwargs):
        """Scheduler.__init__"""
        self.verified()

    def verified(self):
        """Whether the registry did what it was asked to, once."""
        verify, self.verify = self.verify, None
        if verify is not None:
            verify()

    @guarded
    def after_scheduler(self, _result, scheduler, *_args, **_kwargs):
        """Scheduler.__init__"""
        for axis, index, count in ranks.of(scheduler):
            self.api.rank(axis, index, count)
        requests = getattr(scheduler, "req_to_token_pool", None)
        if hasattr(requests, "mamba_pool"):
            self.add_pools(requests)
            if getattr(scheduler, "enable_overlap", False):
                self.streams.expect(getattr(scheduler, "forward_stream", None))
        self.ready = True
        self.counts.done("scheduler")

    # ---- pools and buffers ----

    def add_pools(self, requests):
        """Registers what is not yet."""
        for _ in range(pools.register(self.api, requests)):
            self.counts.done("pool")

    @guarded
    def after_pool(self, _result, requests, *_args, **_kwargs):
        """HybridReqToTokenPool.__init__"""
        self.verified()
        self.add_pools(requests)

    @guarded
    def after_graph_state(self, _result, backend, *_args, **_kwargs):
        """MambaAttnBackendBase.init_cuda_graph_state"""
        pools.name_graph_state(self.api, backend)

    @guarded
    def after_graph_runner(self, _result, runner, *_args, **_kwargs):
        """DecodeCudaGraphRunner.__init__"""
        if not runner.model_runner.is_draft_worker:
            pools.name_graph_inputs(self.api, runner)

    # ---- steps ----

    @guarded
    def before_forward(self, runner, *_args, **_kwargs):
        """ModelRunner.forward"""
        if not runner.is_draft_worker:
            self.padded = -1
            self.streams.observe()

    @guarded
    def after_graph_batch(self, _result, runner, *_args, **_kwargs):
        """DecodeCudaGraphRunner.load_batch"""
        if not runner.model_runner.is_draft_worker:
            self.padded = int(runner.bs)

    @guarded
    def after_forward(self, _result, runner, forward_batch=None, *_args, **_kwargs):
        """ModelRunner.forward. Told after it, when its graph launches are counted: the step is a graph's if there was one."""
        if not self.ready or forward_batch is None:
            return
        mode = forward_batch.forward_mode
        name = self.modes.get(mode) or self.modes.setdefault(mode, mode.name.lower())
        if runner.is_draft_worker:
            name, padded = "draft_" + name, -1
        else:
            padded = self.padded
        said = self.api.step(name, runner.forward_pass_id, forward_batch.batch_size, padded, self.api.MODE_SEEN)
        self.counts.outcome("step", said)

    # ---- handing over ----

    @guarded
    def before_cache_finished(self, _cache, req, *_args, **_kwargs):
        """cache_finished_req of older caches"""
        self.attempt(req, True)

    @guarded
    def before_cache_unfinished(self, _cache, req, *_args, **_kwargs):
        """cache_unfinished_req of older caches"""
        self.attempt(req, False)

    @guarded
    def before_checkpoint(self, _cache, req, *_args, **_kwargs):
        """UnifiedRadixCache.checkpoint, which became both"""
        self.attempt(req, req.finished())

    def attempt(self, req, finished):
        """A request comes to the cache; whether it has a state to give is seen later."""
        self.counts.done("cache_finished_req" if finished else "cache_unfinished_req")
        self.current = req

    current = None  # the request that came last: MambaRadixCache has no choke point that names it

    @guarded
    def after_prepare(self, result, _component, req=None, insert_params=None, *_args, **_kwargs):
        """MambaComponent.prepare_for_caching_req: the state's length."""
        if result and getattr(insert_params, "mamba_value", None) is not None:
            setattr(insert_params, TAG, (req, result))
        else:
            self.counts.left_out("donate")

    def around_insert(self, insert, cache, *args, **kwargs):
        """insert of both caches: the key, and whether the tree took the state."""
        donation = self.donate(cache, *args, **kwargs)
        result = insert(cache, *args, **kwargs)
        if donation:
            self.discard(donation, result)
        return result

    @guarded
    def donate(self, cache, params=None, *_args, **_kwargs):
        """The state is complete and the tree has not seen it. Returns what `discard` needs, if there is anything to say."""
        slot = getattr(params, "mamba_value", None)
        if slot is None or getattr(cache, "disable", False):
            return None
        req, length = self.claimant(cache, params)
        pool = pools.of_cached(cache.req_to_token_pool)
        if req is None or pool is None:
            self.counts.left_out("donate")
            return None
        key_len = len(params.key)
        key = prefix_of(req).key(params.key.token_ids, key_len)
        place = pool.place(slot)
        stream = self.streams.behind(place)
        said = self.api.donate(pool.pool, place, length, key=key, key_len=key_len, stream=stream)
        self.counts.outcome("donate", said)
        return (pool.pool, place, stream, said) if said > 0 else None

    def claimant(self, cache, params):
        """(request, length of its state): as prepare said. A state that came from the host's memory has no claimant: it may still be
        on its way."""
        said = getattr(params, TAG, None)
        if said is not None or hasattr(cache, "components"):
            return said or (None, 0)
        req, self.current = self.current, None
        tracked = getattr(holder(req), "mamba_last_track_seqlen", None) if getattr(cache, "enable_mamba_extra_buffer", False) else None
        return req, len(params.key) if tracked is None else tracked

    @guarded
    def discard(self, donation, result):
        """The tree had a state for this prefix."""
        if not getattr(result, "mamba_exist", False):
            return
        pool, place, stream, number = donation
        self.counts.outcome("discard", self.api.slot(self.api.DISCARD, pool, place, src=number, stream=stream))

    # ---- taking up ----

    @guarded
    def before_restore(self, batch, reqs, *_args, **_kwargs):
        """ScheduleBatch._collect_deferred_mamba_cow_and_clear: the copies run at the start of the next forward."""
        sources = [(req, getattr(holder(req), "mamba_cow_src_index", None)) for req in reqs]
        sources = [(req, source) for req, source in sources if source is not None]
        if not sources:
            return
        pool = pools.of_cached(batch.req_to_token_pool)
        if pool is None:
            for _ in sources:
                self.counts.left_out("restore")
            return
        places = [pool.place(source) for _, source in sources]
        stream = self.streams.behind(*places)
        for (req, _), place in zip(sources, places):
            self.restore(pool, req, place, stream)

    def restore(self, pool, req, place, stream):
        """The request goes on from this state, as if it had computed its first `length` tokens itself."""
        length = matched(req)
        tokens = req.full_untruncated_fill_ids or req.origin_input_ids
        key = prefix_of(req).key(tokens, length)
        said = self.api.restore(pool.pool, place, length, key=key, key_len=length if key else -1, stream=stream)
        self.counts.outcome("restore", said)

    # ---- slots ----

    @guarded
    def after_alloc(self, result, allocator, *_args, **_kwargs):
        """alloc of the slot allocators"""
        pool = self.taking(allocator, result)
        if pool is not None:
            place = pool.place(result)
            self.each(self.api.ALLOC, "alloc", pool, place, stream=self.streams.behind(place))

    @guarded
    def before_free(self, allocator, free_index=None, *_args, **_kwargs):
        """free of the slot allocators; afterwards the ids mean nothing. Those on the device are read by nobody."""
        pool = self.taking(allocator, free_index)
        if pool is not None:
            place = free_index if free_index.is_cuda else pool.place(free_index)
            self.each(self.api.FREE, "free", pool, place, stream=self.streams.of_forward(place))

    @guarded
    def after_clear(self, _result, pool, indices=None, *_args, **_kwargs):
        """clear_slots of the pools: on the current stream, where it ran"""
        mine = self.taking(pool, indices)
        if mine is not None and not capturing():
            self.each(self.api.CLEAR, "clear", mine, indices, stream=self.streams.here(indices))

    @guarded
    def after_copy(self, _result, pool, src_indices=None, dst_indices=None, *_args, **_kwargs):
        """copy_from of the pools: on the current stream, where it ran"""
        mine = self.taking(pool, dst_indices)
        if mine is not None and not capturing():
            self.each(self.api.COPY, "copy", mine, dst_indices, flat(src_indices), self.streams.here(dst_indices))

    def taking(self, thing, ids):
        """Known of an allocator or a pool, where there are slots to tell of."""
        return pools.known(thing) if self.ready and ids is not None and ids.numel() else None

    def each(self, event, name, pool, ids, sources=None, stream=None):
        """One event for each slot of a tensor."""
        ids = flat(ids)
        self.counts.outcomes(name, ids.numel(), self.api.slots(event, pool.pool, ids, sources, stream))

    @guarded
    def after_move(self, _result, pool, tgt_loc=None, src_loc=None, *_args, **_kwargs):
        """move_kv_cache of the unified pool"""
        self.after_copy(None, pool, src_loc, tgt_loc)


def flat(ids):
    """Slot ids along one axis."""
    return ids if ids.dim() == 1 else ids.reshape(-1)


def holder(req):
    """Where a request keeps its Mamba fields: releases moved them from the request into req.kv."""
    kv = getattr(req, "kv", None)
    return kv if hasattr(kv, "mamba_cow_src_index") else req


def matched(req):
    """Tokens that the request found in the cache."""
    length = getattr(req, "prefix_len", None)
    return len(req.prefix_indices) if length is None else int(length)


def prefix_of(req):
    """The request's prefixes, hashed as far as they were needed."""
    found = getattr(req, TAG, None)
    if found is None:
        salt = [s for s in (getattr(req, "extra_key", None), getattr(req, "cache_salt", None)) if s]
        found = Prefix(salt)
        setattr(req, TAG, found)
    return found
