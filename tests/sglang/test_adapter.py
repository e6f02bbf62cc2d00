# SPDX-License-Identifier: Apache-2.0
"""The adapter against a stand-in of slotprobe and of the registry: what it says, in which order, and that nothing of it reaches the server."""
import enum
import hashlib
import logging
import random
import time
import types
from array import array
from types import SimpleNamespace as N

import pytest
from slotprobe_sglang import adapter, attach, counts, keys, pools, ranks, targets


class Api:
    """slotprobe, writing down what it is told."""
    HIT_COMMITTED, HIT_FILTERED, HIT_ERROR, MODE_SEEN = 0, 1, 2, 3
    ALLOC, CLEAR, COPY, DISCARD, FREE = range(1, 6)

    def __init__(self, fail=False):
        self.said, self.hits, self.names, self.fail = [], {}, [], fail

    def point(self, name):
        self.names.append(name)
        return len(self.names) - 1

    def hit(self, point, outcome):
        key = self.names[point].split(".")[1], outcome
        self.hits[key] = self.hits.get(key, 0) + 1

    def slots(self, event, pool, slots, srcs=None, stream=None):
        """As the package does: one for each, and how many were refused."""
        refused = 0
        for i, one in enumerate(slots):
            more = {} if srcs is None else {"src": srcs[i]}
            refused += self.slot(event, pool, one, stream=stream, **more) < 0
        return refused

    answer = None  # of each call; None: a number that counts up

    def __getattr__(self, name):
        def call(*args, **kwargs):
            if self.fail:
                raise RuntimeError("broken")
            self.said.append((name, args, kwargs))
            return len(self.said) if self.answer is None else self.answer
        return call


class Mode(enum.Enum):
    """ForwardMode"""
    DECODE = 2


class Ids(list):
    """A tensor of slot ids on the host."""
    is_cuda = False

    def numel(self):
        return len(self)

    def dim(self):
        return 1


def server(api, tokens=range(1, 9)):
    """(adapter, cache, request, insert parameters) with a state of 8 tokens in slot 5."""
    a = adapter.Adapter(api)
    a.ready = True
    allocator = N(**{pools.MARK: pools.Known(7)})
    requests = N(mamba_allocator=allocator, mamba_ckpt_pool=None)
    cache = N(components={}, req_to_token_pool=requests, disable=False)
    req = N(kv=N(mamba_cow_src_index=None), extra_key=None, full_untruncated_fill_ids=array("q", tokens), prefix_len=8, finished=lambda: True)
    key = types.SimpleNamespace(token_ids=array("q", tokens))

    class Key:
        token_ids = key.token_ids

        def __len__(self):
            return len(self.token_ids)
    return a, cache, req, N(mamba_value=Ids([5]), key=Key())


def test_a_donation_is_said_before_the_tree_has_it():
    """Length as the request says, key as the tree keeps it; a refusal names the donation."""
    api = Api()
    a, cache, req, params = server(api)
    a.before_checkpoint(cache, req, up_to=8)
    a.after_prepare(6, None, req=req, insert_params=params, token_ids_len=8, is_finished=True)
    result = a.around_insert(lambda c, p: api.said.append("insert") or N(mamba_exist=True), cache, params)
    assert result.mamba_exist and [s if isinstance(s, str) else s[0] for s in api.said] == ["donate", "insert", "slot"]
    _, (pool, slot, length), said = api.said[0]
    assert (pool, slot, length, said["key_len"]) == (7, [5], 6, 8) and said["key"]
    assert api.said[2][1][0] == api.DISCARD and api.said[2][2]["src"] == 1
    assert api.hits == {("cache_finished_req", 0): 1, ("donate", 0): 1, ("discard", 0): 1}


def test_no_claim_is_no_donation():
    """Length 0, no state, a state that came from the host's memory."""
    api = Api()
    a, cache, req, params = server(api)
    for length, value in ((0, params.mamba_value), (None, params.mamba_value), (8, None)):
        a.after_prepare(length, None, req, N(mamba_value=value), 8, True)
    a.around_insert(lambda c, p: None, cache, params)
    assert not api.said and api.hits == {("donate", 1): 4}


def test_the_older_cache_has_no_choke_point_that_names_the_request():
    """The request that came last is it; its tracked length is the state's."""
    api = Api()
    a, cache, req, params = server(api)
    del cache.components
    cache.enable_mamba_extra_buffer, req.mamba_last_track_seqlen, req.kv = True, 8, None
    a.before_cache_unfinished(cache, req, chunked=True)
    a.around_insert(lambda c, params: N(mamba_exist=False), cache, params=params)
    assert [s[0] for s in api.said] == ["donate"] and api.said[0][1][2] == 8 and api.hits["cache_unfinished_req", 0] == 1


