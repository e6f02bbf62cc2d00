# SPDX-License-Identifier: Apache-2.0
"""Does a release of SGLang still have what the adapter hooks? Reads sources, imports nothing of SGLang.

drift.py [SOURCES]: SOURCES is a folder that holds `sglang/`; without it the newest release is fetched from the package index, as a wheel
and without what it depends on. Prints what moved. Exit status: 0 everything is where it was, 1 something moved, 2 no release to look at.
"""
import ast
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from slotprobe_sglang.targets import ROLES, Role, Target  # noqa: E402

# What the adapter calls and is called by.
PLUGINS = "sglang.srt.plugins"
REGISTRY = (
    Role("registry", True, "the registry that puts the hooks in place", (
        Target(PLUGINS + ".hook_registry", "HookRegistry.register", ("cls", "target", "hook", "hook_type")),)),
)
KINDS = ("BEFORE", "AFTER", "AROUND")


class Sources:
    """The modules of a release, parsed when they are asked for."""

    def __init__(self, folder):
        self.folder, self.trees = pathlib.Path(folder), {}

    def tree(self, module):
        """The module's syntax tree; None: there is no such module."""
        if module not in self.trees:
            path = self.folder.joinpath(*module.split("."))
            found = next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)
            self.trees[module] = ast.parse(found.read_bytes()) if found else None
        return self.trees[module]

    def members(self, module, owner):
        """The body of a class of that module, by name; None: there is none."""
        for node in self.tree(module).body if self.tree(module) else ():
            if isinstance(node, ast.ClassDef) and node.name == owner:
                return {getattr(n, "name", None) or n.targets[0].id: n for n in node.body
                        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) or isinstance(n, ast.Assign) and hasattr(n.targets[0], "id")}
        return None

    def has_string(self, module, text):
        """Whether a string of that module is this one."""
        return any(isinstance(n, ast.Constant) and n.value == text for n in ast.walk(self.tree(module) or ast.Module([], [])))

    def calls(self, module, function, name):
        """Whether a function of that module calls a name."""
        body = [n for n in (self.tree(module) or ast.Module([], [])).body if isinstance(n, ast.FunctionDef) and n.name == function]
        return any(isinstance(n, ast.Call) and getattr(n.func, "id", None) == name for f in body for n in ast.walk(f))


def problem(sources, target):
    """What is wrong with a target; None: nothing."""
    if sources.tree(target.module) is None:
        return f"there is no module {target.module}"
    members = sources.members(target.module, target.owner)
    if members is None:
        return f"{target.module} has no class {target.owner}"
    function = members.get(target.function)
    if not isinstance(function, ast.FunctionDef):
        return f"{target.module}.{target.owner} has no function {target.function}"
    has = tuple(a.arg for a in (*function.args.posonlyargs, *function.args.args))
    if has[:len(target.parameters)] != target.parameters:
        return f"{target.path} takes ({', '.join(has)}), and ({', '.join(target.parameters)}, ...) is hooked"
    return None


def role_lines(sources, role):
    """(whether it moved, lines to print). One target is enough, but one that is there must fit."""
    problems = {target: problem(sources, target) for target in role.targets}
    good = [target for target in role.targets if problems[target] is None]
    bent = [text for text in problems.values() if text and " takes (" in text]
    if good and not bent:
        return False, [f"ok     {role.name:<12} {', '.join(t.path for t in good)}"]
    if not role.required and not bent:
        return False, [f"-      {role.name:<12} not in this release ({role.why})"]
    return True, [f"MOVED  {role.name:<12} {role.why}"] + [f"       {'':<12} {text}" for text in (bent or problems.values()) if text]


def compare(folder):
    """Prints role by role; returns how many moved."""
    sources, moved = Sources(folder), 0
    for role in REGISTRY + ROLES:
        wrong, lines = role_lines(sources, role)
        moved += wrong
        print("\n".join(lines))
    others = [(sources.has_string(PLUGINS, "sglang.srt.plugins"), f"the entry point group {PLUGINS}"),
              (sources.calls("sglang.srt.managers.scheduler", "run_scheduler_process", "load_plugins"), "plugins in every scheduler"),
              (set(KINDS) <= set(sources.members(PLUGINS + ".hook_registry", "HookType") or ()), f"hooks of the kinds {', '.join(KINDS)}")]
    for there, what in others:
        moved += not there
        print(f"{'ok    ' if there else 'MOVED '} {what}")
    return moved


def fetch(folder):
    """The newest release's wheel; its sources under `folder`. Returns the version."""
    done = subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "--only-binary", ":all:",
                           "-d", folder, "sglang"], capture_output=True, text=True, timeout=900, check=False)
    wheel = next(pathlib.Path(folder).glob("sglang-*.whl"), None)
    if done.returncode or wheel is None:
        print(f"drift.py: cannot fetch the newest release: {(done.stderr.strip() or 'no wheel').splitlines()[-1]}", file=sys.stderr)
        sys.exit(2)
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder, [n for n in packed.namelist() if n.endswith(".py")])
    return wheel.name.split("-")[1]


def main():
    """As the head of this file says."""
    if len(sys.argv) > 1:
        if not (pathlib.Path(sys.argv[1]) / "sglang" / "srt").is_dir():
            print(f"drift.py: '{sys.argv[1]}' holds no sglang/srt", file=sys.stderr)
            sys.exit(2)
        print(f"SGLang in {sys.argv[1]}")
        moved = compare(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(f"SGLang {fetch(folder)}")
            moved = compare(folder)
    print(f"{moved} moved" if moved else "nothing moved")
    sys.exit(1 if moved else 0)


if __name__ == "__main__":
    main()
