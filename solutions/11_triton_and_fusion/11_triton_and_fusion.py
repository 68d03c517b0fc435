# ---
# jupyter:
#   gpulab:
#     lab: "11"
#     hours: 5
#     topics: [C10.9, C11.1, C11.2, C11.4, C11.5, C11.6, C11.7]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · Triton and fusion
#
# **4 to 6.5 hours.** You need labs 04 (sectors), 05 (softmax, and numbers that cancel), 06 (products in tiles) and
# 08 (what a line of PyTorch costs). Two remarks refer to lab 07. You need no GPU, because Triton itself compiles your
# kernels for an A100, and the simulator runs them and counts what they do.
#
# Most of what a network does is small arithmetic between large arrays. Written as array operations, each step reads
# its arrays from memory and writes its result back. Here you write kernels that do several steps at once, and then
# the program that decides which steps belong together.
#
# When you have finished, you can
#
# 1. write a Triton kernel for any size, and say what its masks are for;
# 2. predict the launches and bytes of a chain of operations, unfused and fused;
# 3. fuse a random number into a kernel, and recompute what others store;
# 4. order the tiles of a product so that those that run together share what they read;
# 5. say what torch.compile fuses and what it leaves alone, and what other compilers and portability layers do.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 6 | 2 to 3.5 | kernels on blocks: rows, columns, random numbers, and values that are computed again |
# | 2 | 7 to 12, detective, recap | 2 to 3 | products of tiles, a planner that decides what to fuse, and other compilers |

# %%
import numpy as np
import torch
import triton.language as tl

import gpulab
from gpulab import cuda, hardware, plot, triton

gpulab.start("11")

# %% [markdown]
# ## 1 · Programs on blocks
#
# In CUDA you write what one **thread** does. In **Triton** you write what one **program** does, and a program works
# on a **block**: an array whose length is a power of two. The compiler distributes the block's elements over threads,
# picks the load instructions and places the barriers. You choose the grid of programs and how many **warps** each
# program has (4 by default).
#
# | CUDA | Triton |
# |---|---|
# | a grid of blocks of threads | a grid of programs |
# | `blockIdx.x` | `tl.program_id(0)` |
# | the index of one thread | `tl.arange(0, BLOCK)`, all indices of the block at once |
# | `if i < n:` | `mask=i < n` in every load and store |
# | shared memory and barriers are yours | both are the compiler's |
#
# A pointer plus a block of indices is a block of addresses. Where the **mask** is false, nothing is loaded or stored.
# An element that is not loaded gets the value of `other`. Without `other`, today's compiler leaves a 0 there, but
# nothing guarantees it. Names marked `tl.constexpr` are known when the kernel is compiled, as the length of a block
# must be.


# %%
@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    values = tl.load(x + i, mask=inside)
    tl.store(out + i, factor * values, mask=inside)


rng = np.random.default_rng(11)
N = 8192
numbers = rng.standard_normal(2 * N).astype(np.float32)
x, out = cuda.to_device(numbers), cuda.to_device(np.zeros(2 * N, np.float32))
report = gpulab.profile(scale[(triton.cdiv(N, 1024),)], x, out, N, 2.0, BLOCK=1024)
report

# %% [markdown]
# `triton.cdiv` divides and rounds up, so this grid has 8 programs of 1,024 elements each.
# `kernel[grid](x, …, BLOCK=1024)` launches a kernel, with the grid as a tuple. In `gpulab.profile` the arguments
# follow after a comma, as always.
#
# **Predict.** The length of the block is your choice. A program of 4 warps has 128 threads. If its block has only 32
# elements, how many bytes does it load for each of them?

# %%
gpulab.predict("triton.small_block", ...)

# %%
blocks = [32, 64, 128, 256, 512, 1024, 2048]
by_block = {
    f"BLOCK = {b:,}": gpulab.profile(scale[(triton.cdiv(N, b),)], x, out, N, 2.0, BLOCK=b) for b in blocks
}
plot.panels(
    {
        "bytes loaded per element": {b: r["global_load_bytes"] / N for b, r in by_block.items()},
        "load requests": {b: r["global_load_requests"] for b, r in by_block.items()},
        "warp instructions\nper 32 elements": {b: 32 * r["instructions"] / N for b, r in by_block.items()},
    },
    "A block with fewer elements than the program has threads is loaded several times. From 512 on the requests stay "
    "as few as they can be; instructions fall further.",
)

# %% [markdown]
# In a block of 512 or more, each thread has four neighbouring elements, and one instruction loads their 16 bytes. The
# compiler may do that only if it knows that four neighbours are either all inside or all outside. It knows because
# Triton compiles a separate version of a kernel for arguments, such as n, that are divisible by 16.
#
# **Predict.** How many times as many load requests does n = 8,193 take as n = 8,192?

# %%
gpulab.predict("triton.requests", ...)

# %%
odd = gpulab.profile(scale[(triton.cdiv(N + 1, 1024),)], x, out, N + 1, 2.0, BLOCK=1024)
gpulab.predict("triton.requests", measured=odd["global_load_requests"] / report["global_load_requests"])
print(f"requests: {report['global_load_requests']} for {N:,}, {odd['global_load_requests']} for {N + 1:,}")
print(f"bytes:    {report['global_load_bytes']:,} and {odd['global_load_bytes']:,}")

# %% [markdown]
# **Why.** The bytes are almost the same, but the requests are not, so it pays to pad sizes to a multiple of 16.
#
# You can look at each stage on the way from Python to the GPU:
#
# | stage | what it is |
# |---|---|
# | **TTIR** | your program on blocks |
# | **TTGIR** | the same, with the thread that has each element |
# | LLVM IR, PTX, machine code | as in lab 07 |

# %%
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

types = {"x": "*fp32", "out": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}
# What the launcher tells the compiler: the parameters in these places, x, out and n, divide by 16.
by_16 = {(place,): [["tt.divisibility", 16]] for place in (0, 1, 2)}
source = ASTSource(scale, types, {"BLOCK": 1024}, by_16)
options = {"enable_fp_fusion": True}  # a · b + c may become one instruction, Triton's default
stages = compile(source, target=GPUTarget("cuda", 80, 32), options=options).asm
for stage, what in {"ttir": "tt.load", "ttgir": "tt.load", "llir": "ld.global", "ptx": "ld.global"}.items():
    lines = stages[stage].splitlines()
    load = next(line for line in lines if what in line)
    print(f"{stage:6}{len(lines):4} lines   {load[load.index(what) :][:76]}")
layout = next(line for line in stages["ttgir"].splitlines() if line.startswith("#blocked"))
print(layout)

# %% [markdown]
# In the last line, `sizePerThread` is how many neighbouring elements a thread has. `threadsPerWarp` and `warpsPerCTA`
# say how lanes and warps continue from there.
#
# As array operations, SGD with **momentum** takes three launches. A **fused optimizer** takes one.
#
# | step | array operations | launches |
# |---|---|---|
# | m = mu · m + g | `m *= mu`, `m += g` | 2 |
# | then p = p − lr · m | `p -= lr * m` | 1 |
#
# **Do.** Write the kernel, and `momentum(p, g, m, lr, mu)`, which launches it.
#
# - Input: the float32 arrays `p`, `g` and `m` of `p.size` elements, and the numbers `lr` and `mu`. Sizes include 1,
#   1,023 and 1,025.
# - Output: `p` and `m`, changed in place.
# - Pass the arrays as they are, because they are the kernel's pointers.
# - **Budget:** 12 bytes loaded per element, one launch. About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "momentum", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def momentum_kernel(p, g, m, lr, mu, n, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    step = mu * tl.load(m + i, mask=inside) + tl.load(g + i, mask=inside)
    tl.store(m + i, step, mask=inside)
    tl.store(p + i, tl.load(p + i, mask=inside) - lr * step, mask=inside)
    ### END SOLUTION


def momentum(p, g, m, lr, mu):
    ### BEGIN SOLUTION
    momentum_kernel[(triton.cdiv(p.size, 1024),)](p, g, m, lr, mu, p.size, BLOCK=1024)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "momentum-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.momentum", momentum)

# %% [markdown]
# ## 2 · A row in a program: softmax
#
# The softmax of a row x is out = e^(x − max) / sum. Subtracting the maximum prevents overflow (lab 05). It takes five
# array operations, written here first with new arrays and then in place:


