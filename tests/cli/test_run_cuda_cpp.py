"""`gpulab run program.cu`: whole programs in CUDA C++, host code and kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpulab
from gpulab.app.programs import cuda_cpp

ROOT = Path(gpulab.__file__).resolve().parent.parent

ADDS = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>

__constant__ float scale[2];
__device__ int touched;

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i] * scale[1];
        atomicAdd(&touched, 1);
    }
}

struct Farewell { ~Farewell() { printf("farewell %d\n", cudaDeviceSynchronize()); } } farewell;

int main(int argc, char **argv) {
    int n = atoi(argv[1]), zero = 0;
    std::vector<float> x(n, 2), y(n, 1);
    float *dx, *dy, factors[2] = {1, 2};
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpyToSymbol(scale, factors, sizeof factors);
    cudaMemcpyToSymbol(touched, &zero, sizeof zero);
    cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(n + EXTRA, 3, dx, dy);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&zero, touched, sizeof zero);
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    printf("%g %d %d.%d %d\n", y[n - 1], zero, p.major, p.minor, p.multiProcessorCount);
    exit(y[n - 1] == 13 ? 7 : 0);
}
"""

TEXTURES = r"""
#include <cstdio>
#include <cmath>
#include <vector>

// Blurs by a linear filter between two texels, adds a layer, and writes to a surface, x in bytes.
__global__ void blur(cudaTextureObject_t picture, cudaTextureObject_t layers, cudaSurfaceObject_t out, int n) {
    int x = threadIdx.x, y = threadIdx.y;
    float v = tex2D<float>(picture, x + 1.f, y + 0.5f) + tex2DLayered<float>(layers, x + .5f, y + .5f, 1);
    surf2Dwrite(v, out, x * 4, y);
}

__global__ void middle(cudaTextureObject_t cube, float4 *out) { *out = tex3D<float4>(cube, .5f, .5f, .5f); }

#define CHECK(call) if (cudaError_t e = (call)) return printf("%s: %s\n", #call, cudaGetErrorName(e)), 1

cudaTextureObject_t texture(cudaArray_t array, cudaTextureFilterMode filter, int normalized) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    how.filterMode = filter, how.normalizedCoords = normalized;
    cudaTextureObject_t made = 0;
    cudaCreateTextureObject(&made, &resource, &how, nullptr);
    return made;
}

int main() {
    const int n = 8;
    std::vector<float> h(n * n), g(2 * n * n), back(n * n);
    for (int i = 0; i < n * n; i++) h[i] = i * i % 37, g[i] = 1000, g[n * n + i] = 100 * i;
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>(), four = cudaCreateChannelDesc<float4>();
    cudaArray_t picture, layers, out, cube;
    CHECK(cudaMallocArray(&picture, &floats, n, n));
    CHECK(cudaMallocArray(&out, &floats, n, n, cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&layers, &floats, make_cudaExtent(n, n, 2), cudaArrayLayered));
    CHECK(cudaMalloc3DArray(&cube, &four, make_cudaExtent(2, 2, 2)));
    CHECK(cudaMemcpy2DToArray(picture, 0, 0, h.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(g.data(), n * 4, n, n), copy.dstArray = layers;
    copy.extent = make_cudaExtent(n, n, 2), copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    float4 corners[8], *middle_of, seen;
    for (int i = 0; i < 8; i++) corners[i] = make_float4(i, 2 * i, -i, 1);
    copy.srcPtr = make_cudaPitchedPtr(corners, 32, 2, 2), copy.dstArray = cube, copy.extent = make_cudaExtent(2, 2, 2);
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc surface_of = {};
    surface_of.resType = cudaResourceTypeArray, surface_of.res.array.array = out;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &surface_of));
    cudaTextureObject_t blurred = texture(picture, cudaFilterModeLinear, 0), layered = texture(layers, cudaFilterModePoint, 0);
    blur<<<1, dim3(n, n)>>>(blurred, layered, surface, n);
    CHECK(cudaMalloc(&middle_of, 16));
    middle<<<1, 1>>>(texture(cube, cudaFilterModeLinear, 1), middle_of);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&seen, middle_of, 16, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy2DFromArray(back.data(), n * 4, out, 0, 0, n * 4, n, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) {
        float right = h[y * n + (x + 1 < n ? x + 1 : x)];
        wrong += back[y * n + x] != (h[y * n + x] + right) / 2 + 100 * (y * n + x);
    }
    printf("%d wrong, %g %g %g %g\n", wrong, seen.x, seen.y, seen.z, seen.w);
    CHECK(cudaDestroyTextureObject(blurred));
    CHECK(cudaFreeArray(picture));
    printf("%s\n", cudaGetErrorName(cudaDestroyTextureObject(blurred)));
    return wrong;
}
"""

