"""Arrays with CuPy's manners: what stays on the device, what shares memory, what is refused."""

from __future__ import annotations

import copy
import operator
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from gpulab.frontends import cuda as cuda
from gpulab.frontends import cupy as cp


def test_nothing_becomes_a_numpy_array_by_itself() -> None:
    x = cp.arange(3)
    for convert in (np.asarray, np.array, lambda a: np.zeros(3) + a):
        with pytest.raises(TypeError, match=r"not allowed.*array\.get\(\)|Unsupported type.*cupy\.asarray"):
            convert(x)


def test_the_ways_to_the_host_and_back() -> None:
    host = np.arange(12, dtype=np.int16).reshape(3, 4)
    x = cp.asarray(host)
    assert np.array_equal(x.get(), host)
    assert np.array_equal(cp.asnumpy(x), host)
    assert cp.asnumpy(host) is host
    out = np.empty_like(host)
    assert x.get(out=out) is out
    assert np.array_equal(out, host)
    x.set(host * 2)
    x[:] = x.get() + np.int16(1)
    assert np.array_equal(x.get(), host * 2 + 1)
    assert x.tolist() == (host * 2 + 1).tolist()
    assert x.item(5) == 11
    assert np.array_equal(pickle.loads(pickle.dumps(x)).get(), x.get())
    assert cp.asarray(x) is x
    assert cp.array(x) is not x
    assert copy.copy(x).data.ptr != x.data.ptr


def test_new_arrays_show_what_nobody_wrote() -> None:
    assert np.isnan(cp.empty(3).get()).all()
    assert (cp.empty(3, cp.int32).get() == -1).all()


