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
# **About five hours.** You need labs 04 (sectors), 05 (softmax, numbers that cancel), 06 (products in tiles) and 08
# (what a line of PyTorch costs); two remarks lean on lab 07. You need no GPU: Triton itself compiles your kernels for
# an A100, and the simulator runs and counts them.
#
# Most of what a network does is small arithmetic between large arrays. Written as array operations, each step
# goes to memory and back. Here you write kernels that do several steps at once, and then the program that
# decides which.
#
# When you are through, you can
#
# 1. write a Triton kernel for any size, and say what its masks are for;
# 2. predict launches and bytes of a chain of operations, unfused and fused;
# 3. fuse a random number into a kernel, and compute again what others store;
# 4. order the tiles of a product so that those that run together share what they read;
# 5. say what torch.compile fuses and what it leaves, and what other compilers and portability layers do.

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
# In CUDA you say what one **thread** does. In **Triton** you say what one **program** does, and a program
# works on a **block**: an array with a power of two as its length. The compiler hands the block's elements to
# threads, picks the loads, and places the barriers. You choose the grid of programs and how many **warps** each has
# (4 by default).
#
# | CUDA | Triton |
# |---|---|
# | grid of blocks of threads | grid of programs |
# | `blockIdx.x` | `tl.program_id(0)` |
# | a thread's index | `tl.arange(0, BLOCK)`: all indices of the block at once |
# | `if i < n:` | `mask=i < n` in every load and store |
# | shared memory, barriers | the compiler's |
#
# A pointer plus a block of indices is a block of addresses. Where the **mask** is false, nothing is loaded (the
# element gets `other`; without it, today's compiler leaves a 0, which nothing promises) and nothing is stored. Names marked
# `tl.constexpr` are known when the kernel is compiled; a block's length must be.


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
# `triton.cdiv` divides and rounds up: 8 programs of 1,024 elements. `kernel[grid](x, …, BLOCK=1024)` launches, with
# the grid as a tuple; for `gpulab.profile` the arguments go behind a comma, as always.
#
# **Predict.** The block is a choice. A program of 4 warps has 128 threads; what if its block has 32 elements?

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
# From 512 on each thread has four neighbouring elements, and one instruction loads 16 bytes. The compiler may do
# that only if it knows that four neighbours are all inside or all outside. Triton compiles a kernel anew for
# arguments that are divisible by 16, and that is how it knows.
#
# **Predict.** How many times as many load requests does n = 8,193 take?

# %%
gpulab.predict("triton.requests", ...)

# %%
odd = gpulab.profile(scale[(triton.cdiv(N + 1, 1024),)], x, out, N + 1, 2.0, BLOCK=1024)
gpulab.predict("triton.requests", measured=odd["global_load_requests"] / report["global_load_requests"])
print(f"requests: {report['global_load_requests']} for {N:,}, {odd['global_load_requests']} for {N + 1:,}")
print(f"bytes:    {report['global_load_bytes']:,} and {odd['global_load_bytes']:,}")