SHARES = r"""
#include <cstdio>
#include <thread>

__managed__ int counted;

__global__ void count(int *each) {
    each[threadIdx.x] += threadIdx.x;
    atomicAdd(&counted, 1);
}

void CUDART_CB tell(void *data) { printf("told %d\n", *(int *)data); }

int main() {
    int *each, answer = 42;
    cudaMallocManaged(&each, 64 * sizeof(int));
    for (int i = 0; i < 64; i++) each[i] = i;
    count<<<1, 64>>>(each);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    std::thread other([&] { count<<<1, 64, 0, stream>>>(each); cudaStreamSynchronize(stream); });
    other.join();
    cudaLaunchHostFunc(stream, tell, &answer);
    cudaEvent_t start, stop;
    cudaEventCreate(&start), cudaEventCreate(&stop);
    cudaEventRecord(start), cudaEventRecord(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    printf("%d %d %g\n", each[63], counted, ms);
    int *pinned, blocks;
    cudaMallocHost(&pinned, sizeof(int) * 64);
    count<<<1, 64>>>(pinned);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 1024, 0);
    printf("%d %d\n", pinned[63], blocks);
    cudaPitchedPtr cube;
    char host[2][3][4] = {}, back[2][3][4] = {};
    host[1][2][3] = 7;
    cudaMalloc3D(&cube, make_cudaExtent(4, 3, 2));
    cudaMemset3D(cube, 9, make_cudaExtent(4, 3, 2));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host, 4, 4, 3), copy.dstPtr = cube;
    copy.extent = make_cudaExtent(4, 3, 1), copy.kind = cudaMemcpyHostToDevice;
    copy.srcPos.z = copy.dstPos.z = 1;
    cudaMemcpy3D(&copy);
    cudaMemcpy3DParms home = {};
    home.srcPtr = cube, home.dstPtr = make_cudaPitchedPtr(back, 4, 4, 3);
    home.extent = make_cudaExtent(4, 3, 2), home.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&home);
    printf("%d %d %zu\n", back[0][2][3], back[1][2][3], cube.pitch);
    cudaGraph_t graph;
    cudaGraphExec_t twice;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    count<<<1, 64, 0, stream>>>(pinned);
    cudaLaunchHostFunc(stream, tell, &answer);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&twice, graph, 0);
    printf("%d\n", pinned[63]);
    answer = 43;
    cudaGraphLaunch(twice, stream), cudaGraphLaunch(twice, stream);
    printf("%d\n", pinned[63]);
}
"""

WRONG = r"""
#include <cstdio>

__global__ void fill(int *a) { a[threadIdx.x] = 1; }

int main(int argc, char **) {
    int *a, b[2] = {};
    cudaMalloc(&a, 4);
    printf("%d\n", cudaMemcpy(a, b, 8, cudaMemcpyHostToDevice));
    printf("%d\n", cudaMemcpy(b, a, 4, cudaMemcpyHostToDevice));
    cudaGraph_t graph;
    printf("%d\n", cudaGraphCreate(&graph, 0));
    fill<<<1, 2048>>>(a);
    if (argc > 1) printf("%d\n", cudaGetLastError());
    if (argc > 2) printf("%d\n", *a);
}
"""

SHARED = r"""
#pragma once
typedef float (*function)(float);
struct Scale { float by; __device__ float of(float x); };
extern __device__ int counter;
extern __constant__ float factors[4];
extern __device__ function table[2];
extern __managed__ int total;
__device__ float twice(float x);
__device__ inline const char *word(bool two) { return two ? "two" : "one"; }
template <typename T> __global__ void reverse(T *a, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[n - 1 - threadIdx.x];
}
__global__ void second(float *a);
void reverse_twice(float *a, int n);
"""
ONE = r"""
#include <cstdio>
#include "shared.cuh"

static __device__ int hidden = 3;
static __device__ __noinline__ float plus(float x) { return x + hidden; }

__global__ void first(float *a) {
    int i = threadIdx.x;
    a[i] = twice(plus(a[i])) + Scale{factors[i % 4]}.of(1) + table[i & 1](1);
    atomicAdd(&counter, 1);
    atomicAdd(&total, 10);
    if (blockDim.x == 1)
        printf("one %d ", counter);
}

int main() {
    float *a, given[4] = {10, 1, 2, 3};
    cudaMallocManaged(&a, 400);
    for (int i = 0; i < 100; i++)
        a[i] = i;
    cudaMemcpyToSymbol(factors, given, sizeof given);
    total = 100;
    first<<<1, 1>>>(a);
    cudaDeviceSynchronize();
    first<<<1, 99>>>(a + 1);
    second<<<1, 1>>>(a);
    reverse<float><<<1, 100, 400>>>(a, 100);
    reverse_twice(a, 100);
    cudaDeviceSynchronize();
    printf("%.1f %.1f %.1f managed %d\n", a[0], a[1], a[2], total);
    return cudaGetLastError();
}
"""
TWO = r"""
#include <cstdio>
#include "shared.cuh"

__device__ int counter = 0;
__constant__ float factors[4];
__managed__ int total = 5;
static __device__ int hidden = 7;
static __device__ __noinline__ float plus(float x) { return x + hidden; }
__device__ float twice(float x) { return 2 * x; }
__device__ float Scale::of(float x) { return by * x; }
__device__ float one_more(float x) { return 1 + x; }
__device__ float hundred_more(float x) { return 100 + x; }
__device__ function table[2] = {one_more, hundred_more};

__global__ void second(float *a) { a[0] = plus(a[0] - 7); printf("two %d\n", 2); }

void reverse_twice(float *a, int n) {
    reverse<float><<<1, n, n * 4>>>(a, n);
    reverse<float><<<1, n, n * 4>>>(a, n);
}
"""

