#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slotprobe.batch_invariance on PyTorch's operators: one known to change with the batch, some known not to.

    tests/gpu/batch_invariance.py [--build FOLDER] [--json FILE]

A bf16 matrix product is cuBLAS's choice of kernel by the batch: its row at 1 and at 288 must differ somewhere among the shapes tried. What
works element by element, and the same product row by row, must not. Each answer is held against torch.equal of the rows.
Exit status 0 when everything holds.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = (1, 288)
WIDTHS = (512, 2048, 4096, 8192)


def operators(torch):
    """name -> (function of the batch size, or two of them; known answer, or None where the shape decides)."""
    made = {}
    for width in WIDTHS:
        torch.manual_seed(width)
        rows = torch.randn(max(SIZES), width, device="cuda", dtype=torch.bfloat16)
        weight = torch.randn(width, width, device="cuda", dtype=torch.bfloat16) / width ** 0.5

        def product(n, x=rows, w=weight):
            return x[:n] @ w

        def by_row(n, x=rows, w=weight):
            return torch.cat([x[i:i + 1] @ w for i in range(n)])

        made[f"matmul {width}"] = product, None
        made[f"matmul by row {width}"] = by_row, True
        made[f"matmul against by row {width}"] = (product, by_row), None
        made[f"silu {width}"] = (lambda n, x=rows: torch.nn.functional.silu(x[:n]) * x[:n]), True
    return made


def inside():
    """In the recorded process: prints what was found."""
    import torch
    sys.path.insert(0, str(ROOT / "probes" / "python"))
    import slotprobe
    found = {}
    for name, (op, known) in operators(torch).items():
        several = op if isinstance(op, tuple) else (op,)
        outputs = [one(n)[0] for one in several for n in SIZES]
        said = slotprobe.batch_invariance(op, SIZES)
        found[name] = {"invariant": said.invariant, "error": said.error, "hashes": [f"{r.hash:#018x}" for r in said.rows], "known": known,
                       "torch_equal": all(torch.equal(outputs[0], o) for o in outputs)}
    print(json.dumps({"torch": torch.__version__, "operators": found}))


def judge(found):
    """What does not hold."""
    wrong = [f"{name}: {f}" for name, f in found.items()
             if f["error"] or f["invariant"] is not f["torch_equal"] or f["known"] not in (None, f["invariant"])]
    if not any(f["invariant"] is False for name, f in found.items() if name.startswith("matmul ")):
        wrong.append("no matrix product changed with its batch: nothing shows that a difference is seen")
    return wrong


def main() -> int:
    """Records itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside()
        return 0
    with tempfile.TemporaryDirectory(prefix="slotprobe-invariance-") as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("SLOTPROBE_")}
        done = subprocess.run([str(args.build.resolve() / "slotprobe"), "record", "-o", f"{folder}/run", "--arm", "graph-off", "--", sys.executable,
                               __file__, "--inside"], capture_output=True, text=True, env=env, timeout=200, check=False)
    if done.returncode:
        print(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
        return 1
    found = json.loads(done.stdout)
    wrong = judge(found["operators"])
    for name, f in found["operators"].items():
        print(f"{'same   ' if f['invariant'] else 'changes'}  {name}")
    print("\n".join(wrong))
    if args.json:
        args.json.write_text(json.dumps(found | {"wrong": wrong}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