# %% [markdown]
# **Why.** The bytes are the same, the requests are not: sizes that divide by 16 are worth padding for. What happens
# on the way from Python to the GPU you can look at. **TTIR** is your program on blocks; **TTGIR** adds which thread has
# which element; then LLVM IR, PTX and machine code, as in lab 07.

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
# `sizePerThread` is what one thread has in a row, `threadsPerWarp` and `warpsPerCTA` how lanes and warps follow.
#
# **Do.** SGD with **momentum** is m = mu · m + g, then p = p − lr · m. As array operations these are three launches
# (`m *= mu`, `m += g`, `p -= lr * m`), as a **fused optimizer** one. Write the kernel and
# `momentum(p, g, m, lr, mu)`, which launches it and changes `p` and `m`. `p.size` is the number of elements, and as the
# arrays themselves are the kernel's pointers, pass them on as they are. **Budget:** 12 bytes loaded per element, one
# launch. About 8 lines. Sizes include 1, 1,023 and 1,025.


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
# A softmax of each row, out = e^(x − max) / sum, as five array operations. The maximum is subtracted so that nothing
# overflows (lab 05).


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
# **Predict.** How many elements do these five operations read and write, for each element of a wide x?

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
# A column that is **broadcast** against a matrix costs nothing itself; the result has the matrix's size and goes
# to memory. Working **in place** takes less memory and moves the same bytes: it is no fusion.
#
# **Do.** Write `softmax(x, out)` with one launch: a program for each row, the row as one block.
# `tl.max(values, 0)`, `tl.sum(values, 0)` and `tl.exp` do what their names say; `x.shape` is known on the host.
# `triton.next_power_of_2(n)` is the shortest block that holds n. What must stand in the rest of the block? `other=` in
# `tl.load` says it. **Budget:** 8 bytes moved per element, one launch. About 9 lines. Logits go from −1,000 to about
# −60; some are −∞.


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
# **See.** Both, on the same matrix.

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
# **Why.** 8MN + 4M became 2MN, five launches became one. Nobody can do with less: x must be read and the result
# written. The row stays in registers between the steps, so this works for rows that fit: `report["registers"]` grows
# with BLOCK, and beyond about 255 per thread the rest **spills** to memory. Longer rows need a loop (see Beyond).

# %% [markdown]
# ## 3 · The order of access
#
# Now a softmax of each **column**. The array is row-major: neighbours in a column are a whole row apart.
#
# **Predict.** A program takes one column, as it took one row. How many bytes of sectors move for each byte loaded?

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
# A block may have two dimensions. `i[:, None]` is a column of indices and `j[None, :]` a row; added, they are a block
# of addresses:
#
#     at = i[:, None] * columns + j[None, :]
#
# `tl.max(values, 0)` then goes down the columns and leaves one number for each; `[None, :]` puts it beside the block
# again, `[:, None]` does so for rows. Masks are joined with `&`, and compared parts stand in parentheses:
# `(i[:, None] < rows) & (j[None, :] < columns)`.
#
# **Do.** Write `softmax_columns(x, out)`; WIDTH is for the columns of a program. Up to 300 rows, any number of columns.
# **Budget:** no sector moved twice: n/8 loaded and n/8 stored. About 12 lines.


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
# **Why.** The fastest index of the block should run along the fastest index of memory. The arithmetic is the same; the
# order decides. With an order that is random, such as a gather, there is nothing to share and each element costs a
# sector.

# %% [markdown]
# ## 4 · Rows that share: layer norm
#
# Layer norm: (x − mean) / √(variance + ε) · weight + bias, for each row, with a weight and a bias for each column and
# ε = 10⁻⁵.
#
# ![Layer norm in Triton: a program has one row. It loads the row, takes its mean and variance, and writes the result; the weights are the same for all rows.](drawings/row_program.svg)
#
# **Predict.** With a program for each row, how many bytes are loaded for each element of x?

# %%
gpulab.predict("triton.norm_bytes", ...)

# %% [markdown]
# The weights come from the L2 cache after the first row, but they do travel, and L2 has limits too. If a program has
# several rows, one load of the weights serves them all.
#
# The numbers lie around 1,000, so take the mean of the **squares of differences** from the mean, not mean of squares
# minus square of mean: that cancels (lab 05). `tl.where(condition, a, b)` chooses element by element. Columns that do
# not exist must add nothing to either sum; think about what they hold after the mean is subtracted.
#
# **Do.** Write `layer_norm(x, weight, bias, out)`, with at least four rows in a program. `1 / tl.sqrt(v)` is a
# reciprocal root. **Budget:** 6 bytes loaded per element. About 16 lines. Sizes include 7 × 129 and 1 × 1.


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
# **Why.** More rows in a program mean fewer loads, more registers, and fewer programs: with 64 rows and four in each,
# 16 programs are all that 108 SMs get. Sharing and parallelism pull in opposite directions, as in every tile.