# %%
def softmax_by_operators(x):
    largest = x.amax(1, keepdim=True)
    shifted = x - largest
    powers = shifted.exp()
    total = powers.sum(1, keepdim=True)
    return powers / total


def softmax_in_place(x):
    powers = x - x.amax(1, keepdim=True)
    powers.exp_()
    return powers.div_(powers.sum(1, keepdim=True))


# %% [markdown]
# **Predict.** How many elements do these five operations read and write altogether, for each element of a wide x?

# %%
gpulab.predict("triton.softmax_elements", ...)

# %%
M, COLUMNS = 128, 1024
logits = torch.randn(M, COLUMNS)
unfused = gpulab.profile(softmax_by_operators, logits)
in_place = gpulab.profile(softmax_in_place, logits)
for name, r in (("five operations", unfused), ("in place", in_place)):
    print(f"{name:16}{r.launches} launches, {r.bytes // 4:9,} elements moved, {r.peak:9,} B needed beside x")
print(f"8MN + 4M       = {8 * M * COLUMNS + 4 * M:,}")

# %% [markdown]
# A column that is **broadcast** against a matrix costs nothing itself, but the result has the matrix's size and goes
# to memory. Working **in place** takes less memory but moves the same bytes, so it is not fusion.
#
# **Do.** Write the kernel and `softmax(x, out)`, with a program for each row and the row as one block.
#
# - Input: the float32 matrix `x`; `x.shape` is known on the host. Logits go from −1,000 to about −60, and some are
#   −∞.
# - Output: the softmax of each row, in `out`.
# - The block may be longer than the row. What must its other elements be?
# - **Budget:** 8 bytes moved per element, one launch. About 9 lines.
#
# | you may use | which gives |
# |---|---|
# | `triton.next_power_of_2(n)` | the length of the shortest block that holds n elements |
# | `other=` in `tl.load` | the value of the elements where the mask is false |
# | `tl.max(values, 0)`, `tl.sum(values, 0)` | the maximum and the sum of a block |
# | `tl.exp(values)` | the power of e for each element |


# %% nbgrader={"grade": false, "grade_id": "softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    values = tl.load(x + at, mask=i < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, powers / tl.sum(powers, 0), mask=i < columns)
    ### END SOLUTION


def softmax(x, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "softmax-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.softmax", softmax)

# %% [markdown]
# **See.** Compare both on the same matrix.

# %% jupyter={"source_hidden": true}
gpulab.need(softmax)
matrix = cuda.to_device(logits.numpy())
result = cuda.to_device(np.zeros((M, COLUMNS), np.float32))
fused = gpulab.profile(softmax, matrix, result)
plot.panels(
    {
        "elements moved, in MN": {
            "five operations": unfused.bytes / 4 / (M * COLUMNS),
            "yours": fused["global_bytes"] / 4 / (M * COLUMNS),
        },
        "launches": {"five operations": unfused.launches, "yours": fused["launches"]},
    },
    "What is gone are the numbers between the steps: each was written once and read at least once.",
)

# %% [markdown]
# **Why.** The elements moved fell from 8MN + 4M to 2MN, and five launches became one. No kernel can move less,
# because x must be read and the result written. The row stays in registers between the steps, so this works only for
# rows that fit. `report["registers"]` grows with BLOCK, and beyond about 255 registers per thread the rest **spills**
# to memory. Longer rows need a loop (see Beyond).

# %% [markdown]
# ## 3 · The order of access
#
# Now take the softmax of each **column**. The array is row-major, so neighbours in a column are a whole row apart.
#
# **Predict.** A program takes one column, as it took one row before. How many bytes of sectors move for each byte
# loaded?

# %%
gpulab.predict("triton.columns", ...)


# %%
@triton.jit
def one_column(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i * columns + tl.program_id(0)
    values = tl.load(x + at, mask=i < rows, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + at, powers / tl.sum(powers, 0), mask=i < rows)


R, C = 256, 128
tall = cuda.to_device(rng.standard_normal((R, C)).astype(np.float32))
tall_out = cuda.to_device(np.zeros((R, C), np.float32))
strided = gpulab.profile(one_column[(C,)], tall, tall_out, R, C, BLOCK=R)
print(
    f"{32 * strided['global_load_sectors'] / strided['global_load_bytes']:.0f} bytes moved for each byte loaded"
)

# %% [markdown]
# A program can take several columns if its block has two dimensions. `i[:, None]` is a column of indices and
# `j[None, :]` is a row. Added together, they make a block of addresses:
#
#     at = i[:, None] * columns + j[None, :]
#
# `tl.max(values, 0)` then goes down the columns and leaves one number for each. `[None, :]` makes a row of these
# numbers, which lines up with the block again. For numbers that belong to rows, use `[:, None]` instead. Masks are
# joined with `&`, and each comparison needs parentheses: `(i[:, None] < rows) & (j[None, :] < columns)`.
#
# **Do.** Write the kernel and `softmax_columns(x, out)`.
#
# - Input: the row-major float32 matrix `x`, with up to 300 rows and any number of columns. Some logits are −∞ again.
# - Output: the softmax of each column, in `out`.
# - `WIDTH` is the number of columns that one program takes.
# - **Budget:** no sector is moved twice, so n elements take n/8 sectors loaded and n/8 stored. About 12 lines.


# %% nbgrader={"grade": false, "grade_id": "softmax-columns", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def softmax_columns_kernel(x, out, rows, columns, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = (i < rows) & (j < columns)
    values = tl.load(x + i * columns + j, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0)[None, :])
    tl.store(out + i * columns + j, powers / tl.sum(powers, 0)[None, :], mask=inside)
    ### END SOLUTION


def softmax_columns(x, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    grid = (triton.cdiv(columns, 16),)
    softmax_columns_kernel[grid](x, out, rows, columns, BLOCK=triton.next_power_of_2(rows), WIDTH=16)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "softmax-columns-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.softmax_columns", softmax_columns)

# %% jupyter={"source_hidden": true}
gpulab.need(softmax_columns)
together = gpulab.profile(softmax_columns, tall, tall_out)
plot.bars(
    {
        "one column in a program": strided["global_sectors"],
        "yours": together["global_sectors"],
    },
    "sectors moved",
    budget=R * C // 4,
    caption="Neighbours in a row share a sector: one program that has them all loads it once.",
)

# %% [markdown]
# **Why.** The fastest index of the block should run along the fastest index of memory. The arithmetic is the same in
# both kernels, so the order of access decides. If that order is random, as in a gather, there is nothing to share,
# and each element costs a sector.

# %% [markdown]
# ## 4 · Rows that share: layer norm
#
# Layer norm computes (x − mean) / √(variance + ε) · weight + bias for each row, with a weight and a bias for each
# column and ε = 10⁻⁵. All rows use the same weights and biases.
#
# ![Layer norm in Triton: a program has one row. It loads the row, takes its mean and variance, and writes the result; the weights are the same for all rows.](drawings/row_program.svg)
#
# **Predict.** With one program for each row, how many bytes are loaded for each element of x?

# %%
gpulab.predict("triton.norm_bytes", ...)

# %% [markdown]
# After the first row the weights come from the L2 cache, but they still have to travel, and L2 has limits too. If a
# program has several rows, one load of the weights serves them all.
#
# The numbers in x lie around 1,000, so compute the variance as the mean of the **squares of differences** from the
# mean. The other formula, the mean of the squares minus the square of the mean, suffers from cancellation (lab 05).
# Columns that do not exist must add nothing to either sum, so think about what they hold after the mean has been
# subtracted. `tl.where(condition, a, b)` chooses between a and b for each element.
#
# **Do.** Write the kernel and `layer_norm(x, weight, bias, out)`, with at least four rows in a program.
#
# - Input: the float32 matrix `x`, and `weight` and `bias` with one number for each column. Sizes include 7 × 129 and
#   1 × 1.
# - Output: the layer norm of each row, in `out`.
# - `1 / tl.sqrt(v)` gives a reciprocal root.
# - **Budget:** 6 bytes loaded per element of x. About 16 lines.


