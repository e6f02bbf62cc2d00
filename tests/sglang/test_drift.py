# SPDX-License-Identifier: Apache-2.0
"""The drift check, offline: the pinned release passes, doctored copies of it do not."""
import shutil
import subprocess
import sys

import pytest

DRIFT = "probes/servers/sglang/drift.py"
CACHE, COMPONENT = "mem_cache/unified_radix_cache.py", "mem_cache/unified_cache/components/mamba.py"


@pytest.fixture(scope="module")
def sources(release, tmp_path_factory):
    """A copy of what the check reads."""
    import slotprobe_sglang.targets as targets
    to = tmp_path_factory.mktemp("sources")
    modules = {t.module for role in targets.ROLES for t in role.targets} | {"sglang.srt.plugins", "sglang.srt.plugins.hook_registry"}
    for module in modules:
        path = release.joinpath("site", *module.split("."))
        path = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
        if path.is_file():
            copy = to / path.relative_to(release / "site")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    return to


def drift(root, folder):
    """(exit status, what it printed)."""
    done = subprocess.run([sys.executable, "-B", root / DRIFT, folder], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_pinned_release(root, sources):
    """Everything is where it is hooked."""
    status, said = drift(root, sources)
    assert status == 0 and "nothing moved" in said and "MOVED" not in said, said


@pytest.mark.parametrize("file, before, after, role", [
    (COMPONENT, "def prepare_for_caching_req(", "def prepare_to_cache_req(", "prepare"),
    (COMPONENT, "class MambaComponent(", "class StateComponent(", "prepare"),
    (CACHE, "def insert(self, params: InsertParams)", "def insert(self, key, params: InsertParams)", "insert"),
    (CACHE, "def checkpoint(self, req: Req,", "def checkpoint(self, request: Req,", "cache_req"),
    ("mem_cache/memory_pool.py", "def copy_from(self, src_indices: torch.Tensor, dst_indices", "def copy_from(self, dst_indices, src_indices", "copy"),
    ("plugins/hook_registry.py", 'AROUND = "around"', 'WITHIN = "around"', "hooks of the kinds"),
    ("plugins/__init__.py", '"sglang.srt.plugins"', '"sglang.plugins"', "entry point group"),
    ("managers/scheduler.py", "    load_plugins()\n", "    pass\n", "plugins in every scheduler"),
])
def test_what_moved_is_named(root, sources, tmp_path, file, before, after, role):
    """A function, a class, a parameter, the registry."""
    doctored = tmp_path / "doctored"
    shutil.copytree(sources, doctored)
    path = doctored / "sglang" / "srt" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    status, said = drift(root, doctored)
    moved = [line for line in said.splitlines() if line.startswith("MOVED")]
    assert status == 1 and len(moved) == 1 and role in moved[0], said


def test_a_module_that_is_gone(root, sources, tmp_path):
    """Is said as such; a folder that holds no SGLang is another thing."""
    doctored = tmp_path / "doctored"
    shutil.copytree(sources, doctored)
    (doctored / "sglang" / "srt" / COMPONENT).unlink()
    status, said = drift(root, doctored)
    assert status == 1 and "there is no module" in said
    assert drift(root, tmp_path)[0] == 2
