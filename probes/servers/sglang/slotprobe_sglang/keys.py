# SPDX-License-Identifier: Apache-2.0
"""The identity of a token prefix: a hash of exactly these tokens, kept up as a request grows.

A request's tokens are hashed once, however often it hands a state over. The digest is the same in every process that has the same hash
function: xxh3 where xxhash is installed (SGLang asks for it), else blake2b of the standard library.
"""
import hashlib
from array import array

try:
    from xxhash import xxh3_64 as _new
except ImportError:
    def _new():
        return hashlib.blake2b(digest_size=8)


def raw(tokens, begin, end):
    """tokens[begin:end] as 64-bit integers in memory; no copy of an array that holds them so."""
    try:
        view = memoryview(tokens)
        if view.ndim == 1 and view.itemsize == 8 and view.format in ("q", "l"):
            return view[begin:end]
    except TypeError:
        pass
    return array("q", tokens[begin:end])


class Prefix:
    """The prefixes of one request. `salt`: what else tells prefixes apart (an adapter's name, a tenant)."""
    __slots__ = ("salt", "hash", "length", "last", "said")

    def __init__(self, salt):
        self.salt = salt
        self._restart()

    def _restart(self):
        self.hash, self.length, self.last, self.said = _new(), 0, None, {}
        if self.salt:
            self.hash.update(repr(self.salt).encode())

    def key(self, tokens, length):
        """The 64-bit key of tokens[:length], never 0. Tokens that were hashed before are not looked at again, but for the last of them:
        a request that starts anew with other tokens starts anew here."""
        if not 0 < length <= len(tokens):
            return 0
        grown = self.length <= length
        if self.length and (len(tokens) < self.length or tokens[self.length - 1] != self.last):
            self._restart()
        elif not grown and length in self.said:
            return self.said[length]
        elif not grown:  # a prefix that was passed by
            once = Prefix(self.salt)
            self.said[length] = once.key(tokens, length)
            return self.said[length]
        self.hash.update(raw(tokens, self.length, length))
        self.length, self.last = length, tokens[length - 1]
        self.said[length] = int.from_bytes(self.hash.digest(), "little") or 1
        return self.said[length]
