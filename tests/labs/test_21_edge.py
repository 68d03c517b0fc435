"""Lab 21: what the table derives is what comes out, the integers are ONNX Runtime's, texts cite what runs say."""

from __future__ import annotations

import json
from functools import cache
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.checks import registry
from gpulab.checks.evidence import artefact as artefacts
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_21_edge import exercises as asked
from gpulab.content.lab_21_edge.references import exercises as references
from gpulab.simulator import hardware
from tests.labs import notebooks

LAB = "21_edge"


# ---------------------------------------------------------------- remembered


def test_eight_billion_weights_are_16_or_8_25_or_4_25_gigabytes():
    sizes = [asked.bytes_of(8e9, *form) for form in ((16,), (8, 64), (4, 64))]
    assert sizes == [16e9, 8.25e9, 4.25e9]
    nano = float(hardware.edge("Orin Nano Super").dram_bandwidth)
    assert [round(1e3 * size / nano) for size in sizes] == [157, 81, 42]


def test_what_nvidia_measured_is_79_to_88_percent_of_the_bound():
    shares = [
        rate * 4.25e9 / float(hardware.edge(name).dram_bandwidth)
        for name, rate in (("Orin Nano", 14.0), ("Orin Nano Super", 19.14), ("Thor T5000", 50.8))
    ]
    assert (round(100 * min(shares)), round(100 * max(shares))) == (79, 88)
    assert "79 to 88 % of what memory allows" in notebooks.text(LAB)


def test_the_cheapest_plan_on_eight_gigabytes_has_four_bits():
    model = asked.MODELS["Llama 3.1 8B"]
    device = {"memory": 8e9, "reserved": 1.5e9, "bandwidth": 102e9}
    found = notebooks.answers(LAB)["plan"](
        model, device, {"context": 4096, "seconds": 1.0}, asked.FORMATS, asked.CACHES
    )
    assert found[:2] == ["int4", "float16"] and found[2] < 6.5e9


def test_the_30_watt_mode_of_an_orin_writes_as_fast_as_the_50_watt_mode():
    fifteen, thirty, fifty, _ = hardware.edge("AGX Orin 64 GB").modes
    assert float(thirty.dram_bandwidth) == float(fifty.dram_bandwidth) > float(fifteen.dram_bandwidth)
    assert float(thirty.gpu_clock) * int(thirty.sms) < 0.5 * float(fifty.gpu_clock) * int(fifty.sms)


def test_by_joules_15_watts_write_best_and_50_read_best_while_idling_costs_less_than_7():
    modes = [mode for mode in hardware.edge("AGX Orin 64 GB").modes if mode.watts]
    writing = [[m.name, float(m.watts), 425e9 / float(m.dram_bandwidth)] for m in modes]
    rates = [int(m.sms) * float(m.gpu_clock) * 4096 for m in modes]
    reading = [[m.name, float(m.watts), 2 * 8e9 * 8192 / r] for m, r in zip(modes, rates, strict=True)]
    never = [0.0, 1e9]
    assert {references.energy(writing, 20.0, idle, never, 50.0)[0] for idle in (2.0, 5.0, 8.0)} == {"15W"}
    best = [references.energy(reading, 20.0, idle, never, 50.0)[0] for idle in (2.0, 6.85, 6.95)]
    assert best == ["50W", "50W", "15W"] and "idling costs less than 6.9 W" in notebooks.text(LAB)
    assert round(rates[2] / rates[0], 1) == 5.3 and round(50 / 15, 1) == 3.3
    assert round(writing[0][2] / writing[1][2], 1) == 1.5 and writing[1][2] == writing[2][2]


# ---------------------------------------------------------------- plans and energy


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([c.name for c in registry.find("edge.plan").cases]))
def test_no_other_pair_of_format_and_cache_that_fits_loses_less(seed, kind):
    for question in asked.plan_questions({"kind": kind}, np.random.default_rng(seed)):
        model, device, need, formats, caches = question
        found = notebooks.answers(LAB)["plan"](*question)
        for form, kept in product(formats, caches):
            size, seconds = asked.costs(model, device, need["context"], form, kept)
            if size <= device["memory"] - device["reserved"] and seconds <= need["seconds"]:
                chosen = {f[0]: f[3] for f in formats}[found[0]] + {c[0]: c[2] for c in caches}[found[1]]
                assert chosen <= form[3] + kept[2]


def test_sleeping_pays_from_the_time_that_the_wake_up_is_worth():
    # 10 J to wake, 2 W idle, 0.5 W asleep: 10 / 1.5 = 6.67 s
    def how(rest):
        return references.energy([["only", 10.0, 1.0]], 1 + rest, 2.0, [0.5, 10.0], 50.0)[1]

    assert how(6.6) == "idle" and how(6.7) == "sleep"


