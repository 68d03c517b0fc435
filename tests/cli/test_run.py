"""`gpulab run`: programs as their authors wrote them, on a simulated GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpulab
from gpulab.app.programs import ledger

ROOT = Path(gpulab.__file__).resolve().parent.parent

TRITON = """
import sys
import pytest, torch, triton
import triton.language as tl
import helper

DEVICE = triton.runtime.driver.active.get_active_torch_device()
properties = triton.runtime.driver.active.utils.get_device_properties(0)
print("target", triton.runtime.driver.active.get_current_target().arch, properties["multiprocessor_count"])


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


torch.manual_seed(0)
x, y = torch.rand(1024, device="cuda"), torch.rand(1024, device=DEVICE)
out = torch.empty_like(x)
assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
model = torch.nn.Linear(4, 4).to("cuda")
generator = torch.Generator(device="cuda").manual_seed(1)
torch.randn(3, generator=generator, device="cuda")
torch.cuda.synchronize()
state = torch.cuda.get_rng_state()
drawn = torch.rand(3, device="cuda")
assert torch.device("cuda", 0).type == "cuda" and torch.zeros(1, device=torch.device("cuda")).sum() == 0
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert model(torch.ones(1, 4, device="cuda")).dtype == torch.bfloat16
torch.save(model.state_dict(), "model.pt")
assert torch.load("model.pt", map_location="cuda:0")["weight"].is_cuda
torch.cuda.set_rng_state(state)
assert torch.equal(torch.rand(3, device="cuda"), drawn)
import torch._dynamo  # which keeps a table of torch.cuda's functions
torch._dynamo.trace_rules.get_torch_obj_rule_map()
started = torch.cuda.Event(enable_timing=True)
started.record()
assert started.cuda_event != 0 and started.query()
from torch.nn.attention import SDPBackend, sdpa_kernel
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    torch.nn.functional.scaled_dot_product_attention(*torch.ones(3, 1, 1, 4, 8, device="cuda"))

kernel = add.warmup(x, y, out, 1024, BLOCK=256, grid=(1,))
kernel._init_handles()
print("registers", kernel.n_regs > 0, kernel.metadata.shared)
kernel[(4,)](x, y, out, 1024, 256)
torch.testing.assert_close(out, x + y)
print("time", triton.testing.do_bench(lambda: add[(4,)](x, y, out, 1024, BLOCK=256), quantiles=[0.5, 0.2]))
print("helper", helper.doubled(), sys.argv[1:])
"""
HELPER = """
import importlib
import numba.cuda
import numpy as np

cupy = importlib.import_module("cupy")


@numba.cuda.jit
def double(a):
    i = numba.cuda.grid(1)
    if i < a.size:
        a[i] *= 2


def doubled():
    a = cupy.arange(4)
    double[1, 32](a)
    return cupy.asnumpy(a).tolist()
"""
RACE = """
from numba import cuda
import numpy as np

@cuda.jit
def rotate(a):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    a[i] = tile[(i + 1) % 64]

rotate[1, 64](np.arange(64, dtype=np.float32))
"""

STOPS = """
import _thread, threading
import numpy as np
from numba import cuda

@cuda.jit
def quick(a):
    a[cuda.threadIdx.x] += 1

@cuda.jit
def spin(a, n):
    s = 0.0
    for i in range(n):
        s += a[0] * i
    a[cuda.threadIdx.x] = s

a = np.ones(32)
quick[1, 32](a)
spin[1, 32](a, 1)
threading.Timer(2, _thread.interrupt_main).start()  # what Ctrl-C does
spin[1, 32](a, 100_000_000)
"""

TABLE = """
import gc
import cupy, torch, triton
import triton.language as tl


@triton.jit
def sums(table, out, n: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0), tl.sum(tl.load(p + tl.arange(0, n))))


arrays = [torch.full((1 << n,), float(n), device="cuda") for n in (6, 20)]
table = torch.tensor([a.data_ptr() for a in arrays], device="cuda")
out = torch.zeros(2, device="cuda")
sums[(2,)](table, out, 64)
print(out.tolist())