# %% nbgrader={"grade": false, "grade_id": "layer-norm", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def layer_norm_kernel(x, weight, bias, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    values = tl.load(x + i * columns + j, mask=inside, other=0.0)
    mean = tl.sum(values, 1)[:, None] / columns
    centred = tl.where(j < columns, values - mean, 0.0)
    variance = tl.sum(centred * centred, 1)[:, None] / columns
    w = tl.load(weight + j, mask=j < columns)
    b = tl.load(bias + j, mask=j < columns)
    tl.store(out + i * columns + j, centred / tl.sqrt(variance + 1e-5) * w + b, mask=inside)
    ### END SOLUTION


def layer_norm(x, weight, bias, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(triton.cdiv(rows, 4),)](x, weight, bias, out, rows, columns, ROWS=4, BLOCK=block)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "layer-norm-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.layer_norm", layer_norm)

# %%
gpulab.need(layer_norm)
wide = [cuda.to_device(rng.standard_normal(s).astype(np.float32)) for s in ((64, 512), 512, 512, (64, 512))]
normed = gpulab.profile(layer_norm, *wide)
print(
    f"{normed['global_load_bytes'] / (64 * 512):.1f} bytes loaded per element, {normed['registers']} registers per "
    f"thread, {normed['blocks']} programs"
)

# %% [markdown]
# **Why.** More rows in a program mean fewer loads, but also more registers and fewer programs. With 64 rows and four
# in each program, there are only 64 / 4 = 16 programs for 108 SMs. Sharing and parallelism pull in opposite
# directions, as they do for every tile.

# %% [markdown]
# ## 5 · Fusing with a random number
#
# A linear layer is often followed by a bias, an **activation** and **dropout**. Dropout sets a share p of the
# elements to 0 and divides the others by 1 − p. The activation here is GELU, which is z · (1 + erf(z / √2)) / 2.
#
# ![A counter-based generator is a function of seed and index. Every element works out its own number, in any order, and the backward pass works it out again.](drawings/counter_random.svg)
#
# **Predict.** Written as array operations, this takes six: the sum, GELU, the random numbers (made without reading
# anything), the comparison (which writes a byte per element), the product of GELU's result and that byte, and the
# division. How many bytes do the six move per element in float32? Leave the bias out, because it is small.

# %%
gpulab.predict("triton.dropout_bytes", ...)


# %%
def gelu_dropout_by_operators(x, bias, p):
    z = x + bias
    y = torch.nn.functional.gelu(z)
    keep = torch.rand_like(y) >= p
    return y * keep / (1 - p)


by_operators = gpulab.profile(gelu_dropout_by_operators, logits, torch.randn(COLUMNS), 0.25)
print(f"{by_operators.launches} launches, {by_operators.bytes / logits.numel():.2f} bytes per element")

# %% [markdown]
# A generator that keeps a state would not work here, because programs run in any order. Triton's generator is
# **counter-based** (Philox; Salmon et al., 2011): `tl.rand(seed, i)` scrambles the seed and the number i into a
# number from 0 to 1. There is no state, so element i gets the same number whichever program asks for it, and however
# long the block is.


# %%
@triton.jit
def random_numbers(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))