# ---------------------------------------------------------------- deadlines

frames = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 90)), min_size=1, max_size=30)


@given(frames, st.integers(1, 200))
def test_with_one_place_no_frame_is_older_than_twice_the_longest_run(frames, limit):
    arrivals = np.cumsum([gap for gap, _ in frames]).tolist()
    times = [needed for _, needed in frames]
    in_time, late, dropped, oldest = references.deadline(arrivals, times, limit)
    assert in_time + late + dropped == len(frames)
    assert max(times) <= oldest + dropped * 90 and oldest <= 2 * max(times)
    assert notebooks.answers(LAB)["deadline"](arrivals, times, limit) == [in_time, late, dropped, oldest]


def test_after_a_minute_a_queued_frame_is_ten_seconds_old():
    names: dict = {}
    exec(notebooks.cell_with(LAB, "def queued").split("gpulab.need")[0], names)
    ends = names["queued"]([i * 100 / 3 for i in range(1800)], [40] * 1800)
    at, age = ends[1499]
    assert at == pytest.approx(60) and age == pytest.approx(10_000, rel=0.01)


# ---------------------------------------------------------------- integers


def runtime(a, b, scales, zeros):
    """ONNX Runtime's QLinearMatMul; the codes of both matrices as arrays."""
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "c_scale", "c_zero"]
    values = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]]
    types = [np.uint8, np.float32, np.uint8, np.int8, np.float32, np.int8, np.float32, np.uint8]
    fixed = [
        onnx.numpy_helper.from_array(np.asarray(value, kind), name)
        for name, value, kind in zip(names, values, types, strict=True)
    ]
    node = onnx.helper.make_node("QLinearMatMul", names, ["c"])
    end = onnx.helper.make_tensor_value_info("c", onnx.TensorProto.UINT8, None)
    graph = onnx.helper.make_graph([node], "product", [], [end], fixed)
    opset = [onnx.helper.make_opsetid("", 20)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {})[0]


@pytest.mark.parametrize("seed", range(5))
def test_our_codes_are_those_of_onnx_runtime_ties_and_cuts_included(seed):
    for kind in ("no zero points", "zero points", "all codes", "ties"):
        for a, sa, za, b, sb, zb, sc, zc in asked.matmul_questions(
            {"kind": kind}, np.random.default_rng(seed)
        ):
            ours = references.matmul(a, sa, za, b, sb, zb, sc, zc)
            assert runtime(a, b, (sa, sb, sc), (za, zb, zc)).tolist() == ours
            assert notebooks.answers(LAB)["matmul"](a, sa, za, b, sb, zb, sc, zc) == ours


# ---------------------------------------------------------------- pruned and packed

WIDE = {"inputs": 32, "hidden": 160, "outputs": 8}


def network(seed: int) -> tuple[dict, dict]:
    """What `compress` is given at the wide case, and what is held out."""
    draws = np.random.default_rng(seed)
    arrays = {a.name: a for a in asked.compress_arguments(WIDE) if hasattr(a, "fill")}
    made = {n: a.fill(draws, a.shape, WIDE).astype(np.float32) for n, a in arrays.items()}
    return {name: made[name] for name in ("model", "x")}, {"fresh": made["fresh"]}


def test_the_limit_is_what_68_units_take():
    assert (asked._limit(WIDE), asked.packed_bytes(32, 8, 160)) == (1677, 3793)
    given, _ = network(0)
    found = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677)
    assert len(found["units"]) == 68 and artefacts.bytes_of(found) == 1677


@pytest.mark.parametrize("seed", range(12))
def test_pruned_first_fewer_bytes_have_less_error_and_what_is_read_is_what_was_packed(seed):
    given, held_out = network(seed)
    model = given["model"].astype(np.float64)
    found = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677)
    read = references.unpack(found, 32, 8, 160)
    assert np.allclose(read, references.in_four_bits(model[:, found["units"]], 32), atol=1e-3)
    assert references.compress(found, given, held_out, WIDE)["error"] < 0.75
    largest = np.argsort(-np.linalg.norm(model, axis=0))[:68]
    right = references.through(model, held_out["fresh"], 32)
    off = [
        np.sqrt(np.mean((references.through(columns, held_out["fresh"], 32) - right) ** 2))
        for columns in (references.in_four_bits(model[:, largest], 32), references.in_four_bits(model, 32))
    ]
    assert off[0] > 0.9 * off[1]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"units": np.zeros(68, np.uint8)}, "different numbers from 0 to 159"),
        ({"units": np.arange(3) + 0.5}, "whole numbers"),
        ({"scales_out": np.ones(8, np.float32)}, "float16 of shape"),
        ({"codes_out": np.ones((8, 68), np.uint8)}, "two codes a byte for 8 rows"),
        ({"codes_in": np.full((16, 68), 0x88, np.uint8)}, "`codes_in` is not read as the model's weights"),
        ({"codes_out": np.full((4, 68), 0x88, np.uint8)}, "`codes_out` is not read as the model's weights"),
    ],
)
def test_an_artefact_that_cannot_be_read_is_told_why(changed, says):
    given, held_out = network(1)
    found = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677) | changed
    with pytest.raises(WrongAnswer, match=says):
        references.compress(found, given, held_out, WIDE)


