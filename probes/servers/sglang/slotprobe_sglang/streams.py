# SPDX-License-Identifier: Apache-2.0
"""On which stream a slot is read.

It has to be the one that every writer of the pool runs on. With the overlap schedule that is the forward stream, while the scheduler's own
stream, which is current when a request is handed over, would read while the next forward writes. It is not guessed: it is the stream that
was current when the last forward ran.

A slot id is a tensor that was made on the scheduler's stream. The forward stream waits for an event recorded there: the server adds the
same edge, for all of that stream, before its next forward.
"""
import sys


class Streams:
    """What the forwards of this process run on."""

    def __init__(self):
        self.forward, self._events = None, {}

    def observe(self):
        """A forward runs now, on the current stream."""
        cuda = _cuda()
        if cuda is not None:
            self.forward = cuda.current_stream()

    def behind(self, tensor):
        """The stream to read the slot on whose id `tensor` holds, ordered behind what made the tensor. None: memory of the host.
        Raises where nothing may be enqueued."""
        if not tensor.is_cuda:
            return None
        cuda = _cuda()
        if cuda.is_current_stream_capturing():
            raise RuntimeError("a slot is handed over on a stream that captures")
        current = cuda.current_stream(tensor.device)
        forward = self.forward
        if forward is None or forward.cuda_stream == current.cuda_stream or forward.device != current.device:
            return current
        event = self._events.get(forward.device)
        if event is None:
            event = self._events.setdefault(forward.device, cuda.Event())
        event.record(current)  # a wait keeps what was recorded when it was enqueued: one event serves them all
        forward.wait_event(event)
        return forward


def capturing():
    """Whether the current stream captures: what is launched then is no work, but a graph under construction."""
    cuda = _cuda()
    return cuda is not None and cuda.is_current_stream_capturing()


def _cuda():
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