drawn = {}
for name, seed, block in (("seed 7", 7, 256), ("seed 7, longer blocks", 7, 1024), ("seed 8", 8, 256)):
    room = cuda.to_device(np.zeros(1024, np.float32))
    gpulab.profile(random_numbers[(1024 // block,)], room, seed, BLOCK=block)
    drawn[name] = room.copy_to_host()
for name, values in drawn.items():
    print(f"{name:24}{values[:3]}   {np.mean(values < 0.25):.3f} are below 0.25")

# %% [markdown]
# **Do.** Write the kernel and `gelu_dropout(x, bias, out, p, seed)`.
#
# - Input: the float32 matrix `x`, `bias` with one number for each column, the share `p` and the integer `seed`.
# - Output: in `out`, the dropout of GELU(x + bias). Element i, counted along the rows from 0, is kept where
#   `tl.rand(seed, i) >= p`. Its column is `i % columns`.
# - Inside a kernel there is `tl.erf`, but no `math.sqrt`. Use 1/√2 = 0.70710678.
# - **Budget:** 12 bytes moved per element, one launch. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "gelu-dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def gelu_dropout_kernel(x, bias, out, n, columns, p, seed, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    z = tl.load(x + i, mask=inside) + tl.load(bias + i % columns, mask=inside)
    gelu = 0.5 * z * (1 + tl.erf(0.70710678 * z))
    kept = tl.rand(seed, i) >= p
    tl.store(out + i, tl.where(kept, gelu / (1 - p), 0.0), mask=inside)
    ### END SOLUTION


def gelu_dropout(x, bias, out, p, seed):
    ### BEGIN SOLUTION
    grid = (triton.cdiv(x.size, 1024),)
    gelu_dropout_kernel[grid](x, bias, out, x.size, x.shape[1], p, seed, BLOCK=1024)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gelu-dropout-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.gelu_dropout", gelu_dropout)

# %% [markdown]
# ## 6 · Computing again instead of keeping
#
# In the backward pass, the gradient passes where dropout kept the element. There it is multiplied by 1 / (1 − p) and
# by GELU's derivative at z = x + bias. For that, an eager program keeps z (4 bytes per element) and the mask (1
# byte). You need to keep neither, because z is a sum of two arrays that you still have, and the mask follows from the
# seed. Working out such values a second time is called **recomputation**, and FlashAttention depends on it (lab 12).
#
# ![Kept: the forward pass writes the mask and the backward pass reads it. Computed again: only the seed is kept, and the backward pass makes the mask again.](drawings/recompute.svg)
#
# GELU's derivative at z is Φ(z) + z · φ(z), where Φ(z) = (1 + erf(z / √2)) / 2 and φ(z) = e^(−z²/2) / √(2π). Use
# 1/√(2π) = 0.39894228.
#
# **Do.** Write the kernel and `gelu_dropout_back(grad, x, bias, out, p, seed)`.
#
# - Input: `grad`, the gradient of the forward pass's result, with the shape of `x`; the other arguments are those of
#   the forward pass, with the same seed.
# - Output: the gradient of x, in `out`.
# - **Budget:** 16 bytes moved per element. With z and the mask kept, three operations move 29. About 12 lines.


# %% nbgrader={"grade": false, "grade_id": "gelu-dropout-back", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def gelu_dropout_back_kernel(grad, x, bias, out, n, columns, p, seed, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    z = tl.load(x + i, mask=inside) + tl.load(bias + i % columns, mask=inside)
    slope = 0.5 * (1 + tl.erf(0.70710678 * z)) + 0.39894228 * z * tl.exp(-0.5 * z * z)
    kept = tl.rand(seed, i) >= p
    given = tl.load(grad + i, mask=inside)
    tl.store(out + i, tl.where(kept, given * slope / (1 - p), 0.0), mask=inside)
    ### END SOLUTION


def gelu_dropout_back(grad, x, bias, out, p, seed):
    ### BEGIN SOLUTION
    grid = (triton.cdiv(x.size, 1024),)
    gelu_dropout_back_kernel[grid](grad, x, bias, out, x.size, x.shape[1], p, seed, BLOCK=1024)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gelu-dropout-back-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.gelu_dropout_back", gelu_dropout_back)


# %%
def back_by_operators(grad, keep, z, p):
    return torch.ops.aten.gelu_backward(grad * keep / (1 - p), z)


kept_by_operators = logits.element_size() + (logits > 0).element_size()  # z, and the mask

gpulab.need(gelu_dropout, gelu_dropout_back)
given = cuda.to_device(rng.standard_normal((M, COLUMNS)).astype(np.float32))
biases = cuda.to_device(rng.standard_normal(COLUMNS).astype(np.float32))
forward = gpulab.profile(gelu_dropout, matrix, biases, result, 0.25, 7)
backward = gpulab.profile(gelu_dropout_back, given, matrix, biases, result, 0.25, 7)
eager_back = gpulab.profile(back_by_operators, logits, logits > 0, logits, 0.25)
plot.panels(
    {
        "bytes moved per element,\nforward": {"operations": by_operators.bytes / logits.numel(), "yours": forward["global_bytes"] / logits.numel()},
        "bytes moved per element,\nbackward": {"operations": eager_back.bytes / logits.numel(), "yours": backward["global_bytes"] / logits.numel()},
        "bytes kept per element\nbeside x": {"operations": kept_by_operators, "yours": 0},
    },
    "Fused, both directions move fewer bytes and nothing is kept between them but the seed.",
)  # fmt: skip

# %%
gpulab.need(gelu_dropout)
numbers_alone = gpulab.profile(random_numbers[(M,)], result, 7, BLOCK=1024)
for name, r in (("gelu_dropout", forward), ("random numbers alone", numbers_alone)):
    print(f"{name:22}{32 * r['instructions'] / logits.numel():4.0f} warp instructions per 32 elements")

# %% [markdown]
# **Why.** More than half of the instructions make random numbers. That is the price of fusing them, but a
# memory-bound kernel has instructions to spare. Any activation of your own fuses in the same way, because only the
# middle line of the kernel changes.

# %% [markdown]
# ## End of sitting 1
#
# You have fused a softmax, a norm and a dropout into one kernel each, and your backward pass computes again what
# others would store. The second sitting multiplies tiles, and then makes the step from one fused kernel to the
# program that decides what to fuse.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("11")

# %% [markdown]
# ## 7 · Products of tiles
#
# `tl.dot(a, b, total)` multiplies two blocks on tensor cores and adds the product to a third. In float16 the inner
# dimension must be at least 16. A matrix product therefore takes a program for each **tile** of the result and, in
# each program, a loop over k, as in lab 06:
#
#     total = tl.zeros((BM, BN), tl.float32)
#     for start in range(0, k, BK):
#         ...
#         total = tl.dot(a, b, total)
#
# You manage neither shared memory nor barriers, because the compiler places both. It also arranges that the next
# blocks are copied while the present ones are multiplied (`num_stages`). On Hopper and later GPUs, a block can be
# fetched by TMA, the copy engine of lab 23. You describe the array once, with `tl.make_tensor_descriptor`, and then load a
# block by the position of its corner, without addresses or masks.
#
# **Predict.** How many times as many bytes do tiles of 16 × 16 load as tiles of 64 × 64?

# %%
gpulab.predict("triton.tile_bytes", ...)

# %% [markdown]
# **Do.** Write the kernel and `linear(x, w, bias, out)`, which computes out = max(x · w + bias, 0).
#
# - Input: `x` of m × k, `w` of k × n and `bias` of n numbers, all float16. Sizes (m × n × k) include 70 × 45 × 33 and
#   1 × 3 × 2.
# - Output: `out` of m × n in float16. The sums are float32, and `.to(tl.float16)` converts them.
# - The grid may be two numbers, `(tiles of rows, tiles of columns)`. `tl.program_id(1)` is then the index along the
#   second.
# - What comes after the loop, while the tile is still in registers, is the **epilogue**. Bias and maximum belong
#   there. `tl.maximum(a, b)` takes the larger of two elements, whereas `tl.max(a, axis)` reduces.
# - **Budget:** as many bytes loaded as tiles of 64 × 64 load (up to 10 % more is accepted), one launch. About 18
#   lines.


# %% nbgrader={"grade": false, "grade_id": "linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def linear_kernel(x, w, bias, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        across, down = depth[None, :], depth[:, None]
        a = tl.load(x + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        b = tl.load(w + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total = tl.dot(a, b, total)
    total = tl.maximum(total + tl.load(bias + columns, mask=columns < n, other=0.0), 0.0)
    tl.store(out + rows * n + columns, total.to(tl.float16), mask=(rows < m) & (columns < n))
    ### END SOLUTION


def linear(x, w, bias, out):
    ### BEGIN SOLUTION
    (m, k), n = x.shape, w.shape[1]
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    linear_kernel[grid](x, w, bias, out, m, n, k, BM=64, BN=64, BK=32)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "linear-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.linear", linear)

# %% [markdown]
# Which tile is best? `triton.autotune` tries a list of settings at the first call for each new value of the arguments
# in `key`, and keeps the best. On a GPU it compares times; here it compares bytes moved, then instructions.
# `num_warps` is how many warps share a program.

# %%
gpulab.need(linear)
S = 256
shapes = {"x": (S, S), "w": (S, S), "bias": S, "out": (S, S)}
layer = {name: cuda.to_device(rng.standard_normal(s).astype(np.float16)) for name, s in shapes.items()}
settings = [
    triton.Config({"BM": bm, "BN": bn, "BK": 32}, num_warps=warps)
    for bm, bn, warps in ((32, 32, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8))
]
tuned = triton.autotune(settings, key=["m", "n", "k"])(linear_kernel)


def grid_of(given):
    return triton.cdiv(S, given["BM"]), triton.cdiv(S, given["BN"])


tried = {}
for config in settings:
    named = config.kwargs | {"num_warps": config.num_warps}
    r = gpulab.profile(linear_kernel[grid_of(named)], *layer.values(), S, S, S, **named)
    tried[f"{named['BM']} × {named['BN']}, {config.num_warps} warps"] = r
plot.panels(
    {
        "MB loaded": {name: r["global_load_bytes"] / 1e6 for name, r in tried.items()},
        "registers per thread": {name: r["registers"] for name, r in tried.items()},
        "programs": {name: r["blocks"] for name, r in tried.items()},
        "occupancy, %": {name: r["occupancy"] for name, r in tried.items()},
    },
    "Larger tiles load fewer bytes, and leave fewer programs for the GPU's SMs.",
)

# %%
gpulab.need(linear)
gpulab.profile(tuned[grid_of], *layer.values(), S, S, S)

# %% [markdown]
# **Why.** By bytes, the largest tile wins. On this small product, however, it leaves 2 × 2 = 4 programs for 108 SMs,
# so on a GPU the clock would choose another tile. Bytes are a guide where memory is the limit, but only a guide. The
# best setting depends on the shapes and the GPU, which is why kernels are tuned at all.

# %% [markdown]
# ## Detective · The product that was tested
#
# In section 7, neighbouring programs compute neighbouring tiles. A colleague numbers the tiles differently, so that
# programs that run together share more (section 8). GROUP rows of tiles form a group. Within a group, the programs go
# down the tiles of the first column, then down those of the next. The kernel has been tested at 256 × 256, 512 × 512
# and 512 × 128 against the plain product, and it agrees. In production the layer has 384 rows. Nothing crashes, the
# loss goes down, and "half of the outputs are 0, as one expects after a ReLU".


# %%
@triton.jit
def grouped_product(x, w, out, m, n, k, GROUP: tl.constexpr, TILE: tl.constexpr):
    program = tl.program_id(0)
    tiles_n = tl.cdiv(n, TILE)
    first = program // (GROUP * tiles_n) * GROUP
    within = program % (GROUP * tiles_n)
    rows = (first + within % GROUP) * TILE + tl.arange(0, TILE)[:, None]
    columns = (within // GROUP) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, 32):
        depth = start + tl.arange(0, 32)
        across, down = depth[None, :], depth[:, None]
        a = tl.load(x + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        b = tl.load(w + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total = tl.dot(a, b, total)
    total = tl.maximum(total, 0.0)
    tl.store(out + rows * n + columns, total.to(tl.float16), mask=(rows < m) & (columns < n))


def run_grouped(m, n, k=64):
    """(the report, the result, and what it should be) of a product of random matrices."""
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = cuda.to_device(np.zeros((m, n), np.float16))
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    counted = gpulab.profile(
        grouped_product[grid], cuda.to_device(a), cuda.to_device(b), c, m, n, k, GROUP=4, TILE=64
    )
    return counted, c.copy_to_host(), np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)


for m, n in ((256, 256), (512, 512), (512, 128)):
    _, got, expected = run_grouped(m, n)
    print(f"{m} × {n}: agrees {np.allclose(got, expected, rtol=2e-3, atol=0.05)}")
_, got, _ = run_grouped(384, 384)
print(f"384 × 384: {100 * np.mean(got == 0):.0f} % of the outputs are 0")

# %% [markdown]
# Find out what is wrong, and at which sizes. `run_grouped` gives you the report, the result, and what the result
# should be. Use the cell below for your experiments.

# %%
# your experiment

# %% [markdown]
# ### Your answer
#
# Answer in two to four sentences. Which programs do what, and at which sizes? Why did the tests not see it? Which
# count that you measured gives it away? A person reads your answer: 1 point for the cause, 1 point for a count that
# you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "detective-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The kernel assumes that every group has GROUP = 4 rows of tiles. With 384 rows there are 384 / 64 = 6
# rows of tiles, so the second group has only 2. Its 12 programs are nevertheless dealt out to 4 rows. Half of them
# compute rows 6 and 7, which do not exist, and the masks discard their results. The last 3 tiles of rows 4 and 5 are
# computed by no program. The report counts 245,760 bytes stored, but a float16 result of 384 × 384 has 294,912, so 6
# of 36 tiles are missing. The tests did not see it because all tested sizes have a multiple of 4 rows of tiles. In
# production it stays hidden because the missing tiles hold zeros, which a ReLU produces, too. Cure: the height of the
# last group is min(tiles_m − first, GROUP).
#
# **1 point** (cause without a count): the last group is not full and the kernel does not know it.
#
# **0 points:** float16 is too short; the masks are wrong; the programs race.

# %% [markdown]
# **See.** Run the next cell when you have answered. The arithmetic is the same, but now each program writes down
# which tile it has.


# %%
@triton.jit
def write_down(tile, tiles_n, GROUP: tl.constexpr):
    program = tl.program_id(0)
    first = program // (GROUP * tiles_n) * GROUP
    within = program % (GROUP * tiles_n)
    tl.store(tile + 2 * program, first + within % GROUP)
    tl.store(tile + 2 * program + 1, within // GROUP)


seen = cuda.to_device(np.zeros((36, 2), np.int32))
gpulab.profile(write_down[(36,)], seen, 6, GROUP=4)
visited = [tuple(map(int, tile)) for tile in seen.copy_to_host()]
plot.tile_order(
    {"as the kernel does it": visited, "as it should be": [(m, n) for g in (0, 4) for n in range(6) for m in range(g, g + 4) if m < 6]},
    (6, 6),
    12,
    "Left, six tiles (hatched) belong to nobody, and programs 26, 27, 30, 31, 34 and 35 work outside; right, the last "
    "group goes down two rows only.",
)  # fmt: skip

# %% [markdown]
# **Without a simulator** you hunt for such a bug as follows. If `TRITON_INTERPRET=1` is set before Triton is
# imported, kernels run in NumPy, one program after the other, so `print` and a debugger work in them on any machine.
# On a GPU, `tl.device_print("rows", rows)` prints every element. `tl.device_assert` stops where a condition fails
# (with `TRITON_DEBUG=1`), and `tl.static_assert` does so while the kernel is compiled [13].
#
# ## 8 · Which programs run together
#
# Why would anyone number the tiles differently? A GPU runs as many programs at once as it has room for, as a rule in
# the order of their numbers. The programs that run at once form a **wave**. Suppose that each of an A100's 108 SMs
# runs one program. What two programs of a wave both read is fetched from DRAM only once, provided that L2 keeps it.
# It therefore matters which tiles are in a wave together. Call a row of tiles of x, or a column of tiles of w, a
# **panel**. (This is a model: programs do not start and end exactly in step, but they come close.)
#
# **Predict.** The result has 64 × 64 tiles, computed row after row. How many panels do the first 108 programs read?

# %%
gpulab.predict("triton.panels", ...)

# %% [markdown]
# **Do.** Write `order(tiles_m, tiles_n, wave)`, a Python function that numbers the tiles.
#
# - Input: how many rows and columns of tiles there are, and how many programs a wave has. `tiles_m` need not be a
#   multiple of anything.
# - Output: the list of tiles `[row, column]`, with the tile of program 0 first. It contains every tile once.
# - Counted: the check cuts the list into waves of `wave` programs and counts the panels that each wave reads.
# - **Budget:** at most 15 % more panels than if each wave were the best possible rectangle. About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def order(tiles_m, tiles_n, wave):
    ### BEGIN SOLUTION
    group = max(1, min(tiles_m, round(wave**0.5)))
    tiles = []
    for first in range(0, tiles_m, group):
        for n in range(tiles_n):
            for m in range(first, min(first + group, tiles_m)):
                tiles.append([m, n])
    return tiles
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "order-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.order", order)

# %%
gpulab.need(order)
from gpulab.exercises.lab_11_triton_and_fusion import panels

a100 = hardware.find("A100")
by_rows = [(m, n) for m in range(64) for n in range(64)]
yours = [tuple(tile) for tile in order(64, 64, 108)]
panel_bytes = 128 * 4096 * 2  # 128 rows of 4,096 float16 numbers
for name, tiles in (("row after row", by_rows), ("yours", yours)):
    first, every = panels(tiles[:108], 108), panels(tiles, 108)
    print(
        f"{name:14} first wave {first:3} panels = {first * panel_bytes / 1e6:3.0f} MB, all waves "
        f"{every * panel_bytes / 1e9:.2f} GB"
    )
print(f"L2 of an A100: {float(a100.l2_bytes) / 1e6:.0f} MB")
small = order(16, 16, 16)
plot.tile_order(
    {
        "row after row": [(m, n) for m in range(16) for n in range(16)],
        "yours": [tuple(tile) for tile in small],
    },
    (16, 16),
    16,
    "16 × 16 tiles in waves of 16 (neighbouring waves differ in colour, the first has dots): row after row a "
    "wave spans 1 row and 16 columns, 17 panels; a square one needs 8.",
)

# %% [markdown]
# **Why.** The result is the same. Only the programs' numbers are dealt out differently, and no program knows more
# than its own number. With tiles of 128 × 128 and k = 4,096, the panels of one wave, with the tiles taken row after
# row, do not even fit into L2.

# %% [markdown]
# ## 9 · Kinds of fusion
#
# There are several kinds of fusion. They differ in what goes together and in what that saves.
#
# | kind | what goes together | what it saves |
# |---|---|---|
# | vertical | producer and consumer, element by element or row by row | memory traffic for what lies between |
# | horizontal | siblings that read the same array, or many small kernels | reads, launches |
# | epilogue | a product and what follows on its tile | a trip of the result to memory and back |
# | algebraic | two linear steps, which become one | a step |
# | algorithmic | another algorithm with fewer passes, such as online softmax or FlashAttention | passes |
#
# A CUDA graph (lab 07) is none of these. It makes many launches cheap, but it fuses no kernel.
#
# ![Two kinds of fusion. Vertical: what one operation writes, the next reads, and both become one kernel. Horizontal: two operations without a common value share a launch.](drawings/kinds_of_fusion.svg)
#
# **Algebraic** fusion can remove a batch norm, for example. At inference a batch norm is a scale and a shift per
# channel, so it can be folded into the weights of the convolution directly before it. The order must be convolution,
# batch norm, ReLU, because a batch norm after a ReLU cannot be folded.

# %%
from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

torch.manual_seed(0)
conv, norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
norm.running_mean.normal_()
norm.running_var.uniform_(0.5, 2)
picture = torch.randn(4, 8, 32, 32)
with torch.no_grad():
    conv.eval(), norm.eval()
    folded = fuse_conv_bn_eval(conv, norm)
    chains = {
        "convolution, norm, ReLU": lambda t: torch.relu(norm(conv(t))),
        "folded, ReLU": lambda t: torch.relu(folded(t)),
    }
    for name, chain in chains.items():
        r = gpulab.profile(chain, picture)
        print(f"{name:26}{r.launches} launches {r.bytes:10,} bytes moved")
    right = chains["convolution, norm, ReLU"](picture)
    print(f"largest difference: {(right - chains['folded, ReLU'](picture)).abs().max():.1e}")
    behind = norm(torch.relu(conv(picture)))
    print(
        f"norm behind the ReLU, folded all the same: {(behind - torch.relu(folded(picture))).abs().max():.1f}"
    )

# %% [markdown]
# ## 10 · What to fuse: write the planner
#
# A compiler gets a graph of operations and decides which of them become one kernel. You write that decision. An
# operation is a list `[name, kind, inputs, bytes of its result]`, and its kind sets a rule:
#
# | kind | what it is | rule |
# |---|---|---|
# | `input` | is in memory already | no kernel computes it |
# | `pointwise` | works element by element | may share a kernel with any other operation |
# | `rows` | needs whole rows: sums, maxima, means | may not share a kernel with a `matmul` |
# | `columns` | sums over all rows | its own kernel may not use its result, which is complete only after the launch |
# | `matmul` | is a product | reads its inputs from memory, so its own kernel may not compute them; a kernel holds at most one |
#
# These rules hold for every kernel:
#
# | question | rule |
# |---|---|
# | What does it read? | each tensor that it needs and does not compute itself, once |
# | What does it write? | each of its results that another kernel or `outputs` needs |
# | When does it run? | kernels run in the order of your list, operations of a kernel in the order of theirs, and each needs its inputs computed before it |
# | May it combine operations with no tensor in common? | yes, but that saves no bytes, and no graph here needs it |
#
# **Do.** Write `fuse(operations, outputs)`.
#
# - Input: the list of operations, and the names of the results that must be in memory at the end.
# - Output: a list of kernels, each a list of names.
# - **Budget:** the fewest bytes and the fewest launches of any legal plan (one plan has both). About 22 lines.
#
# The first graph below is the softmax of section 2.

# %%
from gpulab.exercises.lab_11_triton_and_fusion import GRAPHS

for name in ("softmax", "around a product", "rows beside a product"):
    operations, outputs = GRAPHS[name]
    print(name, "→", ", ".join(outputs))
    for operation in operations:
        print("   ", list(operation))


# %% nbgrader={"grade": false, "grade_id": "fuse", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fuse(operations, outputs):
    ### BEGIN SOLUTION
    kind = {name: what for name, what, _, _ in operations}
    kernels, reads, where = [], [], {}

    def may_join(name, needs, kernel):
        kinds = [kind[other] for other in kernel] + [kind[name]]
        if kinds.count("matmul") > 1 or ("matmul" in kinds and "rows" in kinds):
            return False
        return not any(n in kernel and (kind[n] == "columns" or kind[name] == "matmul") for n in needs)

    for name, what, needs, _ in operations:
        if what == "input":
            continue
        earliest = max((where[n] for n in needs if n in where), default=0)
        for number in range(earliest, len(kernels)):
            shared = set(needs) & (set(kernels[number]) | reads[number])
            if shared and may_join(name, needs, kernels[number]):
                break
        else:
            number = len(kernels)
            kernels.append([])
            reads.append(set())
        kernels[number].append(name)
        reads[number] |= set(needs)
        where[name] = number
    return kernels
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fuse-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("triton.fuse", fuse)

# %%
gpulab.need(fuse)
for name in ("backward", "layer"):
    print(name)
    for kernel in fuse([list(o) for o in GRAPHS[name][0]], list(GRAPHS[name][1])):
        print("   ", " + ".join(kernel))

# %% [markdown]
# **Why.** Rules like these are at the heart of every tensor compiler. Real compilers also ask how much a kernel can
# hold, and which fusion is worth its cost. Going through the operations once and joining them greedily does not give
# the best plan for every graph, but it does for these. Inductor is greedy, too: it scores pairs by the memory traffic
# that they share and joins the best pairs first (`score_fusion_memory` in `torch/_inductor/scheduler.py`).

# %% [markdown]
# ## 11 · What torch.compile writes
#
# `torch.compile` turns your function into a graph (**Dynamo**, lab 08), works out the backward graph (AOTAutograd),
# and gives both to **Inductor**. Inductor groups the operations and writes code: C++ for a CPU, Triton for a GPU.
# `inductor` below makes it write the Triton code for `softmax_by_operators`. That needs no GPU: the function sets
# Inductor's `cpu_backend="triton"`, and gives the code to you instead of to a compiler. (On this machine
# `torch.compile` alone would write C++. For a real GPU it knows more, and may choose other blocks and hints.)

# %%
from gpulab.compile.inductor import inductor

ragged = torch.randn(M, 781)
program = inductor(softmax_by_operators, ragged)
print("launches:", ", ".join(program.steps))
print(program.kernels[program.steps[0]].source)

# %% [markdown]
# Five operations have become one kernel, in which `r0_` counts columns and `x` counts rows. The ideas are the same as
# in your kernel: a row as a block, a mask, and −∞ where there is no element (set by `tl.where`, not by `other`).
# Because it is a kernel like yours, you can run it and count:

# %%
gpulab.need(softmax)
theirs = program.kernels[program.steps[0]].define(triton)
given = cuda.to_device(ragged.numpy())
by_theirs, by_yours = (cuda.to_device(np.zeros((M, 781), np.float32)) for _ in range(2))
reports = {
    "Inductor": gpulab.profile(theirs[(M,)], by_theirs, given, M, 781, XBLOCK=1),
    "yours": gpulab.profile(softmax, given, by_yours),
}
print("same result:", np.allclose(by_theirs.copy_to_host(), by_yours.copy_to_host(), atol=1e-6))
for name, r in reports.items():
    print(f"{name:10}{r['launches']} launch, {r['global_bytes'] / 4 / (M * 781):.2f} MN elements moved")
plot.bars(
    {name: 32 * r["instructions"] / (M * 781) for name, r in reports.items()},
    "warp instructions per 32 elements",
    caption="Inductor's kernel moves as many bytes as yours, and takes more instructions for it.",
)

# %% [markdown]
# The extra instructions pay for extra care. `libdevice.exp` is a more exact exponential than `tl.exp`, and `max2`
# passes NaN on, as PyTorch's maximum does.
#
# **Predict.** How many launches does the compiled program for relu(x · w + b) have?

# %%
gpulab.predict("triton.compiled", ...)


# %%
def dense(x, w, b):
    return torch.relu(x @ w + b)


def block(x, w, b):
    y = torch.nn.functional.gelu(x @ w + b)
    return torch.nn.functional.layer_norm(x + y, (x.shape[1],))


inputs = torch.randn(64, 512), torch.randn(512, 512), torch.randn(512)
gpulab.predict("triton.compiled", measured=len(inductor(dense, *inputs).steps))
for fn in (softmax_by_operators, dense, block):
    given = inputs if fn is not softmax_by_operators else (logits,)
    eager, made = gpulab.profile(fn, *given), inductor(fn, *given)
    print(
        f"{fn.__name__:22}{eager.launches:2} launches eager, {len(made.steps)} compiled: {', '.join(made.steps)}"
    )

# %% [markdown]
# **Why.** The product stays with the vendor's library, and what follows is one kernel. Your `linear` did it all in
# one launch. So can Inductor, if you let it search its product templates (`mode="max-autotune"`). But Inductor does
# not change the algorithm. It found the fusion in softmax, whereas people had to write FlashAttention.

# %% [markdown]
# ## 12 · The others, in one table
#
# The tables are as of November 2026. Numbers in brackets refer to the References, most of them the projects' own
# documentation.
#
# | what | you write | what it does | lowest level | keep in mind |
# |---|---|---|---|---|
# | torch.compile [1] | PyTorch | captures a graph, fuses, writes Triton or C++ | Triton, libraries | the graph breaks where Python needs a value |
# | JAX + XLA [2] | `jax.numpy` in pure functions | makes one graph of the whole program, fuses, places buffers, shards | LLVM, libraries, TPU code | shapes are fixed; it compiles again for others |
# | Pallas [3] | kernels in JAX, on blocks | the same as Triton | Mosaic; its Triton path is deprecated | runs on GPUs from Hopper onwards |
# | TVM [4] | a model from another framework | schedules by rules (DLight) or by measured search (MetaSchedule) | LLVM, CUDA, Vulkan, Metal … | its strength is many targets; the search takes time |
# | MLIR [5] | a compiler | is no compiler itself, but offers dialects and passes to build one from | LLVM | Triton and StableHLO are built on it |
# | Triton [6] | kernels on blocks | plans layouts, shared memory and pipelining | PTX, AMDGPU | blocks are powers of two; you do not control single threads |
# | Helion [14] | PyTorch on tiles | adds indices, masks and loops; tries hundreds of Triton kernels | Triton | the search takes about ten minutes a kernel |
# | CUDA Tile, cuTile [15] | kernels on tiles, in Python | the same as Triton | Tile IR, beside PTX since CUDA 13.1 | NVIDIA only |
# | Gluon [6], CuTe DSL [16] | kernels in Python, with layouts, copies and barriers | less: you plan what Triton plans for you | PTX; Gluon also AMD | FlashAttention-4 is written in CuTe DSL (lab 12 B) |
#
# **Auto-tuning** is a search by measurement, over the settings of one kernel (section 7) or over whole schedules
# (TVM). Its result holds for one shape, one GPU and one version.

# %% [markdown]
# ### The same softmax in XLA
#
# **JAX** turns a function of `jax.numpy` into **HLO**, a graph of array operations, and **XLA** compiles it. On a CPU
# you can look at both. JAX is not part of this course's set-up. Where it is missing, the cells below show what was
# recorded with it, and their first line says so.
#
# The softmax of section 2 has five operations. Inductor made one kernel of them.
#
# **Predict.** How many pieces does XLA make of the five operations on a CPU?

# %%
gpulab.predict("triton.xla", ...)

# %%
from gpulab.exercises.lab_11_recorded import recorded


@recorded("jax")
def softmax_in_xla():
    import re

    import jax
    import jax.numpy as jnp

    def softmax(x):
        powers = jnp.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def main_lines(text):
        lines = text[text.index("ENTRY") :].splitlines()[1:]
        return [re.sub(r", (metadata|backend_config)=.*", "", line) for line in lines if "=" in line]

    lowered = jax.jit(softmax).lower(jnp.ones((64, 781)))
    written, compiled = lowered.as_text(dialect="hlo"), lowered.compile().as_text()
    print("HLO as it was written:", *main_lines(written), sep="\n")
    print("\nHLO after XLA's passes:", *main_lines(compiled), sep="\n")
    return {"written": main_lines(written), "compiled": main_lines(compiled)}


hlo = softmax_in_xla()

# %% [markdown]
# Each line is an operation: the shape of the result, the operation's name, and its operands in parentheses. A `fusion`
# calls a function with several operations in it, which run as one piece. How many elements would move if every line
# read its operands from memory and wrote its result there?


# %%
def elements_moved(lines):
    """Elements that all lines read and write, parameters and constants left out."""
    sizes, total = {}, 0
    for line in lines:
        name, _, rest = line.strip().removeprefix("ROOT ").partition(" = ")
        shape, call = rest.partition("[")[2].partition("]")[0::2]
        sizes[name] = int(np.prod([int(n) for n in shape.split(",") if n]))
        operation, _, operands = call.partition("} ")[2].partition("(")
        if operation and operation not in ("parameter", "constant"):
            read = operands.partition(")")[0].split(", ")
            total += sizes[name] + sum(sizes[each] for each in read)
    return total


pieces = sum(" fusion(" in line for line in hlo["compiled"])
gpulab.predict("triton.xla", measured=pieces)
plot.bars(
    {
        "HLO, line by line": elements_moved(hlo["written"]) / (64 * 781),
        f"XLA's {pieces} pieces on a CPU": elements_moved(hlo["compiled"]) / (64 * 781),
        "one kernel": 2,
    },
    "MN elements moved",
    caption="Fusion leaves less than half of what HLO names, and one kernel less than half of that.",
)

# %% [markdown]
# **Why.** In HLO every broadcast is an operation of its own. Nobody would run the graph like that, but this form is
# easy to rewrite, and fusion removes the broadcasts again. XLA also changed the arithmetic. It divides only 64 times
# and multiplies for the rest. What it fuses depends on the target, and this is its back end for CPUs.
#
# **Pallas** is JAX's language for kernels. As in Triton, a program has a block. But you do not compute addresses: a
# `BlockSpec` says which block each program gets. `interpret=True` runs a kernel anywhere, slowly.
#
# **Predict.** A kernel's body prints its block's shape with Python's `print`, and the grid has eight programs. How
# many times does it print?

# %%
gpulab.predict("triton.traced", ...)


# %%
@recorded("jax")
def softmax_in_pallas():
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    traced = []

    def kernel(x, out):
        print("Python runs the body on", x)
        traced.append(x.shape)
        powers = jnp.exp(x[...] - x[...].max(axis=1, keepdims=True))
        out[...] = powers / powers.sum(axis=1, keepdims=True)

    rows = pl.BlockSpec((8, 781), lambda program: (program, 0))  # block (program, 0) of 8 rows
    result = jax.ShapeDtypeStruct((64, 781), jnp.float32)
    run = pl.pallas_call(kernel, result, grid=(8,), in_specs=[rows], out_specs=rows, interpret=True)
    x = jax.random.normal(jax.random.key(0), (64, 781))
    print("largest difference from jax.nn.softmax:", float(abs(run(x) - jax.nn.softmax(x, axis=1)).max()))
    return len(traced)


gpulab.predict("triton.traced", measured=softmax_in_pallas())

# %% [markdown]
# **Why.** Python sees the body once, with a reference in place of the data, as Triton's compiler sees a kernel's text
# once. So a Python `if` on a value cannot work here, and `jnp.where` or `pl.when` takes its place.
#
# ### Other makers' GPUs
#
# What if the GPU is not NVIDIA's?
#
# | layer | what it is | who is behind it |
# |---|---|---|
# | HIP [7] | C++ close to CUDA, for AMD's GPUs (and NVIDIA's) | AMD |
# | HIPIFY [7] | translates CUDA source; you port what has no counterpart, such as inline PTX or code that assumes warps of 32 | AMD |
# | SYCL [8] | a C++ standard for all accelerators, implemented by DPC++ and AdaptiveCpp | Khronos, not Intel |
# | OpenMP `target` [9] | directives on loops in C, C++ and Fortran | a board of vendors and laboratories |
# | Kokkos, RAJA [10] | C++ libraries of loops and arrays over CUDA, HIP, SYCL and OpenMP | US national laboratories |
# | Triton | the same kernel source for NVIDIA, AMD and Intel | OpenAI and others; Intel's back end is in Intel's own repository |
#
# Portable code runs elsewhere, but to run *fast* there it must be tuned again. AMD's data-centre GPUs have 64 lanes
# in a wavefront, other sizes of shared memory and other matrix instructions.
#
# Here is y = a·x + y in four of these layers. Only the first line says how many threads there are:
#
#     saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);                                        // CUDA and HIP
#     #pragma omp target teams distribute parallel for map(to: x[:n]) map(tofrom: y[:n])  // OpenMP, then a loop
#     queue.parallel_for(n, [=](auto i) { y[i] += a * x[i]; });                           // SYCL
#     Kokkos::parallel_for(n, KOKKOS_LAMBDA(int i) { y(i) += a * x(i); });                // Kokkos
#
# In the others, the compiler or the library decides. HIP's names are CUDA's with a different prefix, so a translator
# of text such as HIPIFY does most of the work. What it leaves behind are assumptions. The next cell translates with
# two patterns. Its code lets all lanes vote and counts the votes:

# %%
import re

VOTES = """
unsigned votes = __ballot_sync(0xffffffff, x[i] > 0);  // a bit for each lane
if (threadIdx.x % warpSize == 0) atomicAdd(count, __popc(votes));
cudaDeviceSynchronize();"""
print(re.sub(r"\bcuda(?=[A-Z])", "hip", re.sub(r"_sync\(0xffffffff, ", "(", VOTES)))

# %% [markdown]
# **Predict.** On a GPU with 64 lanes in a wavefront, `__ballot` returns 64 bits. All 64 lanes vote yes. What is
# counted?

# %%
gpulab.predict("triton.votes", ...)

# %%
counted = {}
for lanes in (32, 64):
    ballot = sum(1 << lane for lane in range(lanes))  # what __ballot returns: all bits set
    votes = ballot & 0xFFFFFFFF  # what an `unsigned` keeps of it
    counted[f"{lanes} lanes"] = {"counted": votes.bit_count(), "cut off": lanes - votes.bit_count()}
gpulab.predict("triton.votes", measured=votes.bit_count())
plot.stacked(counted, "votes", "On 64 lanes half of the votes are lost, and nothing says so.")

# %% [markdown]
# **Why.** The code compiles on both and is wrong on one of them. AMD's guide asks for `warpSize` in place of 32, and
# for a careful review of translated code (AMD, "HIP C++ language extensions"). A variable of type `unsigned long
# long`, counted with `__popcll`, is right on both.
#
# A layer can also choose what should differ between machines. A `View` of Kokkos is an array whose order in memory
# depends on where the loop over its first index runs. On a GPU it is `LayoutLeft`, in which the first index varies
# fastest. On a CPU it is `LayoutRight`, as in C (Kokkos, "View: Multidimensional array", section 6.3.3).
#
# **Predict.** A thread sums a row of 64 numbers, and neighbouring threads have neighbouring rows. How many times as
# many sectors does it read in `LayoutRight` as in `LayoutLeft`?

# %%
gpulab.predict("triton.view", ...)


# %%
@cuda.jit
def row_sums(a, step_row, step_column, columns, out):
    """The body is the same for every layout; the steps are the View."""
    i = cuda.grid(1)
    if i < out.shape[0]:
        total = np.float32(0)
        for j in range(columns):
            total += a[i * step_row + j * step_column]
        out[i] = total


matrix, seen = rng.standard_normal((1024, 64)).astype(np.float32), {}
for layout, order, step_row, step_column in (("LayoutRight", "C", 64, 1), ("LayoutLeft", "F", 1, 1024)):
    flat, sums = (cuda.to_device(x) for x in (matrix.ravel(order), np.zeros(1024, np.float32)))
    report = gpulab.profile(row_sums[8, 128], flat, step_row, step_column, 64, sums)
    seen[layout] = report["global_load_sectors"]
    print(f"{layout:12} right: {np.allclose(sums.copy_to_host(), matrix.sum(1), atol=1e-4)}")
gpulab.predict("triton.view", measured=seen["LayoutRight"] / seen["LayoutLeft"])
plot.bars(
    seen,
    "sectors read",
    caption="The same kernel on the same matrix: in LayoutLeft a warp reads neighbours.",
)

# %% [markdown]
# **Why.** The source does not say which layout it gets, so it can be fast on both machines. That is *performance*
# portability, and it works because the layer owns the array as well as the loop. HIP, SYCL and OpenMP leave the
# layout to you.

# %% [markdown]
# **Planners** decide for devices what Inductor decides for kernels. Lab 17 does this by hand.
#
# | planner | what it does | source |
# |---|---|---|
# | FlexFlow | searches how to split each operation over GPUs, with a simulator as its judge | Jia et al., 2019 |
# | Unity | rewrites the graph as well | Unger et al., 2022 |
#
# **Fused optimizers** are section 1 at scale: they update all parameters of a model in a few launches
# (`torch.optim.AdamW(fused=True)`, lab 08).

# %% [markdown]
# ## Beyond · A row that does not fit
#
# This task is open-ended and ungraded. A row of 65,536 float32 numbers takes 256 KB, as much as all registers of an
# SM, so a kernel must work in pieces. The figure of merit is **bytes moved per element** of its softmax. Online
# softmax (lab 05) finds the maximum and the sum in one pass. Can you read each element less than twice?
#
# | method | bytes moved per element |
# |---|---|
# | one pass each for the maximum, the sum and the result | 16 |
# | ours, online: one pass for maximum and sum, one for the result | 12 |
# | bound: each element read once and written once | 8 |

# %%
long_rows = rng.standard_normal((2, 65_536)).astype(np.float32)
on_device, long_out = cuda.to_device(long_rows), cuda.to_device(np.zeros_like(long_rows))


def merit(run):
    """`run(x, out)` is host code that launches what it needs."""
    r = gpulab.profile(run, on_device, long_out)
    powers = np.exp(long_rows - long_rows.max(1, keepdims=True))
    right = np.allclose(long_out.copy_to_host(), powers / powers.sum(1, keepdims=True), rtol=1e-4, atol=1e-9)
    return f"{r['global_bytes'] / long_rows.size:.1f}" if right else "wrong"


# Yours, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. What does <code>mask</code> do, and when does <code>other</code> matter?</summary>
#
# Where the mask is false, nothing is loaded or stored. `other` is what the element holds instead. It matters as soon
# as the elements of the block are combined: it must be −∞ for a maximum, and 0 for a sum or a matrix product.
# </details>
#
# <details><summary>2. Five array operations on M × N, two of them reductions, become one kernel. What
# decreases?</summary>
#
# For softmax, the elements moved fall from 8MN + 4M to 2MN, and the launches from five to one.
# </details>
#
# <details><summary>3. How can dropout be fused without storing its mask?</summary>
#
# With a counter-based generator, the seed and the element's number give the random number, both forward and backward.
# </details>
#
# <details><summary>4. Why deal tiles out in groups of rows, and what must the last group know?</summary>
#
# A wave then spans few rows and few columns, so its panels fit into L2. The last group must know its own height,
# because it may have fewer rows.
# </details>
#
# <details><summary>5. What does Inductor fuse in relu(x · w + b), and what does it leave alone?</summary>
#
# The product stays a library call, which also adds the bias, and the ReLU is a separate kernel. If you let Inductor
# search, it may write the product itself and then fuse what follows.
# </details>

# %%
gpulab.recap("11")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | Which elements does a program have? | `i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)` |
# | How does it work for any size? | `mask=` in every load and store; `triton.cdiv(n, BLOCK)` programs |
# | How do you reduce a padded block? | `other=-float("inf")` for max, `0.0` for sum; `tl.where` after subtracting |
# | How do you address two dimensions? | `i[:, None] * stride + j[None, :]`, with the fast index along memory |
# | How long should a block be? | a power of two, at least the program's threads |
# | Which sizes are good? | those divisible by 16 give wide loads |
# | How do you get random numbers? | `tl.rand(seed, element number)` |
# | How do you write a product? | `tl.dot`, a float32 total, the epilogue before the store |
# | How many bytes does a product load? | 2 B · mnk · (1/BM + 1/BN) in float16 |
# | In which order do tiles run? | in groups of about √wave rows; `min(tiles_m - first, GROUP)` |
# | What does a fused chain cost? | read the inputs once, write the outputs once, one launch |
#
# ### Claims you will meet, and what is right
#
# - *CUDA graphs fuse kernels.* They launch many kernels cheaply, but none is fused.
# - *A softmax is memory-efficient when written in place.* It needs less memory but moves the same bytes.
# - *Fuse convolution, ReLU, batch norm.* A batch norm can be folded only if it directly follows the convolution.
# - *`@jit` with bare `load` and a global `BLOCK`* is how Triton looked before its release. Today it is `@triton.jit`,
#   `tl.load` and `BLOCK: tl.constexpr`. What some print as its "LLVM IR" is Triton's own IR.
# - *SYCL is Intel's.* It is a Khronos standard, and DPC++ is Intel's implementation.
# - *`torch.addmm` is `matmul` plus a bias.* That holds for matrices only, and with the weights the same way round:
#   those of a Linear are transposed.
# - *MLIR is a compiler for networks.* It is a kit for building compilers.

# %% [markdown]
# ### References
#
# 1. PyTorch, *torch.compiler*. https://docs.pytorch.org/docs/stable/torch.compiler.html
# 2. OpenXLA, *XLA architecture*. https://openxla.org/xla/architecture
# 3. JAX, *Pallas*: quickstart and changelog (July 2026: Triton backend deprecated). https://docs.jax.dev/en/latest/pallas/
# 4. Apache TVM, *MetaSchedule*. https://tvm.apache.org/docs/deep_dive/tensor_ir/tutorials/meta_schedule.html
# 5. C. Lattner et al., "MLIR: Scaling Compiler Infrastructure for Domain Specific Computation", CGO 2021.
#    https://doi.org/10.1109/CGO51591.2021.9370308
# 6. P. Tillet, H. T. Kung, D. Cox, "Triton: an intermediate language and compiler for tiled neural network
#    computations", MAPL 2019. https://doi.org/10.1145/3315508.3329973; documentation: https://triton-lang.org
# 7. AMD, *HIPIFY*. https://rocm.docs.amd.com/projects/HIPIFY; *HIP C++ language extensions*.
#    https://rocm.docs.amd.com/projects/HIP
# 8. Khronos, *SYCL*. https://www.khronos.org/sycl/; AdaptiveCpp. https://github.com/AdaptiveCpp/AdaptiveCpp
# 9. OpenMP ARB, *OpenMP specification*. https://www.openmp.org/specifications/
# 10. Kokkos, *View: Multidimensional array*. https://kokkos.org/kokkos-core-wiki; RAJA. https://github.com/LLNL/RAJA
# 11. J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#     https://doi.org/10.1145/2063384.2063405
# 12. Z. Jia, M. Zaharia, A. Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks", MLSys 2019.
#     https://arxiv.org/abs/1807.05358; C. Unger et al., "Unity", OSDI 2022.
# 13. Triton, *Debugging Triton*. https://triton-lang.org/main/programming-guide/chapter-3/debugging.html
# 14. PyTorch, *Helion*. https://github.com/pytorch/helion
# 15. NVIDIA, *CUDA Tile*. https://developer.nvidia.com/cuda/tile
# 16. NVIDIA, *CUTLASS Python DSLs*. https://docs.nvidia.com/cutlass/media/docs/pythonDSL/overview.html