def test_an_artefact_without_one_of_its_arrays_is_told_which():
    given, held_out = network(1)
    found = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677)
    del found["units"]
    with pytest.raises(WrongAnswer, match="the dictionary has no `units`"):
        references.compress(found, given, held_out, WIDE)


def test_scales_may_move_from_one_side_of_a_unit_to_the_other():
    given, held_out = network(2)
    found = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677)
    found["scales_in"], found["scales_out"] = found["scales_in"] * 4, found["scales_out"] / 4
    assert references.compress(found, given, held_out, WIDE)["error"] < 0.75


@pytest.mark.parametrize("seed", range(12))
def test_scales_made_before_pruning_miss_the_budget(seed):
    given, held_out = network(seed)
    model = given["model"].astype(np.float64)
    units = notebooks.answers(LAB)["compress"](given["model"], given["x"], 32, 1677)["units"]
    right = references.through(model, held_out["fresh"], 32)
    everything = references.in_four_bits(model, 32)
    off = [
        np.sqrt(np.mean((references.through(columns, held_out["fresh"], 32) - right) ** 2))
        for columns in (everything[:, units], everything)
    ]
    assert off[0] > 0.95 * off[1]


# ---------------------------------------------------------------- placement


@cache
def rules() -> dict:
    names: dict = {}
    exec(notebooks.cell_with(LAB, "def from_the_front").split("gpulab.need")[0], names)
    return names


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_a_placement_is_as_fast_as_the_fastest_of_all(seed):
    layers, first, memory = asked._chain("mixed", np.random.default_rng(seed))
    layers = layers[:8]
    best = min(
        references.time_of(sides, layers, first)
        for sides in product((0, 1), repeat=8)
        if sum(layer[2] for layer, side in zip(layers, sides, strict=True) if side) <= memory
    )
    assert references.least(layers, first, memory) == best
    plan = notebooks.answers(LAB)["place"](layers, first, memory)
    assert references.place(plan, layers, first, memory) == {"share": 1}
    assert rules()["time_of"](plan, layers, first) == best


def test_simple_rules_lose_what_the_table_says():
    shares: dict[tuple[str, str], list[float]] = {}
    for seed in range(50):
        for kind in ("experts", "costly link"):
            layers, first, memory = asked._chain(kind, np.random.default_rng(seed))
            for rule in ("from_the_front", "by_value"):
                time = references.time_of(rules()[rule](layers, memory), layers, first)
                shares.setdefault((kind, rule), []).append(time / references.least(layers, first, memory))
    assert 1.9 < min(shares["experts", "from_the_front"]) < max(shares["experts", "from_the_front"]) < 2.4
    assert max(shares["experts", "by_value"]) == 1
    assert 1.2 < min(shares["costly link", "from_the_front"]) < 1.4
    assert 1.08 < min(shares["costly link", "by_value"]) < max(shares["costly link", "by_value"]) < 1.65


