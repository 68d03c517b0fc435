"""Starting four ranks: from a server that has PyTorch, beside processes that import it themselves.

python benchmarks/distributed.py
"""

from __future__ import annotations

import multiprocessing
import time

from gpulab.subjects import distributed

RANKS, REPEATS = 4, 7


def nothing() -> None:
    """What a rank does here."""


def imports_torch() -> None:
    import torch.distributed  # noqa: F401


def spawned() -> float:
    """Seconds until processes that import PyTorch have started and ended."""
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=imports_torch) for _ in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return time.perf_counter() - start


def main() -> None:
    first = distributed.run(nothing, RANKS).seconds
    again = min(distributed.run(nothing, RANKS).seconds for _ in range(REPEATS))
    other = min(spawned() for _ in range(3))
    print(f"{RANKS} ranks, first time {first:.2f} s, then {again:.2f} s (goal 0.5 s)")
    print(f"spawned, importing PyTorch only: {other:.2f} s, {other / again:.1f} ×")


if __name__ == "__main__":
    main()