# %% [markdown]
# ## 5 · Fusing with a random number
#
# After a linear layer often come a bias, an **activation** and **dropout**, which sets a share p of the elements to 0
# and divides the others by 1 − p. GELU is z · (1 + erf(z / √2)) / 2.
#
# ![A counter-based generator is a function of seed and index. Every element works out its own number, in any order, and the backward pass works it out again.](drawings/counter_random.svg)
#
# **Predict.** Six operations: the sum, GELU, random numbers (made from nothing), the comparison (a byte per element),
# the product with it, the division. How many bytes per element in float32? Leave the bias out, it is small.

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
# A generator with a state would not fit: programs run in any order. Triton's is **counter-based** (Philox; Salmon et
# al., 2011): `tl.rand(seed, i)` scrambles the seed and the number i into a number from 0 to 1. There is no state, so
# element i gets the same number whichever program asks, and whatever the block.


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
# **Do.** Write `gelu_dropout(x, bias, out, p, seed)`. Element i, counted along the rows from 0 on, is kept where
# `tl.rand(seed, i) >= p`. Its column is `i % columns`. `tl.erf` exists; `math.sqrt` does not inside a kernel:
# 1/√2 = 0.70710678. **Budget:** 12 bytes moved per element, one launch. About 10 lines.


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
# Going backward, the gradient passes where dropout kept, times 1 / (1 − p), times GELU's derivative at z. An eager
# program keeps for that z (4 bytes per element) and the mask (1 byte). You need not: z is a sum of two arrays that you
# still have, and the mask follows from the seed. This is **recomputation**, and FlashAttention lives on it (lab 12).
#
# ![Kept: the forward pass writes the mask and the backward pass reads it. Computed again: only the seed is kept, and the backward pass makes the mask anew.](drawings/recompute.svg)
#
# GELU's derivative at z is Φ(z) + z · φ(z) with Φ(z) = (1 + erf(z / √2)) / 2 and φ(z) = e^(−z²/2) / √(2π);
# 1/√(2π) = 0.39894228.
#
# **Do.** Write `gelu_dropout_back(grad, x, bias, out, p, seed)`: `out` becomes the gradient of x. **Budget:** 16 bytes
# moved per element; with a kept z and mask three operations move 29. About 12 lines.


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
# **Why.** More than half of the instructions make random numbers. That is the price, and it is paid in a currency of
# which a memory-bound kernel has plenty. Any activation of your own fuses the same way: only the middle line of the kernel changes.

# %% [markdown]
# ## 7 · Products of tiles
#
# `tl.dot(a, b, total)` multiplies two blocks on tensor cores and adds to a third; in float16 the inner side must be at
# least 16. So a product is a program for each **tile** of the result and a loop over k, as in lab 06:
#
#     total = tl.zeros((BM, BN), tl.float32)
#     for start in range(0, k, BK):
#         ...
#         total = tl.dot(a, b, total)
#
# No shared memory, no barriers: the compiler places both, and copies the next blocks while it multiplies (`num_stages`).
# From Hopper on a block can be fetched by TMA (lab 06 B names it): you describe the array once, with
# `tl.make_tensor_descriptor`, and load by its corner, without addresses or masks.
#
# **Predict.** How many times as many bytes do tiles of 16 × 16 load as tiles of 64 × 64?

# %%
gpulab.predict("triton.tile_bytes", ...)

# %% [markdown]
# **Do.** Write `linear(x, w, bias, out)`: out = max(x · w + bias, 0) with x of m × k, w of k × n, all float16, sums in
# float32. What comes after the loop while the tile is still in registers is the **epilogue**. The grid may be two
# numbers, `(tiles of rows, tiles of columns)`; `tl.program_id(1)` is the second. `.to(tl.float16)` converts.
# `tl.maximum(a, b)` takes the larger element by element, where `tl.max(a, axis)` reduces. **Budget:**
# bytes loaded as tiles of 64 × 64 load them, one launch. About 18 lines. Sizes include 70 × 45 × 33 and 1 × 3 × 2.


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
# Which tile is best? `triton.autotune` tries a list of settings at the first call for each `key` and keeps the best: on
# a GPU by time, here by bytes moved, then by instructions. `num_warps` is how many warps share a program.

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
# **Why.** By bytes the largest tile wins. On this small product it leaves 4 programs for 108 SMs, so on a GPU the clock
# would choose another: bytes are a guide where memory is the limit, and a guide only. The result depends on shapes and
# GPU; that is why one tunes.