def test_the_figures_two_rules_lose_120_and_176():
    names = rules()
    chain = [[72 if i in (5, 7, 9, 11) else 32, 10, 3, 22] for i in range(17)]
    for rule, lost in (("from_the_front", 120), ("by_value", 176)):
        worst = max(
            references.time_of(names[rule](chain, m), chain, 22) - references.least(chain, 22, m)
            for m in range(0, 31, 3)
        )
        assert worst == lost
    assert "takes up to 120 µs longer than yours" in notebooks.text(
        LAB
    ) and "by µs per MB, up to 176 µs" in notebooks.text(LAB)


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ([1, 1], "list of 3 sides"),
        ([0, 2, 0], "layer 1 is on side 2"),
        ([1, 1, 1], "need 9 MB, and it has 5"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(plan, says):
    with pytest.raises(WrongAnswer, match=says):
        references.place(plan, [[9, 1, 3, 1]] * 3, 1, 5)


def test_a_placement_of_truth_values_is_one():
    assert references.place([False, True, False], [[9, 1, 3, 1]] * 3, 1, 5)["share"] == 1


# ---------------------------------------------------------------- learning where the data is


def test_one_local_step_of_equal_clients_is_a_step_on_all_data():
    names: dict = {"np": np, "FEATURES": 64, "CLASSES": 10}
    exec(notebooks.cell_with(LAB, "def gradient_steps").split("def rounds")[0], names)
    draws = np.random.default_rng(3)
    x, y = draws.standard_normal((60, 4)), draws.integers(0, 3, 60)
    steps, start = names["gradient_steps"], draws.standard_normal(12).tolist()
    replies = [[20, steps(start, x[i : i + 20], y[i : i + 20], 1)] for i in (0, 20, 40)]
    new, down, up = references.federated(start, replies, 32)
    assert new == pytest.approx(steps(start, x, y, 1)) and (down, up) == (144, 144)
    apart = [[20, steps(start, x[i : i + 20], y[i : i + 20], 20)] for i in (0, 20, 40)]
    assert references.federated(start, apart, 32)[0] != pytest.approx(steps(start, x, y, 20), rel=1e-3)


# ---------------------------------------------------------------- what the text says


def test_the_board_throttles_as_the_sample_answer_says():
    names: dict = {"np": np}
    exec(notebooks.cell_with(LAB, "def board").split("for trial")[0], names)
    board = names["board"]

    def throttles(log, full=40.0):
        return next((second for second, frames, _ in log if frames < full - 0.1), None)

    desk, housing = board(3600), board(3600, 45)
    assert (throttles(desk), throttles(housing)) == (333, 135)
    assert (round(desk[-1][1]), round(housing[-1][1])) == (34, 20)
    assert throttles(board(65, 45)) is None
    cooled = board(3600, 45, clock=0.75, cooling=1.75)
    assert {frames for _, frames, _ in cooled} == {30.0} and max(d for _, _, d in cooled) < 85
    assert all(round(board(3600, 45, clock=c)[-1][1]) <= 20 for c in (0.5, 0.75, 0.9))
    for words in ("begins after 333 s", "after second 135 and settles at 20 frames"):
        assert words in notebooks.text(LAB)


def test_beyonds_table_is_what_its_cell_computes_and_ours_what_a_table_over_layers_finds():
    names: dict = {"np": np}
    exec(notebooks.cell_with(LAB, "def token_ms"), names)
    token_ms, attention, expert, room = (names[n] for n in ("token_ms", "ATTENTION", "EXPERT", "ROOM"))
    whole, each = int(room // (attention + 128 * expert)), int((room / 48 - attention) // expert)
    front = token_ms([1] * whole + [0] * (48 - whole), [128] * whole + [0] * (48 - whole))
    assert f"whole layers from the front | {front:.1f} |" in notebooks.text(LAB)
    assert f"experts of each layer | {token_ms([1] * 48, [each] * 48):.1f} |" in notebooks.text(LAB)

    # All attention on the GPU: the least seconds of the first layers with so many experts on the GPU.
    most = int((room - 48 * attention) // expert)
    least = np.zeros(most + 1)
    for chances in names["chance"]:
        new = np.full(most + 1, np.inf)
        for experts in range(129):
            spent = names["layer_seconds"](chances, 1, experts)
            new[experts:] = np.minimum(new[experts:], least[: most + 1 - experts] + spent)
        least = new
    assert f"ours | {1e3 * least.min():.1f} |" in notebooks.text(LAB)
    bound = 1e3 * 48 * (attention + 8 * expert) / (names["GPU"] + names["CPU"])
    assert f"no link | {bound:.1f} |" in notebooks.text(LAB)
    popular = np.bincount(np.argsort(-names["chance"].ravel(), kind="stable")[:most] // 128, minlength=48)
    assert 1.05 * 1e3 * least.min() < token_ms([1] * 48, popular.tolist())  # there is something to search


def test_rules_in_the_recap():
    assert round(asked.bytes_of(7e9, 4, 32) / 1e9, 2) == 3.94 and round(3.94e9 / 120e9 * 1e3) == 33
    ends = references.deadline([33 * i for i in range(300)], [50] * 300, 100)
    assert ends[3] <= 100 and ends[0] / (300 * 0.033) == pytest.approx(20, rel=0.05)


@pytest.mark.parametrize(
    "exercise",
    [e for e in registry.of_lab(LAB) if getattr(e.evidence, "questions", None)],
    ids=lambda e: e.name,
)
@pytest.mark.parametrize("seed", range(3))
def test_questions_are_json(exercise, seed):
    for case in exercise.cases:
        questions = exercise.evidence.questions(case.sizes, np.random.default_rng(seed))
        assert questions and json.loads(json.dumps(questions)) == [list(arguments) for arguments in questions]
