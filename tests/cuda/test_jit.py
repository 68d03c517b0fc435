"""`cuda.jit` in all its forms, and what a kernel tells about itself."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.cuda.misc.special import literal_unroll

from gpulab import cuda
from gpulab.simulator import device
from gpulab.simulator.compile import CompileError
from gpulab.simulator.device import LaunchError

ONES = np.ones(8, np.float32)


def plus_one(a):
    """Add one to everything."""
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1


DECORATIONS = {
    "bare": lambda: cuda.jit(plus_one),
    "with parentheses": lambda: cuda.jit()(plus_one),
    "with a signature": lambda: cuda.jit("void(float32[:])")(plus_one),
    "with a signature without a result": lambda: cuda.jit("(float32[:],)")(plus_one),
    "with numba's types": lambda: cuda.jit(numba.void(numba.float32[:]))(plus_one),
    "with a tuple of types": lambda: cuda.jit((numba.float32[:],))(plus_one),
    "with several signatures": lambda: cuda.jit(["void(float64[:])", "void(float32[:])"])(plus_one),
    "with options": lambda: cuda.jit(fastmath=True, opt=True, max_registers=64, inline="never")(plus_one),
    "with what changes nothing": lambda: cuda.jit(debug=False, lineinfo=True, cache=False, lto=False)(
        plus_one
    ),
    "with debug": lambda: cuda.jit(debug=True, opt=False)(plus_one),
    "of a kernel": lambda: cuda.jit(cuda.jit(plus_one)),
    "of a numba kernel": lambda: cuda.jit(numba.cuda.jit(plus_one)),
}


@pytest.mark.parametrize("how", DECORATIONS)
def test_every_form_of_jit_makes_a_kernel(how: str) -> None:
    kernel = DECORATIONS[how]()
    a = ONES.copy()
    kernel[1, 32](a)
    assert (a == 2).all()
    assert kernel.py_func is plus_one and kernel.__name__ == "plus_one"
    assert kernel.__doc__ == "Add one to everything."


@pytest.mark.parametrize(
    "configure",
    [
        lambda k: k[1, 32],
        lambda k: k[(1,), (32,)],
        lambda k: k[[1, 1], [32, 1, 1]],
        lambda k: k[np.int32(1), np.int64(32)],
        lambda k: k[1, 32, 0],
        lambda k: k[1, 32, cuda.stream(), 64],
        lambda k: k.configure(1, 32, stream=0, sharedmem=0),
        lambda k: k.forall(8),
        lambda k: k.forall(8, tpb=4),
        lambda k: k.specialize(ONES)[1, 32],
    ],
)
def test_every_form_of_a_launch_runs(configure) -> None:
    a = ONES.copy()
    configure(cuda.jit(plus_one))(a)
    assert (a == 2).all()


def test_a_launch_configuration_knows_its_parts() -> None:
    kernel, stream = cuda.jit(plus_one), cuda.stream()
    configured = kernel[(4, 3), 32, stream, 128]
    assert (configured.kernel, configured.stream, configured.shared) == (kernel, stream, 128)
    assert (configured.grid, configured.block) == ((4, 3, 1), (32, 1, 1))
    assert (configured.griddim, configured.blockdim, configured.sharedmem) == ((4, 3, 1), (32, 1, 1), 128)
    assert configured.dispatcher is kernel
    assert "plus_one[(4, 3, 1), (32, 1, 1)]" in repr(configured)


def test_overloads_grow_with_the_types_of_the_arguments() -> None:
    kernel = cuda.jit(plus_one)
    assert kernel.overloads == {} and kernel.signatures == []
    for dtype in ("float32", "int64", "float32"):
        kernel[1, 32](np.zeros(4, dtype))
    assert len(kernel.overloads) == 2
    kernel[1, 32](np.zeros((4, 4), order="F")[0])  # a layout of its own
    assert len(kernel.overloads) == 3 and not kernel.specialized


def test_a_signature_is_compiled_at_once_and_alone() -> None:
    kernel = cuda.jit("void(float32[:])")(plus_one)
    assert len(kernel.overloads) == 1 and kernel.specialized
    with pytest.raises(CompileError):
        cuda.jit("void(float32[:])")(lambda a: a.missing)


def test_of_several_signatures_the_closest_is_taken() -> None:
    @cuda.jit(["void(float32[:], int32)", "void(float32[:], float64)"])
    def put(a, x):
        a[0] = x / 2

    whole, real = np.zeros(1, np.float32), np.zeros(1, np.float32)
    put[1, 1](whole, 7)
    put[1, 1](real, 7.5)
    assert whole[0] == 3.5 and real[0] == 3.75
    assert len(put.overloads) == 2


def test_globals_are_frozen_when_a_kernel_is_compiled() -> None:
    scope = {"cuda": cuda, "factor": 2.0, "__name__": "cell"}
    exec("def scale(a):\n    a[cuda.grid(1)] *= factor\n", scope)
    kernel = cuda.jit(scope["scale"])
    for _ in range(2):
        a = ONES.copy()
        kernel[1, 8](a)
        assert (a == 2).all()
        scope["factor"] = 3.0
    a = np.ones(8)  # new types: compiled anew, with the new value
    kernel[1, 8](a)
    assert (a == 3).all()


def test_a_device_function_is_called_by_kernels_and_by_other_device_functions() -> None:
    @cuda.jit(device=True)
    def factorial(n):
        result = 1
        for k in range(2, n + 1):
            result *= k
        return result

    @cuda.jit(device=True, inline=True)
    def choose(n, k):
        return factorial(n) // (factorial(k) * factorial(n - k))

    @cuda.jit
    def row(out):
        k = cuda.threadIdx.x
        out[k] = choose(out.size - 1, k)

    out = np.zeros(9, np.int64)
    row[1, 9](out)
    assert list(out) == [1, 8, 28, 56, 70, 56, 28, 8, 1]
    assert repr(factorial) == "<device function factorial(n)>"
    assert factorial.py_func(5) == 120


def test_a_kernel_without_device_true_can_be_called_by_a_kernel() -> None:
    @cuda.jit
    def put(a, i):
        a[i] = 5

    @cuda.jit
    def kernel(a):
        put(a, cuda.grid(1))

    a = ONES.copy()
    kernel[1, 8](a)
    assert (a == 5).all()


def test_a_numba_device_function_can_be_called() -> None:
    twice = numba.cuda.jit(device=True)(lambda x: 2 * x)

    @cuda.jit
    def kernel(a):
        a[cuda.grid(1)] = twice(a[cuda.grid(1)])

    a = ONES.copy()
    kernel[1, 8](a)
    assert (a == 2).all()


def test_kernels_made_in_a_loop_keep_their_own_closures() -> None:
    def make(n):
        @cuda.jit
        def kernel(a):
            a[cuda.grid(1)] = n

        return kernel

    results = []
    for kernel in [make(n) for n in range(3)]:
        a = ONES.copy()
        kernel[1, 8](a)
        results.append(a[0])
    assert results == [0, 1, 2]


def test_a_kernel_tells_what_it_takes() -> None:
    @cuda.jit
    def kernel(a):
        s = cuda.shared.array(64, numba.float32)
        s[cuda.threadIdx.x] = a[cuda.threadIdx.x]
        cuda.syncthreads()
        a[cuda.threadIdx.x] = s[63 - cuda.threadIdx.x]

    kernel[1, 32](np.zeros(64, np.float32))
    (types,) = kernel.signatures
    assert kernel.get_shared_mem_per_block() == {types: 256}
    assert kernel.get_regs_per_thread(numba.void(*types)) > 0
    assert kernel.get_local_mem_per_thread(types) == 0
    assert kernel.get_const_mem_size()[types] >= 56
    assert kernel.get_max_threads_per_block()[types] == 1024
    assert (
        ".entry" in kernel.inspect_asm()[types] and kernel.inspect_asm(types) == kernel.inspect_asm()[types]
    )
    typed = cuda.jit("void(float32[:])")(kernel.py_func)
    assert typed.get_shared_mem_per_block() == 256
    assert repr(kernel) == "<kernel kernel(a)>"


@pytest.mark.parametrize("name", ["inspect_llvm", "inspect_sass", "inspect_types"])
def test_what_a_kernel_cannot_tell_says_so(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^kernel\.{name} is not simulated; "):
        getattr(cuda.jit(plus_one), name)
    with pytest.raises(AttributeError, match="a kernel has no attribute 'lunch'"):
        cuda.jit(plus_one).lunch  # noqa: B018


def test_forall_covers_all_tasks_with_the_block_of_the_highest_occupancy() -> None:
    launches = []
    a = np.zeros(3000, np.float32)
    with device.current().observed(lambda launch: launches.append(launch)):
        cuda.jit(plus_one).forall(a.size)(a)
        cuda.jit(plus_one).forall(0)(a)
    assert (a == 1).all()
    (launch,) = launches
    assert launch.block == (1024, 1, 1) and launch.grid == (3, 1, 1)


def test_a_method_can_be_a_kernel() -> None:
    class Simulation:
        factor = 3

        @cuda.jit
        def kernel(self, a):
            a[cuda.grid(1)] = self

    a = ONES.copy()
    Simulation.kernel[1, 8](4, a)
    assert (a == 4).all()


def test_an_extension_changes_arguments_and_is_told_of_the_end() -> None:
    class Celsius:
        def prepare_args(self, ty, value, stream, retr):  # type: ignore[no-untyped-def]
            if isinstance(value, str):
                retr.append(lambda: ended.append(value))
                return ty, float(value.removesuffix("°C"))
            return ty, value

    @cuda.jit(extensions=[Celsius()])
    def store(out, temperature):  # type: ignore[no-untyped-def]
        out[0] = temperature

    ended: list[str] = []
    out = np.zeros(1)
    store[1, 1](out, "20.5°C")
    assert out[0] == 20.5 and ended == ["20.5°C"]


def test_one_signature_takes_arrays_of_the_same_bytes() -> None:
    """numba does not look at the types then; what would read other bytes is still refused."""

    @cuda.jit("void(int32[:], int64)")
    def store(out, value):  # type: ignore[no-untyped-def]
        out[0] = value

    out = np.zeros(1, np.uint32)
    store[1, 1](out, 2.0)
    assert out[0] == 2
    with pytest.raises(LaunchError, match="Convert the arguments"):
        store[1, 1](np.zeros(1, np.int64), 2)


def test_a_kernel_is_specialised_for_types_and_only_once() -> None:
    special = cuda.jit(plus_one).specialize(numba.float32[::1])
    assert special.specialized
    with pytest.raises(RuntimeError, match="already specialized"):
        special.specialize(numba.float32[::1])


def test_a_kernel_cannot_be_launched_with_keywords() -> None:
    with pytest.raises(LaunchError):
        cuda.jit(plus_one)(a=ONES)


def test_numbas_memory_manager_may_be_on(monkeypatch) -> None:
    """Its calls that count references are there; nothing that a kernel can name is counted."""
    monkeypatch.setattr("numba.cuda.config.CUDA_ENABLE_NRT", True)
    ones, twos = np.ones(3), np.full((2, 2), 2.0)

    @cuda.jit
    def sums(out):
        i = 0
        for array in literal_unroll((ones, twos)):
            out[i] = np.sum(array)
            i += 1  # noqa: SIM113 numba unrolls no enumerate

    out = np.zeros(2)
    sums[1, 1](out)
    assert out.tolist() == [3, 8]
