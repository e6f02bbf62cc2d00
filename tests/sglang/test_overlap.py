# SPDX-License-Identifier: Apache-2.0
"""The overlap schedule stays one: the adapter makes the forward stream wait for the scheduler's and never the other way round, brings nothing of
the device to the host, and keeps memory until the forward stream has read it without asking the allocator to."""
import os
import subprocess
import sys
import threading
from types import SimpleNamespace as N

import pytest
from slotprobe_sglang import adapter, pools, streams
from test_adapter import Api, Mode, server

ALLOWED = {"is_cuda", "device", "numel", "dim", "data_ptr", "record_stream", "dtype", "stride"}
CUDA0 = N(type="cuda", index=0)


class Slots:
    """Slot ids on a device. Whatever is not an address or a shape would wait, or launch something: it is told and fails."""

    def __init__(self, torch, n=1):
        self.__dict__.update(torch=torch, n=n)

    def __getattr__(self, name):
        known = {"is_cuda": True, "device": CUDA0, "dtype": "int64", "numel": lambda: self.n, "dim": lambda: 1, "data_ptr": lambda: 4096,
                 "stride": lambda _axis: 1, "record_stream": lambda stream: self.torch.told.append("record_stream")}
        if name in ALLOWED:
            return known[name]
        self.torch.wrong.append(name)
        raise AssertionError(name)

    def __iter__(self):
        return iter([self] * self.n) if sys._getframe(1).f_code.co_name == "slots" else self.wrong_use("iter")

    def __getitem__(self, _i):
        return self if sys._getframe(1).f_code.co_name == "slots" else self.wrong_use("a view for each slot")

    def wrong_use(self, name):
        """Of what Python looks up on the class."""
        self.torch.wrong.append(name)
        raise AssertionError(name)

    __bool__ = __int__ = __index__ = __float__ = __len__ = lambda self: self.wrong_use("value")


class Torch:
    """torch, with two streams. `told`: what was enqueued, in order; `wrong`: what nothing of ours may do."""

    def __init__(self):
        self.told, self.wrong, self.capturing, self.come, self.events = [], [], False, set(), 0
        self.schedule, self.forward = self.stream("schedule", 1), self.stream("forward", 2)
        self.current, self.cuda = self.schedule, self
        self._C = N(_cuda_getCurrentRawStream=lambda _device: self.current.cuda_stream)

    def stream(self, name, handle):
        """One that never waits on the host."""
        return N(name=name, cuda_stream=handle, device=CUDA0, device_index=0, wait_event=lambda e: self.told.append((name, "waits for", e.at)),
                 wait_stream=lambda s: self.told.append((name, "waits for", s.name)), synchronize=lambda: self.wrong.append("Stream.synchronize"))

    def Event(self):
        """Its place is where it was recorded last."""
        self.events += 1
        event = N(cuda_event=self.events, at=None, synchronize=lambda: self.wrong.append("Event.synchronize"),
                  query=lambda: self.wrong.append("Event.query"))

        def record(stream):
            event.at = stream.name
            self.told.append((stream.name, "records"))
        event.record = record
        return event

    def is_initialized(self):
        return True

    def is_current_stream_capturing(self):
        return self.capturing

    def current_stream(self, _device=None):
        return self.current

    def current_device(self):
        return 0

    def synchronize(self):
        self.wrong.append("synchronize")


@pytest.fixture(name="torch")
def fixture_torch(monkeypatch):
    """In the place of torch, with a driver that says which events have come."""
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(streams, "passed_in_driver", lambda: lambda event: event in torch.come)
    return torch


def forward(a, torch, draft=False):
    """One forward, on the forward stream."""
    torch.current = torch.forward
    runner = N(is_draft_worker=draft, forward_pass_id=1)
    a.before_forward(runner)
    a.after_graph_batch(None, N(model_runner=runner, bs=8))
    pool = N(**{pools.MARK: pools.Known(7)})
    a.after_clear(None, pool, Slots(torch, 3))
    a.after_copy(None, pool, Slots(torch, 3), Slots(torch, 3))
    a.after_forward(None, runner, N(forward_mode=Mode.DECODE, batch_size=5))
    torch.current = torch.schedule


