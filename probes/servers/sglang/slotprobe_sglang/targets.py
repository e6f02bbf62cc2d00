# SPDX-License-Identifier: Apache-2.0
"""What of SGLang is hooked: one table, from which the hooks are registered, verified, and compared with a release's sources.

A role is one thing that the adapter has to see. Its targets are where releases have it; one of them is enough, unless a release has
several, which then are all hooked. Nothing of SGLang is imported here: the drift check reads sources only.
"""
from typing import NamedTuple, Tuple

REQUIRED, OPTIONAL = True, False


class Target(NamedTuple):
    """A function of SGLang: module and "Class.function", and the parameters that the hook counts on, in order, `self` first."""
    module: str
    name: str
    parameters: Tuple[str, ...]

    @property
    def owner(self):
        """The class."""
        return self.name.split(".")[0]

    @property
    def function(self):
        """The function's own name."""
        return self.name.split(".")[1]

    @property
    def path(self):
        """As the hook registry wants it."""
        return f"{self.module}.{self.name}"


class Role(NamedTuple):
    """What is hooked, for what, and where."""
    name: str
    required: bool  # of a release: an optional role has no counterpart there when the feature is missing
    why: str
    targets: Tuple[Target, ...]


_SRT = "sglang.srt."
_POOL, _UNIFIED_POOL = _SRT + "mem_cache.memory_pool", _SRT + "mem_cache.unified_memory_pool"
_CACHE, _OLD_CACHE = _SRT + "mem_cache.unified_radix_cache", _SRT + "mem_cache.mamba_radix_cache"
_ALLOCATOR = _SRT + "mem_cache.allocator.mamba"
_COMPONENT, _OLD_COMPONENT = _SRT + "mem_cache.unified_cache.components.mamba", _SRT + "mem_cache.unified_cache_components.mamba_component"
_RUNNER = _SRT + "model_executor.runner.decode_cuda_graph_runner"
_PREPARE = ("self", "req", "insert_params", "token_ids_len", "is_finished")

ROLES = (
    Role("scheduler", REQUIRED, "ranks, the forward stream, and that the hooks are in place", (
        Target(_SRT + "managers.scheduler", "Scheduler.__init__", ("self", "server_args", "port_args")),)),
    Role("forward", REQUIRED, "one step each, and the stream that all writers of the pool use", (
        Target(_SRT + "model_executor.model_runner", "ModelRunner.forward", ("self", "forward_batch")),)),
    Role("pool", REQUIRED, "where the slots lie", (
        Target(_POOL, "HybridReqToTokenPool.__init__", ("self",)),)),
    Role("prepare", REQUIRED, "the length that a request says its state has: the one choke point of donations", (
        Target(_COMPONENT, "MambaComponent.prepare_for_caching_req", _PREPARE),
        Target(_COMPONENT + "_component", "MambaComponent.prepare_for_caching_req", _PREPARE),
        Target(_OLD_COMPONENT, "MambaComponent.prepare_for_caching_req", _PREPARE))),
    Role("insert", REQUIRED, "the key that the tree keeps the state under, and whether it took it", (
        Target(_CACHE, "UnifiedRadixCache.insert", ("self", "params")),
        Target(_OLD_CACHE, "MambaRadixCache.insert", ("self", "params")))),
    Role("cache_req", REQUIRED, "attempts to hand over, taken or not", (
        Target(_CACHE, "UnifiedRadixCache.checkpoint", ("self", "req")),
        Target(_CACHE, "UnifiedRadixCache.cache_finished_req", ("self", "req")),
        Target(_CACHE, "UnifiedRadixCache.cache_unfinished_req", ("self", "req")),
        Target(_OLD_CACHE, "MambaRadixCache.cache_finished_req", ("self", "req")),
        Target(_OLD_CACHE, "MambaRadixCache.cache_unfinished_req", ("self", "req")))),
    Role("restore", REQUIRED, "requests that start from a cached state, before it is copied", (
        Target(_SRT + "managers.schedule_batch", "ScheduleBatch._collect_deferred_mamba_cow_and_clear", ("self", "reqs")),)),
    Role("alloc", REQUIRED, "slots that get an owner", (
        Target(_ALLOCATOR, "MambaSlotAllocator.alloc", ("self", "need_size")),
        Target(_UNIFIED_POOL, "UnifiedMambaSlotAllocator.alloc", ("self", "need_size")))),
    Role("free", REQUIRED, "slots that lose it", (
        Target(_ALLOCATOR, "MambaSlotAllocator.free", ("self", "free_index")),
        Target(_UNIFIED_POOL, "UnifiedMambaSlotAllocator.free", ("self", "free_index")))),
    Role("clear", REQUIRED, "slots that are zeroed", (
        Target(_POOL, "MambaPool.clear_slots", ("self", "indices")),
        Target(_UNIFIED_POOL, "UnifiedMambaPool.clear_slots", ("self", "indices")))),
    Role("copy", REQUIRED, "slots that are copied", (
        Target(_POOL, "MambaPool.copy_from", ("self", "src_indices", "dst_indices")),
        Target(_UNIFIED_POOL, "UnifiedMambaPool.copy_from", ("self", "src_indices", "dst_indices")))),
    Role("move", OPTIONAL, "slots that the unified pool moves", (
        Target(_UNIFIED_POOL, "UnifiedMambaPool.move_kv_cache", ("self", "tgt_loc", "src_loc")),)),
    Role("graph_state", REQUIRED, "the index buffers that captured kernels read", (
        Target(_SRT + "layers.attention.hybrid_linear_attn_backend", "MambaAttnBackendBase.init_cuda_graph_state",
               ("self", "max_bs", "max_num_tokens")),)),
    Role("graph_runner", REQUIRED, "the buffers that a replay takes its batch from", (
        Target(_RUNNER, "DecodeCudaGraphRunner.__init__", ("self",)),)),
    Role("graph_batch", REQUIRED, "the size that a batch is padded to", (
        Target(_RUNNER, "DecodeCudaGraphRunner.load_batch", ("self", "forward_batch")),)),
)
