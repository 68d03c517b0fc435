"""NVIDIA's own programs in CuTe DSL and cuTile that `tile_languages.py` runs, at sizes for a simulator.

Nothing of them is here: a path in NVIDIA's repository, arguments, and what is written smaller in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """A script or notebook at `path`; `smaller` are pairs of a regular expression and what replaces it.

    `fails` says why it does not run right here; `left_out` why it is not asked to.
    """

    path: str
    arguments: str = ""
    smaller: tuple[tuple[str, str], ...] = field(default=())
    fails: str = ""
    left_out: str = ""


ONCE = "--iterations 1 --warmup_iterations 0"
SMALL = f"--M 64 --N 256 {ONCE}"
FFI = "needs the library apache-tvm-ffi"
ROUNDED = (
    "allows no difference in 2 million results; 0.1 % are rounded otherwise than those of PyTorch on the CPU, "
    "which does not add as tensor cores do"
)
CLUSTERS = "asks for instructions and clusters of Hopper: part of what the simulator gets next"

AMPERE = "cute/ampere/kernel/"
CUTLASS = (
    Program(f"{AMPERE}elementwise/elementwise_add.py", SMALL),
    Program(f"{AMPERE}elementwise/elementwise_apply.py", SMALL),
    Program(f"{AMPERE}dense_gemm/sgemm.py", f"--mnk 128,128,64 {ONCE}"),
    Program(f"{AMPERE}dense_gemm/tensorop_gemm.py", f"--mnkl 128,128,64,1 {ONCE}"),
    Program(
        f"{AMPERE}attention/flash_attention_v2.py",
        f"--batch_size 1 --seqlen_q 128 --seqlen_k 128 --num_head 1 --head_dim 64 {ONCE}",
    ),
    Program(
        f"{AMPERE}attention/hstu_attention.py",
        "--batch_size 1 --seqlen_q 128 --seqlen_kv 128 --num_head 1 --head_dim 64",
    ),
    Program("cute/ampere/tutorial/elementwise_add_autotune.py", SMALL),
    Program("cute_ext/ampere/memcpy_simt_universal_copy.py"),
    Program("dsl_tutorials/call_bypass_dlpack.py", fails=ROUNDED),
    Program("dsl_tutorials/call_from_jit.py", fails=ROUNDED),
    Program(
        "dsl_tutorials/cooperative_launch.py",
        fails="calls CUDA's runtime through cuda-python, which a machine without a driver does not have",
    ),
    Program("dsl_tutorials/dataclass_immutable.py", left_out=FFI),
    Program("dsl_tutorials/dynamic_smem_size.py"),
    Program("dsl_tutorials/inline_ptx.py"),
    Program("dsl_tutorials/print_latex.py"),
    Program("dsl_tutorials/smem_allocator.py"),
    Program("dsl_tutorials/torch_fake_tensor.py"),
    Program("cute/notebooks/hello_world.ipynb"),
    Program("cute/notebooks/print.ipynb"),
    Program("cute/notebooks/tensor.ipynb"),
    Program("cute/notebooks/tensorssa.ipynb"),
    Program("cute/notebooks/data_types.ipynb"),
    Program("cute/notebooks/composed_layout.ipynb"),
    Program("cute/notebooks/cute_layout_algebra.ipynb"),
    Program("cute/notebooks/elementwise_add.ipynb", smaller=((r"16384, 8192", "256, 512"),)),
    Program("cute/notebooks/benchmark_autotune.ipynb", smaller=((r"1024, 1024", "64, 256"),)),
    Program("cute/notebooks/cuda_graphs.ipynb", left_out="is about CUDA graphs of PyTorch"),
    Program("cute/notebooks/async_pipeline.ipynb", left_out=CLUSTERS),
    Program("cute/notebooks/tour_to_sol_gemm.ipynb", left_out=CLUSTERS),
)
TILE = (
    Program(
        "VectorAddition.py",
        "--correctness-check",
        ((r"1_000_00", "1_00"), (r"\(2048, 1024\)", "(64, 64)"), (r"\(2000, 1000\)", "(60, 70)")),
    ),
    Program(
        "MatMul.py",
        "--correctness-check",
        ((r"= 512\b", "= 128"), (r"= 768\b", "= 64"), (r"= 1000\b", "= 100"), (r"= [57]00\b", "= 70")),
    ),
    Program(
        "BatchMatMul.py",
        "--correctness-check",
        (
            (r"_DIM = 4\b", "_DIM = 2"),
            (r"= 512\b", "= 128"),
            (r"= 1024\b", "= 256"),
            (r"K_DIM = 256", "K_DIM = 64"),
        ),
    ),
    Program(
        "Transpose.py",
        "--correctness-check",
        ((r"= 1024\b", "= 128"), (r"= 512\b", "= 64"), (r"= 1000\b", "= 100"), (r"= 500\b", "= 50")),
    ),
    Program(
        "AttentionFMHA.py",
        "--correctness-check",
        (
            (r"BATCH_SIZE = \d+", "BATCH_SIZE = 1"),
            (r"NUM_HEADS = \d+", "NUM_HEADS = 2"),
            (r"= 1024\b", "= 128"),
        ),
        "measures time with CUDA events, which a simulated GPU does not have",
    ),
    Program(
        "LayerNorm.py",
        "--correctness-check",
        ((r"\(1024, 2048\)", "(64, 256)"),),
        "the sum that it compares with is PyTorch's on the CPU, in bfloat16: off by 0.028 where the kernel's is "
        "off by 0.005",
    ),
    Program(
        "MoE.py",
        "--correctness-check",
        (
            (r"= 48\b", "= 8"),
            (r"hidden_size = 512", "hidden_size = 128"),
            (r"num_experts = 64", "num_experts = 4"),
            (r"= 1024\b", "= 128"),
            (r"topk = 8", "topk = 2"),
        ),
    ),
    Program("FFT.py", "--correctness-check"),
    Program("quickstart/VectorAdd_quickstart.py", left_out="needs CuPy on a GPU"),
    Program("BlockScaledMatMul.py", left_out="multiplies scaled formats of Blackwell, which an A100 has not"),
    Program("AllGatherMatmul.py", left_out="needs several GPUs"),
)