# %% [markdown]
# ## Detective · The product that was tested
#
# In section 7 neighbouring programs compute neighbouring tiles. A colleague numbers the tiles otherwise, so that
# programs that run together share more (section 8): GROUP rows of tiles are a group, and within it the programs go
# down the tiles of the first column, then of the next. It is tested at 256 × 256, 512 × 512 and 512 × 128, against the
# plain product, and agrees. In production the layer has 384 rows. Nothing crashes, the loss goes down, and "half of the
# outputs are 0, as one expects after a ReLU".


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
# Find out what is wrong, and at which sizes. `run_grouped` gives you the report and both results. The cell below is
# free.

# %%
# your experiment

# %% [markdown]
# ### Your answer
#
# In two to four sentences: which programs do what, at which sizes, and why did the tests not see it? Which count of your
# own gives it away? A person reads this: 1 point for the cause, 1 point for a count that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "detective-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The kernel takes it for granted that every group has GROUP = 4 rows of tiles. With 384 rows there are 6,
# so the second group has 2. Its 12 programs are still dealt out to 4 rows: half of them compute rows 6 and 7, which do
# not exist, and are masked away; the last 3 tiles of rows 4 and 5 are computed by nobody. The report counts 245,760
# bytes stored where a result of 384 × 384 float16 has 294,912: 6 of 36 tiles are missing. All tested sizes have a
# multiple of 4 rows of tiles, and the missing tiles hold zeros, which a ReLU makes, too. Cure: the height of the last
# group is min(tiles_m − first, GROUP).
#
# **1 point** (cause without a count): the last group is not full and the kernel does not know it.
#
# **0 points:** float16 is too short; the masks are wrong; the programs race.

# %% [markdown]
# **See.** When you have answered: the same arithmetic, with the tile of each program written down by the run.


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
# **Without a simulator** the same hunt goes like this. `TRITON_INTERPRET=1`, set before Triton is imported, runs kernels
# in NumPy, one program after the other: `print` and a debugger work in them, on any machine. On a GPU
# `tl.device_print("rows", rows)` prints every element, `tl.device_assert` stops where a condition fails (with
# `TRITON_DEBUG=1`), and `tl.static_assert` while the kernel is compiled [13].
#
# ## 8 · Who runs beside whom
#
# Why would one number tiles otherwise? A GPU runs as many programs at once as it has room for, as a rule in the order
# of their numbers: a **wave**. Take one program on each of an A100's 108 SMs. What two of them read is fetched from DRAM
# once, if L2 keeps it: so it matters which tiles are in a wave together. Call a row of tiles of x or a column of tiles of
# w a **panel**. (This is a model: programs do not start and end in step, but close to it.)
#
# **Predict.** The result has 64 × 64 tiles, row after row. How many panels do the first 108 programs read?

# %%
gpulab.predict("triton.panels", ...)

# %% [markdown]
# **Do.** Write `order(tiles_m, tiles_n, wave)`: the list of tiles `[row, column]`, the tile of program 0 first. Every
# tile once. The judge cuts it into waves of `wave` programs and counts each wave's panels. **Budget:** at most 15 % more
# than if each wave could be the best rectangle. About 8 lines. `tiles_m` need not be a multiple of anything.


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
# **Why.** The result is the same, only the programs' numbers are dealt out otherwise, and no program knows more than
# its number. With tiles of 128 × 128 and k = 4,096 the panels of a wave, row after row, do not even fit into L2.

