# SPDX-License-Identifier: Apache-2.0
"""The life of a scheduler in small, on SGLang's own requests, cache, tree, pools and allocators, which hold host memory here.

Only what needs a GPU is played: the scheduler's start, and the model, whose state is a function of the tokens that it saw. Arguments, in
JSON: backend ("python" or "rust" tree), extra_buffer, page, requests ([prompt, new tokens] each), spoil (write nothing for this donation),
plugins (as a scheduler's process loads them), int8, break ([module, class, function]: takes something else than
it did). Prints what the tree itself says, in JSON.
"""
import json
import sys
from array import array
from types import SimpleNamespace

import standins

standins.install()

import torch  # noqa: E402
from sglang.srt.environ import envs  # noqa: E402
from sglang.srt.managers.schedule_batch import FINISH_LENGTH, Req, ScheduleBatch  # noqa: E402
from sglang.srt.managers.scheduler import Scheduler  # noqa: E402
from sglang.srt.mem_cache.common import checkpoint_kv_cache, release_kv_cache  # noqa: E402
from sglang.srt.mem_cache.unified_cache.components.base import ComponentType  # noqa: E402
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache  # noqa: E402
from sglang.srt.model_executor.forward_batch_info import ForwardMode  # noqa: E402
from sglang.srt.model_executor.model_runner import ModelRunner  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402
from sglang.test.kits.unified_radix_cache import fixtures  # noqa: E402
from sglang.test.kits.unified_radix_cache.config import CacheConfig  # noqa: E402

fixtures.get_device = lambda: "cpu"
ASKED = {"backend": "python", "extra_buffer": False, "page": 1, "requests": [], "spoil": None, "plugins": True, "int8": False, "break": None}


def start_scheduler(self, server_args, port_args):
    """In place of Scheduler.__init__: the parts that were made outside."""
    vars(self).update(server_args)
    self.enable_overlap, self.port_args = False, port_args


def run_model(self, forward_batch, *_args, **_kwargs):
    """In place of ModelRunner.forward: what SGLang does before the layers, then the layers' writes."""
    self.forward_pass_id += 1
    self._maybe_execute_deferred_mamba_cow_and_clear(forward_batch)
    for slot, tokens in forward_batch.writes:
        write_state(self.req_to_token_pool.mamba_pool.mamba_cache, slot, tokens)


def write_state(cache, slot, tokens):
    """The state after these tokens, never zero."""
    generator = torch.Generator().manual_seed(hash(tuple(tokens)))  # of ints: the same in every process
    for tensor in (*cache.conv, cache.temporal):
        shape = (tensor.shape[0], *tensor.shape[2:])
        tensor[:, slot] = torch.rand(shape, generator=generator).add(0.5).to(tensor.dtype)