def test_a_claimant_gives_one_state():
    """What the tree is given without a request that came before it is nobody's: a state from the host's memory, or a second one."""
    api = Api()
    a, cache, req, params = server(api)
    a.before_checkpoint(cache, req, up_to=8)
    a.around_insert(lambda c, p: N(mamba_exist=False), cache, params)  # the request has said nothing of it
    assert not api.said and api.hits["donate", api.HIT_FILTERED] == 1
    del cache.components
    a.before_cache_finished(cache, req)
    for _ in range(2):
        a.around_insert(lambda c, p: N(mamba_exist=False), cache, N(mamba_value=Ids([5]), key=params.key))
    assert len(api.said) == 1 and api.hits["donate", api.HIT_FILTERED] == 2


def test_the_older_cache_tracks_only_with_the_extra_buffer():
    """Without it the state is the whole prefix's, whatever a field of the request still says."""
    api = Api()
    a, cache, req, params = server(api)
    del cache.components
    req.mamba_last_track_seqlen, req.kv = 4, None
    a.before_cache_unfinished(cache, req)
    a.around_insert(lambda c, p: N(mamba_exist=False), cache, params)
    assert api.said[0][1][2] == 8


def test_a_cache_that_keeps_nothing_takes_no_donation():
    """SGLang's own switch."""
    api = Api()
    a, cache, req, params = server(api)
    cache.disable = True
    a.after_prepare(8, None, req, params, 8, True)
    a.around_insert(lambda c, p: N(mamba_exist=False), cache, params)
    assert not api.said and not api.hits


@pytest.mark.parametrize("answer, outcome", [(-11, Api.HIT_ERROR), (0, Api.HIT_COMMITTED)])
def test_what_slotprobe_did_not_take_is_an_error_and_paused_is_none(answer, outcome):
    """Of every call that hands something over. Of a donation that has no number nothing can be taken back."""
    api = Api()
    a, cache, req, params = server(api)
    api.answer, a.streams.here = answer, lambda _ids: None
    a.after_prepare(8, None, req, params, 8, True)
    a.around_insert(lambda c, p: N(mamba_exist=True), cache, params)
    a.before_restore(N(req_to_token_pool=cache.req_to_token_pool), [N(kv=N(mamba_cow_src_index=Ids([5])), extra_key=None, prefix_len=8,
                                                                      full_untruncated_fill_ids=array("q", range(8)))])
    a.after_alloc(Ids([1, 2]), cache.req_to_token_pool.mamba_allocator)
    a.after_forward(None, N(is_draft_worker=False, forward_pass_id=1), N(forward_mode=Mode.DECODE, batch_size=2))
    assert api.hits == {("donate", outcome): 1, ("restore", outcome): 1, ("alloc", outcome): 2, ("step", outcome): 1}
    assert [s[0] for s in api.said] == ["donate", "restore", "slot", "slot", "step"]


def test_an_attempt_is_that_of_a_finished_request_or_not():
    """checkpoint is called for both."""
    api = Api()
    a, cache, req, _ = server(api)
    a.before_checkpoint(cache, req)
    req.finished = lambda: False
    a.before_checkpoint(cache, req)
    assert api.hits == {("cache_finished_req", 0): 1, ("cache_unfinished_req", 0): 1}


def test_restores():
    """Of a pool that is not known they are left out and counted; a state of no tokens has no key."""
    api = Api()
    a, cache, req, _ = server(api)
    req.kv.mamba_cow_src_index, req.prefix_len = Ids([5]), 0
    a.before_restore(N(req_to_token_pool=cache.req_to_token_pool), [req])
    assert api.said[0][1] == (7, [5], 0) and (api.said[0][2]["key"], api.said[0][2]["key_len"]) == (0, -1)
    a.before_restore(N(req_to_token_pool=N(mamba_allocator=N(), mamba_ckpt_pool=None)), [req, req])
    assert len(api.said) == 1 and api.hits == {("restore", 0): 1, ("restore", 1): 2}