# %% [markdown]
# ## 9 · Kinds of fusion
#
# | kind | what goes together | saves |
#
# ![Two kinds of fusion. Vertical: what one operation writes, the next reads, and both become one kernel. Horizontal: two operations without a common value share a launch.](drawings/kinds_of_fusion.svg)
#
# |---|---|---|
# | vertical | producer and consumer, element by element or row by row | what lies between |
# | horizontal | siblings that read the same, or many small kernels | reads, launches |
# | epilogue | a product and what follows on its tile | a trip of the result |
# | algebraic | two linear steps become one | the step |
# | algorithmic | another algorithm with fewer passes: online softmax, FlashAttention | passes |
#
# A CUDA graph (lab 07) is none of these: it makes many launches cheap and fuses no kernel.
#
# **Algebraic**: a batch norm at inference is a scale and a shift per channel, and so folds into the weights of the
# convolution directly before it. The order must be convolution, batch norm, ReLU: behind a ReLU it cannot fold.

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
# A compiler gets a graph of operations and decides which become one kernel. You write that decision. An operation is a
# list `[name, kind, inputs, bytes of its result]`:
#
# | kind | what it is | rule |
# |---|---|---|
# | `input` | in memory already | no kernel computes it |
# | `pointwise` | element by element | may be with anybody |
# | `rows` | needs whole rows: sums, maxima, means | not in a kernel with a `matmul` |
# | `columns` | sums over all rows | its result may not be used in its own kernel: complete only after the launch |
# | `matmul` | a product | reads its inputs from memory, not from its own kernel; one in a kernel |
#
# A kernel reads each tensor that others computed once, and writes each that another kernel or `outputs` needs. Kernels
# run in the order of your list, operations of a kernel in the order of theirs, and each needs its inputs computed before.
# Two operations with no tensor in common may share a kernel; it saves no bytes, and no graph here needs it.
#
# **Do.** Write `fuse(operations, outputs)`: a list of kernels, each a list of names. **Budget:** the fewest bytes and
# launches of any legal plan (one plan has both). About 22 lines. The first graph below is the softmax of section 2.

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
# **Why.** Rules like these are at the heart of every tensor compiler; theirs also ask how much a kernel can hold, and
# which fusion is worth its cost. Going through the operations once and joining greedily is not the best plan for every
# graph; for these it is. Inductor is greedy, too: it scores pairs by the memory traffic that they share and joins the
# best first (`score_fusion_memory` in `torch/_inductor/scheduler.py`).

# %% [markdown]
# ## 11 · What torch.compile writes
#
# `torch.compile` takes your function apart into a graph (**Dynamo**, lab 08), works out the backward graph
# (AOTAutograd), and gives both to **Inductor**, which groups operations and writes code: C++ for a CPU, Triton for a GPU.
# `inductor` below makes it write the Triton for `softmax_by_operators`. It needs no GPU for that: it sets Inductor's
# `cpu_backend="triton"`, and gives the code to you instead of a compiler. (On this machine `torch.compile` alone would
# write C++. For a real GPU it knows more, and may choose other blocks and hints.)

# %%
from gpulab.compile.inductor import inductor

ragged = torch.randn(M, 781)
program = inductor(softmax_by_operators, ragged)
print("launches:", ", ".join(program.steps))
print(program.kernels[program.steps[0]].source)

# %% [markdown]
# Five operations have become one kernel. `r0_` counts columns, `x` rows. The same ideas as in yours: a row as a
# block, a mask, −∞ where nothing is (in `tl.where`, not in `other`). It is a kernel, so run and count it:

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
# The extra instructions are care: `libdevice.exp` is a more exact exponential than `tl.exp`, and `max2` passes NaN on,
# as PyTorch's maximum does.
#
# **Predict.** How many launches has the program for relu(x · w + b)?

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
# **Why.** The product stays with the vendor's library, and what follows is one kernel. Your `linear` did it in one
# launch; so can Inductor, told to search its product templates (`mode="max-autotune"`). It does not change the
# algorithm: it found the fusion in softmax, but people had to write FlashAttention.

