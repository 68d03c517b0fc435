"""Textures and surfaces against a plain reading of the programming guide, one fetch at a time."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from gpulab.simulator import simt
from gpulab.simulator.simt.textures import Mode, Texels, Texture

from .test_kept_functions import module

DRAW = np.random.default_rng(3)
MODES = [(mode, normalized) for normalized in (False, True) for mode in Mode]


def place(memory: simt.Memory, values: np.ndarray, axes: int, **options: Any) -> Texels:
    """`values`, (depth, height, width, channels), in device memory, rows 16 bytes apart from each other."""
    depth, height, width, channels = values.shape
    pitch = width * channels * values.itemsize + 16
    allocation = memory.allocate(pitch * height * depth, "texels")
    sizes = (width, height if axes > 1 else 0, depth if axes > 2 or options.get("layered") else 0)
    texels = Texels(allocation.address, values.dtype, channels, *sizes, pitch=pitch, **options)
    texels.seen_in(allocation.data, 0)[:] = values
    return texels


def run(source: str, memory: simt.Memory, threads: int, *arguments: Any, kernel: str = "kernel") -> None:
    packed = b""
    for value in arguments:
        data = struct.pack("<q" if isinstance(value, int) else "<f", value)
        packed += b"\0" * (-len(packed) % len(data)) + data
    simt.launch(simt.load(module(source), kernel), (1, 1, 1), (threads, 1, 1), packed, memory)


def fetched(memory: simt.Memory, texture: Texture, call: str, places: np.ndarray) -> np.ndarray:
    """What ``call`` reads in each thread, as float4, at its place (x, y, z, w)."""
    source = f"""
    extern "C" __global__ void kernel(float4 *out, const float4 *in, cudaTextureObject_t texture) {{
        float4 at = in[threadIdx.x];
        out[threadIdx.x] = {call};
    }}"""
    threads = len(places)
    given = memory.allocate(16 * threads, "in")
    out = memory.allocate(16 * threads, "out")
    given.data.view(np.float32)[:] = places.astype(np.float32).reshape(-1)
    run(source, memory, threads, out.address, given.address, memory.add_texture(texture))
    return out.data.view(np.float32).reshape(threads, 4).copy()


def texel(values: np.ndarray, index: list[int], texture: Texture) -> np.ndarray:
    """A texel at x, y, z, which may lie outside."""
    sizes = values.shape[2::-1][: len(index)]
    for axis, (i, size) in enumerate(zip(index, sizes, strict=True)):
        mode = texture.modes[axis]
        if not texture.normalized and mode in (Mode.WRAP, Mode.MIRROR):
            mode = Mode.CLAMP
        if not 0 <= i < size:
            if mode is Mode.BORDER:
                return np.zeros(values.shape[3], np.float32)
            if mode is Mode.CLAMP:
                i = 0 if i < 0 else size - 1
            elif mode is Mode.WRAP:
                i = i - size * math.floor(i / size)
            else:
                rounds = math.floor(i / size)
                i = i - size * rounds if rounds % 2 == 0 else size - 1 - (i - size * rounds)
        index[axis] = i
    x, y, z = [*index, 0, 0][:3]
    return values[z, y, x].astype(np.float32)


def expected(values: np.ndarray, texture: Texture, at: list[np.float32]) -> np.ndarray:
    """One fetch by the guide's formulas."""
    sizes = values.shape[2::-1][: len(at)]
    if texture.normalized:
        at = [np.float32(x * np.float32(n)) for x, n in zip(at, sizes, strict=True)]
    if not texture.linear:
        return texel(values, [math.floor(x) for x in at], texture)
    low = [math.floor(np.float32(x - np.float32(0.5))) for x in at]
    shares = [
        math.floor((float(np.float32(x - np.float32(0.5))) - i) * 256 + 0.5) / 256
        for x, i in zip(at, low, strict=True)
    ]
    total = np.zeros(values.shape[3], np.float64)
    for corner in range(2 ** len(at)):
        weight, index = 1.0, []
        for axis, (i, share) in enumerate(zip(low, shares, strict=True)):
            step = corner >> axis & 1
            weight *= share if step else 1 - share
            index.append(i + step)
        total += weight * texel(values, index, texture)
    return total


