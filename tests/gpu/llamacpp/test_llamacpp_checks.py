# SPDX-License-Identifier: Apache-2.0
"""run.py: what it makes of answers, of throughput and of checks that do not apply, with servers that are played. The server itself needs a
build."""
import pathlib

import pytest

ANSWERS = [[5, 6, 7], [7, 8]]


@pytest.fixture(name="run")
def fixture_run(script):
    """The script."""
    return script("gpu/llamacpp/run.py")


class Lab:
    """Two equal runs, whatever was answered."""
    folder = pathlib.Path("/nowhere")

    def __init__(self, on, off, bare=None):
        self.answers, self.bared = {"graph-on": on, "graph-off": off}, bare

    def record(self, name, model, arm, **_options):
        return name, self.answers[arm], None

    def bare(self, _model, _env):
        return self.bared

    def ask(self, _verb, *_args):
        return 0, {"reasons": [], "slots": [], "alignment": {}, "summary": {}}


@pytest.mark.parametrize("on, off, holds", [(ANSWERS, ANSWERS, True), (ANSWERS, ANSWERS[::-1], False), ([], [], False), ([[], []], [[], []], False),
                                            ([[7], [7]], [[7], [7]], False)], ids=["same", "other", "none", "empty", "one token"])
def test_equal_tokens(run, on, off, holds):
    """`equal` is of states and of tokens."""
    checks = run.Checks(Lab(on, off, on), {"m": None}, True, None, 0)
    row = run.perform(checks, "equal", "m")
    assert row["ok"] is holds, row
    checks = run.Checks(Lab(on, on, off), {"m": None}, True, None, 0)
    assert run.perform(checks, "same_tokens", "m")["ok"] is holds


@pytest.mark.parametrize("rates, pairs, holds", [([100, 100], 10, True), ([100, 99.5], 10, True), ([100, 97], 10, False), ([100, 100], 9, False),
                                                 ([100, 90, 100, 120], 10, False)], ids=["equal", "0.5 %", "3 %", "few", "noise"])
def test_throughput_has_a_bar(run, monkeypatch, rates, pairs, holds):
    """Bare and recorded rates in turn. A noise in which no loss could be seen shows none."""
    checks = run.Checks(Lab([], []), {"m": None}, True, None, pairs)
    monkeypatch.setattr(checks, "rate", lambda _model, kind: played[kind is not None].pop(0))
    played = {False: [rates[0], *rates[0::2] * pairs], True: [rates[1], *rates[1::2] * pairs]}
    assert run.perform(checks, "throughput", "m")["ok"] is holds


def test_what_does_not_apply_is_no_pass(run):
    """Its row says null."""
    checks = run.Checks(Lab([], []), {"m": None}, False, None, 0)
    assert run.perform(checks, "graph_only", "m")["ok"] is None
