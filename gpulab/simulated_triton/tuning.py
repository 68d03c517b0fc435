"""`autotune` and `heuristics`. Without a clock the best configuration is the one that moves the least
data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpulab import device as devices
from gpulab.device import LaunchError
from gpulab.observe import Counters

from .jit import Launcher


class _Around:
    """A kernel with something done before its launch."""

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.__name__ = kernel.__name__
        self.arg_names = kernel.arg_names

    def __getitem__(self, grid: Any) -> Launcher:
        return Launcher(self, grid)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Heuristics(_Around):
    """Fills in constants computed from the other arguments."""

    def __init__(self, kernel: Any, values: dict[str, Callable]):
        super().__init__(kernel)
        self.values = values

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        known = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        for name, compute in self.values.items():
            known[name] = kwargs[name] = compute(known)
        return self.kernel.run(*args, grid=grid, **kwargs)


class Autotuner(_Around):
    """Runs every configuration once for each new `key`, keeps the best; `best_config` is the last one chosen.

    Best is, until modelled times are validated, the fewest bytes of global memory (sectors × 32), then the
    fewest instructions. The trials leave no trace in memory.
    """

    def __init__(self, kernel: Any, configs: Iterable[Any], key: Iterable[str]):
        super().__init__(kernel)
        self.configs = list(configs)
        self.key = tuple(key)
        self.cache: dict[tuple, Any] = {}
        self.costs: dict[tuple, dict[str, tuple[int, int]]] = {}
        self.best_config: Any = None
        if not self.configs:
            raise LaunchError(f"autotune of {self.__name__}: give at least one triton.Config.")

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        known = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        key = tuple(known[name] for name in self.key) + tuple(str(getattr(a, "dtype", "")) for a in args)
        if key not in self.cache:
            costs = [self._cost(config, args, grid, kwargs) for config in self.configs]
            self.costs[key] = {str(c): cost for c, cost in zip(self.configs, costs, strict=True)}
            self.cache[key] = self.configs[costs.index(min(costs))]
        self.best_config = self.cache[key]
        return self.kernel.run(*args, grid=grid, **kwargs, **self.best_config.all_kwargs())

    def _cost(self, config: Any, args: tuple, grid: Any, kwargs: dict[str, Any]) -> tuple[int, int]:
        """(bytes of global memory, warp instructions) of one configuration."""
        device = devices.current()
        before = [(a, a.data.copy()) for a in device.memory.allocations]
        tensors = [(a, a.clone()) for a in (*args, *kwargs.values()) if hasattr(a, "untyped_storage")]
        counters: list[Counters] = []

        def watch(_: Any) -> Counters:
            counters.append(Counters())
            return counters[-1]

        with device.observed(watch):
            self.kernel.run(*args, grid=grid, **kwargs, **config.all_kwargs())
        for allocation, content in before:
            allocation.data[:] = content
        for tensor, content in tensors:
            tensor.data.copy_(content)
        counts = [c.counts for c in counters if c.counts is not None]
        return 32 * sum(c.total("sectors", space="global") for c in counts), sum(
            c.total("warps") for c in counts
        )


def autotune(configs: Iterable[Any], key: Iterable[str], **_: Any) -> Callable[[Any], Autotuner]:
    """`triton.autotune`; options about measuring time have no meaning here."""
    return lambda kernel: Autotuner(kernel, configs, key)


def heuristics(values: dict[str, Callable]) -> Callable[[Any], Heuristics]:
    """`triton.heuristics`."""
    return lambda kernel: Heuristics(kernel, values)