put = cupy.RawKernel('extern "C" __global__ void put(float **t) { t[threadIdx.x][1] = 5; }', "put")
put((1,), (2,), (cupy.asarray(table.numpy()),))
print([a[:2].tolist() for a in arrays])
del arrays
gc.collect()
put((1,), (2,), (cupy.asarray(table.numpy()),))
"""

TF32 = """
import torch


def close(found, a, b):
    return torch.allclose(found.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)


def rounded(x):
    return ((x.view(torch.int32) + 0x0FFF + (x.view(torch.int32) >> 13 & 1)) & ~0x1FFF).view(torch.float32)


torch.manual_seed(0)
a, b = torch.randn(40, 64, device="cuda"), torch.randn(64, 48, device="cuda")
g, bias = torch.randn(40, 48, device="cuda"), torch.zeros(48, device="cuda")
stack = a.expand(3, 40, 64).contiguous(), b.expand(3, 64, 48).contiguous()
half, double = a.half() @ b.half(), a.double() @ b.double()
for setting in ("highest", "high", "medium"):
    torch.set_float32_matmul_precision(setting)
    weight = b.T.clone().requires_grad_()
    linear = torch.nn.functional.linear(a, weight, bias)
    linear.backward(g)
    products = (a @ b, a, b), (torch.einsum("bik,bkj->bij", *stack)[1], a, b), (linear, a, b)
    products = *products, (weight.grad, g.T, a)
    exact, tf32 = (all(close(f, of(x), of(y)) for f, x, y in products) for of in (lambda x: x, rounded))
    print(setting, exact, tf32, torch.equal(a.half() @ b.half(), half), torch.equal(a.double() @ b.double(), double))
torch.set_float32_matmul_precision("highest")
torch.backends.cuda.matmul.allow_tf32 = True
print("allowed", close(a @ b, a, b), close(a @ b, rounded(a), rounded(b)))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulab", "run", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs, and what a run of the first one wrote as its budget."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("adds", TRITON), ("helper", HELPER), ("race", RACE)):
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def first(folder: Path) -> subprocess.CompletedProcess[str]:
    """A run of the program that uses everything."""
    return run(folder, "--report", "--write-budget", "budget.json", "--gpu", "L4", "adds.py", "--fast", "x")


def test_a_program_for_a_gpu_runs_unchanged(first: subprocess.CompletedProcess[str]) -> None:
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == [
        "target 89 58",
        "registers True 0",
        "time [nan, nan]",
        "helper [0, 2, 4, 6] ['--fast', 'x']",
    ]


def test_a_table_of_pointers_leads_to_tensors_as_long_as_they_live(folder: Path) -> None:
    (folder / "table.py").write_text(TABLE)
    ended = run(folder, "table.py")
    assert ended.stdout.splitlines() == ["[384.0, 1280.0]", "[[6.0, 5.0], [20.0, 5.0]]"]
    assert ended.returncode == 1 and "OutOfBounds in kernel put" in ended.stderr


def test_the_report_has_each_kernel_with_its_counts(first: subprocess.CompletedProcess[str]) -> None:
    head, names, *rows = first.stderr.splitlines()
    assert head == "gpulab run: counted on a simulated L4" and names.split()[:2] == ["kernel", "launches"]
    kernels = {row.split()[0]: row.split()[1:] for row in rows}
    # Two launches of four blocks load 2 x 1,024 float32 in sectors of 32 bytes, and store 1,024.
    assert kernels["add"][0] == "2" and kernels["add"][2:4] == ["512", "256"]
    assert kernels["double"][0] == "1"


