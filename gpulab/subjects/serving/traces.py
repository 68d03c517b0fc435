"""Requests as they come to a service, drawn from a seed: the same seed gives the same trace.

Arrivals that know nothing of each other form a Poisson process: the gaps between them are exponential.
Real services see more than that: bursts, and lengths with heavy tails (Y. Wang et al., "BurstGPT: A
Real-world Workload Dataset to Optimize LLM Serving Systems", arXiv:2401.17644). All sizes below are
inputs of the model, not measurements of a service.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .requests import Request


@dataclass(frozen=True)
class Lengths:
    """Log-normal lengths in tokens: the median, and the spread of the logarithm; none is above its limit.

    The limit of the output is what clients ask for as ``max_tokens``.
    """

    prompt: float = 300
    prompt_spread: float = 0.8
    prompt_limit: int = 4096
    output: float = 150
    output_spread: float = 0.8
    output_limit: int = 1024

    def draw(self, numbers: np.random.Generator, arrivals: list[float]) -> list[Request]:
        """A request for each arrival."""
        count = len(arrivals)
        prompts = self.prompt * np.exp(self.prompt_spread * numbers.standard_normal(count))
        outputs = self.output * np.exp(self.output_spread * numbers.standard_normal(count))
        return [
            Request(
                number,
                arrival,
                int(np.clip(prompts[number], 1, self.prompt_limit)),
                int(np.clip(outputs[number], 1, self.output_limit)),
                self.output_limit,
            )
            for number, arrival in enumerate(arrivals)
        ]


CHAT = Lengths()


def arrivals(rate: float, seconds: float, numbers: np.random.Generator) -> list[float]:
    """Times of a Poisson process of `rate` per second, below `seconds`."""
    count = int(numbers.poisson(rate * seconds))
    return sorted(float(time) for time in numbers.uniform(0, seconds, count))


def poisson(rate: float, seconds: float, seed: int, lengths: Lengths = CHAT) -> list[Request]:
    """Arrivals of `rate` per second that know nothing of each other."""
    numbers = np.random.default_rng([seed, 1])
    return lengths.draw(numbers, arrivals(rate, seconds, numbers))


def bursty(
    rate: float,
    seconds: float,
    seed: int,
    lengths: Lengths = CHAT,
    *,
    peak: float = 4.0,
    burst: float = 5.0,
    share: float = 0.2,
) -> list[Request]:
    """Poisson arrivals of `rate` per second on average, `peak` times that in bursts.

    Bursts last `burst` seconds on average and fill `share` of the time. Raises ValueError where the bursts
    alone would bring more than the rate.
    """
    if peak * share > 1:
        raise ValueError(f"bursts of {peak:g} times the rate in {share:g} of the time are more than the rate")
    numbers = np.random.default_rng([seed, 2])
    calm = (1 - peak * share) / (1 - share)
    times, now, bursts = list[float](), 0.0, bool(numbers.random() < share)
    while now < seconds:
        length = float(numbers.exponential(burst if bursts else burst * (1 - share) / share))
        end = min(seconds, now + length)
        times += [now + t for t in arrivals(rate * (peak if bursts else calm), end - now, numbers)]
        now, bursts = end, not bursts
    return lengths.draw(numbers, times)


def heavy_tailed(
    rate: float, seconds: float, seed: int, *, shape: float = 1.3, prompt_limit: int = 8192, most: int = 2048
) -> list[Request]:
    """Poisson arrivals with Pareto lengths: few requests bring most of the tokens.

    A length is above x times the least with probability x^(−shape).
    """
    numbers = np.random.default_rng([seed, 3])
    found = []
    for number, arrival in enumerate(arrivals(rate, seconds, numbers)):
        prompt = min(prompt_limit, int(64 * (1 + numbers.pareto(shape))))
        output = min(most, int(16 * (1 + numbers.pareto(shape))))
        found.append(Request(number, arrival, prompt, output, most))
    return found


def adversarial(
    rate: float,
    seconds: float,
    seed: int,
    *,
    every: float = 5.0,
    long_prompt: int = 8192,
    long_output: int = 1024,
) -> list[Request]:
    """What hurts first come, first served: waves of long requests, each right before a crowd of short ones.

    Every `every` seconds (a little off, so that nobody can wait for it) a few requests with long prompts or
    long outputs come together, then the short ones of the whole period. All ask for the same ``max_tokens``.
    """
    numbers = np.random.default_rng([seed, 4])
    found: list[Request] = []
    wave = 0.0
    while wave < seconds:
        start = wave + float(numbers.uniform(0, 0.2 * every))
        crowd = max(3, int(numbers.poisson(rate * every)))
        for place in range(crowd):
            few = place < max(2, crowd // 8)
            arrival = start + (0.001 if few else 0.02) * place
            prompt = int(numbers.integers(32, 257))
            output = int(numbers.integers(8, 65))
            if few and place % 2 == 0:
                prompt = int(numbers.integers(long_prompt // 2, long_prompt + 1))
            elif few:
                output = int(numbers.integers(long_output // 2, long_output + 1))
            found.append(Request(0, arrival, prompt, output, long_output))
        wave += every
    found = sorted((r for r in found if r.arrival < seconds), key=lambda r: r.arrival)
    return [replace(request, number=number) for number, request in enumerate(found)]


def alternating(count: int, lengths: tuple[int, ...] = (16, 256), prompt: int = 16) -> list[Request]:
    """Requests that are all there at the start, with outputs of these lengths in turn.

    All may have the longest.
    """
    return [
        Request(number, 0.0, prompt, lengths[number % len(lengths)], max(lengths)) for number in range(count)
    ]
