"""CUDA arrays, textures and surfaces as CuPy describes them, in kernels of CuPy's."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cupy

runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
FLOATS = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)

ZOOM = cupy.RawKernel(
    """
    extern "C" __global__ void zoom(float *out, cudaTextureObject_t picture, int width, int height) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x < width && y < height)
            out[y * width + x] = tex2D<float>(picture, (x + 0.5f) / width, (y + 0.5f) / height);
    }""",
    "zoom",
)


def zoomed(resource, how, width: int, height: int) -> np.ndarray:
    out = cupy.zeros((height, width), cupy.float32)
    picture = texture.TextureObject(resource, how)
    blocks = (width + 15) // 16, (height + 7) // 8
    ZOOM(blocks, (16, 8), (out, picture, np.int32(width), np.int32(height)))
    return out.get()


def bilinear(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """The zoomed picture, in 64 bits and with exact weights."""
    y, x = (
        (np.arange(n) + 0.5) / n * size - 0.5 for n, size in zip((height, width), picture.shape, strict=True)
    )
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    b, a = (y - low_y)[:, None], (x - low_x)[None, :]

    def at(dy: int, dx: int) -> np.ndarray:
        rows = (low_y + dy).clip(0, picture.shape[0] - 1)
        return picture[rows][:, (low_x + dx).clip(0, picture.shape[1] - 1)]

    return (1 - b) * ((1 - a) * at(0, 0) + a * at(0, 1)) + b * ((1 - a) * at(1, 0) + a * at(1, 1))


def test_a_picture_in_a_cuda_array_is_zoomed_with_weights_of_eight_bits():
    draw = np.random.default_rng(1)
    picture = draw.random((9, 13), np.float32)
    array = texture.CUDAarray(FLOATS, 13, 9)
    array.copy_from(picture)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    how = texture.TextureDescriptor(
        (runtime.cudaAddressModeClamp,) * 2, runtime.cudaFilterModeLinear, normalizedCoords=1
    )
    np.testing.assert_allclose(zoomed(resource, how, 40, 31), bilinear(picture, 40, 31), atol=2 / 256)
    back = np.empty_like(picture)
    array.copy_to(back)
    np.testing.assert_array_equal(back, picture)


def test_pitched_memory_is_read_where_it_is():
    memory = cupy.arange(6 * 64, dtype=cupy.float32).reshape(6, 64)
    resource = texture.ResourceDescriptor(
        runtime.cudaResourceTypePitch2D, arr=memory, chDesc=FLOATS, width=10, height=6, pitchInBytes=256
    )
    how = texture.TextureDescriptor((runtime.cudaAddressModeWrap,) * 2, normalizedCoords=1)
    np.testing.assert_array_equal(zoomed(resource, how, 10, 6), memory.get()[:, :10])
    memory += 1
    np.testing.assert_array_equal(zoomed(resource, how, 10, 6), memory.get()[:, :10])


def test_linear_memory_and_a_surface():
    kernel = cupy.RawKernel(
        """
        extern "C" __global__ void reverse(cudaTextureObject_t from, cudaSurfaceObject_t to, int n) {
            int i = threadIdx.x;
            uchar4 v = tex1Dfetch<uchar4>(from, n - 1 - i);
            surf1Dwrite(make_uchar4(v.w, v.z, v.y, v.x), to, i * 4);
        }""",
        "reverse",
    )
    values = cupy.asarray(np.random.default_rng(2).integers(0, 256, (30, 4)), dtype=cupy.uint8)
    bytes_ = texture.ChannelFormatDescriptor(8, 8, 8, 8, runtime.cudaChannelFormatKindUnsigned)
    linear = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=values, chDesc=bytes_, sizeInBytes=120
    )
    array = texture.CUDAarray(bytes_, 30, flags=runtime.cudaArraySurfaceLoadStore)
    surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array))
    source = texture.TextureObject(linear, texture.TextureDescriptor())
    kernel((1,), (30,), (source, surface, np.int32(30)))
    found = cupy.zeros(120, cupy.uint8)
    array.copy_to(found)
    np.testing.assert_array_equal(found.get().reshape(30, 4), values.get()[::-1, ::-1])


def test_an_elementwise_kernel_takes_a_texture():
    array = texture.CUDAarray(FLOATS, 20)
    array.copy_from(np.arange(20, dtype=np.float32) ** 2)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    source = texture.TextureObject(resource, texture.TextureDescriptor())
    add = cupy.ElementwiseKernel("T x, U source", "T y", "y = x + tex1D<T>(source, (float)i)", "add")
    x = cupy.ones(20, cupy.float32)
    np.testing.assert_array_equal(add(x, source).get(), 1 + np.arange(20) ** 2)


def test_what_cuda_refuses_is_refused_with_the_reason():
    whole = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindSigned)
    array = texture.CUDAarray(whole, 8)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    with pytest.raises(RuntimeError, match="a linear filter mixes floats"):
        texture.TextureObject(resource, texture.TextureDescriptor(filterMode=1))
    with pytest.raises(RuntimeError, match="there are 1, 2 or 4 of the same size"):
        texture.CUDAarray(texture.ChannelFormatDescriptor(8, 8, 8, 0, 1), 8)
    with pytest.raises(
        ValueError, match=r"takes arrays of shape \(8,\) and dtype int32, but got shape \(9,\)"
    ):
        array.copy_from(np.zeros(9, np.int32))
    with pytest.raises(TypeError, match="is no cudaTextureObject_t"):
        picture = texture.TextureObject(resource, texture.TextureDescriptor())
        ZOOM((1,), (1,), (cupy.zeros(1, cupy.float32), picture, picture, np.int32(1)))
