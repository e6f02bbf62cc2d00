# SPDX-License-Identifier: Apache-2.0
"""The adapter against a stand-in of slotprobe and of the registry: what it says, in which order, and that nothing of it reaches the server."""
import hashlib
import random
import time
import types
from array import array
from types import SimpleNamespace as N

import pytest
from slotprobe_sglang import adapter, attach, keys, pools, ranks, targets


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
        for i, one in enumerate(slots):
            self.slot(event, pool, one, stream=stream) if srcs is None else self.slot(event, pool, one, src=srcs[i], stream=stream)
        return 0

    def __getattr__(self, name):
        def call(*args, **kwargs):
            if self.fail:
                raise RuntimeError("broken")
            self.said.append((name, args, kwargs))
            return len(self.said)
        return call


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
    assert keys.Prefix(["lora"]).key(tokens, 5000) != whole
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


def test_the_table_and_the_hooks_fit():
    """Every target has a hook, every hook is one of the adapter's, every point is declared."""
    names = {m for hooks in attach.HOOKS.values() for _, m in hooks}
    assert all(hasattr(adapter.Adapter, m) for m in names)
    assert all(attach.hooks_of(role, t) for role in targets.ROLES for t in role.targets)
    from slotprobe_sglang import counts
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
