# SPDX-License-Identifier: Apache-2.0
"""The part of a Python server that keeps states: it knows nothing of slotprobe."""


class StateCache:
    """States by the tokens that they stand for."""

    def __init__(self):
        self.kept = {}

    def put(self, session, tokens, state):
        """Keeps a session's state."""
        self.kept[tuple(tokens)] = (session, state[:])

    def get(self, tokens):
        """(session it came from, state) of exactly these tokens, or None."""
        return self.kept.get(tuple(tokens))
