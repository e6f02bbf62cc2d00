# SPDX-License-Identifier: Apache-2.0
"""From tensors to the planes of a pool: one plane for each layer, and one for each dense run of a slot's elements."""
import ctypes
import itertools

from . import _abi
from ._tensor import dense_span, tensor

SPLIT_MAX = 64  # runs of one slot in one layer: more would be a launch per handful of bytes
NAME_MAX = 63  # bytes of a plane's name that the log keeps


def flat(tensors):
    """(name, tensor, name in the dict) of a dict; a list or tuple gives NAME.0, NAME.1, ..."""
    if not hasattr(tensors, "items"):
        raise TypeError(f"tensors: a dict of name -> tensor is expected, not {type(tensors).__name__}")
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"tensors: names are str, not {type(name).__name__}")
        if isinstance(value, (list, tuple)):
            for i, one in enumerate(value):
                yield f"{name}.{i}", one, name
        else:
            yield name, value, name


def axis_of(said, key, what):
    """`said`, or what it holds for this tensor where it is a dict."""
    axis = said.get(key) if hasattr(said, "get") else said
    if axis is None or type(axis) is int:
        return axis
    raise TypeError(f"{what} of {key}: int or None is expected, not {type(axis).__name__}")


def normal(axis, t, name, what):
    """The axis counted from the front."""
    if not -len(t.shape) <= axis < len(t.shape):
        raise ValueError(f"{name}: {what} {axis} of a tensor with shape {t.shape}")
    return axis % len(t.shape)


class Layout:
    """The planes of a pool.

    planes: (name, layer, dtype, base, slot stride, elements) each; n_slots; device: CUDA ordinal, -1 host memory.
    """

    def __init__(self, tensors, layer_axis, slot_axis):
        self.planes, self.n_slots, self.device, self._first = [], None, None, None
        for name, what, key in flat(tensors):
            slots = axis_of(slot_axis, key, "slot_axis")
            if slots is None:
                raise TypeError(f"{name}: every tensor of a pool has a slot_axis")
            self._add(name, tensor(what, name), axis_of(layer_axis, key, "layer_axis"), slots)
        if not self.planes:
            raise ValueError("tensors: there is none, or none with a layer")

    def _agree(self, name, t, slots):
        if self._first is None:
            self._first, self.n_slots, self.device = name, t.shape[slots], t.device
        if t.shape[slots] != self.n_slots:
            raise ValueError(f"{name}: {t.shape[slots]} slots, but {self._first} has {self.n_slots}: wrong slot_axis?")
        if t.device != self.device:
            raise ValueError(f"{name}: on device {t.device}, but {self._first} is on {self.device} (-1: host)")

    def _add(self, name, t, layers, slots):
        slots = normal(slots, t, name, "slot_axis")
        if layers is not None:
            layers = normal(layers, t, name, "layer_axis")
            if layers == slots:
                raise ValueError(f"{name}: layer_axis and slot_axis are both {slots}")
        self._agree(name, t, slots)
        if not t.strides[slots] and self.n_slots > 1 and t.count:
            raise ValueError(f"{name}: all slots lie in one place (stride 0)")
        inner = [(t.shape[i], t.strides[i]) for i in range(len(t.shape)) if i not in (layers, slots)]
        for label, offset, size in runs(name, t, inner):
            if len(label.encode()) > NAME_MAX:
                raise ValueError(f"{label}: a name of more than {NAME_MAX} bytes")
            elems = size if t.code == _abi.RAW else size // t.itemsize
            for layer in range(1 if layers is None else t.shape[layers]):
                base = t.address + offset + (layer * t.strides[layers] if layers is not None else 0)
                self.planes.append((label, -1 if layers is None else layer, t.code, base, t.strides[slots], elems))

    def structure(self, name, first_slot):
        """struct slotprobe_pool; what it points to lives as long as it does."""
        planes = (_abi.Plane * len(self.planes))(*((label.encode(), *rest) for label, *rest in self.planes))
        return _abi.Pool(ctypes.sizeof(_abi.Pool), name, self.device, first_slot, self.n_slots, planes, len(self.planes), 0)


def runs(name, t, inner):
    """(name, offset, bytes) of each dense run of a slot: one where it has no gaps, else NAME@I by the index along the axes that leave them."""
    order = sorted(range(len(inner)), key=lambda i: abs(inner[i][1]))
    for n_dense in range(len(order), -1, -1):
        dense = [inner[i] for i in order[:n_dense]]
        span = dense_span([n for n, _ in dense], [s for _, s in dense], t.itemsize)
        if span is not None:
            break
    outer = [inner[i] for i in sorted(order[n_dense:])]
    if not outer or span[1] == 0:
        return [(name, *span)]
    if any(s == 0 for n, s in outer if n > 1):
        raise ValueError(f"{name}: an expanded tensor: elements of a slot lie in one place (stride 0)")
    pieces = 1
    for n, _ in outer:
        pieces *= n
    if pieces > SPLIT_MAX:
        raise ValueError(f"{name}: the elements of a slot are not contiguous: {pieces} runs of {span[1]} bytes each, at most {SPLIT_MAX} "
                         "are taken; register the tensor that this is a view of, or check layer_axis and slot_axis")
    return [(f"{name}@{','.join(map(str, at))}", span[0] + sum(i * s for i, (_, s) in zip(at, outer)), span[1])
            for at in itertools.product(*(range(n) for n, _ in outer))]
