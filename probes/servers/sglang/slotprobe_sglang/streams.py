# SPDX-License-Identifier: Apache-2.0
"""On which stream a slot is read.

It has to be the one that every writer of the pool runs on. With the overlap schedule that is the forward stream, while the scheduler's own
stream, which is current when a request is handed over, would read while the next forward writes. It is not guessed: it is the stream that
was current when the last forward ran.

A slot id is a tensor that was made on the scheduler's stream. The forward stream waits for an event recorded there: the server adds the
same edge, for all of that stream, before its next forward. Its memory is kept by a reference until the forward stream got there: record_stream
would do the same at the price of an event for each block that is freed and of a question to the driver at each allocation until it came.
"""
import collections
import ctypes
import os
import sys
import threading

HELD_MAX, MARKS_MAX = 4096, 64  # tensors that are kept between two forwards, forwards that may be on their way
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Streams:
    """What the forwards of this process run on."""

    def __init__(self):
        self.forward, self.handle, self.device = None, None, None
        self._current, self._of = None, {}  # how to ask for the current stream's handle; its object, by handle
        self._events, self.held = {}, Held()

    def _raw(self, torch, device):
        """The handle of the stream that is current on a device, without an object around it."""
        if self._current is None:
            raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
            self._current = raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)
        return self._current(device)

    def _object(self, torch, device, handle):
        """The stream with this handle, which is current."""
        found = self._of.get((device, handle))
        return found if found is not None else self._of.setdefault((device, handle), torch.cuda.current_stream(device))

    def observe(self):
        """A forward runs now, on the current stream."""
        torch = _torch()
        if torch is None:
            return
        device = torch.cuda.current_device()
        handle = self._raw(torch, device)
        if handle != self.handle or device != self.device:
            self.forward, self.handle, self.device = self._object(torch, device, handle), handle, device
        self.held.thread = threading.get_ident()
        if self.held.any and not torch.cuda.is_current_stream_capturing():
            self.held.settle(torch)

    def expect(self, stream):
        """The stream that forwards will run on, if none has."""
        handle = getattr(stream, "cuda_stream", None)
        if self.forward is None and handle is not None:
            self.forward, self.handle, self.device = stream, handle, stream.device_index

    def behind(self, tensor, *more):
        """The handle of the stream to read the slots on whose ids these tensors hold, ordered behind what made them. None: memory of the
        host. Raises where nothing may be enqueued."""
        if not tensor.is_cuda:
            return None
        torch = _torch()
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a slot is handed over on a stream that captures")
        device = tensor.device.index
        current = self._raw(torch, device)
        if self.forward is None or self.handle == current or self.device != device:
            return current
        event = self._events.get(device)
        if event is None:
            event = self._events.setdefault(device, torch.cuda.Event())
        event.record(self._object(torch, device, current))  # a wait keeps what was recorded when it was enqueued: one event serves them all
        self.forward.wait_event(event)
        for one in (tensor, *more):
            self.held.keep(one, self.forward)
        return self.handle

    def here(self, tensor):
        """The handle of the stream that is current where a tensor lies. None: memory of the host."""
        return self._raw(_torch(), tensor.device.index) if tensor.is_cuda else None

    def of_forward(self, tensor):
        """The handle for an event whose slot is not read: nothing is ordered, nothing is kept."""
        return self.handle if self.handle is not None and tensor.is_cuda else self.here(tensor)


class Held:
    """Tensors whose memory the forward stream has yet to read. Nothing waits: at each forward it is looked how far the stream has come.

    That is known only where one thread hands slots over and runs the forwards, one after the other. Where it is not, and where too much
    is kept, the allocator is told instead.
    """

    def __init__(self):
        self.any, self.thread = False, None  # whether anything is kept; who runs the forwards
        self._now, self._stream, self._marks, self._spare, self._passed = [], None, collections.deque(), [], None

    def keep(self, tensor, stream):
        """Until `stream` has passed what is enqueued there before the next forward."""
        if self._passed is None:
            self._passed = passed_in_driver()
        usual = self._passed and self.thread == threading.get_ident() and len(self._now) < HELD_MAX and len(self._marks) < MARKS_MAX
        if not usual or (self._now and self._stream is not stream):
            tensor.record_stream(stream)
            return
        self._now.append(tensor)
        self._stream, self.any = stream, True

    def settle(self, torch):
        """At a forward: what was kept since the one before is passed when its stream has come this far; what was passed is let go."""
        if self._now:
            event = self._spare.pop() if self._spare else torch.cuda.Event()
            event.record(self._stream)
            self._marks.append((event, self._now))
            self._now = []
        while self._marks and self._passed(self._marks[0][0].cuda_event):
            self._spare.append(self._marks.popleft()[0])
        self.any = bool(self._marks)


def passed_in_driver():
    """A function that says whether an event has come, or False where there is none. torch.cuda.Event.query would end the capture of another
    thread; asked under the relaxed mode it does not."""
    try:
        driver = ctypes.PyDLL("libcuda.so.1", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        query, exchange = driver.cuEventQuery, driver.cuThreadExchangeStreamCaptureMode
    except (OSError, AttributeError):
        return False
    query.argtypes, exchange.argtypes = [ctypes.c_void_p], [ctypes.POINTER(ctypes.c_int)]

    def passed(event):
        mode = ctypes.c_int(RELAXED)
        exchange(mode)
        said = query(event)
        exchange(mode)
        return said == 0
    return passed


def capturing():
    """Whether the current stream captures: what is launched then is no work, but a graph under construction."""
    torch = _torch()
    return torch is not None and torch.cuda.is_current_stream_capturing()


def _torch():
    """PyTorch, where it has begun to use CUDA."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None
