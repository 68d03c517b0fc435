# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # gpulab
#
# A course on GPU acceleration for deep learning and language models, in labs that you do. You write kernels in Python,
# CUDA C++ and Triton, train and serve real models, and see what your code does to the machine. You need no GPU: without
# one, NVIDIA's own compiler makes its instructions of your kernel, and a simulator runs and counts them. With one,
# the same cells run on it.
#
# Run the next cell (`Shift` + `Enter`): it says what runs here. If it fails, type `gpulab doctor` in a terminal.

# %%
import gpulab
from gpulab import course

gpulab.start()

# %% [markdown]
# ## The labs
#
# | | what you build | hours |
# |---|---|---|
# | [00](00_start_here/00_start_here.ipynb) | **Start here**: a kernel that fails, and its message | 1 |
# | [01](01_neural_networks/01_neural_networks.ipynb) | **Neural networks** from arrays, up to a small transformer | 3 |
# | [02](02_gpu_architecture/02_gpu_architecture_a.ipynb) · [B](02_gpu_architecture/02_gpu_architecture_b.ipynb) | **GPU architecture**: what a data sheet says, and what it costs | 4 |
# | [03](03_cuda_with_numba/03_cuda_with_numba.ipynb) | **CUDA with numba**: grids, guards, streams, graphs | 6 |
# | [04](04_memory_hierarchy/04_memory_hierarchy.ipynb) | **The memory hierarchy**: a transpose, step by step | 5 |
# | [05](05_reductions_scans_softmax/05_reductions_scans_softmax.ipynb) | **Reductions, scans, softmax** | 5 |
# | [06](06_matrix_multiplication/06_matrix_multiplication_a.ipynb) · [B](06_matrix_multiplication/06_matrix_multiplication_b.ipynb) | **Matrix multiplication**, up to tensor cores | 6 |
# | [07](07_cuda_cpp_and_cupy/07_cuda_cpp_and_cupy_a.ipynb) · [B](07_cuda_cpp_and_cupy/07_cuda_cpp_and_cupy_b.ipynb) | **CUDA C++ and CuPy** | 5 |
# | [08](08_pytorch_performance/08_pytorch_performance.ipynb) | **PyTorch performance**: a ledger of every operator | 4 |
# | [09](09_number_formats/09_number_formats.ipynb) | **Number formats**, from float64 to four bits | 3 |
# | [10](10_mixed_precision/10_mixed_precision.ipynb) | **Mixed precision**: training in short formats | 2 |
# | [11](11_triton_and_fusion/11_triton_and_fusion.ipynb) | **Triton and fusion** | 5 |
# | [12](12_flash_attention/12_flash_attention_a.ipynb) · [B](12_flash_attention/12_flash_attention_b.ipynb) | **FlashAttention**, forward and backward | 6 |
# | [13](13_quantization/13_quantization.ipynb) | **Quantisation**: scales, outliers, kernels | 4 |
# | [14](14_compression_and_finetuning/14_compression_and_finetuning.ipynb) | **Compression and fine-tuning** | 4 |
# | [15](15_collectives_and_data_parallel/15_collectives_and_data_parallel_a.ipynb) · [B](15_collectives_and_data_parallel/15_collectives_and_data_parallel_b.ipynb) | **Collectives and data parallelism**, on real processes | 5.5 |
# | [16](16_sharded_training/16_sharded_training.ipynb) | **Sharded training** | 5 |
# | [17](17_model_parallelism/17_model_parallelism_a.ipynb) · [B](17_model_parallelism/17_model_parallelism_b.ipynb) | **Model parallelism**: tensors, pipelines, experts | 6 |
# | [18](18_clusters_and_reliability/18_clusters_and_reliability_a.ipynb) · [B](18_clusters_and_reliability/18_clusters_and_reliability_b.ipynb) | **Clusters and reliability** | 6 |
# | [19](19_llm_inference/19_llm_inference_a.ipynb) · [B](19_llm_inference/19_llm_inference_b.ipynb) | **LLM inference**: caches, pages, speculation | 6 |
# | [20](20_serving/20_serving_a.ipynb) · [B](20_serving/20_serving_b.ipynb) | **Serving**: an engine, a service, a cluster | 9 |
# | [21](21_edge/21_edge.ipynb) | **Edge**: small devices | 2 |
# | [22](22_capstones/22_capstones_a.ipynb) · [B](22_capstones/22_capstones_b.ipynb) · [C](22_capstones/22_capstones_c.ipynb) | **Capstones**: three projects with a referee, and [the landscape](22_capstones/22_capstones_landscape.ipynb) | 15 |
#
# B, C: further notebooks of a lab. Hours are estimates.

# %%
course.lab_map()

# %% [markdown]
# ## Three paths
#
# Nobody has to do all of it. The labs of a path need only one another, or tell you what to look up.

# %%
course.lab_map("The short one")

# %%
course.lab_map("Kernel engineer")

# %%
course.lab_map("LLM systems")

# %% [markdown]
# ## Where do you begin?
#
# Ten questions. Each is about something that one of the labs teaches; do not guess, a minus is an answer.

# %%
course.quiz()

# %% [markdown]
# Replace the minuses with your answers.

# %%
course.quiz("----------")

# %% [markdown]
# ## How a lab works
#
# - **Predict** a number before you run a cell: `gpulab.predict`. It is not graded, and it is what makes the number stay.
# - **Do** the puzzle cells. `gpulab.check("memory.transpose", transpose)` says what is wrong, where and why. Check as
#   often as you like.
# - **Look**: `gpulab.profile(kernel[grid, block], …)` counts, `gpulab.show` draws, `gpulab.trace` steps through,
#   `gpulab.sanitize` finds races.
# - **Stuck?** `gpulab.hint("memory.transpose")` leads on in three steps. Then read the section again that it names.
# - Numbers are **counted** (exact), **modelled** (worked out from a data sheet) or **measured** (by a clock). Each says
#   which it is.

# %% [markdown]
# ## What you have done
#
# Progress lies in one file, `progress.json`, beside this notebook. Copy it to take it to another machine.

# %%
course.progress()

# %% [markdown]
# Exercise by exercise:

# %%
course.progress("00")

# %% [markdown]
# ## Help
#
# - A cell fails with a message from `gpulab`: it says what to do. If it does not, that is a fault of ours: report it.
# - A cell fails with an error from elsewhere: *Kernel → Restart Kernel and Run up to Selected Cell…* first.
# - Something is missing on this machine: `gpulab doctor` in a terminal.
# - You want an AI assistant to help: `AGENTS.md` in this folder asks it to tutor and not to solve. It is worth more to you
#   that way.
#
# ## Honest work
#
# Talk about the labs with others, read what you like, use every tool. What you hand in you have written yourself, line by
# line, and can explain. A kernel from a friend or an assistant teaches you nothing, and your next lab stands on it.
# Name whoever helped you, and what you took from where, in the notebook. If your course has rules of its own, they hold.
#
# The checks here are yours alone. A graded course judges your submission on other contents and sizes: code that fits the
# visible cases only fails there.

# %% [markdown]
# ## Glossary

# %%
course.glossary()
