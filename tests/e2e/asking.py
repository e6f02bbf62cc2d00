# SPDX-License-Identifier: Apache-2.0
"""Asks the command about runs that loggen made: every answer is valid by its schema, and the text agrees with the JSON."""
import json
import os
import subprocess

import jsonschema

from loggen import ROOT, Run

SCHEMAS = ROOT / "docs/schemas"


class Tool:
    """The command, and what it said."""

    def __init__(self, command, folder):
        self.command, self.folder, self.n = command, folder, 0

    def put(self, run):
        if not isinstance(run, Run):
            return run
        self.n += 1
        for p in run.processes:  # no process is in two recordings
            p.recorded = self.n
        return run.write(self.folder / f"run{self.n}")

    def text(self, *arguments):
        done = subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        if arguments[0] in ("diff", "check"):
            # whatever it did not load, it must not have mattered
            whole = subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                                   env=os.environ | {"SLOTPROBE_READING": "whole"})
            assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, whole.stderr)
        return done

    def json(self, verb, *arguments):
        done = self.text(verb, "--json", *arguments)
        assert done.stdout, done.stderr
        said = json.loads(done.stdout)
        jsonschema.Draft7Validator(json.loads((SCHEMAS / f"{verb}.schema.json").read_text())).validate(said)
        assert said["exit_status"] == done.returncode
        return said

    def diff(self, a, b, *options):
        a, b = self.put(a), self.put(b)
        said = self.json("diff", a, b, *options)
        # the text twin agrees
        plain = self.text("diff", a, b, *options)
        assert plain.returncode == said["exit_status"]
        assert plain.stdout.startswith({"equal": "EQUAL", "differs": "DIFFERS", "not_proven": "NOT PROVEN"}[said["verdict"]])
        for reason in said["reasons"]:
            assert reason["code"] in plain.stdout and reason["remedy"] in plain.stdout
        return said

    def check(self, run, *options):
        return self.json("check", self.put(run), *options)
