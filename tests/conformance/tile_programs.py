"""NVIDIA's own programs in CuTe DSL and cuTile that `tile_languages.py` runs, at sizes for a simulator.

Nothing of them is here: a path in NVIDIA's repository, arguments, and what is written smaller in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Program:
    """A script or notebook at `path`, for `gpu`; `smaller` are pairs of a regular expression and what replaces it.

    `fails` says why it does not run right here; `left_out` why it is not asked to.
    """

    path: str
    arguments: str = ""
    smaller: tuple[tuple[str, str], ...] = field(default=())
    fails: str = ""
    left_out: str = ""
    gpu: str = "A100"


ONCE = "--iterations 1 --warmup_iterations 0"
SMALL = f"--M 64 --N 256 {ONCE}"
ROUNDED = (
    "allows no difference; 0.1 to 0.2 % of the results are rounded otherwise than those of PyTorch on the CPU, "
    "which does not add as tensor cores do"
)
AMPERE, HOPPER = "cute/ampere/kernel/", "cute/hopper/kernel/"
TUTORIAL = "cute/blackwell/tutorial/tutorial_gemm/"
DENSE = "cute/blackwell/kernel/dense_gemm/"
CUBE = "--mnk 256,256,256"
GRAPH = "launches by a CUDA graph of PyTorch"
PRIMITIVES = "experimental/primitives/"
COPY_NOT_AWAITED = (
    "waits for stores to Tensor Memory where it should wait for its copy, which only a commit announces"
)
LANES_OF_WARP_0 = (
    "gives each of four warps the address of the first one's lanes of Tensor Memory, which PTX's manual does "
    "not define; on a GPU a warp then reaches its own"
)
ALONE = """
async_pipeline bar_warp_sync barrier_cta_red barrier_cta_sync basic_types cp_async_bulk
cp_async_bulk_prefetch cp_async_mbarrier_arrive_cluster cp_async_mbarrier_arrive_cta
cp_async_shared_global cp_async_shared_global_swizzled elect_sync ldmatrix_stmatrix mapa mbarrier
mbarrier_lifecycle pipeline_software_fill red redux_sync shfl_sync vote_sync warp_named_barrier
reduction/block_smem_reduce reduction/cluster_smem_reduce reduction/thread_vector_reduce
reduction/warp_vector_reduce tcgen05/1cta_mma_basic tcgen05/1cta_mma_mn_major tcgen05/1cta_mma_pipeline
tcgen05/2cta_mma_basic tcgen05/2cta_mma_blockscale_m128 tcgen05/2cta_mma_tma_store
tcgen05/clusterMxN_2cta_mma tcgen05/cp_narrow_a_to_tmem_mma tcgen05/slicek_m32n8k128
tcgen05/mcast_clusterMxN_1cta_mma tcgen05/mcast_clusterMxN_2cta_mma tcgen05/tmem_ld_st
tcgen05/tmem_ld_to_stmatrix_transpose tma/tma_1cta_mbarrier tma/tma_load_store tma/tma_load_to_ldmatrix
"""  # CUTLASS' programs for single instructions
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
    Program("dsl_tutorials/cooperative_launch.py"),
    Program("dsl_tutorials/dataclass_immutable.py"),
    Program("dsl_tutorials/dynamic_smem_size.py"),
    Program("dsl_tutorials/inline_ptx.py"),
    Program("dsl_tutorials/print_latex.py"),
    Program("dsl_tutorials/smem_allocator.py"),
    Program("dsl_tutorials/torch_fake_tensor.py"),
    Program("dsl_tutorials/tvm_ffi/ampere_gemm_with_fake_tensor.py", fails=ROUNDED),
    Program("dsl_tutorials/tvm_ffi/compile_with_fake_tensor.py"),
    Program("dsl_tutorials/tvm_ffi/jit_and_use_in_torch.py"),
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
    Program(
        f"{HOPPER}dense_gemm/dense_gemm.py", f"--mnkl 128,128,64,1 --tile_shape_mn 128,128 {ONCE}", gpu="H100"
    ),
    Program(
        f"{HOPPER}dense_gemm/dense_gemm.py",
        f"--mnkl 256,256,128,1 --tile_shape_mn 128,256 --cluster_shape_mn 2,1 {ONCE}",
        gpu="H100",
    ),
    Program(
        f"{HOPPER}dense_gemm/dense_gemm_persistent.py",
        f"--mnkl 256,256,128,1 --tile_shape_mn 128,128 {ONCE}",
        gpu="H100",
    ),
    Program(f"{HOPPER}dense_gemm/dense_gemm_fp8_2xacc.py", f"--mnkl 128,128,256,1 {ONCE}", gpu="H100"),
    Program(
        f"{HOPPER}dense_gemm/dense_gemm_fp8_gelu_persistent.py", f"--mnkl 128,128,128,1 {ONCE}", gpu="H100"
    ),
    Program(
        f"{HOPPER}grouped_gemm/grouped_gemm.py",
        f"--num_groups 2 --problem_sizes_mnkl (128,128,64,1),(128,64,128,1) {ONCE}",
        fails="finds its tensors by a table of addresses, and a tensor of the CPU has another one on the GPU",
        gpu="H100",
    ),
    Program(
        f"{HOPPER}attention/fmha.py",
        f"--q_shape 1,128,1,64 --k_shape 1,128,1,64 --mma_tile_shape_mn 64,128 {ONCE}",
        gpu="H100",
    ),
    Program(
        f"{HOPPER}attention/fmha.py",
        f"--q_shape 1,256,2,64 --k_shape 1,256,2,64 --mma_tile_shape_mn 64,128 --is_causal --is_persistent {ONCE}",
        gpu="H100",
    ),
    Program(f"{HOPPER}cta_norm/cta_norm.py", f"--M 8 --N 512 {ONCE}", gpu="H100"),
    Program("dsl_tutorials/programmatic_dependent_launch.py", "--M 64 --use_pdl", gpu="H100"),
    Program(
        "dsl_tutorials/launch_completion_and_programmatic_events.py",
        left_out=GRAPH,
    ),
    Program("cute/blackwell/tutorial/tutorial_tma/tma_v0.py", gpu="H100"),
    Program("cute/blackwell/tutorial/tutorial_tma/tma_v1.py", gpu="H100"),
    Program("cute/blackwell/tutorial/tutorial_tma/tma_v2.py", gpu="H100"),
    Program("cute/notebooks/async_pipeline.ipynb", gpu="H100"),
    *(
        Program(f"{TUTORIAL}fp16_gemm_{which}.py", CUBE, gpu="B200")
        for which in ("0", "1", "2", "3", "3_1", "4", "5")
    ),
    Program(f"{TUTORIAL}fp16_gemm_6.py", left_out=GRAPH),
    *(Program(f"{TUTORIAL}nvfp4_gemm_{which}.py", "--mnkl 256,256,256,1", gpu="B200") for which in "01"),
    *(
        Program(f"{DENSE}{which}.py", f"--mnkl 256,256,128,1 {ONCE}", gpu="B200")
        for which in (
            "dense_gemm",
            "dense_gemm_persistent",
            "dense_gemm_persistent_dynamic",
            "dense_gemm_software_pipeline",
        )
    ),
    Program(
        "cute/blackwell/kernel/blockscaled_gemm/dense_blockscaled_gemm_persistent.py",
        f"--mnkl 256,256,256,1 {ONCE}",
        gpu="B200",
    ),
    Program(
        "cute/blackwell/kernel/attention/fmha/fmha.py",
        f"--q_shape 1,256,1,64 --k_shape 1,256,1,64 {ONCE}",
        gpu="B200",
    ),
    Program("cute/blackwell/kernel/reduce/reduce.py", gpu="B200"),
    Program("cute/blackwell/kernel/rmsnorm/rmsnorm.py", f"--M 16 --N 512 {ONCE}", gpu="B200"),
    Program("cute_ext/blackwell/dense_gemm.py", "--mnkl 256,256,128,1", gpu="B200"),
    Program(f"{PRIMITIVES}reduction/cluster_tmem_reduce.py", gpu="B200", fails=COPY_NOT_AWAITED),
    Program(f"{PRIMITIVES}tcgen05/1cta_mma_a_from_tmem.py", gpu="B200", fails=LANES_OF_WARP_0),
    *(Program(f"{PRIMITIVES}{which}.py", gpu="B200") for which in ALONE.split()),
    Program(
        "cute/notebooks/tour_to_sol_gemm.ipynb", smaller=((r"8192, 8192, 8192", "256, 256, 256"),), gpu="B200"
    ),
)
SAMPLES = (
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
    ),
    Program(
        "LayerNorm.py",
        "--correctness-check",
        ((r"\(1024, 2048\)", "(64, 256)"),),
        "the sums that it compares with are PyTorch's on the CPU, in bfloat16: off by up to 0.03 where the "
        "kernel's are off by 0.008",
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
)
FAILS_ON_HOPPER = {
    "BatchMatMul.py": "Hopper adds products of FP8 with 14 bits, and the product that it compares with is PyTorch's "
    "on the CPU, in float32",
}
TILE = (
    *SAMPLES,
    *(replace(s, gpu="H100", fails=FAILS_ON_HOPPER.get(s.path, s.fails)) for s in SAMPLES),
    *(replace(s, gpu="B200") for s in SAMPLES),
    Program("BlockScaledMatMul.py", "--correctness-check", gpu="B200"),
    Program("quickstart/VectorAdd_quickstart.py", left_out="needs CuPy on a GPU"),
    Program("AllGatherMatmul.py", left_out="needs several GPUs"),
)