@pytest.mark.parametrize(("mode", "normalized"), MODES, ids=lambda value: str(getattr(value, "name", value)))
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_filter_and_address_mode_reads_what_the_guide_says(axes, linear, mode, normalized):
    memory = simt.Memory()
    shape = [1, 1, 7, 1] if axes == 1 else [1, 5, 7, 2] if axes == 2 else [3, 5, 7, 4]
    values = DRAW.normal(size=shape).astype(np.float32)
    texels = place(memory, values, axes)
    texture = Texture(texels, (mode,) * 3, linear=linear, normalized=normalized)
    reach = np.array(shape[2::-1][:axes] if not normalized else [1] * axes, np.float32)
    places = np.zeros((150, 4), np.float32)
    places[:, :axes] = DRAW.uniform(-1.3, 2.3, (150, axes)) * reach
    places[:40, :axes] = np.floor(places[:40, :axes] * 2) / 2  # between two texels, or in the middle of one
    call = {1: "tex1D<float4>(texture, at.x)", 2: "tex2D<float4>(texture, at.x, at.y)"}
    call[3] = "tex3D<float4>(texture, at.x, at.y, at.z)"
    found = fetched(memory, texture, call[axes], places)
    wanted = np.array([expected(values, texture, list(p[:axes])) for p in places])
    np.testing.assert_allclose(found[:, : shape[3]], wanted, rtol=0, atol=2e-6 if linear else 0)
    assert not found[:, shape[3] :].any()


def test_a_weight_has_eight_fractional_bits():
    """Between 0 and 1, no other steps than of 1/256 come out."""
    memory = simt.Memory()
    values = np.array([0, 1], np.float32).reshape(1, 1, 2, 1)
    texture = Texture(place(memory, values, 1), linear=True)
    places = np.zeros((600, 4), np.float32)
    places[:, 0] = np.linspace(0.5, 1.5, 600)
    found = fetched(memory, texture, "tex1D<float4>(texture, at.x)", places)[:, 0]
    assert set(found * 256) == set(range(257))


def test_integers_come_as_they_are_or_as_floats_up_to_one():
    memory = simt.Memory()
    values = np.array([[0, 255], [128, 7], [1, 254]], np.uint8).reshape(1, 3, 1, 2)
    texels = place(memory, values, 2)
    places = np.zeros((3, 4), np.float32)
    places[:, 1] = np.arange(3) + 0.5
    plain = "[](uchar4 v) { return make_float4(v.x, v.y, v.z, v.w); }(tex2D<uchar4>(texture, at.x, at.y))"
    found = fetched(memory, Texture(texels), plain, places)
    np.testing.assert_array_equal(found[:, :2], values[0, :, 0])
    found = fetched(memory, Texture(texels, as_floats=True), "tex2D<float4>(texture, at.x, at.y)", places)
    np.testing.assert_array_equal(found[:, :2], values[0, :, 0] / np.float32(255))
    signed = np.array([-128, -127, 127, 5], np.int8).reshape(1, 1, 4, 1)
    texture = Texture(place(memory, signed, 1), as_floats=True)
    places[:, 0] = [0.5, 1.5, 2.5]
    found = fetched(memory, texture, "tex1D<float4>(texture, at.x)", places)[:, 0]
    np.testing.assert_array_equal(found, np.array([-1, -1, 1], np.float32))


def test_linear_memory_is_fetched_by_whole_numbers_and_is_zero_outside():
    memory = simt.Memory()
    values = DRAW.integers(-1000, 1000, (1, 1, 40, 1)).astype(np.int32)
    texture = Texture(place(memory, values, 1, is_line=True))
    places = np.zeros((50, 4), np.float32)
    places[:, 0] = np.arange(50) - 5
    found = fetched(memory, texture, "make_float4(tex1Dfetch<int>(texture, (int)at.x), 0, 0, 0)", places)[
        :, 0
    ]
    np.testing.assert_array_equal(found, [0] * 5 + values.reshape(-1).tolist() + [0] * 5)


