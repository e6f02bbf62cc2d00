# SPDX-License-Identifier: Apache-2.0
"""Runs the hot path under callgrind and reads what it wrote: how many instructions each object spent inside of the loop, and who called
whom there."""
import collections
import os
import pathlib
import re
import subprocess

CALLS = 128
NAME = re.compile(r"\((\d+)\)(?: (.*))?$")


class Profile:
    """Costs inside of the loop, for one of its calls. `own`: of each object, itself. `edges`: (object, function) -> those that it called,
    with the inclusive cost."""

    def __init__(self, path, calls):
        self.own, self.edges = collections.Counter(), collections.defaultdict(collections.Counter)
        names, here, callee, cost = collections.defaultdict(dict), {}, {}, collections.Counter()
        called = False
        for line in path.read_text().splitlines():
            key, _, value = line.partition("=")
            if key in ("ob", "fn", "cob", "cfn"):
                number, text = NAME.match(value).groups()
                table = names[key[-2:]]
                if text:
                    table[number] = text
                if key[0] == "c":
                    callee[key[1:]] = table[number]
                else:
                    here[key] = table[number]
            elif key == "calls":
                called = True
            elif line[:1] and line[0] in "+-*0123456789":
                spent, me = int(line.split()[1]), (os.path.basename(here["ob"]), here["fn"])
                if called:
                    self.edges[me][(os.path.basename(callee.get("ob", here["ob"])), callee["fn"])] += spent
                    called, callee = False, {}
                else:
                    cost[me[0]] += spent
        self.own.update({name: n / calls for name, n in cost.items()})

    def reached(self, root, stop):
        """Functions that those of object `root` call, directly or not, without passing through object `stop`."""
        found, todo = set(), [f for f in self.edges if f[0] == root]
        while todo:
            for callee in self.edges[todo.pop()]:
                if callee[0] != stop and callee not in found:
                    found.add(callee)
                    todo.append(callee)
        return {f for f in found if f[0] != root}


def profile(build, folder, what, library=None, beside=None):
    """One profile of so many calls; `library`: the preload, None for none. `beside(run, process)` is called while it runs."""
    out = pathlib.Path(folder) / f"{what}.out"
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
    env["LD_LIBRARY_PATH"] = str(build / "cpudriver")
    if library:
        env |= {"LD_PRELOAD": str(library), "SLOTPROBE_DIR": str(pathlib.Path(folder) / f"{what}.run"), "SLOTPROBE_ARM": "graph-on",
                "SLOTPROBE_RECORDING": "1", "SLOTPROBE_MIN_FREE": "0"}
    with subprocess.Popen(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=hotpath_loop",
                           "--compress-pos=no", str(build / "bench" / "hotpath"), what, str(CALLS)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        if beside:
            beside(pathlib.Path(folder) / f"{what}.run", process)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"refused {0 if library else CALLS + 2} of" in said or what in ("launch", "nothing"), said
    assert ("pool there" in said) == bool(library), said
    return Profile(out, CALLS)