# %% [markdown]
# ## 12 · The others, in one table
#
# As of November 2026; the numbers are those of the References, most of them the projects' own documentation.
#
# | what | you write | it does | lowest level | mind |
# |---|---|---|---|---|
# | torch.compile [1] | PyTorch | captures, fuses, writes Triton or C++ | Triton, libraries | breaks where Python needs a value |
# | JAX + XLA [2] | `jax.numpy`, pure functions | whole-program graph, fuses, places buffers, shards | LLVM, libraries, TPU code | shapes are fixed; compiles anew for others |
# | Pallas [3] | kernels in JAX, on blocks | as Triton | Mosaic; its Triton path is deprecated | on GPUs from Hopper on |
# | TVM [4] | a model from elsewhere | schedules by rules (DLight) or by measured search (MetaSchedule) | LLVM, CUDA, Vulkan, Metal … | strength: many targets; search takes time |
# | MLIR [5] | a compiler | no compiler itself: dialects and passes to build one from | LLVM | Triton and StableHLO are built on it |
# | Triton [6] | kernels on blocks | layouts, shared memory, pipelining | PTX, AMDGPU | power-of-two blocks; no control of single threads |
# | Helion [14] | PyTorch on tiles | indices, masks, loops; tries hundreds of Triton kernels | Triton | a search of about ten minutes a kernel |
# | CUDA Tile, cuTile [15] | kernels on tiles, in Python | as Triton | Tile IR, beside PTX since CUDA 13.1 | NVIDIA only |
# | Gluon [6], CuTe DSL [16] | kernels in Python with layouts, copies and barriers | less: you plan what Triton plans | PTX; Gluon also AMD | FlashAttention-4 is in CuTe DSL (lab 12 B) |
#
# **Auto-tuning** is a search by measurement over settings of one kernel (section 7) or over whole schedules (TVM). Its
# result holds for one shape, one GPU, one version.
#
# **Portability.** What if the GPU is not NVIDIA's?
#
# | layer | what it is | who stands behind it |
# |---|---|---|
# | HIP [7] | C++ close to CUDA, for AMD's GPUs (and NVIDIA's) | AMD |
# | HIPIFY [7] | translates CUDA source; what has no counterpart (inline PTX, warps of 32 taken for granted) is yours to port | AMD |
# | SYCL [8] | C++ standard for all accelerators; DPC++ and AdaptiveCpp implement it | Khronos, not Intel |
# | OpenMP `target` [9] | directives on loops in C, C++, Fortran | a board of vendors and laboratories |
# | Kokkos, RAJA [10] | C++ libraries of loops and arrays over CUDA, HIP, SYCL, OpenMP | US national laboratories |
# | Triton | the same kernel source for NVIDIA, AMD and Intel | OpenAI and others; Intel's back end is a repository of Intel's |
#
# Portable means that it runs; to run *fast* elsewhere is tuning again. AMD's data-centre GPUs have 64 lanes in a
# wavefront, other sizes of shared memory, other matrix instructions.

# %% [markdown]
# **Planners** decide over devices what Inductor decides over kernels. FlexFlow searches how to split each operation over
# GPUs, with a simulator as its judge (Jia et al., 2019); Unity rewrites the graph as well (Unger et
# al., 2022). Lab 17 does this by hand. And **fused optimizers** are section 1 at scale: all parameters of a model in a
# few launches (`torch.optim.AdamW(fused=True)`, lab 08).

