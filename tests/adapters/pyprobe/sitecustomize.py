# SPDX-License-Identifier: Apache-2.0
import ctypes, importlib.abc, importlib.util, struct, sys  # noqa: E401
api, pools = ctypes.CDLL(None), []  # the preload is in the process: its calls are found by name

def at(data):
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value

def say(call, session, tokens, state):  # the structures of slotprobe.h, packed with the C compiler's alignment
    if not pools:
        plane = struct.pack("@PiIQqQ", at(b"state"), -1, 1, 0, 0, len(state))  # tensor, layer, SLOTPROBE_F32, base, stride, elems
        pools.append(api.slotprobe_pool_add(struct.pack("@IPiqqPIQ", 64, at(b"sessions"), -1, 0, 64, at(plane), 1, 1)))  # 1: floating
    text, n = repr(list(tokens)).encode(), len(tokens)
    claim = struct.pack("@IiqQIqQPQIqQ", 88, pools[0], session, 0, 0, n, 0, at(text), 0, 0, n, state.buffer_info()[0])
    failed = getattr(api, "slotprobe_" + call)(claim) < 0
    api.slotprobe_hit(api.slotprobe_point(b"pyprobe." + call.encode()), 2 if failed else 0)  # SLOTPROBE_HIT_*

def wrap(cache, put, get):  # a donation before the server keeps the state, a restore before it hands it out
    def restoring(self, tokens):
        found = get(self, tokens)
        if found:
            say("restore", found[0], tokens, found[1])
        return found
    cache.put = lambda self, session, tokens, state: say("donate", session, tokens, state) or put(self, session, tokens, state)
    cache.get = restoring

class WhenImported(importlib.abc.MetaPathFinder):  # the server's module does not exist yet
    def find_spec(self, name, path, target=None):
        if name == "statecache" and hasattr(api, "slotprobe_donate"):
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), wrap(module.StateCache, module.StateCache.put, module.StateCache.get))
            return spec

sys.meta_path.insert(0, WhenImported())
