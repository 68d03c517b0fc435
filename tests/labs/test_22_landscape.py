"""The landscape of lab 22: its text says what data sheets and its own cells say."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.checks import registry
from gpulab.simulator import hardware
from tests.labs import notebooks

NAME = "22_capstones_landscape"


def cells(kind: str) -> list[str]:
    return [c.source for c in notebooks.notebooks("22_capstones")[NAME].cells if c.cell_type == kind]


def text() -> str:
    return " ".join("\n".join(cells("markdown")).replace("\n# ", "\n").split())


def bound(words: str, until: str) -> dict:
    """What the first lines of a cell bind."""
    names: dict = {"np": np}
    exec(next(source for source in cells("code") if words in source).split(until)[0], names)
    return names


def grown(of) -> float:
    return float(of(hardware.find("B200"))) / float(of(hardware.find("V100")))


def test_rates_grew_18_times_bandwidth_9_and_float32_5():
    assert round(grown(lambda gpu: gpu.peak("float16", tensor=True))) == 18
    assert round(grown(lambda gpu: gpu.dram_bandwidth)) == 9
    assert round(grown(lambda gpu: gpu.peak())) == 5
    for words in ("rates grew by a factor of 18", "at most 9 times as fast", "5 times as fast"):
        assert words in text()


def test_a_b200_wants_281_operations_for_a_byte_and_a_v100_139():
    ridges = [round(hardware.roofline(name, "float16").ridge) for name in ("B200", "V100")]
    assert ridges == [281, 139] and "÷ 8 TB/s = 281 FLOP for each" in text() and "÷ 0.9 = 139" in text()


def test_reading_a_byte_is_a_quarter_beside_281_operations_and_70_times_one():
    b200 = hardware.find("B200")
    operation = 1e12 * float(b200.tdp) / float(b200.peak("float16", tensor=True))
    assert round(operation, 2) == 0.44
    assert 30 / (281 * operation) == pytest.approx(0.25, abs=0.02) and 30 / operation == pytest.approx(
        70, rel=0.05
    )


def test_a_b200s_tensor_cores_do_less_float64_than_an_h100s():
    b200, h100 = (hardware.find(name) for name in ("B200", "H100"))
    rate = float(b200.peak("float64", tensor=True)) if "float64" in b200.tensor_fma else 0.0
    assert rate < float(h100.peak("float64", tensor=True))


def test_computing_is_cheapest_near_half_the_clock_and_waiting_at_the_lowest():
    energy = bound("def energy", "clocks =")["energy"]
    clocks = [c / 100 for c in range(30, 101, 2)]
    assert min(clocks, key=lambda c: energy(c, False)) == pytest.approx(0.5, abs=0.05)
    assert [energy(c, True) for c in clocks] == sorted(energy(c, True) for c in clocks)
    assert energy(1, True) == energy(1, False) == 1


def test_a_bisection_takes_ten_builds_and_one_wrong_answer_spoils_it():
    bisect = bound("def bisect", "shown =")["bisect"]
    for place in (1, 2, 500, 998):
        answers = []

        def measure(slow, answers=answers):
            answers.append(slow)
            return slow

        found, builds = bisect(place, measure)
        assert found == place and builds <= 10 and len(answers) == builds
    count = iter(range(99))
    assert bisect(500, lambda slow: slow if next(count) else not slow)[0] != 500


def test_times_must_be_repeated_where_counts_are_not():
    found = bound("def bisect", "shown =")["found"]
    assert found(1, 150) < 25 < found(9, 150) < found(25, 150)


def test_bits_with_errors_kept_follow_the_gradient_and_without_take_half_as_long_again():
    descend = bound("def descend", "gpulab.plot")["descend"]
    curves = {how: dict(descend(how)) for how in ("all", "bits", "bits, errors kept")}

    def first(how, loss):
        return next(step for step, at in curves[how].items() if at < loss)

    for loss in (2, 1.5):
        assert first("bits", loss) / first("all", loss) == pytest.approx(1.5, abs=0.2)
        assert first("bits, errors kept", loss) / first("all", loss) < 1.15


def test_the_card_of_llama_gives_414_grams_per_kilowatt_hour():
    assert registry.predictions()["landscape.training"].answer == pytest.approx(21.588)
    assert round(8930e6 / 21.588e6) == 414
