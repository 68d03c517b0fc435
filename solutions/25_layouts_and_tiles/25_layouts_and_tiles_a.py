# ---
# jupyter:
#   gpulab:
#     lab: "25"
#     hours: 3.5
#     topics: [C25.11, C25.12, C25.13]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 25A · Layouts
#
# **2.5 to 4.5 hours.** You have done labs 04 (sectors and bank conflicts) and 06B. Sections 1 to 4 are plain
# Python; in sections 5 and 6 kernels run on a simulated **A100**. You need no GPU.
#
# Every fast kernel spends most of its lines on one question: which thread touches which address? In CUDA C++ the
# answer is arithmetic with `threadIdx`, `/`, `%` and `^`. It has to be written again for each tile, and a mistake
# in it gives wrong results or a kernel that is eight times too slow. CUTLASS replaces that arithmetic with
# **layouts**: small objects that can be composed, divided and checked on paper. FlashAttention-3 is written with
# them.
#
# By the end you can
#
# 1. compute the offset that a layout gives to an index, and simplify a layout;
# 2. compose layouts, and divide one into tiles;
# 3. derive the swizzle that makes a tile free of bank conflicts;
# 4. copy and transpose in CuTe DSL with 128 bits for each thread;
# 5. find out why a kernel with a correct layout moves eight times too much.

# %%
import math

import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack

gpulab.start("25", gpu="A100")

# %% [markdown]
# ## 1 · A function with few numbers
#
# A **layout** is a function from an index to an offset in memory. It has a list of **modes**, each with a size and a
# stride, and is written sizes first: (4, 8):(8, 1) has a mode of size 4 with stride 8 and one of size 8 with stride 1.
# To evaluate it,
#
# 1. split the index into coordinates, where the *first* mode counts fastest;
# 2. multiply each coordinate by its stride and add the products up.
#
# For index 6 of (4, 8):(8, 1), the coordinates are 6 % 4 = 2 and 6 // 4 = 1, and the offset is 2 · 8 + 1 · 1 = 17.
#
# This lab writes a layout as a Python list of (size, stride) pairs.


# %%
def at(layout, index):
    """The offset that a layout gives to an index."""
    offset = 0
    for size, stride in layout:
        offset += index % size * stride
        index //= size
    return offset


at([(4, 8), (8, 1)], 6)

# %% [markdown]
# **Predict.** Which offset does (4, 8):(8, 1) give to index 13?

# %%
gpulab.predict("layout.offset", ...)


# %% [markdown]
# **See.** Three layouts with 4 × 8 coordinates. The first mode runs down the rows and the second along the columns; a
# number is the offset of its cell. The first layout is a matrix stored by rows, the second one stored by columns. The
# third has *two* modes along the columns, (2, 4):(4, 8): pairs of columns are kept together, as in a tile.


# %%
def table(layout, rows):
    """The offsets of a layout, drawn as `rows` rows: the first mode runs down."""
    size = int(np.prod([size for size, _ in layout]))
    return np.array([at(layout, index) for index in range(size)]).reshape(-1, rows).T


