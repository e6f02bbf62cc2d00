# SPDX-License-Identifier: Apache-2.0
"""What the benches and the GPU scripts ask of a run that one process recorded."""
import json
import os
import pathlib
import subprocess


def surroundings() -> dict:
    """The environment, without what an outer recording put there."""
    return {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}


def probes(slotprobe: pathlib.Path, run: pathlib.Path) -> dict:
    """The counters of the run's one process: the objects of `status --json` by the probe's name."""
    status = subprocess.run([str(slotprobe), "status", str(run), "--json"], capture_output=True, text=True, check=True)
    (process,) = json.loads(status.stdout)["processes"]
    return {probe["name"]: probe for probe in process["probes"]}