pytestmark = pytest.mark.skipif(
    cuda_cpp.missing() != "", reason=f"programs in CUDA C++ cannot be built here: {cuda_cpp.missing()}"
)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulab", "run", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "TMPDIR": str(folder),
            "GPULAB_CACHE": str(folder),
        },
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda_cpp")
    for name, text in (("adds", ADDS), ("shares", SHARES), ("wrong", WRONG), ("textures", TEXTURES)):
        (folder / f"{name}.cu").write_text(text)
    return folder


def test_a_whole_program_runs_and_its_exit_code_is_its_own(folder: Path) -> None:
    ended = run(folder, "--report", "--gpu", "H100", "--nvcc=-DEXTRA=0", "adds.cu", "1000")
    assert ended.stdout.splitlines() == ["cudaSuccess", "13 1000 9.0 132", "farewell 0"], ended.stderr
    assert ended.returncode == 7
    row = next(line for line in ended.stderr.splitlines() if line.startswith("saxpy"))
    assert row.split()[1] == "1" and row.split()[3:5] == ["250", "125"]  # 2 × 1,000 and 1,000 float32


def test_a_fault_has_the_words_of_the_source_and_the_program_gets_cudas_code(folder: Path) -> None:
    ended = run(folder, "--nvcc=-DEXTRA=1", "adds.cu", "1000")
    assert "OutOfBounds in kernel saxpy, line 12" in ended.stderr
    assert "read x[1000]; x has 1000 elements (float32)." in ended.stderr
    assert ended.stdout.splitlines()[0] == "cudaErrorIllegalAddress" and ended.returncode == 1


def test_memory_of_both_sides_threads_streams_and_callbacks(folder: Path) -> None:
    ended = run(folder, "--sanitize", "shares.cu")
    assert ended.stdout.splitlines() == [
        *("told 42", "189 128 nan", "63 2", "9 7 512"),
        *("63", "told 43", "told 43", "189"),
    ], ended.stderr
    assert ended.returncode == 0
    timed = run(folder, "--clock", "wall", "shares.cu")
    assert float(timed.stdout.splitlines()[1].split()[-1]) > 0


def test_textures_surfaces_and_copies_of_cuda_arrays(folder: Path) -> None:
    ended = run(folder, "textures.cu")
    assert ended.stdout.splitlines()[0] == "0 wrong, 3.5 7 -3.5 1", ended.stderr
    assert ended.stdout.splitlines()[1] == "cudaErrorInvalidResourceHandle"
    assert "is no texture or surface, or no longer one" in ended.stderr


def test_what_goes_wrong_on_the_host_is_said_in_words_and_as_cudas_code(folder: Path) -> None:
    ended = run(folder, "wrong.cu")
    assert ended.stdout.splitlines() == ["1", "1", "801"] and ended.returncode == 1
    for words in (
        "8 bytes are written to an array of 4 bytes: 4 too many.",
        "should be memory of the host, but is the device's",
        "cudaGraphCreate returns cudaErrorNotSupported",
        "fill: blocks of 2,048 threads",
        "did not ask whether its last kernel was launched",
    ):
        assert words in ended.stderr
    asked = run(folder, "wrong.cu", "ask")
    assert asked.stdout.splitlines()[-1] == "9" and asked.returncode == 0
    assert "did not ask" not in asked.stderr
    reached = run(folder, "wrong.cu", "ask", "reach")
    assert reached.returncode == 139 and "the host read or wrote device memory" in reached.stderr
    assert list(folder.glob("gpulab-run-*")) == []  # what was built is gone, though nothing could tidy up