tables = {
    "(4, 8):(8, 1)": table([(4, 8), (8, 1)], 4),
    "(4, 8):(1, 4)": table([(4, 1), (8, 4)], 4),
    "(4, 2, 4):(1, 4, 8)": table([(4, 1), (2, 4), (4, 8)], 4),
}
gpulab.plot.fragments(
    {name: (offsets, offsets // 8) for name, offsets in tables.items()},
    "Offsets of three layouts. Cells of one colour lie in the same eight elements of memory. "
    "The second and third table are equal.",
)

# %% [markdown]
# The second and third layout are one function, although they are written with different numbers. The shorter form is
# better: it shows at a glance that four columns follow each other without a gap, which is what allows a wide copy. To
# **coalesce** a layout means to merge its modes wherever that changes no offset.
#
# When can two neighbouring modes be merged? In (4, 3):(2, 8) the first mode gives the offsets 0, 2, 4, 6, and the next
# step of the second mode goes to 8, which is where the first mode would have gone. So the layout is (12):(2).
#
# **Do.** Write `coalesce(layout)`.
#
# - `layout` is a list of (size, stride) pairs; sizes are at least 1, strides at least 0.
# - Output: the list with the fewest modes that gives the same offset to each index. A mode of size 1 adds nothing, so
#   leave it out. If nothing remains, the answer is `[(1, 0)]`.
# - Merge neighbours only. Do not sort modes, because that would change the function. Sizes are too large to try all
#   indices.
#
# About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "coalesce", "locked": false, "schema_version": 3, "solution": true, "task": false}
def coalesce(layout):
    ### BEGIN SOLUTION
    kept = []
    for size, stride in layout:
        if size == 1:
            continue
        if kept and kept[-1][0] * kept[-1][1] == stride:
            kept[-1] = (kept[-1][0] * size, kept[-1][1])
        else:
            kept.append((size, stride))
    return kept or [(1, 0)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "coalesce-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.coalesce", coalesce)

# %% [markdown]
# **Why.** A coalesced layout is unique, because the function determines each of its modes. The first stride is the
# offset of index 1. The first size is the first index at which the offset is no longer index · stride. There the
# second mode begins, and the same argument gives its stride and size, and so on. So two layouts are the same function
# exactly if they coalesce to the same modes. A compiler that is to copy 128 bits at once coalesces first, and then
# tests whether the first mode has stride 1 and at least 128 bits.
#
# ## 2 · A layout of a layout
#
# A block works on a tile of a matrix, a warp on a part of the tile, and a thread on a few elements of that part. Each of
# these steps is a layout: it says which indices of the level above are taken. To know which *addresses* a thread
# touches, you have to apply one layout after the other.
#
# ![A layout B takes an index to an index of A, and A takes that to an offset. The composition goes there directly.](drawings/composition.svg)
#
# The **composition** A ∘ B is the layout with (A ∘ B)(i) = A(B(i)). The composition is a layout again, with a short
# list of modes, and this makes the algebra useful.
#
# Take A = (4, 8):(8, 1) and B = (8):(2), which picks every second index.

# %%
outer, inner = [(4, 8), (8, 1)], [(8, 2)]
print("B(i):   ", [at(inner, i) for i in range(8)])
print("A(B(i)):", [at(outer, at(inner, i)) for i in range(8)])

# %% [markdown]
# Which layout gives the second list? Derive it from the modes.
#
# - A's first mode has size 4. Every second index takes its coordinates 0 and 2. These are two elements, 2 · 8 = 16
#   apart, which gives the mode (2, 16).
# - B takes eight elements, and two of them come from each turn of the first mode. So four steps of the second mode
#   are needed, with that mode's stride: (4, 1).
#
# The composition is (2, 4):(16, 1). Check: index 3 of it is (1, 1), offset 16 + 1 = 17, and A(B(3)) = A(6) = 17.
#
# If B's stride is larger than A's first mode, whole modes are skipped. With B = (4):(8), a step of 8 indices is two
# full turns of the first mode. So the first mode stays at 0, and the second mode moves by 8 / 4 = 2: the answer is
# (4):(2).
#
# **Do.** Write `compose(a, size, stride)`: the composition of `a` with the layout (size):(stride).
#
# - `a` is a coalesced list of (size, stride) pairs; `size` is at least 2, `stride` at least 1.
# - The stride always fits: it is a product of the sizes of whole modes of `a`, times a divisor of the size of the next
#   one. For a = (4, 8):(8, 1) it can be 1, 2, 4, 8 or 16, but not 3.
# - The picked indices stay inside `a`. What is taken from the last mode is a whole number of its steps.
# - Output: a list of (size, stride) pairs, coalesced.
#
# About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "compose", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compose(a, size, stride):
    ### BEGIN SOLUTION
    picked = []
    for length, step in a:
        if stride >= length:
            stride //= length
            continue
        taken = min(length // stride, size)
        picked.append((taken, step * stride))
        size, stride = size // taken, 1
        if size == 1:
            break
    return picked
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compose-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.compose", compose)

# %% [markdown]
# **See.** Eight lanes take elements of a matrix of 8 × 16 floats that is stored by rows. From one lane to the next,
# the index grows by 1, 4 or 8. The numbers are the offsets of lanes 0 to 7. Elements of one sector, which is eight
# floats, have the same colour; there are only four colours, so the eight sectors of the first row repeat them.

# %%
gpulab.need(compose)
matrix = [(8, 16), (16, 1)]
picks = {}
for stride in (1, 4, 8):
    offsets = np.array([[at(compose(matrix, 8, stride), lane) for lane in range(8)]])
    picks[f"(8):({stride})"] = offsets, np.unique(offsets // 8, return_inverse=True)[1].reshape(1, 8)
gpulab.plot.fragments(
    picks,
    "A step of 1 index goes down a column, into eight sectors. A step of 8 goes along a row and stays in one.",
)

# %% [markdown]
# **Why.** The index of a matrix (rows, columns) runs down the columns first, whatever the order in memory. So the
# next index means the next row, and only the *stride* of the composition says whether lanes are neighbours in memory.
#
# ## 3 · What a tile leaves over
#
# A tile says what one thread or block takes. Other threads or blocks must take the rest, and each element must be
# taken only once. The **complement** of a tile is the layout of the places at which copies of it must start, so
# that together they cover all offsets from 0 to n − 1.
#
# Take the tile (4):(2) and n = 24. It takes the offsets 0, 2, 4 and 6.
#
# - The odd offsets between them are left over. One more copy, started at 1, takes 1, 3, 5 and 7: the mode (2, 1).
# - Both copies fill 0 to 7. The next ones start at 8 and 16: three places that are 8 apart, the mode (3, 8).
#
# The complement is (2, 3):(1, 8).
#
# ![24 offsets. The tile takes 0, 2, 4, 6; its copy at 1 takes the odd ones; both are repeated at 8 and at 16.](drawings/complement.svg)
#
# **Do.** Write `complement(tile, n)`.
#
# - `tile` is a list of (size, stride) pairs in any order of strides. A mode of size 1 may have any stride; it adds
#   nothing.
# - The other modes never overlap. A mode *ends* at size · stride, and the stride of the next larger mode is a multiple of
#   that end. `n` is a multiple of the last end. (The tile (4):(2) ends at 8, and n = 24 is a multiple of 8.)
# - Output: the starts of the copies as a coalesced layout with increasing strides; `[(1, 0)]` if the tile covers
#   everything by itself.
#
# About 9 lines.


# %% nbgrader={"grade": false, "grade_id": "complement", "locked": false, "schema_version": 3, "solution": true, "task": false}
def complement(tile, n):
    ### BEGIN SOLUTION
    starts, end = [], 1
    for stride, size in sorted((stride, size) for size, stride in tile if size > 1):
        if stride > end:
            starts.append((stride // end, end))
        end = size * stride
    if n > end:
        starts.append((n // end, end))
    return starts or [(1, 0)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "complement-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.complement", complement)

# %% [markdown]
# With both functions you can divide anything. To cut a layout A into tiles (size):(stride) of its *indices*,
#
# - the elements within a tile are A ∘ (size):(stride);
# - the starts of the tiles are A ∘ C, where C is the complement of (size):(stride) in the number of A's indices. If C has
#   several modes, compose A with each of them and write the results one after the other.
#
# CuTe calls this a **logical divide**. Each kernel starts with one: the tile is what a block works on, and the block
# index picks the start.
#
# **Do.** Write `divide(a, size, stride)`.
#
# - `a` is a coalesced layout whose sizes are powers of two. `size` and `stride` are powers of two as well, and a tile
#   takes less than all of `a`.
# - Output: `[inside, starts]`, two coalesced layouts. You may call the functions that you have written.
#
# About 3 lines. Useful: `math.prod`.


# %% nbgrader={"grade": false, "grade_id": "divide", "locked": false, "schema_version": 3, "solution": true, "task": false}
def divide(a, size, stride):
    ### BEGIN SOLUTION
    rest = complement([(size, stride)], math.prod(length for length, _ in a))
    return [compose(a, size, stride), [mode for each in rest for mode in compose(a, *each)]]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "divide-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.divide", divide)

# %% [markdown]
# **See.** The matrix of 8 × 16 again, divided into four tiles of 32 elements in three ways. Each colour is a tile,
# and each number is a place within it. Below the figure, CuTe's own functions compute the examples of this lab. They
# print sizes and strides as you do.

# %%
gpulab.need(divide)
cuts = {}
for size, stride in ((32, 1), (32, 2), (32, 4)):
    inside, starts = divide(matrix, size, stride)
    place, tile = np.zeros((2, 128), int)
    for t in range(128 // size):
        for i in range(size):
            offset = at(inside, i) + at(starts, t)
            place[offset], tile[offset] = i, t
    cuts[f"tiles ({size}):({stride})"] = place.reshape(8, 16), tile.reshape(8, 16)
gpulab.plot.fragments(
    cuts,
    "Tiles of 32 elements: four columns, every second row of eight columns, or two rows. Each element is in one tile.",
)


# %%
@cute.jit
def own_algebra():
    a = cute.make_layout((4, 8), stride=(8, 1))
    print("coalesce  ", cute.coalesce(cute.make_layout((4, 3), stride=(2, 8))))
    print("compose   ", cute.composition(a, cute.make_layout(8, stride=2)))
    print("complement", cute.complement(cute.make_layout(4, stride=2), 24))
    print("divide    ", cute.logical_divide(a, cute.make_layout(8, stride=2)))


own_algebra()

# %% [markdown]
# **Why.** CuTe prints the divided layout as ((2, 4), (2, 2)):((16, 1), (8, 4)): modes may be nested, and the outer
# parentheses separate the modes inside a tile from those of the starts. Nesting has no other purpose. The function
# is the same as for a flat list.
#
# ## 4 · A permutation without conflicts
#
# Strides cannot express every useful order. A tile in shared memory is written along its rows and read down its
# columns, and shared memory has 32 banks of 4 bytes that repeat every 128 bytes (lab 04). In a tile with rows of 128
# bytes, all elements of a column are in the same bank. Lab 04 padded each row. A **swizzle** needs no additional
# memory: it permutes the elements within each row, and does so differently in each row.
#
# A swizzle (bits, base, shift) takes `bits` bits of an address, starting at bit `base`, and replaces each of them
# by its XOR with the bit `shift` places above it.


# %%
def swizzled(address, bits, base, shift):
    """The address, with `bits` bits from bit `base` on changed by those `shift` higher."""
    mask = ((1 << bits) - 1) << base
    return address ^ (address >> shift & mask)


for address in (0x000, 0x080, 0x100, 0x190):
    print(f"{address:012b} -> {swizzled(address, 3, 4, 3):012b}")

# %% [markdown]
# ![An address in bits: 4 bits within an access, 3 bits that choose a group of banks, then the row. The row's low bits are XORed into the three.](drawings/swizzle.svg)
#
# The swizzle (3, 4, 3) on addresses in bytes is the 128-byte swizzle of lab 23's copies. It suits rows of 128 bytes that
# are accessed 16 bytes at a time.
#
# - The lowest four bits (base = 4) stay as they are, because the 16 bytes of one access must lie together.
# - The next three bits, 4 to 6, choose which of eight pieces of a row is meant, and with it the group of banks.
# - Bits 7 to 9 are the row modulo 8. Since 4 + 3 = 7, they are the ones that are XORed in.
#
# How many lanes share a wavefront? A lane that accesses 16 bytes takes four banks of 4 bytes, so the 32 banks serve
# 128 / 16 = 8 lanes at once. In general they serve 128 / access lanes. Two of these lanes meet in a bank if their
# addresses differ by a multiple of 128 bytes.
#
# **Predict.** Rows have 64 bytes, and each lane reads 16 bytes of the same column in another row. How many of 8 lanes
# meet in the same bank, without a swizzle?

# %%
gpulab.predict("layout.colliding", ...)

# %% [markdown]
# **Do.** Write `swizzle(row, access)`, which returns `[bits, base, shift]` for addresses in bytes.
#
# - `row` is the length of a row in bytes, a power of two from 16 to 1,024; rows follow each other without a gap, and the
#   tile starts at address 0. `access` is 4, 8 or 16 bytes.
# - Any 128 / access lanes must need only one wavefront when they access the same column of neighbouring rows, or
#   neighbouring places of one row. The bytes of an access must stay together.
# - **Budget:** no bank conflict, and no more bits than necessary. Rows that are shorter than 128 bytes need fewer
#   bits: several of them lie side by side in the banks, and these rows do not conflict.
#
# About 4 lines. Start with rows of 128 bytes, and try your answers with the cell after the check.


# %% nbgrader={"grade": false, "grade_id": "swizzle", "locked": false, "schema_version": 3, "solution": true, "task": false}
def swizzle(row, access):
    ### BEGIN SOLUTION
    base = int(math.log2(access))
    shift = max(7, int(math.log2(row))) - base
    bits = int(math.log2(min(128, row) // access))
    return [bits, base, shift]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "swizzle-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.swizzle", swizzle)


# %% [markdown]
# **See.** A tile of 8 rows with 128 bytes each, in pieces of 16 bytes, and one with rows of 64 bytes. A number is the column
# of the tile that lies at this place. Two rows of 64 bytes lie side by side in the banks.


# %%
def stored(row, access, bits, base, shift):
    """Which column of the tile lies at each place: 8 rows of pieces."""
    columns = row // access
    found = np.zeros((8, columns), int)
    for r in range(8):
        for c in range(columns):
            place = swizzled(r * row + c * access, bits, base, shift)
            found[place // row, place % row // access] = c
    return found


gpulab.need(swizzle)
shown = {"without": stored(128, 16, 0, 4, 3), "swizzled": stored(128, 16, *swizzle(128, 16))}
shown["64 bytes"] = stored(64, 16, *swizzle(64, 16))
gpulab.plot.fragments(
    {name: (columns, columns) for name, columns in shown.items()},
    "Without a swizzle a column lies in one group of banks. Swizzled, its eight pieces are in eight groups.",
)

# %% [markdown]
# **Why.** Rows of 64 bytes need two bits only, because two rows share the 128 bytes after which the banks repeat.
# That is Hopper's 64-byte swizzle, and rows of 32 bytes give the 32-byte one. Your formula gives each of the three
# modes that Hopper's copy engine knows.
#
# ## 5 · Atoms that copy
#
# **CuTe DSL** is CUTLASS's language for kernels in Python. A tensor is a pointer and a layout; kernels have threads and
# barriers as in CUDA C++. A function with `@cute.kernel` runs on the device. One with `@cute.jit` runs on the host: it
# computes layouts while it is compiled, and launches kernels. Here is an addition, with plain indices.


# %%
@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    c[i] = a[i] + b[i]


@cute.jit
def launch_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(cute.size(a) // 128, 1, 1), block=(128, 1, 1))


a, b, c = (cp.asarray(np.arange(1024, dtype=np.float32)) for _ in range(3))
launch_add(from_dlpack(a), from_dlpack(b), from_dlpack(c))
report = gpulab.profile(launch_add, from_dlpack(a), from_dlpack(b), from_dlpack(c))
print("right:", np.array_equal(c.get(), 2 * a.get()))
print("load requests:", report["global_load_requests"])

# %% [markdown]
# Each lane loads 32 bits at a time. A thread can load 128, which takes a quarter of the instructions (lab 04). In CuTe the
# width is not written into the loop; it belongs to an **atom**, the smallest unit of work that the hardware knows:
# one instruction, and which threads and values take part. A **tiled copy** repeats an atom over threads and values by
# two layouts.
#
# | write | meaning |
# |---|---|
# | `cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=b)` | an atom that copies b bits of one thread |
# | `cute.make_tiled_copy_tv(atom, threads, values)` | a tiled copy: `threads` maps a place to a thread's number, `values` a place in its part to the number of a value |
# | `cute.zipped_divide(x, (n,))` | x in tiles of n: modes (tile, rest) |
# | `x[None, i]` | all of the first mode, at i of the second |
# | `move.get_slice(t)` | what thread t does in a tiled copy |
# | `.partition_S(x)`, `.partition_D(x)` | its part of a source, of a destination |
# | `cute.make_rmem_tensor_like(part)` | registers of the same shape |
# | `cute.copy(move, source, destination)` | copy, atom by atom |
#
# ![Threads 0, 1, 2 … with four values each: thread t has the elements 4·t to 4·t + 3.](drawings/thread_value.svg)
#
# **Predict.** How many load requests do 4,096 floats take with 128-bit copies?

# %%
gpulab.predict("layout.requests", ...)

# %% [markdown]
# **Do.** Write `copy(x, y)`: y = x. Three cells: the kernel, the host code that makes atoms and launches, and the function
# that passes arrays on.
#
# - `x` and `y` are float32 arrays of n numbers, n a multiple of 512. A block has 128 threads and copies 512 numbers.
# - `from_dlpack(x, assumed_align=16)` promises that an array starts at a multiple of 16 bytes. Without that promise no
#   128-bit load is allowed.
# - **Budget:** one load request and one store request for 128 numbers.
#
# About 5, 5 and 1 lines.


# %% nbgrader={"grade": false, "grade_id": "copy-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor, move: cute.TiledCopy):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    ### BEGIN SOLUTION
    mine = move.get_slice(thread)
    source = mine.partition_S(x[None, block])
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    cute.copy(move, held, mine.partition_D(y[None, block]))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "copy-host", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.jit
def launch_copy(x: cute.Tensor, y: cute.Tensor):
    ### BEGIN SOLUTION
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout(128), cute.make_layout(4))
    x, y = cute.zipped_divide(x, (512,)), cute.zipped_divide(y, (512,))
    copy_kernel(x, y, move).launch(grid=(x.shape[1][0], 1, 1), block=(128, 1, 1))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "copy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy(x, y):
    ### BEGIN SOLUTION
    launch_copy(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "copy-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.copy", copy)

# %% [markdown]
# **See.** Which lanes ask for which sectors: your copy of 1,024 numbers.

# %%
gpulab.need(copy)
gpulab.show(gpulab.profile(copy, a, b), view="accesses")

# %% [markdown]
# **Why.** Layouts did the index arithmetic, and the compiler checked it: a tiled copy whose values are not neighbours
# in memory, or whose alignment is unknown, is refused or split into narrower copies. The counts show which of these
# happened. The atom does not.
#
# ## 6 · A tile that turns
#
# A transpose reads rows and writes rows, so somewhere in between the data must turn. In lab 04 it did so in shared memory,
# one float at a time. With 128-bit copies a lane reads four neighbours of a row of x, but for a row of y it needs four
# neighbours of a *column* of x.
#
# ![A tile of 32 × 32. Thread t loads four elements of a row and stores them as one piece. Then it reads four elements of a column, one by one, and stores them as a row of y.](drawings/turning.svg)
#
# Reading a tile by columns takes no new code, only a composition. In the layout (32, 32):(32, 1) index 1 has the offset
# 32. In the tile, index 32 is the second element of the first row. So the tile composed with this layout has at its
# place (1, 0) what the tile has at (0, 1): it is the transpose. The same partition then reads down the columns.


# %%
@cute.jit
def turn():
    by_rows = cute.make_layout((32, 32), stride=(32, 1))
    print(by_rows, "composed with itself is", cute.composition(by_rows, by_rows))


turn()

# %% [markdown]
# | write | meaning |
# |---|---|
# | `cute.local_tile(x, (32, 32), (i, j))` | the tile of 32 × 32 at (i, j) of x |
# | `cute.make_swizzle(bits, base, shift)` | a swizzle, on *element* numbers |
# | `cute.make_composed_layout(swizzle, 0, layout)` | the layout, then the swizzle |
# | `cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 128)` | a tensor in shared memory, aligned to 128 bytes |
# | `cute.composition(tensor, layout)` | the tensor seen through a layout |
# | `cute.autovec_copy(source, destination)` | copy, as wide as both layouts allow |
#
# **Do.** Write `transpose(x, y)`: y = xᵀ.
#
# - `x` is (m, n) and `y` is (n, m), both float32, m and n multiples of 32. One block of 256 threads for each tile of
#   32 × 32.
# - The thread layout (32, 8):(8, 1) with values (1, 4) covers a tile: place (i, j) belongs to thread 8 · i + j. So thread
#   t has row t // 8, and eight threads share a row.
# - The swizzle counts in floats here, not in bytes. It must suit both accesses. The stores have 128 bits and go along
#   rows. The loads have 32 bits: when the warp loads its value e, e = 0 … 3, its 32 lanes take four neighbouring columns
#   of the tile in the eight rows e, 4 + e, 8 + e, …, 28 + e.
# - **Budget:** 128 bits for each lane in loads and stores of global memory; each float stored once to shared memory, also
#   with 128 bits, and loaded once, with 32; no bank conflict; 4,096 bytes of shared memory; full sectors.
#
# About 12, 5 and 1 lines.


# %% nbgrader={"grade": false, "grade_id": "transpose-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor, layout: cute.ComposedLayout, move: cute.TiledCopy):
    row, column, _ = cute.arch.block_idx()
    mine = move.get_slice(cute.arch.thread_idx()[0])
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 128)
    ### BEGIN SOLUTION
    turned = cute.composition(tile, cute.make_layout((32, 32), stride=(32, 1)))
    source = mine.partition_S(cute.local_tile(x, (32, 32), (row, column)))
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    cute.copy(move, held, mine.partition_D(tile))
    cute.arch.sync_threads()
    cute.autovec_copy(mine.partition_S(turned), held)
    cute.copy(move, held, mine.partition_D(cute.local_tile(y, (32, 32), (column, row))))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "transpose-host", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.jit
def launch_transpose(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    ### BEGIN SOLUTION
    swizzle = cute.make_swizzle(3, 2, 5)
    layout = cute.make_composed_layout(swizzle, 0, cute.make_layout((32, 32), stride=(32, 1)))
    threads, values = cute.make_layout((32, 8), stride=(8, 1)), cute.make_layout((1, 4))
    move = cute.make_tiled_copy_tv(atom, threads, values)
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    transpose_kernel(x, y, layout, move).launch(grid=grid, block=(256, 1, 1))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "transpose", "locked": false, "schema_version": 3, "solution": true, "task": false}
def transpose(x, y):
    ### BEGIN SOLUTION
    launch_transpose(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "transpose-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.transpose", transpose)

# %% [markdown]
# **See.** Which bank serves which lane in a load from the tile and in a store to it, and what warps do over time. The
# load is the access that the swizzle is for: its 32 lanes read from eight rows, and find 32 banks.

# %%
gpulab.need(transpose)
x, y = cp.asarray(np.arange(4096, dtype=np.float32).reshape(64, 64)), cp.empty((64, 64), cp.float32)
gpulab.show(gpulab.profile(transpose, x, y), view="banks")

# %%
gpulab.need(transpose)
gpulab.timeline(transpose, x, y)

# %% [markdown]
# **Why.** The swizzle changes one line of host code. Neither the copies nor the barrier know about it, because they only
# see a tensor with a layout. There is also a way without shared memory: a thread that holds 4 × 4 floats can turn them in
# its registers. It fills sectors exactly, but for halves it would need 8 × 8 values for each thread, 32 registers for
# what is loaded and as many for what is stored.
#
# ## Detective · Right, and eight times the sectors
#
# A colleague doubles a matrix. "The layout is correct. I compared every element, and there is not even shared memory that
# could have conflicts. But the profiler says that it touches eight times as many sectors as it needs."


# %%
@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor, move: cute.TiledCopy):
    row, column, _ = cute.arch.block_idx()
    mine = move.get_slice(cute.arch.thread_idx()[0])
    source = mine.partition_S(cute.local_tile(x, (32, 32), (row, column)))
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    held.store(2.0 * held.load())
    cute.copy(move, held, mine.partition_D(cute.local_tile(y, (32, 32), (row, column))))


@cute.jit
def launch_double(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4)), cute.make_layout((1, 1)))
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    double_kernel(x, y, move).launch(grid=grid, block=(128, 1, 1))


# %%
x, y = cp.asarray(np.arange(4096, dtype=np.float32).reshape(64, 64)), cp.empty((64, 64), cp.float32)
launch_double(from_dlpack(x), from_dlpack(y))
print("right:", np.array_equal(y.get(), 2 * x.get()))

# %% [markdown]
# **Do.** Find out which elements the lanes of a warp take in one request. Then write `slow(x, y)`, which does the
# same with an eighth of the sectors. Use the first cell for experiments: profile, draw, or evaluate the layout of
# threads.
#
# - `x` and `y` are (m, n) in float32, m and n multiples of 32. `double_kernel` may stay as it is; write your host
#   code in the second cell.
# - **Budget:** each sector of x and of y once.
#
# About 5 and 1 lines.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "slow-host", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.jit
def launch_slow(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    ### BEGIN SOLUTION
    threads = cute.make_layout((4, 32), stride=(32, 1))
    move = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 1)))
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    double_kernel(x, y, move).launch(grid=grid, block=(128, 1, 1))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "slow", "locked": false, "schema_version": 3, "solution": true, "task": false}
def slow(x, y):
    ### BEGIN SOLUTION
    launch_slow(from_dlpack(x), from_dlpack(y))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "slow-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("layout.slow", slow)

# %% [markdown]
# ### Your answer
#
# In three to five sentences: which elements do the lanes of one warp take in a request of the colleague's kernel, why does
# the result not show it, and what did you change? Cite the sectors of a request before and after. A person reads this: 1
# point for the cause, 1 point for the numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "slow-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The layout of threads is (32, 4) without strides, which is (32, 4):(1, 32). So the row counts fastest, and
# the 32 lanes of a warp are in 32 different rows of the same column: 32 sectors in each request, and 4 of the 32 bytes of
# each are used. The source and the destination are partitioned by the same layout, so each element comes back to its own
# place, and any layout that covers the tile is right. With (4, 32):(32, 1) a warp takes 32 neighbours of a row, 4 sectors
# a request, an eighth.
#
# **1 point** (cause without numbers): The lanes go down a column instead of along a row, so accesses are not coalesced.
#
# **0 points:** The copy is only 32 bits wide. Or: there are bank conflicts.

# %% [markdown]
# **Why.** A layout that covers a tile once is right, whatever the order of the threads. What it costs depends on
# which elements one warp takes at one time, so the order is the part to check. On a GPU the L1 cache can serve some
# of the repeated sectors; it cannot do so for the stores, nor for tiles that are larger than the cache.
#
# ## Beyond · Halves
#
# Open-ended and ungraded. Transpose a matrix of float16 with 128-bit copies on both sides: a lane then loads 8 elements
# of a row and stores 8 of a column. The figure of merit is **wavefronts of shared memory for each 128 elements**, for a
# tile of 64 × 64.
#
# | kernel | wavefronts for 128 elements |
# |---|---|
# | `transpose`, floats | the cell below |
# | bound for halves, each stored and loaded once | 4 |

# %%
gpulab.need(transpose)


def merit(function, dtype=np.float16):
    source = cp.asarray(np.arange(64 * 64).reshape(64, 64).astype(dtype))
    turned = cp.empty((64, 64), source.dtype)
    report = gpulab.profile(function, source, turned)
    if not np.array_equal(turned.get(), source.get().T):
        return "wrong"
    return report["shared_wavefronts"] / (64 * 64 / 128)


merit(transpose, np.float32)

# %%
# Your function, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which offset does (2, 3):(3, 1) give to index 3?</summary>
#
# 3 = 1 + 2 · 1: coordinate (1, 1), offset 3 + 1 = 4.
# </details>
#
# <details><summary>2. What is (4, 8):(1, 4), coalesced?</summary>
#
# (32):(1), because 4 · 1 = 4 is the second stride.
# </details>
#
# <details><summary>3. A tile takes every fourth of 64 offsets, 16 of them. What is its complement?</summary>
#
# (4):(1): it covers the rest if it starts at 0, 1, 2 and 3.
# </details>
#
# <details><summary>4. Rows of 256 bytes, accesses of 16 bytes. Which swizzle has no conflicts?</summary>
#
# (3, 4, 4): the row begins at bit 8, and 8 − 4 = 4.
# </details>
#
# <details><summary>5. Two tiled copies cover the same tile. Can one of them cost eight times the sectors?</summary>
#
# Yes. Sectors depend on which elements the lanes of one warp take at the same time.
# </details>

# %%
gpulab.recap("25")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | evaluate a layout | coordinates with the first mode fastest, times strides, added up |
# | merge (S, D) and (s, d) | allowed if d = S · D |
# | pick every stride-th index | skip whole modes, split one, go on with stride 1 |
# | divide into tiles | A ∘ tile, and A ∘ complement of the tile |
# | avoid conflicts | keep an access together, and change its bank by bits that differ between rows that collide |
# | swizzle elements instead of bytes | lower the base by log2(bytes of an element); the shift stays |
# | copy 128 bits | an atom of 128 bits, neighbouring values, `assumed_align=16` |
#
# ### Claims you will meet, and what is right
#
# - *A layout is row-major or column-major.* Those are two of very many. Tiles, warps and fragments have layouts with
#   several modes along one axis.
# - *A swizzle avoids all conflicts.* It avoids those of the accesses for which it was derived. Section 6 needs a
#   different swizzle from the 128-byte one.
# - *Padding and swizzles are equally good.* Padding costs memory, breaks the alignment of 128-bit accesses, and the copy
#   engine of Hopper does not write it.
# - *A copy atom of 128 bits copies 128 bits.* Only if values are neighbours and the alignment is known.
#
# ### References
#
# 1. NVIDIA, *CUTLASS: CuTe layout algebra*. https://docs.nvidia.com/cutlass/
# 2. NVIDIA, *CuTe DSL*. https://docs.nvidia.com/cutlass/media/docs/pythonDSL/overview.html
# 3. NVIDIA, *Parallel Thread Execution ISA*, swizzling modes. https://docs.nvidia.com/cuda/parallel-thread-execution/
# 4. J. Shah, G. Bikshandi, Y. Zhang, V. Thakkar, P. Ramani, T. Dao, "FlashAttention-3: Fast and Accurate Attention with
#    Asynchrony and Low-precision", 2024. https://arxiv.org/abs/2407.08608