def test_warm_up_is_not_told():
    """What happens before the scheduler stands."""
    api = Api()
    a, cache, _, _ = server(api)
    a.ready = False
    a.after_alloc(Ids([1]), cache.req_to_token_pool.mamba_allocator)
    a.after_forward(None, N(is_draft_worker=False, forward_pass_id=1), N(forward_mode=Mode.DECODE, batch_size=2))
    assert not api.said and not api.hits


def test_steps():
    """Each with the size that its own batch was padded to; the draft model's have a name of their own and change nothing of the target's."""
    api = Api()
    a, target, draft = server(api)[0], N(is_draft_worker=False, forward_pass_id=1), N(is_draft_worker=True, forward_pass_id=1)
    a.streams.observe = lambda: None
    batch = N(forward_mode=Mode.DECODE, batch_size=5)
    a.before_forward(target)
    a.after_graph_batch(None, N(model_runner=target, bs=8))
    a.before_forward(draft)
    a.after_graph_batch(None, N(model_runner=draft, bs=16))
    a.after_forward(None, draft, batch)
    a.after_forward(None, target, batch)
    a.before_forward(target)  # an eager one
    a.after_forward(None, target, batch)
    assert [s[1] for s in api.said] == [(name, 1, 5, padded, api.MODE_SEEN) for name, padded in (("draft_decode", -1), ("decode", 8), ("decode", -1))]
    assert api.hits == {("step", 0): 3}


def test_the_scheduler_stands():
    """Its ranks are said, and its forward stream is expected where it overlaps."""
    ps = N(tp_rank=1, tp_size=2, pp_rank=0, pp_size=1, dp_rank=0, dp_size=1, attn_dp_size=1)
    known = {pools.MARK: pools.Known(7)}
    requests = N(mamba_pool=N(**known), mamba_allocator=N(**known))
    for overlap in (False, True):
        api = Api()
        a = adapter.Adapter(api)
        a.after_scheduler(None, N(ps=ps, req_to_token_pool=requests, enable_overlap=overlap, forward_stream=N(cuda_stream=9, device_index=0)))
        assert [s[1] for s in api.said if s[0] == "rank"] == [("tp", 1, 2), ("pp", 0, 1), ("dp", 0, 1)]
        assert a.ready and a.streams.handle == (9 if overlap else None) and api.hits == {("scheduler", 0): 1}


def test_a_pool_that_was_not_taken_is_an_error():
    """It is not registered, so nothing is said of its slots."""
    tensor = N(numel=lambda: 8)
    api = Api()
    a, api.answer = adapter.Adapter(api), -22
    requests = N(mamba_pool=N(mamba_cache=N(conv=[tensor], temporal=tensor)), mamba_allocator=N())
    a.after_pool(None, requests)
    assert api.hits == {("hook_error", 2): 1} and pools.known(requests.mamba_pool) is None and pools.of_cached(requests) is None
    api.answer = None
    kept = N(temporal=N(qdata=tensor, scale=tensor), conv=[tensor], allocator=N())
    requests.mamba_ckpt_pool = kept
    a.after_pool(None, requests)
    assert [s[1][0] for s in api.said[1:]] == ["mamba", "mamba_int8"]
    assert pools.of_cached(requests) is pools.known(kept) and pools.known(kept.allocator).pool == pools.known(kept).pool == 3
    assert pools.known(requests.mamba_allocator).pool == pools.known(requests.mamba_pool).pool == 2
    api.answer, requests.mamba_ckpt_pool = -22, N(temporal=kept.temporal, conv=[], allocator=N())
    a.after_pool(None, requests)
    assert api.hits["hook_error", 2] == 2 and pools.known(requests.mamba_ckpt_pool) is None


def test_buffers_have_names():
    """Absent and empty ones are none; the slots of a batch size lie at its place."""
    api = Api()
    some, none = (lambda n: N(numel=lambda: n)), N(numel=lambda: 0)
    by_size = [some(i + 1) for i in range(4)]
    pools.name_graph_inputs(api, N(buffers=N(mamba_track_indices=some(9), mamba_track_mask=none), capture_bs=[4, 1, 5, 0],
                                   attn_backend=N(attn_backend_list=[N(state_indices_list=by_size)])))
    pools.name_graph_state(api, N())
    assert [(s[1][0], s[1][1].numel()) for s in api.said] == [("mamba_track_indices", 9), ("mamba_state_indices.1", 1), ("mamba_state_indices.4", 4)]


def test_an_empty_state_is_no_tensor_of_the_pool():
    """Models without a temporal state."""
    conv = [N(numel=lambda: 4)]
    assert pools.state_tensors(N(conv=conv, temporal=N(numel=lambda: 0))) == pools.state_tensors(N(conv=conv, temporal=None)) == {"conv": conv}