def life(torch):
    """Everything that an overlapping scheduler does, twice. What went wrong."""
    api = Api()
    a, cache, req, params = server(api)
    req.kv.mamba_cow_src_index = Slots(torch)
    params.mamba_value = Slots(torch)
    allocator = cache.req_to_token_pool.mamba_allocator
    for _ in range(2):
        forward(a, torch)
        a.after_alloc(Slots(torch, 64), allocator, 64)
        a.before_restore(N(req_to_token_pool=cache.req_to_token_pool), [req] * 3)
        a.before_checkpoint(cache, req, up_to=8)
        a.after_prepare(8, None, req, params, 8, True)
        a.around_insert(lambda c, p: N(mamba_exist=True), cache, params)
        a.before_free(allocator, Slots(torch, 64))
    waits = [f"{t[0]} waits for {t[2]}" for t in torch.told if len(t) == 3 and t[:1] + t[2:] != ("forward", "schedule")]
    failed = [name for (name, outcome), _ in api.hits.items() if outcome == api.HIT_ERROR]
    return torch.wrong + waits, failed, api


def test_nothing_waits(torch):
    """No value comes to the host, and the scheduler's stream waits for nothing."""
    wrong, failed, api = life(torch)
    assert not wrong and not failed
    said = [s for s in api.said if s[0] in ("slot", "donate", "restore")]
    assert len(said) == 2 * (3 + 3 + 64 + 3 + 1 + 1 + 64), "or nothing was looked at"


def test_an_edge_for_each_hand_over_not_for_each_slot(torch):
    """Forward waits for the scheduler three times a turn: slots allocated, restores, a donation. Slots that are freed are read by nobody."""
    life(torch)
    assert torch.told.count(("forward", "waits for", "schedule")) == 2 * 3
    assert "record_stream" not in torch.told


PLANTED = {
    "a slot id read": lambda m: m.setattr(pools.Known, "place", lambda self, ids: ids.item() and ids),
    "a tensor asked whether it is true": lambda m: m.setattr(pools.Known, "place", lambda self, ids: ids or ids),
    "ids listed": lambda m: m.setattr(adapter, "flat", lambda ids: ids.tolist() and ids),
    "ids copied to the host": lambda m: m.setattr(adapter, "flat", lambda ids: ids.cpu() and ids),
    "the event waited for": lambda m: waiting(m, lambda torch, event: event.synchronize()),
    "the stream waited for": lambda m: waiting(m, lambda torch, event: torch.forward.synchronize()),
    "the scheduler's stream behind the forward": lambda m: waiting(m, lambda torch, event: event.record(torch.forward)
                                                                   or torch.schedule.wait_event(event)),
    "the scheduler's stream behind all of the forward's": lambda m: waiting(m, lambda torch, event: torch.schedule.wait_stream(torch.forward)),
    "an event asked for on the host": lambda m: waiting(m, lambda torch, event: event.query()),
}


def waiting(monkeypatch, wait):
    """Streams.behind, and then a wait."""
    behind = streams.Streams.behind

    def planted(self, *tensors):
        wait(sys.modules["torch"], sys.modules["torch"].Event())
        return behind(self, *tensors)
    monkeypatch.setattr(streams.Streams, "behind", planted)


@pytest.mark.parametrize("what", PLANTED)
def test_what_would_wait_is_seen(torch, monkeypatch, what):
    """The red twins."""
    PLANTED[what](monkeypatch)
    assert life(torch)[0]


def test_what_is_captured_is_no_event(torch):
    """Slots are cleared and copied when the graph is replayed, not when it is made."""
    api = Api()
    a = server(api)[0]
    torch.capturing = True
    forward(a, torch)
    assert [s[0] for s in api.said] == ["step"] and not [outcome for _, outcome in api.hits if outcome != api.HIT_COMMITTED]
    torch.capturing = False
    forward(a, torch)
    assert [s[1][0] for s in api.said if s[0] == "slot"] == [api.CLEAR] * 3 + [api.COPY] * 3


def test_the_forward_stream_is_the_one_that_forwards_run_on(torch):
    """Seen, not guessed; it waits for what made the tensor, once each time, and not for itself."""
    a, slot = adapter.Adapter(Api()), Slots(torch)
    assert a.streams.behind(slot) == 1 and not torch.told
    torch.current = torch.forward
    a.before_forward(N(is_draft_worker=False))
    assert a.streams.behind(slot) == 2 and not torch.told
    torch.current = torch.schedule
    assert a.streams.behind(slot) == 2 and torch.told == [("schedule", "records"), ("forward", "waits for", "schedule")]
    torch.current = torch.stream("draft", 3)
    a.before_forward(N(is_draft_worker=True))
    assert a.streams.forward.name == "forward"
    torch.capturing = True
    with pytest.raises(RuntimeError):
        a.streams.behind(slot)
    assert len(torch.told) == 2, "an event recorded in capture would draw the forward stream into it"


