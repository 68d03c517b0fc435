"""The process that holds the device: each turn as if it were the first, and messages that cannot hurt."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core import linking
from grading.core.course import ROOT
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.sandbox import Limits, record
from grading.gpu_stage import devices
from grading.gpu_stage.child import LARGEST_HEAD, Player, hear, say, serve
from grading.gpu_stage.devices import Child, Remote
from grading.gpu_stage.program import Program, from_data, programs
from grading.gpu_stage.protocol import Lost, Trouble
from tests.grading.simulated_gpu import FLUSH, PAIR, SECTOR, SimulatedGpu

CASES = (Case("2,048", {"n": 2048}),)
ASKED = Question("check", "memory.copy", "copy", 4)
IMPORTS = "import numpy as np\nfrom gpulab import cuda\n"
COPY = """@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
"""


def recorded(source: str, cases: tuple[Case, ...] = CASES) -> bytes:
    steps = [{"cell": "c0", "source": IMPORTS + source}]
    steps.append(exercise_step(ASKED, find("memory.copy"), cases, [1] * len(cases)))
    job = job_bytes({"patience": 30, "steps": steps})
    return record(job, Limits(seconds=60), unsafe=True).content


@pytest.fixture(scope="module")
def content() -> bytes:
    return recorded(COPY)


@pytest.fixture(scope="module")
def program(content: bytes) -> Program:
    found = programs(content, "", (ASKED,), {"memory.copy": CASES}, None)
    return from_data(found["memory.copy"]["cases"]["2,048"])


def given(number: int) -> list[bytes]:
    a = np.full(2048, number, np.float32)
    return [a.tobytes(), np.full(2048, np.nan, np.float32).tobytes()]


def test_a_turn_gives_the_time_of_its_launches_alone_and_what_they_wrote(program: Program) -> None:
    gpu = SimulatedGpu()
    player = Player(gpu, program.head, program.codes, gpu.clock)
    for number in (3, 4):
        seconds, left = player.run(given(number))
        assert (np.frombuffer(left[1], np.float32) == number).all()
        assert seconds["seconds"] == pytest.approx(2 * 2048 * 4 / 32 * SECTOR)  # read once, written once
        assert seconds["flush"] == pytest.approx(PAIR + FLUSH)
        assert seconds["waited"] >= seconds["seconds"] + seconds["flush"]


def test_the_cache_is_cleared_right_before_what_is_timed(program: Program) -> None:
    gpu = SimulatedGpu()
    player = Player(gpu, program.head, program.codes, gpu.clock)
    gpu.calls.clear()
    player.run(given(1))
    assert gpu.calls == ["forget", "wait", "event", "flush", "event", "launch", "event", "wait"]
    assert player.cleared >= 2 * gpu.about()["l2_bytes"]


def test_modules_are_loaded_anew_in_every_turn(program: Program) -> None:
    gpu = SimulatedGpu()
    player = Player(gpu, program.head, program.codes, gpu.clock)
    for _ in range(2):
        player.run(given(1))
        assert gpu.loaded == []


def test_garbage_stands_in_memory_of_ones_own_and_uploads_in_theirs() -> None:
    gpu = SimulatedGpu()
    head = {
        "given": 1, "buffers": [4, 4, 4, 2], "launches": [],
        "uploads": [{"buffer": 2, "fill": 7}, {"buffer": 3, "data": "0102"}],
    }  # fmt: skip
    player = Player(gpu, head, [], gpu.clock)
    for _ in range(2):
        for address in player.addresses:
            gpu.fill(address, 0xEE, 2)  # what a turn left behind
        player.run([b"abcd"])
        found = [gpu.read(a, n) for a, n in zip(player.addresses, head["buffers"], strict=True)]
        assert found == [b"abcd", b"\xa5" * 4, b"\x07" * 4, b"\x01\x02"]


def test_ptxas_makes_machine_code_of_what_was_recorded(content: bytes) -> None:
    for cc in ((8, 0), (9, 0)):
        linked = linking.linked(content, 20, lambda job: record(job, Limits(), unsafe=True), cc)
        found = programs(content, "", (ASKED,), {"memory.copy": CASES}, cc, linked)
        (code,) = from_data(found["memory.copy"]["cases"]["2,048"]).codes
        assert code.startswith(b"\x7fELF") and b"copy" in code


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def copy(a, b):\n    pass", "kernel"),
        (
            "T = np.arange(3000, dtype=np.float32)\n@cuda.jit\ndef copy(a, b):\n"
            "    t = cuda.const.array_like(T)\n    b[cuda.grid(1)] = t[cuda.grid(1)]",
            "12,000 bytes of constants",
        ),
    ],
)
def test_what_breaks_a_rule_at_the_large_size_is_told(source: str, words: str) -> None:
    found = programs(recorded(source), "", (ASKED,), {"memory.copy": CASES}, (9, 0))
    assert words in found["memory.copy"]["refused"]


def test_what_is_no_record_is_refused() -> None:
    found = programs(b"{]\n", "", (ASKED,), {"memory.copy": CASES}, (9, 0))
    assert "cannot be replayed" in found["memory.copy"]["refused"]


# ---------------------------------------------------------------- messages


def test_a_message_arrives_as_it_was_said() -> None:
    stream = io.BytesIO()
    say(stream, {"a": [1, 2]}, [b"xyz", b""])
    stream.seek(0)
    head, parts = hear(stream, 3)
    assert head["a"] == [1, 2] and parts == [b"xyz", b""]
    with pytest.raises(EOFError):
        hear(stream)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"\xff\xff\xff\xff", ValueError),
        ((2).to_bytes(4, "little") + b"[]", ValueError),
        ((9).to_bytes(4, "little") + b'{"a": 1}}', ValueError),
        ((15).to_bytes(4, "little") + b'{"sizes": [-1]}', ValueError),
        ((15).to_bytes(4, "little") + b'{"sizes": [99]}', ValueError),
        ((15).to_bytes(4, "little") + b'{"sizes": [ 4]}' + b"abc", EOFError),
    ],
)
def test_what_is_no_message_is_found(said: bytes, error: type[Exception]) -> None:
    assert int.from_bytes(b"\xff\xff\xff\xff", "little") > LARGEST_HEAD
    with pytest.raises(error):
        hear(io.BytesIO(said), 10)


def test_serving_tells_of_the_device_and_runs_what_it_is_given(program: Program) -> None:
    hearing, saying = io.BytesIO(), io.BytesIO()
    say(hearing, program.head, program.codes)
    say(hearing, {}, given(5))
    hearing.seek(0)
    serve(SimulatedGpu(), hearing, saying)
    saying.seek(0)
    assert hear(saying)[0]["name"] == "A100"
    assert hear(saying)[0]["empty"] == pytest.approx(PAIR)
    head, left = hear(saying)
    assert head["seconds"] > 0 and (np.frombuffer(left[1], np.float32) == 5).all()


# A child that says what it likes instead of serving.
def child(tmp_path: Path, body: str) -> Child:
    script = tmp_path / "child.py"
    script.write_text(f"import sys, time\nsys.path.insert(0, {str(ROOT)!r})\n{SPEAKING}{body}\n")
    return Child("0", (sys.executable, str(script)))


SPEAKING = """
from grading.gpu_stage.child import hear, say
out, given = sys.stdout.buffer, sys.stdin.buffer
"""
RIGHT = '"seconds": 1.0, "flush": 1.0, "waited": 2.0'


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("sys.exit(3)", Lost, "ended"),
        ("time.sleep(60)", Trouble, "no result after 2 s"),
        ("hear(given); out.write(b'x' * 99); out.flush()", Trouble, "cannot be"),
        (f"hear(given); say(out, {{{RIGHT}}}, [b'12345'])", Trouble, "cannot be"),
        (f"hear(given); say(out, {{{RIGHT}}}, [b'12'])", Trouble, "cannot be"),
        ("hear(given); say(out, {'seconds': float('nan')}, [b'1234'])", Trouble, "cannot be"),
        ("hear(given); say(out, {'failed': 'CUDA\\x1b[2J_ERROR'})", Trouble, "CUDA_ERROR"),
    ],
)
def test_a_child_is_believed_nothing(tmp_path: Path, body: str, error: type[Exception], words: str) -> None:
    with child(tmp_path, body) as process, pytest.raises(error) as caught:
        Remote(process, Program({"given": 1}, ()), 2.0).run([np.zeros(1, np.float32)])
    assert words in str(caught.value)
    assert (type(caught.value) is Lost) == (error is Lost)


def test_a_child_that_keeps_to_the_rules_is_heard(tmp_path: Path) -> None:
    body = f"_, p = hear(given); say(out, {{{RIGHT}}}, [bytes(reversed(p[0]))])"
    with child(tmp_path, body) as process:
        turn = Remote(process, Program({"given": 1}, ()), 10.0).run([np.arange(4, dtype=np.uint8)])
    assert turn.arrays[0].tolist() == [3, 2, 1, 0] and turn.unseen == 0


def test_all_children_end_when_they_are_told_to(tmp_path: Path) -> None:
    with child(tmp_path, "time.sleep(60)") as process:
        devices.stop_all()
        assert process.process.wait(10) < 0


def test_the_child_of_this_machine_says_what_it_has_or_why_nothing() -> None:
    with Child("count") as process:
        try:
            head, _ = process.hear(60.0)
        except Trouble as trouble:
            assert "cuInit" in str(trouble) or "not there" in str(trouble)
        else:
            assert json.dumps(head["count"]).isdigit()
