"""Lab 22's landscape: predictions only. It has no exercises; its numbers come from `gpulab.hardware`."""

from __future__ import annotations

from functools import partial

from gpulab.checks.builders import prediction
from gpulab.checks.spec import Exercise, Prediction
from gpulab.simulator import hardware

LAB = "22"

EXERCISES: tuple[Exercise, ...] = ()


def _peak(name: str) -> float:
    return float(hardware.find(name).peak("float16", tensor=True))


def _bandwidth(name: str) -> float:
    return float(hardware.find(name).dram_bandwidth)


_prediction = partial(prediction, "landscape", LAB, tolerance=0.1)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "bandwidth",
        "From the V100 (2017) to the B200 (2024), dense float16 rates grew by a factor of 18. Growth of DRAM "
        "bandwidth",
        "times",
        _bandwidth("B200") / _bandwidth("V100"),
        "From 0.9 to 8 TB/s, which is half of 18 times. So each byte has to feed twice as many operations.",
    ),
    _prediction(
        "picojoule",
        "Energy of a dense float16 operation at the peak and at the highest power: V100 divided by B200",
        "times",
        (float(hardware.find("V100").tdp) / _peak("V100"))
        / (float(hardware.find("B200").tdp) / _peak("B200")),
        "300 W ÷ 125 TFLOP/s = 2.4 pJ, and 1,000 W ÷ 2,250 TFLOP/s = 0.44 pJ.",
    ),
    _prediction(
        "one_bit",
        "A gradient with 1 bit a number, without scales, instead of float32. Bytes before, divided by "
        "bytes after",
        "times",
        32,
        "32 bits become 1 after the warm-up. Before that, 1-bit Adam sends its first steps in full.",
        tolerance=0,
    ),
    _prediction(
        "bisect",
        "One of 1,000 commits made a kernel slower. Builds that a bisection needs at most",
        "builds",
        10,
        "Each build halves the number of candidates, and log₂ 1,000 = 9.97.",
        tolerance=0,
    ),
    _prediction(
        "training",
        "Llama 3.1 405B took 30.84 million GPU hours on H100s of at most 700 W. Energy of the GPUs at most",
        "GWh",
        30.84e6 * 0.7 / 1e6,
        "30.84 million h × 0.7 kW = 21.6 million kWh.",
    ),
)