def test_layers_are_not_mixed_and_their_number_is_clamped():
    memory = simt.Memory()
    values = DRAW.normal(size=(3, 4, 5, 1)).astype(np.float32)
    texture = Texture(place(memory, values, 2, layered=True), linear=True)
    places = np.array([[2.0, 1.5, layer, 0] for layer in range(-1, 5)], np.float32)
    call = "make_float4(tex2DLayered<float>(texture, at.x, at.y, (int)at.z), 0, 0, 0)"
    found = fetched(memory, texture, call, places)[:, 0]
    each = [np.float32((values[layer, 1, 1, 0] + values[layer, 1, 2, 0]) / 2) for layer in range(3)]
    np.testing.assert_allclose(found, [each[0], *each, each[2], each[2]], rtol=1e-6)


def test_gather_returns_the_four_texels_around_a_place():
    memory = simt.Memory()
    values = np.arange(20, dtype=np.float32).reshape(1, 4, 5, 1)
    texture = Texture(place(memory, values, 2))
    call = "tex2Dgather<float4>(texture, at.x, at.y, 0)"
    found = fetched(memory, texture, call, np.array([[2.0, 3.0, 0, 0]]))
    np.testing.assert_array_equal(found[0], [values[0, y, x, 0] for x, y in ((1, 3), (2, 3), (2, 2), (1, 2))])


def test_lanes_may_use_different_textures():
    memory = simt.Memory()
    handles = [
        memory.add_texture(Texture(place(memory, np.full((1, 1, 4, 1), value, np.float32), 1)))
        for value in (3.0, 5.0)
    ]
    source = """
    extern "C" __global__ void kernel(float *out, cudaTextureObject_t one, cudaTextureObject_t other) {
        out[threadIdx.x] = tex1D<float>(threadIdx.x % 2 ? one : other, 1.5f);
    }"""
    out = memory.allocate(4 * 32, "out")
    run(source, memory, 32, out.address, *handles)
    np.testing.assert_array_equal(out.data.view(np.float32), [5, 3] * 16)


SURFACE = """
extern "C" __global__ void kernel(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int shift) {
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    float2 v = surf2Dread<float2>(from, (x + shift) * 8, y, cudaBoundaryModeMODE);
    surf2Dwrite(make_float2(v.y, v.x * 2), to, x * 8, y);
}"""


@pytest.mark.parametrize("mode", ["Zero", "Clamp"])
def test_surfaces_are_read_and_written_by_bytes_and_rows(mode):
    memory = simt.Memory()
    values = DRAW.normal(size=(1, 4, 8, 2)).astype(np.float32)
    source, to = place(memory, values, 2), place(memory, np.zeros_like(values), 2)
    handles = memory.add_texture(source), memory.add_texture(to)
    run(SURFACE.replace("MODE", mode), memory, 32, *handles, 3)
    shifted = np.zeros_like(values[0])
    shifted[:, :5] = values[0, :, 3:]
    if mode == "Clamp":
        shifted[:, 5:] = values[0, :, 7:8]
    found = to.seen_in(memory.find(to.address).data, 0)[0]
    np.testing.assert_array_equal(found, np.stack([shifted[..., 1], shifted[..., 0] * 2], axis=-1))


def test_a_place_outside_a_surface_stops_the_kernel_with_its_coordinates():
    memory = simt.Memory()
    surface = memory.add_texture(place(memory, np.zeros((1, 4, 8, 2), np.float32), 2))
    with pytest.raises(
        simt.OutOfBounds, match=r"8 bytes of a surface at x = 64, y = 0, x in bytes; it is 64 bytes"
    ):
        run(SURFACE.replace("MODE", "Trap"), memory, 32, surface, surface, 3)


def test_a_texture_that_does_not_exist_or_whose_memory_is_freed_is_named():
    memory = simt.Memory()
    source = """
    extern "C" __global__ void kernel(float *out, cudaTextureObject_t texture) {
        *out = tex1D<float>(texture, 0.5f);
    }"""
    out = memory.allocate(4, "out")
    with pytest.raises(simt.WrongTexture, match=r"line 3[\s\S]*used 0x7b, which is no texture object"):
        run(source, memory, 32, out.address, 123)
    texels = place(memory, np.zeros((1, 1, 4, 1), np.float32), 1)
    handle = memory.add_texture(Texture(texels))
    memory.free(memory.find(texels.address))
    with pytest.raises(simt.WrongTexture, match="memory is not there any more"):
        run(source, memory, 32, out.address, handle)