class Server:
    """One scheduler and what it works on."""

    def __init__(self, asked):
        self.asked, self.said, self.handed = asked, {"donated": [], "restored": [], "refused": 0}, 0
        config = CacheConfig(page_size=asked["page"], components=(ComponentType.FULL, ComponentType.MAMBA), num_layers=4,
                             full_attention_layer_ids=(1, 3), enable_mamba_extra_buffer=asked["extra_buffer"], mamba_cache_size=12,
                             enable_int8_mamba_checkpoint=asked["int8"])
        self.cache, self.allocator, self.pool = fixtures.build_fixture(config, tree_core_backend="python")
        if asked["backend"] == "rust":  # as shipped: the fixture's is a variant that the wheel does not have
            with envs.SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND.override("rust"):
                self.cache = UnifiedRadixCache(params=self.cache.cache_init_params)
        assert self.cache._tree_core_backend == asked["backend"]
        self.scheduler = Scheduler({"req_to_token_pool": self.pool, "tree_cache": self.cache}, port_args=None)
        self.runner = ModelRunner.__new__(ModelRunner)
        self.runner.req_to_token_pool, self.runner.is_draft_worker, self.runner.forward_pass_id = self.pool, False, 0
        self.extra = asked["extra_buffer"]

    def forward(self, mode, batch, writes):
        """One forward."""
        self.runner.forward(SimpleNamespace(forward_mode=mode, batch_size=1, writes=writes, mamba_clear_indices=batch.mamba_clear_indices,
                                            mamba_cow_src_indices=batch.mamba_cow_src_indices,
                                            mamba_cow_dst_indices=batch.mamba_cow_dst_indices))

    def admit(self, prompt):
        """What the scheduler does with a request before its first forward: matches its prefix, gives it slots, collects copies."""
        req = Req(rid=f"r{self.handed}", origin_input_text="", origin_input_ids=array("q", prompt),
                  sampling_params=SamplingParams(temperature=0, max_new_tokens=8))
        req.init_next_round_input(self.cache)
        if req.kv.mamba_cow_src_index is not None:
            self.said["restored"].append([int(req.kv.mamba_cow_src_index), req.prefix_len])
        req.lock = self.cache.lock(req.last_node)
        self.pool.alloc([req])
        found = self.cache.prefix_device_indices(req)
        self.pool.write((req.kv.req_pool_idx, slice(0, req.prefix_len)), found)
        self.grow(req, req.prefix_len, len(prompt))
        req.kv.cache_protected_len = req.prefix_len
        return req

    def grow(self, req, begin, end):
        """Gives tokens a place."""
        self.pool.write((req.kv.req_pool_idx, slice(begin, end)), self.allocator.alloc(end - begin))
        req.kv.kv_committed_len = req.kv.kv_allocated_len = end

    def serve(self, prompt, new):
        """A request's whole life."""
        req = self.admit(prompt)
        batch = SimpleNamespace(req_to_token_pool=self.pool)
        ScheduleBatch._collect_deferred_mamba_cow_and_clear(batch, [req])
        req.extend_end = len(prompt)
        self.run(req, ForwardMode.EXTEND, batch, prompt)
        if new:
            self.hand(req, prompt, lambda: checkpoint_kv_cache(req, self.cache))
        for _ in range(new):
            req.output_ids.append(1000 + len(req.output_ids))
        tokens = prompt + list(req.output_ids)
        self.grow(req, len(prompt), len(tokens)) if new else None
        nothing = SimpleNamespace(mamba_clear_indices=None, mamba_cow_src_indices=None, mamba_cow_dst_indices=None)
        self.run(req, ForwardMode.DECODE, nothing, tokens)
        req.finished_reason, req.finished_len = FINISH_LENGTH(length=new), len(req.output_ids)
        self.hand(req, tokens, lambda: release_kv_cache(req, self.cache, checkpoint=True))

    def run(self, req, mode, batch, tokens):
        """The model's writes: the request's own slot, and with the extra buffer the checkpoint at the last page."""
        spoilt = self.asked["spoil"] == self.handed
        writes = [(int(req.kv.mamba_pool_idx), tokens)] if self.extra or not spoilt else []
        if self.extra:
            length = len(tokens) // self.asked["page"] * self.asked["page"]
            at = req.kv.mamba_next_track_idx
            slot = int(req.kv.mamba_ping_pong_track_buffer[at])
            writes += [] if spoilt else [(slot, tokens[:length])]
            req.kv.mamba_last_track_idx, req.kv.mamba_last_track_seqlen = at, length
            req.kv.mamba_next_track_idx = self.pool.get_mamba_ping_pong_other_idx(at)
        self.forward(mode, batch, writes)

    def hand(self, req, tokens, over):
        """A checkpoint; what the tree has afterwards."""
        before = len(self.cache.all_mamba_values_flatten())
        over()
        self.handed += 1
        length = len(tokens) // self.asked["page"] * self.asked["page"]
        found = fixtures.match_prefix(self.cache, tokens[:length])
        slot = fixtures.node_device_value(self.cache, found.best_match_node, ComponentType.MAMBA)
        taken = len(self.cache.all_mamba_values_flatten()) > before
        self.said["donated"].append([int(slot), found.device_prefix_len, taken])


def main():
    asked = ASKED | json.loads(sys.argv[1])
    Scheduler.__init__, ModelRunner.forward = start_scheduler, run_model
    def other(*_everything):
        """What another release might have there."""

    if asked["break"]:
        module, name, attribute = asked["break"]
        setattr(getattr(sys.modules[module], name), attribute, other)
    if asked["plugins"]:
        load_plugins()
    with torch.no_grad():
        server = Server(asked)
        for prompt, new in asked["requests"]:
            server.serve(list(prompt), new)
    server.said["events"] = [server.pool.mamba_allocator.available_size()]
    print(json.dumps(server.said))


if __name__ == "__main__":
    main()