def test_slots_of_the_unified_pool():
    """A move copies from its second argument to its first. Ids are translated where they are read on the host or by the kernel; of freed ones on
    the device nothing is enqueued."""
    api = Api()
    a, cache, _, _ = server(api)
    translated = []
    pool = N(**{pools.MARK: pools.Known(7, lambda ids: translated.append(ids) or Ids(i + 100 for i in ids))})
    a.after_alloc(Ids([1, 2]), pool)
    a.before_free(pool, Ids([3]))
    assert [s[1][2] for s in api.said] == [101, 102, 103] and len(translated) == 2
    a.streams.of_forward = lambda _ids: 9

    class OnDevice(Ids):
        is_cuda = True
    a.before_free(pool, OnDevice([4]))
    assert len(translated) == 2 and api.said[-1][1][:3] == (api.FREE, 7, 4)
    a.after_move(None, pool, Ids([5]), Ids([6]))
    assert api.said[-1][1] == (api.COPY, 7, 5) and api.said[-1][2]["src"] == 6


def test_lines_of_failing_hooks_end(caplog):
    """Every failure counts; the server's log has the first few. A logger that fails is the server's own."""
    api = Api()
    a = adapter.Adapter(api)
    for _ in range(counts.TOLD_MAX + 5):
        a.before_checkpoint(None, None)
    assert len(caplog.records) == counts.TOLD_MAX and api.hits == {("hook_error", 2): counts.TOLD_MAX + 5}

    class Broken(logging.Filter):
        def filter(self, record):
            raise OSError("no space")
    a.counts.told, broken = 0, Broken()
    counts.LOG.addFilter(broken)
    try:
        a.before_checkpoint(None, None)
    finally:
        counts.LOG.removeFilter(broken)
    assert api.hits["hook_error", 2] == counts.TOLD_MAX + 6


def test_restores_are_said_for_those_that_copy():
    """With the key of the request's own prefix."""
    api = Api()
    a, cache, req, params = server(api)
    a.after_prepare(8, None, req, params, 8, True)
    a.around_insert(lambda c, p: N(mamba_exist=False), cache, params)
    other = N(kv=N(mamba_cow_src_index=Ids([5])), extra_key=None, full_untruncated_fill_ids=array("q", [*range(1, 9), 77]), prefix_len=8)
    a.before_restore(N(req_to_token_pool=cache.req_to_token_pool), [req, other])
    assert [s[0] for s in api.said] == ["donate", "restore"]
    assert api.said[1][1] == (7, [5], 8) and api.said[1][2]["key"] == api.said[0][2]["key"]


@pytest.mark.parametrize("hook", [m for m in dir(adapter.Adapter) if m.startswith(("before_", "after_"))])
def test_no_hook_raises(hook):
    """Whatever the server hands over."""
    api = Api()
    a = adapter.Adapter(api)
    a.ready = True
    broken = N(**{pools.MARK: N(pool=1, place=lambda ids: 1 / 0)})  # anything else is an AttributeError
    for args in ((), (broken,), (None, broken), (None, broken, broken), (None, broken, Ids([1]), Ids([2]))):
        assert getattr(a, hook)(*args) is None
    assert getattr(a, hook)(None, unknown=1) is None
    assert not [s for s in api.said if s[0] == "donate"]


def test_a_broken_slotprobe_does_not_reach_the_server():
    """The tree's answer comes through, and what the tree raises does."""
    api = Api(fail=True)
    a, cache, req, params = server(api)
    a.after_prepare(8, None, req, params, 8, True)
    assert a.around_insert(lambda c, p: "tree's", cache, params) == "tree's"
    assert api.hits["hook_error", 2] == 1
    with pytest.raises(KeyError):
        a.around_insert(lambda c, p: {}["the tree's own"], cache, params)