VIEWS = {
    "a slice": lambda a: a[1:, ::2],
    "backwards": lambda a: a[::-1],
    "a row": lambda a: a[1],
    "an element": lambda a: a[1, 2],
    "a new axis": lambda a: a[:, None],
    "the transpose": lambda a: a.T,
    "reshaped": lambda a: a.reshape(2, -1),
    "ravelled": lambda a: a.ravel(),
    "broadcast": lambda a: a[:1],
    "swapped": lambda a: a.swapaxes(0, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name: str) -> None:
    host = np.arange(12.0).reshape(3, 4)
    x = cp.asarray(host)
    view, expected = VIEWS[name](x), VIEWS[name](host)
    assert isinstance(view, cp.ndarray)
    assert np.array_equal(view.get(), expected)
    assert view.base is x
    view[...] = -1
    assert np.array_equal(x.get() == -1, np.isin(host, expected))


def test_what_is_no_view_is_a_copy() -> None:
    x = cp.arange(6)
    for made in (
        x[cp.array([0, 1])],
        x[x > 2],
        x.flatten(),
        x.astype(cp.int64),
        x.copy(),
        x.T.reshape(3, 2).T.ravel(),
    ):
        made[...] = -1
    assert x.get().tolist() == [0, 1, 2, 3, 4, 5]


def test_elements_are_arrays_without_dimensions_and_act_as_numbers() -> None:
    x = cp.arange(6.0)
    assert isinstance(x[2], cp.ndarray)
    assert x[2].shape == ()
    assert (float(x[2]), int(x[2]), bool(x[0]), complex(x[2])) == (2.0, 2, False, 2 + 0j)
    assert f"{x[2]:.2f}" == "2.00"
    assert [10, 11, 12][cp.array(1)] == 11
    assert isinstance(x.sum(), cp.ndarray)
    assert [float(v) for v in x] == [0, 1, 2, 3, 4, 5]


REFUSED = {
    "the truth of many": (lambda: bool(cp.ones(2)), ValueError, "ambiguous"),
    "the length of none": (lambda: len(cp.array(1)), TypeError, "len() of unsized object"),
    "iterating over none": (lambda: list(cp.array(1)), TypeError, "iteration over a 0-d array"),
    "a float as an index": (lambda: operator.index(cp.array(1.0)), TypeError, "only integer scalar arrays"),
    "hashing": (lambda: hash(cp.ones(2)), TypeError, "unhashable"),
    "a NumPy array in a function": (
        lambda: cp.add(cp.ones(2), np.ones(2)),
        TypeError,
        "Unsupported type <class 'numpy.ndarray'>: cupy.add takes device arrays; pass cupy.asarray(…).",
    ),
    "a NumPy array in an operator": (lambda: cp.ones(2) + np.ones(2), TypeError, "cupy.add takes device"),
    "a NumPy array in front": (lambda: np.ones(2) * cp.ones(2), TypeError, "cupy.multiply takes device"),
    "a list in a function": (
        lambda: cp.sum([1, 2]),
        TypeError,
        "Unsupported type <class 'list'>: cupy.sum takes device arrays; pass cupy.asarray(…).",
    ),
    "storing a list": (lambda: cp.ones(2).__setitem__(0, [1]), TypeError, "store a device array, cupy.array"),
    "storing a NumPy array": (
        lambda: cp.ones((2, 2)).__setitem__(0, np.ones(2)),
        TypeError,
        "copy it to the device first, a[…] = cupy.asarray(…).",
    ),
    "copying another dtype": (
        lambda: cp.ones(2).__setitem__(slice(None), np.ones(2, "f")),
        ValueError,
        "same shape and dtype",
    ),
    "setting another dtype": (lambda: cp.ones(2).set(np.ones(2, "f")), TypeError, "with .astype()."),
    "setting another shape": (lambda: cp.ones(2).set(np.ones(3)), ValueError, "Shape mismatch"),
    "text": (lambda: cp.array(["a"]), ValueError, "a device array holds numbers and bools."),
    "an index out of bounds": (
        lambda: cp.arange(3)[cp.array([0, 3])],
        IndexError,
        "index 3 is out of bounds for axis 0 with size 3; on a GPU, CuPy would wrap around without a word.",
    ),
    "a size that is not whole": (lambda: cp.empty(3 / 2), TypeError, "divide with //"),
    "a negative size": (lambda: cp.empty(-1), ValueError, "Negative dimensions are not allowed"),
    "a name that NumPy has": (
        lambda: cp.busday_count,
        AttributeError,
        "NumPy has it: cupy.asarray(numpy.busday_count(cupy.asnumpy(array))).",
    ),
    "a name that nobody has": (lambda: cp.adds, AttributeError, "the simulated cupy has no 'adds'."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_words(name: str) -> None:
    do, kind, message = REFUSED[name]
    with pytest.raises(kind) as caught:
        do()
    assert message in str(caught.value)


def test_numpys_own_functions_work_on_device_arrays() -> None:
    x = cp.arange(6.0).reshape(2, 3)
    for result in (
        np.sin(x),
        np.add(x, 1),
        np.sum(x, axis=0),
        np.linalg.norm(x),
        np.concatenate([x, x]),
        np.float32(2) * x,
    ):
        assert isinstance(result, cp.ndarray)
    assert cp.get_array_module(x) is cp
    assert cp.get_array_module(np.ones(1)) is np


shapes = hnp.array_shapes(max_dims=3, max_side=5)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    dtypes = st.sampled_from(["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8"])
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    left, right = (draw(hnp.arrays(draw(dtypes), shape)) for shape in found.input_shapes)
    return left, right


@given(pairs())
def test_operators_have_numpys_results_and_dtypes(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    left, right = arrays
    with np.errstate(all="ignore"):
        for apply in (operator.add, operator.mul, operator.eq, operator.ne):
            expected = apply(left, right)
            found = apply(cp.asarray(left), cp.asarray(right))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.get(), expected)


@given(hnp.arrays(st.sampled_from(["i4", "f4", "f8"]), shapes), st.data())
def test_reductions_have_numpys_results_and_dtypes(host: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([None, *range(host.ndim)]))
    with np.errstate(all="ignore"):
        for name in ("sum", "max", "argmin", "mean", "all"):
            expected = np.asarray(getattr(host, name)(axis=axis))
            found = getattr(cp.asarray(host), name)(axis=axis)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found.get(), expected)


FUNCTIONS = {
    "where": lambda xp, a: xp.where(a > 4, a, -a),
    "argsort": lambda xp, a: xp.argsort(-a, axis=1),
    "matmul": lambda xp, a: a @ a.T,
    "einsum": lambda xp, a: xp.einsum("ij,kj->ik", a, a),
    "stack": lambda xp, a: xp.stack([a, a], axis=1),
    "concatenate": lambda xp, a: xp.concatenate((a, a[:1])),
    "take": lambda xp, a: xp.take(a, xp.asarray([0, 2]), axis=0),
    "norm": lambda xp, a: xp.linalg.norm(a, axis=0),
    "solve": lambda xp, a: xp.linalg.solve(a[:3, :3] + xp.eye(3) * 9, a[:3, 0]),
    "fft": lambda xp, a: xp.fft.rfft(a, axis=1),
    "cumsum": lambda xp, a: xp.cumsum(a, axis=0),
    "pad": lambda xp, a: xp.pad(a, ((0, 0), (1, 2))),
    "histogram": lambda xp, a: xp.histogram(a, bins=4)[0],
    "clip": lambda xp, a: a.clip(2, 5),
    "unique": lambda xp, a: xp.unique(a),
    "tril": lambda xp, a: xp.tril(a),
    "meshgrid": lambda xp, a: xp.meshgrid(a[0], a[1])[1],
    "outer": lambda xp, a: xp.multiply.outer(a[0], a[1]),
    "accumulate": lambda xp, a: xp.maximum.accumulate(a, axis=1),
    "out": lambda xp, a: xp.sqrt(a, out=xp.empty_like(a)),
    "in place": lambda xp, a: operator.iadd(a.copy(), 1),
    "r_": lambda xp, a: xp.r_[1:4, 0],
    "linspace": lambda xp, a: xp.linspace(0, 1, 5, dtype=xp.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_numpys_results(name: str) -> None:
    host = np.abs(np.random.default_rng(3).normal(size=(4, 5))).astype(np.float32) * 4
    expected = FUNCTIONS[name](np, host)
    found = FUNCTIONS[name](cp, cp.asarray(host))
    assert isinstance(found, cp.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.get(), expected, rtol=1e-6)


def test_random_numbers_repeat_with_their_seed() -> None:
    for draw in (
        lambda: cp.random.rand(3),
        lambda: cp.random.randn(2, 2, dtype=cp.float32),
        lambda: cp.random.randint(0, 10, size=4),
        lambda: cp.random.normal(1, 2, (3,)),
        lambda: cp.random.permutation(10),
    ):
        cp.random.seed(5)
        first = draw()
        cp.random.seed(5)
        assert isinstance(first, cp.ndarray)
        assert np.array_equal(first.get(), draw().get())
    a, b = (cp.random.default_rng(9).standard_normal(4, dtype=cp.float32) for _ in range(2))
    assert a.dtype == cp.float32
    assert np.array_equal(a.get(), b.get())
    assert cp.random.randn(2, dtype=cp.float32).dtype == cp.float32


def test_arrays_of_the_two_faces_are_the_same_memory() -> None:
    x = cp.arange(4.0)
    of_numba = cuda.as_cuda_array(x)
    of_numba[1] = 9
    assert float(x[1]) == 9
    back = cp.asarray(cuda.to_device(np.arange(3)))
    assert back.get().tolist() == [0, 1, 2]


@cuda.jit
def double_in_place(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def test_numba_kernels_take_the_arrays() -> None:
    x = cp.arange(10, dtype=cp.float32)
    double_in_place[1, 32](x)
    assert np.array_equal(x.get(), np.arange(10) * 2)


def test_every_name_is_one_of_cupys() -> None:
    real = pytest.importorskip("cupy", reason="CuPy is not installed here")
    from gpulab.frontends.cupy.names import SHARED, SUBMODULES

    unknown = [
        n
        for n in sorted({*cp.__all__, *SUBMODULES[""], *SHARED} - {"ufunc", "exceptions"})
        if not hasattr(real, n)
    ]
    assert not unknown
    for module in ("linalg", "fft"):
        missing = [n for n in SUBMODULES[module] if not hasattr(getattr(real, module), n)]
        assert not missing, module


def test_most_names_of_cupy_are_there() -> None:
    real = pytest.importorskip("cupy", reason="CuPy is not installed here")
    left = [n for n in dir(real) if not n.startswith("_") and not hasattr(cp, n)]
    assert len(left) < 65, left  # most of them aliases that NumPy 2 has given up