def test_a_run_within_its_budget_ends_well_and_one_above_it_does_not(
    first: subprocess.CompletedProcess[str], folder: Path
) -> None:
    assert first.returncode == 0
    written = json.loads((folder / "budget.json").read_text())
    assert written["gpu"] == "L4" and written["kernels"]["add"]["global_store_sectors"] == 256
    limits = ledger.read_budget(folder / "budget.json", "L4")
    assert ledger.over_budget(limits, limits) == []
    lower = {name: dict(each) for name, each in limits.items()}
    lower["add"]["global_load_sectors"] -= 1
    del lower["double"]
    assert ledger.over_budget(lower, limits) == [
        "add: 512 global load sectors; the budget is 511",
        "double has no budget",
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "no `kernels` in format 1"),
        ('{"format": 2, "gpu": "L4", "kernels": {}}', "no `kernels` in format 1"),
        ('{"format": 1, "gpu": "L4", "kernels": {"add": {"launches": "2"}}}', "no whole numbers"),
        (
            '{"format": 1, "gpu": "L4", "kernels": {"add": {"seconds": 2}}}',
            "a budget for 'seconds'; known are",
        ),
        ('{"format": 1, "gpu": "T4", "kernels": {}}', "for 'T4', and this run simulates 'L4'"),
        ("{", "is no budget"),
    ],
)
def test_a_file_that_is_no_budget_is_refused_in_words(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "budget.json"
    file.write_text(content)
    with pytest.raises(ledger.WrongBudget, match=words.replace("no whole", "not whole")):
        ledger.read_budget(file, "L4")


def test_a_race_that_the_sanitizer_finds_makes_the_run_fail(folder: Path) -> None:
    found = run(folder, "--sanitize", "race.py")
    assert found.returncode == 1
    assert "Race" in found.stderr and "tile" in found.stderr


def test_the_sanitizer_says_what_kernels_left_on_their_heap_which_is_no_finding(folder: Path) -> None:
    (folder / "leaks.py").write_text(
        "import cupy\n"
        "text = 'extern \"C\" __global__ void k(int **p) { p[threadIdx.x] = new int(3); }'\n"
        "cupy.RawKernel(text, 'k')((1,), (5,), (cupy.zeros(5, cupy.int64),))\n"
    )
    ended = run(folder, "--sanitize", "leaks.py")
    assert "5 blocks of malloc() or new in kernels, 80 bytes, were never freed." in ended.stderr
    assert ended.returncode == 0


def test_a_fault_ends_the_program_with_its_place_and_no_frames_of_ours(folder: Path) -> None:
    (folder / "beyond.py").write_text(HELPER.replace("if i < a.size:", "if True:") + "\nprint(doubled())\n")
    ended = run(folder, "-m", "beyond")
    assert ended.returncode == 1 and ended.stdout == ""
    assert "OutOfBounds in kernel double, line 13" in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["gone.py"], "there is no file gone.py"),
        (["built"], "built is not a program for 64-bit Linux"),
        (["--nvcc=-O1", "race.py"], "race.py is none"),
        (["--clock", "modelled", "program.cu"], "events of CUDA C++ take none or wall"),
        (["--limit", "-1", "race.py"], "fewer than 0 instructions"),
        (["--gpu", "A1000", "race.py"], "A1000"),
        (["--budget", "gone.json", "race.py"], "there is no budget gone.json"),
        (["-m"], "-m names no module"),
        ([], "nothing to run"),
    ],
)
def test_a_wrong_command_is_refused_in_words_before_anything_runs(
    command: list[str], words: str, folder: Path
) -> None:
    (folder / "built").write_bytes(b"\x7fELF\x02\x01")
    (folder / "program.cu").write_text("int main() {}\n")
    ended = run(folder, *command)
    assert ended.returncode == 2 and words in ended.stderr and "Traceback" not in ended.stderr


def test_ctrl_c_names_the_kernel_and_a_run_that_failed_writes_no_budget(folder: Path) -> None:
    (folder / "stops.py").write_text(STOPS)
    ended = run(folder, "--report", "--write-budget", "stopped.json", "stops.py")
    assert ended.returncode == 130 and "Traceback" not in ended.stderr
    assert "Kernel spin was stopped before its end" in ended.stderr and "quick" in ended.stderr
    assert "stopped.json was not written" in ended.stderr and not (folder / "stopped.json").exists()


