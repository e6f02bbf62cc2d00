# SPDX-License-Identifier: Apache-2.0
"""A small server with one state per session: `pyserver.py [SESSION,ROUND]` spoils that state before it is kept."""
import array
import json
import sys

import statecache


def advance(state, token):
    """One token."""
    for i, x in enumerate(state):
        state[i] = 0.5 * x + (token * 13 + i * 5) % 11 - 5


def main():
    """Rounds of requests; prints how often states were put and got."""
    spoil = tuple(map(int, sys.argv[1].split(","))) if len(sys.argv) > 1 else None
    cache, count = statecache.StateCache(), {"puts": 0, "gets": 0}
    history = {s: [] for s in range(3)}
    for turn in range(4):
        for session, tokens in history.items():
            state = array.array("f", bytes(4 * 50))
            if tokens:
                state = cache.get(tokens)[1][:]
                count["gets"] += 1
            for t in range(6):
                tokens.append(7 * session + t + turn)
                advance(state, tokens[-1])
            if (session, turn) == spoil:
                state[3] += 1.0
            cache.put(session, tokens, state)
            count["puts"] += 1
    print(json.dumps(count))


main()
