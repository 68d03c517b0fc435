"""What a Triton kernel can be given beside tensors and numbers, and what it says where it cannot."""

from __future__ import annotations

import pickle

import pytest

torch = pytest.importorskip("torch")
real = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from gpulab import triton  # noqa: E402


@triton.jit
def twice(x):
    return 2 * x


@triton.jit
def put(out, where, number: tl.int64, fn, most: tl.constexpr):
    tl.static_assert(most < 4, "most is too large")
    tl.store(out + where[0], fn(number) + where[1][0])


@triton.jit
def choose(flag, first, second, out):
    value = tl.load(first) if tl.load(flag) else tl.load(second)
    tl.store(out, value)


def numbers(*values):
    return torch.tensor(values, dtype=torch.int64)


def test_tuples_in_tuples_and_functions_are_arguments():
    out = numbers(0, 0, 0, 0)
    put[(1,)](out, (3, (7, out)), 5, twice, 2)
    put[(1,)](out, (1, (1, None)), 2**40, twice, 2)
    assert out.tolist() == [0, 2**41 + 1, 0, 17]


def test_a_kernel_is_compiled_again_for_another_function_and_another_kind_of_tuple():
    @triton.jit
    def thrice(x):
        return 3 * x

    out = numbers(0)
    for fn, expected in ((twice, 11), (thrice, 16)):
        put[(1,)](out, (0, (1, 2)), 5, fn, 2)
        assert out.tolist() == [expected]
    put[(1,)](out, (0, (2**50, 2)), 5, twice, 2)
    assert out.tolist() == [2**50 + 10]


def test_what_the_compiler_refuses_is_our_error_and_tritons():
    with pytest.raises(real.compiler.errors.CompileTimeAssertionFailure, match="most is too large") as raised:
        put[(1,)](numbers(0), (0, (1, 2)), 5, twice, 4)
    assert "static_assert(most < 4" in str(raised.value) and raised.value.error_message
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)

    @triton.jit
    def unequal(x):
        tl.store(x + tl.arange(0, 8), tl.arange(0, 4))

    with pytest.raises(real.compiler.errors.CompilationError) as raised:
        unequal[(1,)](numbers(0))
    assert "tl.store(x" in str(raised.value)


def test_a_call_that_does_not_fit_is_a_type_error_and_a_number_too_large_an_overflow():
    with pytest.raises(TypeError, match="missing a required argument: 'where'"):
        put[(1,)](numbers(0))
    with pytest.raises(OverflowError, match="no 64-bit integer"):
        put[(1,)](numbers(0), (2**70, (1, 2)), 5, twice, 2)


def test_all_that_the_compiler_made_is_there_and_a_type_stands_for_a_tensor():
    made = choose.warmup(torch.int32, torch.float32, torch.float32, torch.float32, grid=(1,))
    assert "tt.func" in made.asm["ttir"] and "ttg." in made.asm["ttgir"]
    assert made.asm["ptx"].count(".entry") == 1
    assert made.metadata._asdict()["name"] == made.name == "choose" and made.metadata.num_warps == 4


@pytest.mark.parametrize("flag", [0, 1])
def test_a_choice_between_two_pointers_reads_the_chosen_one(flag):
    """LLVM makes one load of it, at 32 bits of the address of a parameter."""
    out = numbers(0)
    choose[(1,)](numbers(flag), numbers(11), numbers(22), out)
    assert out.tolist() == [(22, 11)[flag]]