def test_a_forward_stream_that_the_scheduler_names_is_used_until_one_is_seen(torch):
    """Before the first forward."""
    a = adapter.Adapter(Api())
    a.streams.expect(torch.forward)
    assert a.streams.behind(Slots(torch)) == 2
    torch.current = torch.stream("other", 5)
    a.before_forward(N(is_draft_worker=False))
    a.streams.expect(torch.forward)
    assert a.streams.handle == 5


def test_memory_is_kept_until_the_forward_stream_has_read_it(torch):
    """Not longer, not shorter, and an event serves again."""
    a = adapter.Adapter(Api())
    forward(a, torch)
    first, second = Slots(torch), Slots(torch)
    kept = lambda: [t for _, ts in a.streams.held._marks for t in ts] + a.streams.held._now  # noqa: E731
    a.streams.behind(first)
    forward(a, torch)
    third = Slots(torch)
    a.streams.behind(third, second)
    assert kept() == [first, third, second] and torch.told.count("record_stream") == 0
    torch.come.add(a.streams.held._marks[0][0].cuda_event)
    forward(a, torch)
    assert kept() == [third, second], "the one that has passed is let go, the later one is not"
    torch.capturing = True
    torch.come.update(range(99))
    forward(a, torch)
    assert kept() == [third, second], "an event is neither recorded nor asked for where a stream captures"
    torch.capturing = False
    made = torch.events
    forward(a, torch)
    assert kept() == [] and not a.streams.held.any
    a.streams.behind(first)
    forward(a, torch)
    assert torch.events == made


def test_where_passing_cannot_be_seen_the_allocator_is_told(torch, monkeypatch):
    """Forwards of another thread, no driver to ask, another stream, or too much that is kept."""
    a, slot = adapter.Adapter(Api()), Slots(torch)
    a.streams.expect(torch.forward)
    a.streams.behind(slot)
    assert torch.told.count("record_stream") == 1, "no forward yet: nobody looks"
    other = threading.Thread(target=forward, args=(a, torch))
    other.start()
    other.join()
    a.streams.behind(slot)
    assert torch.told.count("record_stream") == 2
    forward(a, torch)
    monkeypatch.setattr(streams, "HELD_MAX", 2)
    for _ in range(3):
        a.streams.behind(slot)
    assert torch.told.count("record_stream") == 3
    monkeypatch.setattr(streams, "MARKS_MAX", 1)
    forward(a, torch)
    a.streams.behind(slot)
    assert torch.told.count("record_stream") == 4
    b = adapter.Adapter(Api())
    monkeypatch.setattr(streams, "passed_in_driver", lambda: False)
    forward(b, torch)
    b.streams.behind(slot)
    assert torch.told.count("record_stream") == 5


def test_a_forward_stream_that_changes_while_something_captures(torch):
    """What is kept for one stream does not pass with another."""
    a = adapter.Adapter(Api())
    forward(a, torch)
    a.streams.behind(Slots(torch))
    torch.capturing, torch.forward = True, torch.stream("another", 4)
    forward(a, torch)
    torch.capturing = False
    a.streams.behind(Slots(torch))
    assert torch.told.count("record_stream") == 1
    forward(a, torch)
    assert ("forward", "records") in torch.told and ("another", "records") not in torch.told


ASK = """
import ctypes, sys
sys.path[:0] = sys.argv[2:]
from fakes import Device
from slotprobe_sglang import streams
device, ask = Device(), streams.passed_in_driver()
event, graph, stream, other = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(device.stream()), ctypes.c_void_p(device.stream())
device.check(device.cuda.cuEventCreate(ctypes.byref(event), 2))
if sys.argv[1] == "bare":
    ask = lambda event: device.cuda.cuEventQuery(ctypes.c_void_p(event)) == 0
device.check(device.cuda.cuEventRecord(event, other))
device.finish()
device.check(device.cuda.cuStreamBeginCapture_v2(stream, 0))  # GLOBAL
print(ask(event.value), device.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)), ask(event.value), end=" ")
mode = ctypes.c_int(0)
device.check(device.cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
print(mode.value)
"""


def test_asking_ends_no_capture(build, root):
    """An event that has come is seen while another thread may be capturing; and what torch.cuda.Event.query does instead."""
    def said(how):
        done = subprocess.run([sys.executable, "-B", "-c", ASK, how, str(root / "probes/servers/sglang"), str(root / "tests/python")],
                              env=os.environ | {"LD_LIBRARY_PATH": str(build / "cpudriver")}, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.split()
    assert said("relaxed") == ["True", "0", "True", "0"], "and the thread's own mode is back"
    assert said("bare")[:2] == ["False", "901"]