def test_keys():
    """The same for the same tokens however they came, another for any change; each token is hashed once."""
    tokens = array("q", [random.randrange(1 << 40) for _ in range(5000)])
    whole = keys.Prefix([]).key(tokens, 5000)
    grown = keys.Prefix([])
    steps = [grown.key(tokens, n) for n in (1, 700, 701, 4999, 5000)]
    assert steps[-1] == whole == keys.Prefix([]).key(list(tokens), 5000) and len(set(steps)) == 5
    assert grown.key(tokens, 701) == steps[2] and grown.key(tokens, 300) == keys.Prefix([]).key(tokens, 300)
    anew = keys.Prefix([])
    anew.key(tokens, 9)
    assert anew.key(array("q", range(12)), 12) == keys.Prefix([]).key(range(12), 12), "more tokens, but others"
    assert keys.Prefix(["lora"]).key(tokens, 5000) != whole
    salted = keys.Prefix(["lora"])
    assert salted.key(tokens, 900) and salted.key(tokens, 300) == keys.Prefix(["lora"]).key(tokens, 300) != grown.key(tokens, 300)
    requests = [N(extra_key=e, cache_salt=s) for e in (None, "a") for s in (None, "b")]
    assert len({adapter.prefix_of(r).key(tokens, 9) for r in requests}) == 4, "an adapter's name and a tenant's salt tell prefixes apart"
    assert keys.Prefix([]).key(array("i", range(9)), 9) == keys.Prefix([]).key(list(range(9)), 9)
    for i in (0, 2500, 4999):
        other = array("q", tokens)
        other[i] ^= 1 << 39
        assert keys.Prefix([]).key(other, 5000) != whole
    other = array("q", [5] * 10)
    assert grown.key(other, 10) == keys.Prefix([]).key(other, 10), "a request that starts anew"
    assert grown.key(other, 11) == grown.key(other, 0) == 0
    assert all(0 < k < 1 << 64 for k in steps)


def test_keys_without_xxhash(monkeypatch):
    """The standard library's serve as well."""
    monkeypatch.setattr(keys, "_new", lambda: hashlib.blake2b(digest_size=8))
    assert keys.Prefix([]).key(array("q", range(9)), 9) == keys.Prefix([]).key(list(range(9)), 9)


def test_a_long_prefix_costs_what_is_new():
    """100,000 tokens, then 256 more each time: the work is that of the 256."""
    tokens = array("q", range(200_000))
    prefix, n = keys.Prefix([]), 100_000
    prefix.key(tokens, n)
    best = float("inf")
    for _ in range(200):
        n += 256
        begin = time.perf_counter()
        prefix.key(tokens, n)
        best = min(best, time.perf_counter() - begin)
    assert best < 25e-6


def test_ranks():
    """Of both places that releases keep them in; attention groups divide tp."""
    ps = N(tp_rank=3, tp_size=4, pp_rank=1, pp_size=2, dp_rank=None, dp_size=1, attn_tp_rank=3, attn_tp_size=4, attn_dp_rank=0, attn_dp_size=1)
    assert list(ranks.of(N(ps=ps))) == [("tp", 3, 4), ("pp", 1, 2), ("dp", 0, 1)]
    ps.attn_tp_rank, ps.attn_tp_size, ps.attn_dp_rank, ps.attn_dp_size = 1, 2, 1, 2
    assert list(ranks.of(N(ps=ps))) == [("tp", 1, 2), ("pp", 1, 2), ("dp", 1, 2)]
    ps.attn_dp_rank, ps.attn_dp_size, ps.attn_cp_rank, ps.attn_cp_size, ps.dp_size = 0, 1, 1, 2, 0
    assert list(ranks.of(N(ps=ps))) == [("tp", 1, 2), ("pp", 1, 2), ("dp", 0, 1), ("cp", 1, 2)]


def test_the_table_and_the_hooks_fit():
    """Every target has a hook, every hook is one of the adapter's, every point is declared."""
    names = {m for hooks in attach.HOOKS.values() for _, m in hooks}
    assert all(hasattr(adapter.Adapter, m) for m in names)
    assert all(attach.hooks_of(role, t) for role in targets.ROLES for t in role.targets)
    import pathlib
    points = (pathlib.Path(counts.__file__).parents[1] / "sglang.points").read_text()
    declared = [line.split("#")[0].strip() for line in points.splitlines()]
    assert sorted(d for d in declared if d and not d.startswith("watch")) == sorted(counts.GROUP + n for n in counts.NAMES)


def test_verification_sees_what_the_registry_did_not_do():
    """A wrapper without our hook is no hook, one around ours hides nothing."""
    def hook():
        pass

    def wrap(f, inner):
        def wrapper(*args):
            return inner, f(*args)
        wrapper.__wrapped__ = f
        return wrapper

    def original():
        pass
    assert attach.wrapped_with(wrap(wrap(original, hook), print), hook)
    assert not attach.wrapped_with(wrap(original, print), hook) and not attach.wrapped_with(original, hook)
