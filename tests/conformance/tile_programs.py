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
FFI = "needs the library apache-tvm-ffi"
ROUNDED = (
    "allows no difference in 2 million results; 0.1 % are rounded otherwise than those of PyTorch on the CPU, "
    "which does not add as tensor cores do"
)
AMPERE, HOPPER = "cute/ampere/kernel/", "cute/hopper/kernel/"
TUTORIAL = "cute/blackwell/tutorial/tutorial_gemm/"
DENSE = "cute/blackwell/kernel/dense_gemm/"
CUBE = "--mnk 256,256,256"
GRAPH = "launches by a CUDA graph of PyTorch"
# NVIDIA's programs that show one instruction each. apache-tvm-ffi would only pass their tensors.
DIRECTLY = ((r"--enable-tvm-ffi", ""),)
ADDRESSES = "reads beyond its arrays when apache-tvm-ffi does not pass its tensors; why is not known"
UNCOMMITTED = "waits for a tcgen05.cp with wait::st, which waits for no copy: what it reads has not come yet"
PRIMITIVES = "experimental/primitives/"
SHOWN = (
    "async_pipeline.py",
    "bar_warp_sync.py",
    "barrier_cta_red.py",
    "barrier_cta_sync.py",
    "basic_types.py",
    "cp_async_bulk.py",
    "cp_async_bulk_prefetch.py",
    "cp_async_mbarrier_arrive_cluster.py",
    "cp_async_mbarrier_arrive_cta.py",
    "cp_async_shared_global.py",
    "cp_async_shared_global_swizzled.py",
    "elect_sync.py",
    "ldmatrix_stmatrix.py",
    "mapa.py",
    "mbarrier.py",
    "mbarrier_lifecycle.py",
    "pipeline_software_fill.py",
    "red.py",
    "reduction/block_smem_reduce.py",
    "reduction/cluster_smem_reduce.py",
    "reduction/thread_vector_reduce.py",
    "reduction/warp_vector_reduce.py",
    "redux_sync.py",
    "shfl_sync.py",
    "tcgen05/1cta_mma_a_from_tmem.py",
    "tcgen05/1cta_mma_basic.py",
    "tcgen05/1cta_mma_mn_major.py",
    "tcgen05/2cta_mma_basic.py",
    "tcgen05/2cta_mma_tma_store.py",
    "tcgen05/clusterMxN_2cta_mma.py",
    "tcgen05/cp_narrow_a_to_tmem_mma.py",
    "tcgen05/mcast_clusterMxN_1cta_mma.py",
    "tcgen05/mcast_clusterMxN_2cta_mma.py",
    "tcgen05/slicek_m32n8k128.py",
    "tcgen05/tmem_ld_st.py",
    "tcgen05/tmem_ld_to_stmatrix_transpose.py",
    "tma/tma_1cta_mbarrier.py",
    "tma/tma_load_store.py",
    "tma/tma_load_to_ldmatrix.py",
    "tma/tma_multicast.py",
    "tma/tma_pipeline_count2.py",
    "tma/tma_pipeline_pingpong.py",
    "tma/tma_pipeline_single_warp.py",
    "tma/tma_pipeline_warpspec.py",
    "tma/tma_store.py",
    "tma/tma_swizzle_modes.py",
    "tma/tma_tensormap_replace.py",
    "tutorial/10_minimal_tensor_mma_fp8.py",
    "warp_named_barrier.py",
)
SHOWN_AS_THEY_ARE = (
    "tutorial/01_hello_world.py",
    "tutorial/02_naive_gemm.py",
    "tutorial/03_gemm_tiled_smem.py",
    "tutorial/04_tma_load.py",
    "tutorial/05_minimal_tensor_mma.py",
    "tutorial/06_softmax.py",
    "tutorial/07_vectorized_array.py",
    "tutorial/08_mlir_value_tree_debug.py",
    "tutorial/09_tma_4d_to_2d.py",
    "tutorial/gemm_M128_N128_Kany_TN_warpspec_multistage.py",
)
SHOWING = (
    *(Program(PRIMITIVES + path, smaller=DIRECTLY, gpu="B200") for path in SHOWN),
    Program(f"{PRIMITIVES}tcgen05/1cta_mma_a_from_tmem.py", "--ashift", DIRECTLY, gpu="B200"),
    Program(f"{PRIMITIVES}tcgen05/cp_narrow_a_to_tmem_mma.py", "--a-dtype fp6", DIRECTLY, gpu="B200"),
    Program(f"{PRIMITIVES}reduction/cluster_tmem_reduce.py", smaller=DIRECTLY, fails=UNCOMMITTED, gpu="B200"),
    Program(f"{PRIMITIVES}tcgen05/1cta_mma_pipeline.py", smaller=DIRECTLY, fails=ADDRESSES, gpu="B200"),
    Program(f"{PRIMITIVES}vote_sync.py", smaller=DIRECTLY, fails=ADDRESSES, gpu="B200"),
    Program(f"{PRIMITIVES}tcgen05/2cta_mma_blockscale_m128.py", left_out=FFI),
    *(Program(PRIMITIVES + path, gpu="B200") for path in SHOWN_AS_THEY_ARE),
)
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
    Program(f"{HOPPER}cta_norm/cta_norm.py", left_out=FFI),
    Program("dsl_tutorials/programmatic_dependent_launch.py", left_out=FFI),
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
    Program(
        "cute/notebooks/tour_to_sol_gemm.ipynb", smaller=((r"8192, 8192, 8192", "256, 256, 256"),), gpu="B200"
    ),
    *SHOWING,
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
