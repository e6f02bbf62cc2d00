# SPDX-License-Identifier: Apache-2.0
"""The requests that the test of SGLang sends. Each returns the tokens that were answered, which are a function of the requests alone."""
import concurrent.futures
import random
import threading
import time

from lab import INTERVAL, LARGEST, VOCABULARY

ROUNDS, CONVERSATIONS = 8, 4  # more states to keep than slots: some are donated again


def prompt(seed, n) -> list:
    """Tokens that only this seed gives."""
    rnd = random.Random(seed)
    return [rnd.randrange(3, VOCABULARY) for _ in range(n)]


def ask(server, tokens, n, asked) -> tuple:
    """The answer to a request, and how much of it was cached. When it was under way, and where its prompt ended, is appended to `asked`."""
    begun = time.monotonic_ns()
    said = server.generate(tokens, n)
    asked.append({"from": begun, "to": time.monotonic_ns(), "prompt": len(tokens), "new": n})
    return said


def one_at_a_time(server, rounds=ROUNDS) -> dict:
    """Conversations in turn, from an empty cache. A turn takes up what the one before left in the cache, decodes past the track interval,
    and is answered before the next begins. Prompts end anywhere."""
    server.post("/flush_cache")
    said = [prompt(f"conversation {c}", 2 * INTERVAL + 5 * c) for c in range(CONVERSATIONS)]
    answers, cached, asked = [], 0, []
    for turn in range(rounds):
        for c in range(CONVERSATIONS):
            answer, found = ask(server, said[c], INTERVAL + 20 + 3 * c, asked)
            answers.append(answer)
            cached += found
            said[c] = said[c] + answer + prompt(f"turn {turn} {c}", 30 + turn)
    return {"answers": answers, "cached_tokens": cached, "requests": len(answers), "asked": asked}


def at_once(server, rounds=3, clients=LARGEST - 1) -> dict:
    """As many clients as leave the largest captured batch padded, each with a conversation of its own from a common prefix. Prompts end
    where a chunk does: what a prefill computes of a request then does not hang on who shares its batch. Turns begin together: SGLang drops
    a state where a prefill comes in at the very step at which it is kept, and the next turn then goes on from an earlier one."""
    server.post("/flush_cache")
    common, asked, together = prompt("common", 2 * INTERVAL), [], threading.Barrier(clients)
    server.generate(common, 1)

    def answered(said, n):
        try:
            return ask(server, said, n, asked)
        except BaseException:
            together.abort()  # nobody waits for one that will not come
            raise

    def client(c):
        said, answers, cached = common + prompt(f"client {c}", INTERVAL), [], 0
        for turn in range(rounds):
            together.wait()
            answer, found = answered(said, INTERVAL + 10 + 7 * c)
            answers.append(answer)
            cached += found
            said = said + answer
            said = said + prompt(f"client {c} {turn}", -len(said) % INTERVAL + INTERVAL)
        return answers, cached

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        done = list(pool.map(client, range(clients)))
    return {"answers": [a for answers, _ in done for a in answers], "cached_tokens": sum(c for _, c in done), "requests": clients * rounds,
            "asked": asked}


def rate(server, n, seed) -> float:
    """Tokens per second of one full batch; half of each prompt is in the cache."""
    prompts = [prompt(f"rate {c}", 2 * INTERVAL) + prompt(f"rate {seed} {c}", 2 * INTERVAL) for c in range(LARGEST)]
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(LARGEST) as pool:
        done = list(pool.map(lambda p: server.generate(p, n)[0], prompts))
    return sum(map(len, done)) / (time.perf_counter() - begun)
