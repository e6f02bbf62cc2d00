# SPDX-License-Identifier: Apache-2.0
"""A server that makes its workers with multiprocessing. Usage: many.py spawn|fork|forkserver N"""
import multiprocessing
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "routes"))

from ctypes_route import launch  # noqa: E402


def main() -> int:
    """Two workers, a launch apart; with fork the parent must not have initialised CUDA."""
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=launch, args=(int(sys.argv[2]) + i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    launch(3)
    return max(worker.exitcode for worker in workers)


if __name__ == "__main__":
    sys.exit(main())
