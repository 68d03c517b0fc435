"""`cupy.random`: NumPy draws, the numbers lie on the device.

The same seed gives the same numbers every time, but not those of cuRAND on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import ndarray, to_device
from .functions import OnHost
from .tables import words

# Methods of a RandomState that draw, and under which name NumPy's has them.
DRAWS = {
    name: name
    for name in words("""
        beta binomial bytes chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric
        laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial
        noncentral_chisquare noncentral_f normal pareto permutation poisson power rand randint randn random
        random_sample rayleigh standard_cauchy standard_exponential standard_gamma standard_normal standard_t
        triangular uniform vonmises wald weibull zipf
    """)
} | {"ranf": "random_sample", "sample": "random_sample"}

# Methods of a Generator that draw.
GENERATOR_DRAWS = words("""
    beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric integers
    laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial normal pareto
    permutation poisson power random rayleigh standard_cauchy standard_exponential standard_gamma
    standard_normal standard_t triangular uniform vonmises wald weibull zipf
""")


class _Source:
    """Draws with a generator of NumPy's; what it draws lies on the device."""

    _host: Any
    _typed: tuple[str, ...]  # draws of NumPy's that take a dtype; CuPy's all do

    def _draw(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = OnHost(f"cupy.random.{name}")
        dtype = None if name in self._typed else kwargs.pop("dtype", None)
        drawn = getattr(self._host, name)(*arguments.all(args), **arguments.named(kwargs))
        if isinstance(drawn, bytes):
            return drawn
        return to_device(np.asarray(drawn, dtype))

    def shuffle(self, a: ndarray) -> None:
        """Put the rows into a random order, in place."""
        self._host.shuffle(a.open(writes=True))


class RandomState(_Source):
    """A generator of random numbers with a seed of its own."""

    _typed = ("randint",)

    def __init__(self, seed: int | None = None, method: Any = None):
        self._host = np.random.RandomState(seed)

    def seed(self, seed: int | None = None) -> None:
        """Start again from `seed`."""
        self._host.seed(seed)


class Generator(_Source):
    """A generator of random numbers, as `default_rng` makes it."""

    _typed = words("integers random standard_normal standard_exponential standard_gamma")

    def __init__(self, bit_generator: Any):
        self._host = np.random.Generator(getattr(bit_generator, "_numpys", bit_generator))
        self.bit_generator = bit_generator


class XORWOW:
    """A source of random bits. Here all of CuPy's are NumPy's PCG64."""

    def __init__(self, seed: int | None = None, *, size: int = -1):
        self._numpys = np.random.PCG64(seed)


MRG32k3a = Philox4x3210 = BitGenerator = XORWOW


def _drawing(name: str, numpys: str) -> Callable[..., Any]:
    def draw(self: _Source, *args: Any, **kwargs: Any) -> Any:
        return self._draw(numpys, args, kwargs)

    draw.__name__, draw.__doc__ = name, f"NumPy's {numpys}; the numbers lie on the device."
    return draw


for _name, _numpys in DRAWS.items():
    setattr(RandomState, _name, _drawing(_name, _numpys))
for _name in GENERATOR_DRAWS:
    setattr(Generator, _name, _drawing(_name, _name))

_state = RandomState()


def default_rng(seed: Any = None) -> Generator:
    """A generator of random numbers: the same seed, the same numbers."""
    return seed if isinstance(seed, Generator) else Generator(XORWOW(seed))


def get_random_state() -> RandomState:
    """The generator that the functions of this module draw with."""
    return _state


def set_random_state(state: RandomState) -> None:
    global _state
    _state = state


def reset_states() -> None:
    """Start afresh, without a seed."""
    set_random_state(RandomState())


def seed(seed: int | None = None) -> None:
    """Start again from `seed`."""
    _state.seed(seed)


def shuffle(a: ndarray) -> None:
    """Put the rows into a random order, in place."""
    _state.shuffle(a)


def random_integers(low: int, high: int | None = None, size: Any = None) -> ndarray:
    """Whole numbers from `low` to `high`, both included."""
    low, high = (low, high) if high is not None else (1, low)
    return _state._draw("randint", (low, high + 1, size), {})


def __getattr__(name: str) -> Any:
    if name in DRAWS:
        return lambda *args, **kwargs: getattr(_state, name)(*args, **kwargs)
    raise AttributeError(f"the simulated cupy.random has no {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *DRAWS})
