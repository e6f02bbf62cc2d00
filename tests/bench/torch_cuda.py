# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors on the CPU driver: real ones, made by the PyTorch at hand, over memory that the driver allocated. They say that they are CUDA's.

Streams and events are the driver's, called through ctypes, with the methods of torch.cuda that a server or an adapter may use. What would
wait for the device, or bring a value to the host, is noted in `waits` (and done): there must be none in a hook.
"""
import ctypes

WAITING = ("item", "cpu", "tolist", "numpy", "__bool__", "__int__", "__index__", "__float__", "nonzero")

waits = []  # what waited, by name
made = {"record_stream": 0}


class Driver:
    """The calls that are needed, checked."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuCtxCreate_v2", ctypes.byref(context), 0, 0)

    def __call__(self, name, *args):
        result = getattr(self.library, name)(*args)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def handle(self, name, *args):
        """What a call makes."""
        made_here = ctypes.c_void_p()
        self(name, ctypes.byref(made_here), *args)
        return made_here.value


class Stream:
    """torch.cuda.Stream"""

    def __init__(self, cuda, handle):
        self.cuda, self.cuda_stream, self.device, self.device_index = cuda, handle, cuda.device_object, 0

    def wait_event(self, event):
        """As PyTorch does it."""
        event.wait(self)

    def synchronize(self):
        """Waits."""
        waits.append("Stream.synchronize")
        self.cuda.driver("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))

    def query(self):
        """Whether it is idle."""
        return self.cuda.driver.library.cuStreamQuery(ctypes.c_void_p(self.cuda_stream)) == 0


class Event:
    """torch.cuda.Event"""
    cuda = None

    def __init__(self):
        self.cuda_event = self.handle = self.cuda.driver.handle("cuEventCreate", 2)

    def record(self, stream=None):
        """On a stream, the current one by default."""
        stream = stream or self.cuda.current
        self.cuda.order.append((stream.cuda_stream, "records"))
        if not self.cuda.quiet:
            self.cuda.event_record(self.handle, stream.cuda_stream)

    def wait(self, stream=None):
        """The stream waits, not the host."""
        stream = stream or self.cuda.current
        self.cuda.order.append((stream.cuda_stream, "waits"))
        if not self.cuda.quiet:
            self.cuda.stream_wait(stream.cuda_stream, self.handle, 0)

    def query(self):
        """Whether it has happened."""
        return self.cuda.quiet or self.cuda.event_query(self.handle) == 0

    def synchronize(self):
        """Waits."""
        waits.append("Event.synchronize")
        self.cuda.driver("cuEventSynchronize", ctypes.c_void_p(self.handle))


class Cuda:
    """torch.cuda, of one device."""

    def __init__(self, torch):
        self.torch, self.driver, self.device_object, self.order = torch, Driver(), torch.device("cuda", 0), []
        Event.cuda, self.quiet, self.is_capturing = self, False, ctypes.c_int()
        self.event_record = self.bound("cuEventRecord", ctypes.c_void_p, ctypes.c_void_p)
        self.event_query = self.bound("cuEventQuery", ctypes.c_void_p)
        self.stream_wait = self.bound("cuStreamWaitEvent", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
        self.stream_capturing = self.bound("cuStreamIsCapturing", ctypes.c_void_p, ctypes.c_void_p)
        self.schedule, self.forward = self.stream(), self.stream()
        self.current = self.schedule
        self.install()

    def bound(self, name, *arguments):
        """A call of the driver, with as little around it as ctypes allows."""
        function = getattr(self.driver.library, name)
        function.argtypes = arguments
        return function

    def stream(self):
        """A new one."""
        return Stream(self, self.driver.handle("cuStreamCreate", 1))

    def tensor(self, shape, dtype):
        """Zeroes in memory of the device."""
        count = 1
        for n in shape:
            count *= n
        size = count * dtype.itemsize
        address = ctypes.c_uint64()
        self.driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        ctypes.memset(address.value, 0, size)
        return self.torch.frombuffer((ctypes.c_char * size).from_address(address.value), dtype=dtype).reshape(shape)

    def finish(self):
        """Waits for the device."""
        self.driver("cuCtxSynchronize")
        del self.order[:]

    def install(self):
        """Puts this in the place of PyTorch's own."""
        cuda, tensor, device = self.torch.cuda, self.torch.Tensor, self.device_object
        cuda.is_initialized = lambda: True
        cuda.is_current_stream_capturing = self.capturing
        cuda.current_stream = lambda _device=None: Stream(self, self.current.cuda_stream)  # an object each time, as there
        cuda.current_device = lambda: 0
        cuda.Event, cuda.Stream, cuda.synchronize = Event, Stream, self.synchronize
        self.torch._C._cuda_getCurrentRawStream = lambda _device: self.current.cuda_stream
        tensor.is_cuda = property(lambda _tensor: True)
        tensor.device = property(lambda _tensor: device)
        tensor.record_stream = record_stream
        for name in WAITING:
            setattr(tensor, name, noted(name, getattr(tensor, name)))

    def capturing(self):
        """Whether the current stream is."""
        if not self.quiet:
            self.stream_capturing(self.current.cuda_stream, ctypes.addressof(self.is_capturing))
        return self.is_capturing.value == 1

    def synchronize(self, _device=None):
        """Waits."""
        waits.append("torch.cuda.synchronize")
        self.finish()


def record_stream(_tensor, _stream):
    """Counted: the allocator pays for it later, an event for each block that is freed and a query at each allocation until it came."""
    made["record_stream"] += 1


def noted(name, method):
    """A method that waits."""
    def call(self, *args, **kwargs):
        waits.append(name)
        return method(self, *args, **kwargs)
    return call
