"""`autotune` and `heuristics`. Without a clock the best configuration is the one that moves the least
data, and a message says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.compile.kernel import AssertionDoesNotHold
from gpulab.simulator.device import LaunchError
from gpulab.simulator.device.simulated import Simulator
from gpulab.simulator.observe import Counters

from .jit import Launcher

Cost = tuple[int, int]  # bytes of global memory, warp instructions


class _Around:
    """A kernel with something done before its launch."""

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.__name__ = kernel.__name__
        self.arg_names = kernel.arg_names

    @property
    def fn(self) -> Any:
        """What is launched: a kernel, or another thing around one."""
        return self.kernel

    @property
    def base_fn(self) -> Any:
        """The function that the kernel was made of."""
        return self.kernel.base_fn if isinstance(self.kernel, _Around) else self.kernel.fn

    def __getitem__(self, grid: Any) -> Launcher:
        return Launcher(self, grid)

    def warmup(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        """Compile without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Heuristics(_Around):
    """Fills in constants computed from the other arguments."""

    def __init__(self, kernel: Any, values: dict[str, Callable[..., Any]]):
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
    fewest instructions; `costs` has both of each configuration, by key. A configuration that the GPU cannot
    launch, or whose constants the kernel refuses by ``tl.static_assert``, is out. The trials leave no trace
    in memory, nor in a report. `prune` is Triton's ``early_config_prune``.
    """

    def __init__(
        self, kernel: Any, configs: Iterable[Any], key: Iterable[str], prune: Callable[..., Any] | None = None
    ):
        super().__init__(kernel)
        self.configs = list(configs)
        self.key = tuple(key)
        self.cache: dict[tuple[Any, ...], Any] = {}
        self.prune = prune
        self.costs: dict[tuple[Any, ...], dict[str, Cost]] = {}
        self.best_config: Any = None
        if not self.configs:
            raise LaunchError(f"autotune of {self.__name__}: give at least one triton.Config.")

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        known = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        key = tuple(known[name] for name in self.key) + tuple(str(getattr(a, "dtype", "")) for a in args)
        if key not in self.cache:
            self.cache[key] = self._choose(key, known, args, grid, kwargs)
        self.best_config = self.cache[key]
        return self._launch(self.best_config, known, args, grid, kwargs)

    def _launch(
        self, config: Any, known: dict[str, Any], args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]
    ) -> Any:
        """One launch with a configuration, whose own hook may change the arguments before."""
        if config.pre_hook is not None:
            config.pre_hook({**known, **config.all_kwargs()})
        return self.kernel.run(*args, grid=grid, **kwargs, **config.all_kwargs())

    def _choose(
        self,
        key: tuple[Any, ...],
        known: dict[str, Any],
        args: tuple[Any, ...],
        grid: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """The best configuration, which is not tried if it is the only one; raises what the last one raised
        if none can be launched."""
        configs = list(self.prune(self.configs, known, **kwargs)) if self.prune else self.configs
        if len(configs) == 1:
            return configs[0]
        costs: list[tuple[Cost, Any]] = []
        refused: LaunchError | AssertionDoesNotHold | None = None
        for config in configs:
            try:
                costs.append((self._cost(config, known, args, grid, kwargs), config))
            except (LaunchError, AssertionDoesNotHold) as error:
                refused = error
        if not costs:
            raise refused or LaunchError(f"autotune of {self.__name__}: early_config_prune left none.")
        self.costs[key] = {str(config): cost for cost, config in costs}
        best, chosen = min(costs, key=lambda pair: pair[0])
        print(
            f"autotune of {self.__name__}: {_words(chosen)} of {len(configs)} configurations, "
            f"for it moves the fewest bytes of global memory ({best[0]:,}), then takes the fewest "
            f"instructions ({best[1]:,}). Both are counted: a simulated GPU has no clock. "
            f"`{self.__name__}.costs` has all."
        )
        return chosen

    def _cost(
        self, config: Any, known: dict[str, Any], args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]
    ) -> Cost:
        device = devices.current()
        ours = [a for a in device.memory.allocations if not a.adopted]  # the host's may be gone afterwards
        before = [(a, a.data.copy()) for a in ours]
        tensors = [(a, a.clone()) for a in (*args, *kwargs.values()) if hasattr(a, "untyped_storage")]
        counters: list[Counters] = []

        def watch(_: Any) -> Counters:
            counters.append(Counters())
            return counters[-1]

        with device.executed_by(Simulator()), device.observed(watch, alone=True):
            self._launch(config, known, args, grid, kwargs)
        for allocation, content in before:
            allocation.data[:] = content
        for tensor, content in tensors:
            tensor.data.copy_(content)
        counts = [c.counts for c in counters if c.counts is not None]
        return 32 * sum(c.total("sectors", space="global") for c in counts), sum(
            c.total("warps") for c in counts
        )


def _words(config: Any) -> str:
    """``BLOCK = 64, num_warps = 4``: what the configuration sets and Triton's own settings that matter."""
    settings = config.kwargs | {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def autotune(
    configs: Iterable[Any], key: Iterable[str], prune_configs_by: dict[str, Any] | None = None, **_: Any
) -> Callable[[Any], Autotuner]:
    """`triton.autotune`; options about measuring time have no meaning here, nor has a model of it."""
    prune = (prune_configs_by or {}).get("early_config_prune")
    return lambda kernel: Autotuner(kernel, configs, key, prune)


def heuristics(values: dict[str, Callable[..., Any]]) -> Callable[[Any], Heuristics]:
    """`triton.heuristics`."""
    return lambda kernel: Heuristics(kernel, values)
