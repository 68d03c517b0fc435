"""Machine code of one's own kernels: what ptxas makes of PTX, line by line."""

from __future__ import annotations

import pytest

from gpulab.simulator.compile import CompileError, NoDisassembler, cuda_c_module, machine_code, sass

needs_tool = pytest.mark.skipif(
    not machine_code.disassembler(), reason="nvdisasm is not installed: see NoDisassembler"
)

SOURCE = """extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void sum(const float* x, float* y, int n) {
    float s = 0;
    for (int k = 0; k < n; k++) s += x[k];
    *y = s;
}
"""


def listing(entry: str, cc: tuple[int, int] = (8, 0)) -> list[str]:
    return [i.text for i in sass(cuda_c_module(SOURCE, cc, "saxpy").ptx, cc, entry)]


@needs_tool
@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0)])
def test_a_kernel_has_two_loads_one_multiply_add_and_one_store(cc: tuple[int, int]) -> None:
    code = [
        text.split(".")[0].split()[-1]
        for text in (t.split()[0] if t[0] != "@" else t for t in listing("saxpy", cc))
    ]
    assert code.count("LDG") == 2 and code.count("STG") == 1 and code.count("FFMA") == 1
    assert listing("saxpy", cc)[-1] == "EXIT"


@needs_tool
def test_instructions_know_the_line_they_come_from() -> None:
    code = sass(cuda_c_module(SOURCE, (8, 0), "saxpy").ptx, (8, 0), "saxpy")
    assert {i.line for i in code if "FFMA" in i.text or "LDG" in i.text} == {3}
    assert next(i.line for i in code if "CTAID" in i.text) == 2
    assert [i.address for i in code] == [16 * k for k in range(len(code))]


@needs_tool
def test_the_target_of_a_jump_is_labelled() -> None:
    code = sass(cuda_c_module(SOURCE, (8, 0), "saxpy").ptx, (8, 0), "sum")
    targets = {i.label for i in code if i.label}
    jumps = [i.text for i in code if "BRA" in i.text]
    assert jumps and all(any(f"({t})" in jump for t in targets) for jump in jumps)


@needs_tool
def test_an_unknown_kernel_is_a_message() -> None:
    with pytest.raises(CompileError, match="no kernel of that name: "):
        sass(cuda_c_module(SOURCE, (8, 0), "saxpy").ptx, (8, 0), "nothing")


def test_without_a_disassembler_the_message_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(machine_code, "disassembler", lambda: "")
    sass.cache_clear()
    with pytest.raises(NoDisassembler, match="Triton"):
        sass(cuda_c_module(SOURCE, (8, 0), "saxpy").ptx, (8, 0), "saxpy")