def test_the_exit_code_is_the_programs_own_and_its_errors_are_shown_as_python_does(folder: Path) -> None:
    (folder / "leaves.py").write_text("import sys\nsys.exit(7)\n")
    (folder / "fails.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    assert run(folder, "leaves.py").returncode == 7
    (folder / "half.py").write_text("def f(:\n")
    (folder / "imports.py").write_text("import half\n")
    failed = run(folder, "fails.py")
    shown = 'Traceback (most recent call last):\n  File "fails.py", line 4, in <module>\n    f()\n  File "fails.py"'
    assert failed.returncode == 1 and failed.stderr.startswith(shown) and "ZeroDivisionError" in failed.stderr
    for program in ("half.py", "imports.py"):
        unread = run(folder, program)
        assert unread.returncode == 1 and "half.py" in unread.stderr and "SyntaxError" in unread.stderr
        assert "gpulab/" not in unread.stderr and "runpy" not in unread.stderr


@pytest.mark.parametrize(("gpu", "has_tf32"), [("H100", True), ("T4", False)])
def test_pytorch_multiplies_in_tf32_where_the_program_allows_it(
    gpu: str, has_tf32: bool, folder: Path
) -> None:
    (folder / "tf32.py").write_text(TF32)
    allowed = f"{not has_tf32} {has_tf32}"
    assert run(folder, "--gpu", gpu, "tf32.py").stdout.splitlines()[:4] == [
        "highest True False True True",
        f"high {allowed} True True",
        f"medium {allowed} True True",
        f"allowed {allowed}",
    ]


def test_modules_of_triton_that_the_face_lacks_are_tritons_own(folder: Path) -> None:
    (folder / "parts.py").write_text(
        "from triton.language.extra import libdevice\n"
        "import triton._internal_testing as testing\n"
        "from triton.tools.tensor_descriptor import TensorDescriptor\n"
        "print(testing.is_cuda(), callable(libdevice.asin), TensorDescriptor.__name__)\n"
        "import triton.nothing_of_this_name\n"
    )
    ended = run(folder, "parts.py")
    assert ended.stdout == "True True TensorDescriptor\n" and ended.returncode == 1
    assert "No module named 'triton.nothing_of_this_name'" in ended.stderr


def test_a_script_waits_for_no_package_that_it_does_not_use(folder: Path) -> None:
    """PyTorch and Triton take 2 s to import; they are tied to the simulated GPU when the script imports them."""
    (folder / "plain.py").write_text(
        "import sys\nprint([m for m in ('torch', 'triton', 'numba') if m in sys.modules])\n"
    )
    assert run(folder, "plain.py").stdout == "[]\n"


FILL = """
import cupy, torch
from numba import cuda
print(cupy.empty(2, "uint32")[0], cuda.device_array(2, "uint32").copy_to_host()[0])
print(torch.empty(64, dtype=torch.uint8, device="cuda").unique().numel(), float(torch.empty_like(torch.ones(3))[0]))
"""


def test_new_memory_holds_what_was_asked_for(tmp_path: Path):
    (tmp_path / "fill.py").write_text(FILL)
    nan, zero, random, again = (
        run(tmp_path, *fill, "fill.py").stdout.split()
        for fill in ([], *([f"--fill={kind}"] for kind in ("zero", "random", "random")))
    )
    assert nan[:2] == ["4294967295"] * 2
    assert zero == ["0", "0", "1", "0.0"]
    assert len({*nan[:2], *zero[:2], *random[:2]}) == 4, "two drawn numbers, and neither of the others"
    assert int(random[2]) > 40, "of 64 bytes most differ"
    assert random == again, "the same in every run"


def test_no_other_fill_is_known(tmp_path: Path):
    (tmp_path / "fill.py").write_text(FILL)
    refused = run(tmp_path, "--fill", "ones", "fill.py")
    assert refused.returncode == 2
    assert "nan" in refused.stderr and "random" in refused.stderr
