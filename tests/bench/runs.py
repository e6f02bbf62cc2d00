# SPDX-License-Identifier: Apache-2.0
"""What the benches and the GPU scripts ask of a run that one process recorded."""
import glob
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

TOOLKITS = ["/usr/local/cuda", "/usr/local/cuda-13.0"]


def surroundings() -> dict:
    """The environment, without what an outer recording put there."""
    return {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}


def cupti_libraries() -> Iterator[str]:
    """Every libcupti of this machine: the toolkit's first, then those that came with Python packages."""
    seen = set()
    for place in [*(f"{root}/{part}" for root in TOOLKITS for part in ("extras/CUPTI/lib64", "lib64")), *filter(None, sys.path)]:
        for path in sorted(glob.glob(f"{place}/**/libcupti.so*", recursive=True)):
            if os.path.isfile(path) and os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield path


def probes(slotprobe: pathlib.Path, run: pathlib.Path) -> dict:
    """The counters of the run's one process: the objects of `status --json` by the probe's name."""
    status = subprocess.run([str(slotprobe), "status", str(run), "--json"], capture_output=True, text=True, check=True)
    (process,) = json.loads(status.stdout)["processes"]
    return {probe["name"]: probe for probe in process["probes"]}
