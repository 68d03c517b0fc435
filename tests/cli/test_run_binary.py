"""`gpulab run ./program`: programs that nvcc and g++ have built, as somebody else would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpulab.app.programs import cuda_cpp
from gpulab.app.programs.machine_code import Binary
from gpulab.frontends.runtime.fat_binary import from_lz4
from tests.cli.test_run_cuda_cpp import run

pytestmark = pytest.mark.skipif(
    cuda_cpp.missing() != "", reason=f"programs in CUDA C++ cannot be built here: {cuda_cpp.missing()}"
)

PROGRAM = r"""
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

__global__ void scale(float *a, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= by;
}
__device__ int seen;
__global__ void count() { atomicAdd(&seen, 1); }
void CUDART_CB note(void *x) { *(int *)x += 7; }
struct Farewell { ~Farewell() { std::cout << "farewell\n"; } } farewell;

int main(int argc, char **argv) {
    int n = atoi(argv[1]), beyond = atoi(argv[2]), noted = 0, counted;
    std::vector<float> host(n, 2);
    float *device;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMalloc(&device, n * sizeof(float));
    cudaMemcpyAsync(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream);
    scale<<<(n + 63) / 64, 64, 0, stream>>>(device, 3, n + beyond);
    cudaLaunchHostFunc(stream, note, &noted);
    cudaMemcpyAsync(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    std::thread first([] { count<<<1, 32>>>(); cudaDeviceSynchronize(); });
    std::thread second([] { count<<<2, 32>>>(); cudaDeviceSynchronize(); });
    first.join(), second.join();
    cudaMemcpyFromSymbol(&counted, seen, sizeof counted);
    std::cout << host[n - 1] << " " << noted << " " << counted << " " << cudaGetErrorName(cudaGetLastError()) << "\n";
    if (host[n - 1] == 6) exit(5);
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binary")
    (folder / "program.cu").write_text(PROGRAM)
    return folder


def build(folder: Path, name: str, *flags: str) -> str:
    nvcc = cuda_cpp.compiler()
    if "shared" in flags:  # the wheel has the library under the name for loaders only
        library = next((Path(nvcc).parents[1] / "lib").glob("libcudart.so.*"))
        (folder / "libcudart.so").symlink_to(library)
    subprocess.run(
        [nvcc, "program.cu", "-o", name, "-L.", *flags], cwd=folder, check=True, capture_output=True
    )
    return f"./{name}"


@pytest.mark.parametrize("runtime", ["static", "shared"])
def test_a_built_program_runs_with_its_threads_streams_and_callbacks(folder: Path, runtime: str) -> None:
    """nvcc links the static runtime unless it is told otherwise, and compresses PTX with Zstandard."""
    program = build(folder, runtime, "-cudart", runtime)
    ended = run(folder, "--report", program, "1000", "0")
    assert ended.stdout.splitlines() == ["6 7 96 cudaSuccess", "farewell"], ended.stderr
    assert ended.returncode == 5
    rows = {line.split()[0]: line.split()[1] for line in ended.stderr.splitlines() if line.strip()}
    assert rows["scale"] == "1" and rows["count"] == "2"


def test_a_fault_in_a_built_program_has_its_line_where_nvcc_kept_lines(folder: Path) -> None:
    """PTX that LZ4 has compressed is read, too."""
    program = build(folder, "lines", "-lineinfo", "--compress-mode=speed")
    ended = run(folder, program, "1000", "1")
    assert "OutOfBounds in kernel scale, line 9" in ended.stderr and "read 4 bytes at" in ended.stderr
    assert "cudaErrorIllegalAddress" in ended.stdout and ended.returncode == 1


def test_a_program_without_ptx_is_told_how_to_be_built(folder: Path) -> None:
    ended = run(folder, build(folder, "sass", "-gencode", "arch=compute_80,code=sm_80"), "1000", "0")
    assert "nvcc -gencode arch=compute_80,code=compute_80" in ended.stderr and "Traceback" not in ended.stderr
    assert "cudaErrorNoKernelImageForDevice" in ended.stdout


def test_what_cannot_be_loaded_is_said_before_anything_runs(folder: Path) -> None:
    (folder / "local.cu").write_text("thread_local int mine; int main() { return mine = 3; }")
    (folder / "fixed.cu").write_text("int main() {}")
    nvcc = cuda_cpp.compiler()
    for name, flags in (("local", []), ("fixed", ["-Xcompiler", "-no-pie", "-Xlinker", "-no-pie"])):
        subprocess.run([nvcc, f"{name}.cu", "-o", name, *flags], cwd=folder, check=True, capture_output=True)
    shutil.copy(folder / "local", folder / "bare")
    subprocess.run(["strip", "bare"], cwd=folder, check=True)
    words = {
        "local": "thread-local variables (mine)",
        "fixed": "at a fixed address",
        "bare": "do not strip it",
    }
    for name, why in words.items():
        ended = run(folder, f"./{name}")
        assert why in ended.stderr and ended.returncode == 2, ended.stderr


def test_the_copy_differs_in_jumps_and_in_one_flag(folder: Path) -> None:
    (folder / "plain.cu").write_text("int main() { return cudaDeviceSynchronize(); }")
    subprocess.run([cuda_cpp.compiler(), "plain.cu", "-o", "plain"], cwd=folder, check=True)
    binary = Binary(folder / "plain")
    inside = binary.inside()
    copy = binary.loadable(dict.fromkeys(inside, 0x1122334455667788))
    assert len(copy) == len(binary.data) and {"cudaMalloc", "__cudaRegisterFatBinary"} <= set(inside)
    assert copy.count(bytes.fromhex("ff2500000000 8877665544332211")) == len(inside)
    changed = sum(a != b for a, b in zip(copy, binary.data, strict=True))
    assert changed <= 14 * len(inside) + 8


@pytest.mark.parametrize(
    ("block", "whole"),
    [
        (b"\x50hello", b"hello"),
        (b"\x1fa\x01\x00\x03\x10z", b"a" * 23 + b"z"),
        (bytes([0xF0, 5]) + bytes(range(20)), bytes(range(20))),
    ],
)
def test_blocks_of_lz4_are_unpacked(block: bytes, whole: bytes) -> None:
    assert from_lz4(block) == whole