# %% [markdown]
# ## Beyond · A row that does not fit
#
# Open-ended and ungraded. No block holds a row of 65,536 numbers. The figure of merit is **bytes moved per
# element** of its softmax. Online softmax (lab 05) finds maximum and sum in one pass; can you read less than twice?
#
# | way | bytes moved per element |
# |---|---|
# | a pass each for maximum, sum and result | 16 |
# | ours, online: one pass and the result | 12 |
# | bound: read once, written once | 8 |

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
# Where the mask is false nothing is loaded or stored. `other` is what the element holds then; it matters as soon as the
# block is combined: −∞ for a maximum, 0 for a sum or a product.
# </details>
#
# <details><summary>2. Five array operations on M × N, two of them reductions, become one kernel. What falls?</summary>
#
# Softmax: 8MN + 4M elements to 2MN, five launches to one.
# </details>
#
# <details><summary>3. How can dropout be fused without storing its mask?</summary>
#
# With a counter-based generator: seed and element number give the random number, forward and backward.
# </details>
#
# <details><summary>4. Why deal tiles out in groups of rows, and what must the last group know?</summary>
#
# A wave then spans few rows and columns and its panels fit L2. The last group may have fewer rows.
# </details>
#
# <details><summary>5. What does Inductor fuse in relu(x · w + b), and what not?</summary>
#
# The product stays a library call, which takes the bias along; the ReLU is a kernel of its own. Told to search, Inductor
# may write the product itself, and then fuses what follows.
# </details>

# %%
gpulab.recap("11")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | which elements? | `i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)` |
# | any size | `mask=` in every load and store; `triton.cdiv(n, BLOCK)` programs |
# | reduction over a padded block | `other=-float("inf")` for max, `0.0` for sum; `tl.where` after subtracting |
# | two dimensions | `i[:, None] * stride + j[None, :]`; the fast index along memory |
# | block length | a power of two, at least the program's threads |
# | sizes | divisible by 16 give wide loads |
# | random | `tl.rand(seed, element number)` |
# | product | `tl.dot`, float32 total, epilogue before the store |
# | bytes of a product | 2 B · mnk · (1/BM + 1/BN) in float16 |
# | order | groups of about √wave rows; `min(tiles_m - first, GROUP)` |
# | fused chain | read inputs once, write outputs once, one launch |
#
# ### Claims you will meet, and what is right
#
# - *CUDA graphs fuse kernels.* They launch many cheaply; none is fused.
# - *A softmax is memory-efficient when written in place.* It needs less memory and moves the same bytes.
# - *Fuse convolution, ReLU, batch norm.* A batch norm folds only directly behind the convolution.
# - *`@jit` with bare `load` and a global `BLOCK`* is how Triton looked before its release. Today: `@triton.jit`, `tl.load`,
#   `BLOCK: tl.constexpr`; and what some print as its "LLVM IR" is Triton's own IR.
# - *SYCL is Intel's.* It is a Khronos standard; DPC++ is Intel's implementation.
# - *`torch.addmm` is `matmul` plus a bias.* For matrices only, and with weights the same way round: a Linear's are
#   transposed.
# - *MLIR is a compiler for networks.* It is a kit to build compilers.

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
# 7. AMD, *HIPIFY*. https://rocm.docs.amd.com/projects/HIPIFY
# 8. Khronos, *SYCL*. https://www.khronos.org/sycl/; AdaptiveCpp. https://github.com/AdaptiveCpp/AdaptiveCpp
# 9. OpenMP ARB, *OpenMP specification*. https://www.openmp.org/specifications/
# 10. Kokkos. https://kokkos.org; RAJA. https://github.com/LLNL/RAJA
# 11. J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#     https://doi.org/10.1145/2063384.2063405
# 12. Z. Jia, M. Zaharia, A. Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks", MLSys 2019.
#     https://arxiv.org/abs/1807.05358; C. Unger et al., "Unity", OSDI 2022.
# 13. Triton, *Debugging Triton*. https://triton-lang.org/main/programming-guide/chapter-3/debugging.html
# 14. PyTorch, *Helion*. https://github.com/pytorch/helion
# 15. NVIDIA, *CUDA Tile*. https://developer.nvidia.com/cuda/tile
# 16. NVIDIA, *CUTLASS Python DSLs*. https://docs.nvidia.com/cutlass/media/docs/pythonDSL/overview.html