def test_a_program_that_does_not_compile_shows_what_the_compiler_says(folder: Path) -> None:
    (folder / "broken.cu").write_text("int main() { return undefined_name; }\n")
    ended = run(folder, "broken.cu")
    assert ended.returncode == 2 and "broken.cu does not compile" in ended.stderr
    assert "undefined_name" in ended.stderr and "Traceback" not in ended.stderr


def test_a_program_of_several_files_is_built_from_all_of_them(folder: Path) -> None:
    (folder / "host.cpp").write_text(
        "void fill(int n);\nint main(int argc, char **) { fill(argc); return argc; }\n"
    )
    (folder / "device.cu").write_text(
        "__global__ void put(float *a) { a[threadIdx.x] = 1; }\n"
        "void fill(int n) { float *a; cudaMalloc(&a, 4 * n); put<<<1, n + MORE>>>(a); }\n"
    )
    ended = run(folder, "--nvcc=-DMORE=0 device.cu", "host.cpp", "x", "y")
    assert ended.returncode == 3, ended.stderr
    beyond = run(folder, "--nvcc=-DMORE=1 device.cu", "host.cpp", "x", "y")
    assert beyond.returncode == 3 and "wrote a[3]; a has 3 elements (float32)." in beyond.stderr


def test_a_program_is_built_once_for_the_same_contents_of_all_its_files(folder: Path) -> None:
    """What ran before is not built again; a header that changes is, and so is another GPU's."""
    (folder / "number.h").write_text("#define NUMBER 5")
    (folder / "cached.cu").write_text('#include "number.h"\nint main() { return NUMBER; }')
    builds = folder / "programs"

    def built() -> dict[str, float]:
        return {path.parent.name: path.stat().st_mtime for path in builds.glob("*/program.so")}

    before = built()
    assert run(folder, "cached.cu").returncode == 5
    first = built()
    assert len(first) == len(before) + 1
    assert run(folder, "cached.cu").returncode == 5
    assert built() == first
    (folder / "number.h").write_text("#define NUMBER 6")
    assert run(folder, "cached.cu").returncode == 6
    assert built().keys() == first.keys()
    assert run(folder, "--gpu", "H100", "cached.cu").returncode == 6
    assert len(built()) == len(first) + 1
    assert not list(builds.glob("new-*"))


def test_device_code_of_several_files_is_linked(folder: Path) -> None:
    """Functions, variables and tables of functions of another file; statics of one name stay apart."""
    (folder / "shared.cuh").write_text(SHARED)
    (folder / "one.cu").write_text(ONE)
    (folder / "two.cu").write_text(TWO)
    ended = run(folder, "--report", "--nvcc=-rdc=true two.cu", "one.cu")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["one 1 two 2", "208.0 304.0 212.0 managed 1100"]
    assert "second" in ended.stderr  # a kernel of the other file, with its counts


def test_a_budget_holds_for_the_kernels_of_a_program(folder: Path) -> None:
    written = run(folder, "--nvcc=-DEXTRA=0", "--write-budget", "cpp.json", "adds.cu", "1000")
    assert written.returncode == 7, written.stderr
    assert "cpp.json was not written, because the program ended with 7" in written.stderr
    source = (
        "__global__ void fill(float *a) { a[threadIdx.x * STEP] = 1; }\n"
        "int main() { float *a; cudaMalloc(&a, 4096); fill<<<1, 32>>>(a); return cudaDeviceSynchronize(); }\n"
    )
    (folder / "fills.cu").write_text(source)
    assert run(folder, "--nvcc=-DSTEP=1", "--write-budget", "cpp.json", "fills.cu").returncode == 0
    assert run(folder, "--nvcc=-DSTEP=1", "--budget", "cpp.json", "fills.cu").returncode == 0
    over = run(folder, "--nvcc=-DSTEP=8", "--budget", "cpp.json", "fills.cu")
    assert over.returncode == 1
    assert "fill: 32 global store sectors; the budget is 4" in over.stderr


def test_a_step_of_a_build_is_refused_in_words(folder: Path) -> None:
    ended = run(folder, "--nvcc=-dc", "adds.cu")
    assert ended.returncode == 2 and "-dc is one step of a build" in ended.stderr


def test_a_kernel_that_launches_a_kernel_is_refused_in_words(folder: Path) -> None:
    (folder / "parent.cu").write_text(
        "__global__ void child() {}\n__global__ void parent() { child<<<1, 1>>>(); }\n"
        "int main() { parent<<<1, 1>>>(); return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3; }\n"
    )
    ended = run(folder, "--nvcc=-rdc=true", "parent.cu")
    assert ended.returncode == 3
    assert "parent, line 2" in ended.stderr and "Kernels that launch kernels do not run here" in ended.stderr


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(cuda_cpp.CannotBuild, match=r"needs g\+\+.*apt install g\+\+"):
        cuda_cpp.compiler()
