# ---
# jupyter:
#   gpulab:
#     lab: "23"
#     hours: 4
#     topics: [C25.3, C25.4, C25.5]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 23B · Copies by the tile: Hopper's TMA and clusters
#
# **3 to 5 hours.** You have done part A: rings, full and empty mbarriers, parities. You need no GPU. All kernels of
# this part run on a simulated **H100**, whichever GPU you have, because their instructions need compute capability
# 9.0.
#
# In part A every thread computed addresses and copied its own 16 bytes. A Hopper GPU has a copy engine in
# each SM that does this for a whole tile, the **Tensor Memory Accelerator** (TMA). One thread says "bring me
# this box of that array", and all threads wait at an mbarrier until it has arrived. FlashAttention-3 and
# every fast matrix product for Hopper are built on it.
#
# By the end you can
#
# 1. bring a tile to shared memory with one instruction and wait for its bytes at an mbarrier;
# 2. describe an array by a tensor map, and let the hardware swizzle a tile so that its columns have no bank conflicts;
# 3. leave the border of an image to the copy engine;
# 4. split a block into a warp that copies and warps that compute;
# 5. let the blocks of a cluster share a copy, and read each other's shared memory.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp

gpulab.start("23", gpu="H100")

# %% [markdown]
# ## 6 · One instruction for a tile
#
# A **bulk copy** moves contiguous bytes between global and shared memory. Its source, its destination and its
# length must be multiples of 16 bytes. A single thread issues it.
#
# ![With ordinary loads, 256 threads of a block compute 256 addresses and send 8 requests. With a bulk copy one thread sends one instruction, and the copy engine moves 4 KiB.](drawings/bulk.svg)
#
# How do the other threads know when the bytes have arrived? The copy reports to an mbarrier. On Hopper an
# mbarrier counts **bytes** in addition to arrivals: a phase is over when all arrivals *and* all announced
# bytes have come. So the thread that issues a copy first announces its bytes, and all threads that need them
# wait for the phase:
#
# | call | meaning |
# |---|---|
# | `ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, n)` | one arrival, and n bytes will come in this phase |
# | `ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to, from, n, &full)` | the copy; its bytes are counted at `full` |
# | `ptx::mbarrier_try_wait_parity(&full, p)` | like `test_wait`, but the thread may sleep for a while before it gets the answer |
#
# ![The phase of the mbarrier ends when its arrival has come and all announced bytes have come. At first one arrival and 4,096 bytes are missing; the copy brings the bytes piece by piece.](drawings/transaction.svg)
#
# Every kernel of this part needs two more things. After `mbarrier_init`,
# `ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster)` makes the new mbarriers visible to the copy
# engine, which is not a thread of your block. And tiles are declared `alignas(128)`, because the tensor
# copies of section 7 require it. The first cell has functions that most kernels of this part share: `expect`
# announces bytes, and `wait` waits for a phase. The second cell is a kernel that copies one tile at a time.


# %%
HEAD = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };   // section 7 needs it

__device__ void expect(unsigned long long* full, unsigned bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
}
__device__ void wait(unsigned long long* bar, int parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}
"""

# %%
TURN = (
    HEAD
    + r"""
extern "C" __global__ void turn(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[256];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        if (t == 0) {
            expect(&full, sizeof slot);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, x + k * 256, sizeof slot, &full);
        }
        wait(&full, k & 1);
        float4 v = slot[255 - t];
        __syncthreads();                  // all threads have read the slot: it may be overwritten
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
}
"""
)
turn = cp.RawKernel(TURN, "turn")
x = cp.asarray(np.arange(4 * 8 * 1024, dtype=np.float32))
out = cp.empty_like(x)
report = gpulab.profile(turn, (4,), (256,), (x, out, cp.int32(8)))
print("right:", np.array_equal(out.get(), x.get().reshape(-1, 1024)[:, ::-1].reshape(-1)))
print("copies:", report["bulk_load_requests"], " load requests of threads:", report["global_load_requests"])

# %% [markdown]
# **Predict.** How many load requests of 16 bytes a lane does one bulk copy of 4 KiB replace?

# %%
gpulab.predict("async.requests", ...)

# %% [markdown]
# **Do.** Write `bulk`, which reverses tiles of 1,024 floats as `turn` does, but with two slots, so that the
# next tile is always on its way.
#
# - 256 threads a block; `tiles` tiles for each block, at least one. Two slots, each with an mbarrier `full`.
# - Thread 0 issues the copies of the first two tiles before the loop, and that of tile k + 2 when all threads
#   have read tile k. There may be only one tile.
# - Tile k is in slot k mod 2; wait for the parity of its round, as in part A.
# - **Budget:** the next tile is on its way at every wait but the last; one copy a tile, and each tile
#   copied once; no loads by threads; one block barrier a tile and one before the loop.
#
# About 18 lines; `turn` has most of them.


# %% nbgrader={"grade": false, "grade_id": "bulk", "locked": false, "schema_version": 3, "solution": true, "task": false}
bulk = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void bulk(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[2][256];
    __shared__ unsigned long long full[2];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 256;
    out += blockIdx.x * tiles * 256;
    // ### BEGIN SOLUTION
    auto send = [&](int k) {
        expect(&full[k % 2], sizeof slot[0]);
        ptx::cp_async_bulk(
            ptx::space_cluster, ptx::space_global, slot[k % 2], x + k * 256, sizeof slot[0], &full[k % 2]);
    };
    if (t == 0) {
        ptx::mbarrier_init(&full[0], 1);
        ptx::mbarrier_init(&full[1], 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        for (int k = 0; k < 2 && k < tiles; k++) send(k);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        wait(&full[k % 2], k / 2 & 1);
        float4 v = slot[k % 2][255 - t];
        __syncthreads();
        if (t == 0 && k + 2 < tiles) send(k + 2);
        out[k * 256 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
    // ### END SOLUTION
}
""",
    "bulk",
)

# %% nbgrader={"grade": true, "grade_id": "bulk-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.bulk", bulk)

# %% [markdown]
# **See.** Both kernels on the same tiles: how many bytes of a block are still on their way after a wait.

# %%
gpulab.need(bulk)
reports = {
    kernel.name: gpulab.profile(kernel, (4,), (256,), (x, out, cp.int32(8))) for kernel in (turn, bulk)
}
gpulab.plot.bars(
    {name: report["bulk_bytes_in_flight"] for name, report in reports.items()},
    "bytes of a block in flight when it waits",
    budget=3584,
    more_is_better=True,
)

# %% [markdown]
# The next figure shows when the warps of your kernel work and when they wait:

# %%
gpulab.need(bulk)
gpulab.timeline(bulk, (1,), (256,), (x, out, cp.int32(8)))

# %% [markdown]
# And this is what the sanitizer says if thread 0 announces too few bytes:

# %%
gpulab.need(bulk)
too_few = cp.RawKernel(bulk.code.replace("sizeof slot[0]);\n        ptx", "2048);\n        ptx"), "bulk")
if too_few.code == bulk.code:
    print("Your kernel announces its bytes in another way: change the number by hand.")
try:
    print(gpulab.sanitize(too_few, (4,), (256,), (x, out, cp.int32(8))))
except Exception as error:
    print(error)

# %% [markdown]
# **Why.** The mbarrier adds the bytes that are announced and subtracts those that arrive. If 2,048 bytes too
# many arrive, the count is not zero when the copy is complete, so the threads wait for ever. On a GPU it can
# be worse: the first half of the copy may end the phase, so that threads read the second half of the slot
# before it is there. Which of the two happens depends on timing.
#
# ## 7 · Tiles of two dimensions
#
# A tile of a matrix is not contiguous: it consists of many short rows, each of which begins a stride of the matrix
# after the one before it. The engine can copy such a **box** with one instruction, too, if it knows the array. A
# **tensor map** describes it: the array's address, type, sizes and strides, and the box's sizes. The host makes the
# map once, and the kernel gets it as a parameter:
#
# ```c++
# __global__ void kernel(const __grid_constant__ CUtensorMap a, …)
# ```
#
# In CUDA the host calls `cuTensorMapEncodeTiled`, which takes twelve arguments, innermost dimension first.
# `gpulab.tensor_map(array, box, swizzle)` makes the same map in the order that NumPy uses. In the kernel, the
# coordinates of the box's first element are in elements, innermost first:
#
# ```c++
# int at[2] = {column, row};
# ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &a, at, &full);
# ```
#
# ![A tensor map describes an array in global memory: address, sizes, strides, and the shape of a box. A copy names the map and the coordinates of one box, which arrives in shared memory.](drawings/tensor_map.svg)
#
# The engine has rules for arrays and boxes. If a map breaks one, the CUDA driver returns only an error
# number. Here you get a sentence. The cell tries three such maps:

# %%
picture = cp.zeros((64, 96), cp.float32)
print("a map has", gpulab.tensor_map(picture, (32, 32)).nbytes, "bytes")
for array, box in ((picture, (32, 30)), (picture, (512, 32)), (cp.zeros((64, 50, 3), cp.uint8), (8, 16, 3))):
    try:
        gpulab.tensor_map(array, box)
    except Exception as error:
        print(error)

# %% [markdown]
# A tile of 32 rows × 128 bytes is stored in shared memory row after row, so the elements of a column are 128
# bytes apart, which puts them in the same bank. You know the problem from lab 04, where the remedy was a
# column of padding. A copied box has no padding. Instead the engine can **swizzle** it: within each row of
# 128 bytes it permutes the eight pieces of 16 bytes. Piece c of row r goes to place c XOR (r mod 8).
#
# ![Eight rows of eight pieces. Without a swizzle, piece 2 of every row lies in the third place. With the swizzle it lies in a different place in each of the eight rows.](drawings/swizzle.svg)
#
# The next cell prints where the pieces of eight rows lie, one row a line:

# %%
for r in range(8):
    print(f"row {r}:", "  ".join(f"piece {r ^ place}" for place in range(8)))

# %% [markdown]
# **Predict.** Without a swizzle: a warp reads the same 16-byte pixel from each of 32 rows of 128 bytes. How many
# wavefronts does it take?

# %%
gpulab.predict("async.column", ...)

# %% [markdown]
# **Do.** Write `transpose(a, out)`: `a` is an image of pixels with four floats each, of shape (rows, cols, 4), and
# `out[c, r]` becomes `a[r, c]`. It takes two cells: the kernel, and the host function that makes the map and launches.
#
# - One block of 256 threads for each tile of 32 rows × 8 pixels, that is, rows of 128 bytes. Bring it with one tensor
#   copy.
# - The map describes the image as a matrix of floats: `a.reshape(rows, 4 * cols)`, with boxes of 32 × 32
#   floats and the 128-byte swizzle. The tile must start at a multiple of 1,024 bytes, hence `alignas(1024)`.
# - A box that reaches beyond the image still brings 4,096 bytes; what is outside arrives as 0.
# - Let each warp write 32 neighbouring pixels of one row of `out`. Rows and columns beyond the image are not
#   written; `rows` and `cols` may be any numbers from 1 up.
# - **Budget:** one copy for each tile, no bank conflicts, no loads by threads, no padding, and no more sectors of
#   `out` than rows of neighbouring pixels need.
#
# About 12 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "tile-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
transposing = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void transposing(const __grid_constant__ CUtensorMap a, float4* out, int rows, int cols) {
    __shared__ alignas(1024) float4 tile[32][8];
    __shared__ unsigned long long full;
    // ### BEGIN SOLUTION
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof tile);
        int at[2] = {int(blockIdx.x) * 32, int(blockIdx.y) * 32};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &a, at, &full);
    }
    __syncthreads();
    wait(&full, 0);
    int row = threadIdx.x % 32, col = threadIdx.x / 32;
    float4 pixel = tile[row][col ^ row % 8];
    row += blockIdx.y * 32, col += blockIdx.x * 8;
    if (row < rows && col < cols) out[col * rows + row] = pixel;
    // ### END SOLUTION
}
""",
    "transposing",
)


# %% nbgrader={"grade": false, "grade_id": "tile", "locked": false, "schema_version": 3, "solution": true, "task": false}
def transpose(a, out):
    rows, cols, _ = a.shape
    ### BEGIN SOLUTION
    tiles = gpulab.tensor_map(a.reshape(rows, 4 * cols), (32, 32), swizzle=128)
    grid = (-(-cols // 8), -(-rows // 32))
    transposing(grid, (256,), (tiles, out, cp.int32(rows), cp.int32(cols)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tile-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.tile", transpose)

# %% [markdown]
# **See.** The same kernel with and without the swizzle, in the map and in the index. The cell changes
# `col ^ row % 8` in your kernel to `col`.

# %%
gpulab.need(transpose)
picture = cp.asarray(np.random.default_rng(0).random((64, 24, 4), dtype=np.float32))
turned = cp.empty((24, 64, 4), cp.float32)
plain = cp.RawKernel(transposing.code.replace("col ^ row % 8", "col"), "transposing")
if plain.code == transposing.code:
    print("Your kernel writes col ^ row % 8 in another way: take the swizzle out by hand.")
for name, kernel, swizzle in (("without", plain, 0), ("with", transposing, 128)):
    tiles = gpulab.tensor_map(picture.reshape(64, 96), (32, 32), swizzle)
    report = gpulab.profile(kernel, (3, 2), (256,), (tiles, turned, cp.int32(64), cp.int32(24)))
    right = np.array_equal(turned.get(), picture.get().transpose(1, 0, 2))
    print(
        f"{name:7} swizzle: right {right}, {report['shared_load_wavefronts']:5,} wavefronts for shared loads"
    )
    gpulab.show(report, view="banks")

# %% [markdown]
# **Why.** A warp's request for 512 bytes takes at least four wavefronts, each of which serves 8 lanes. Rows r to r
# + 7 have their piece c in eight different places, so those 8 lanes meet all 32 banks, once each. Swizzles of 64
# and 32 bytes do the same for tiles with narrower rows. The tensor cores of Hopper read their operands in these
# layouts, which is why lab 24 needs them again.
#
# ## 8 · The border comes for free
#
# A stencil computes each element from its neighbours, so a tile needs a border around it, and at the edge of
# the image that border is outside. You know the code for this case: an `if` for each of the four sides. The
# copy engine needs no such code. A box may begin outside the array, even at negative coordinates, and
# whatever is outside arrives as 0. These zeros count among the announced bytes, so you always announce a
# whole box. In the other direction, a copy from shared memory to the array leaves out whatever would be
# outside.
#
# ![A box of 10 by 34 elements reaches beyond the upper left corner of the image. Its elements outside of the image arrive as zeros.](drawings/border.svg)
#
# The cell copies a box of 4 × 8 elements that begins at row −1 and column −2 of an array of ones.

# %%
CORNER = (
    HEAD
    + r"""
extern "C" __global__ void corner(const __grid_constant__ CUtensorMap a, float* out) {
    __shared__ alignas(128) float box[4][8];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof box);
        int at[2] = {-2, -1};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &a, at, &full);
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = (&box[0][0])[threadIdx.x];
}
"""
)
found = cp.empty((4, 8), cp.float32)
ones = cp.asarray(np.ones((16, 16), np.float32))
cp.RawKernel(CORNER, "corner")((1,), (32,), (gpulab.tensor_map(ones, (4, 8)), found))
print(found.get().astype(int))

# %% [markdown]
# When the engine copies a tile back to global memory, it reads shared memory that your threads have written.
# The engine is not a thread of the block, so a barrier is not enough. Each thread first makes its own stores
# visible to the engine with `ptx::fence_proxy_async(ptx::space_shared)`, and then all threads meet at a
# barrier. One thread issues the copy and waits until it is complete. (It must at least wait until the tile
# has been read, because shared memory is gone when the block ends.)
#
# ```c++
# ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, tile);
# ptx::cp_async_bulk_commit_group();
# ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
# ```
#
# **Do.** Write `blur(a, out)`: `out` is half of each element and an eighth of each of its four neighbours (above,
# below, left, right). What is outside of the image counts as 0.
#
# - `a` and `out` are images of float32, of shape (rows, cols). `cols` is a multiple of 4, because a map's strides
#   are multiples of 16 bytes; `rows` may be any number from 1 up.
# - One block of 32 × 8 threads for each tile of 8 rows × 32 columns; `threadIdx.x` is the column.
# - A row of a box must be a multiple of 16 bytes, too. The 34 floats that you need are 136 bytes, so the box
#   has 36, of which the last two are not used.
# - **Budget:** one copy in and one copy out for each tile; threads access shared memory only.
#
# About 20 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "edge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
blurring = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void blurring(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap out) {
    __shared__ alignas(128) float in[10][36];
    __shared__ alignas(128) float result[8][32];
    __shared__ unsigned long long full;
    // ### BEGIN SOLUTION
    int c = threadIdx.x, r = threadIdx.y, col = blockIdx.x * 32, row = blockIdx.y * 8;
    if (r == 0 && c == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        expect(&full, sizeof in);
        int at[2] = {col - 1, row - 1};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, in, &a, at, &full);
    }
    __syncthreads();
    wait(&full, 0);
    float around = in[r][c + 1] + in[r + 2][c + 1] + in[r + 1][c] + in[r + 1][c + 2];
    result[r][c] = 0.5f * in[r + 1][c + 1] + 0.125f * around;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (r == 0 && c == 0) {
        int at[2] = {col, row};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, result);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
    // ### END SOLUTION
}
""",
    "blurring",
)


# %% nbgrader={"grade": false, "grade_id": "edge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blur(a, out):
    rows, cols = a.shape
    ### BEGIN SOLUTION
    maps = gpulab.tensor_map(a, (10, 36)), gpulab.tensor_map(out, (8, 32))
    blurring((-(-cols // 32), -(-rows // 8)), (32, 8), maps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "edge-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.edge", blur)

# %% [markdown]
# **See.** Which thread wrote what. In each block one thread wrote the whole tile, because it issued the copy.

# %%
gpulab.need(blur)
gpulab.show("async.edge", blur, view="threads")

# %% [markdown]
# **Why.** The kernel never compares an index with the size of the image, and no thread is idle at its edge.
# The engine compares coordinates as it copies. It can do so because the map says where the array ends, which
# a pointer does not.
#
# ## 9 · A warp that only copies
#
# Now combine part A's handshake with Hopper's copies. This is called **warp specialisation**: one warp, the
# producer, does nothing but issue copies, and the others compute. A consumer needs no registers for
# addresses, and the producer needs hardly any registers at all.
#
# ![Warp 4 waits for an empty slot, announces bytes and sends a copy. Warps 0 to 3 wait for the slot to be full, compute, and arrive at empty, one lane each.](drawings/roles.svg)
#
# The numbers of arrivals differ from part A. `full[s]` is initialised for one arrival, that of the lane which
# announces the bytes. `empty[s]` is initialised for four, one for each consumer warp. One lane may arrive for
# its warp only when all lanes have read the slot, and `__syncwarp()` before the arrival makes sure of that.
#
# **Do.** Write `roles`, which reverses tiles of 512 floats with five warps and four slots.
#
# - 160 threads a block. Warps 0 to 3 are the consumers; each of their 128 threads reverses one `float4` of
#   every tile. Warp 4 is the producer, and one of its lanes does the work.
# - `tiles` tiles a block, at least one.
# - **Budget:** one block barrier, after the initialisation; no warp both issues copies and writes `out`; all
#   four slots are used in turn; no loads by threads; one copy a tile.
#
# About 24 lines.


# %% nbgrader={"grade": false, "grade_id": "roles", "locked": false, "schema_version": 3, "solution": true, "task": false}
roles = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void roles(const float4* x, float4* out, int tiles) {
    __shared__ alignas(128) float4 slot[4][128];
    __shared__ unsigned long long full[4], empty[4];
    int t = threadIdx.x, warp = t / 32;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    // ### BEGIN SOLUTION
    if (t < 4) {
        ptx::mbarrier_init(&full[t], 1);
        ptx::mbarrier_init(&empty[t], 4);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (warp == 4) {
        if (t % 32 == 0)
            for (int k = 0; k < tiles; k++) {
                int s = k % 4;
                wait(&empty[s], (k / 4 & 1) ^ 1);
                expect(&full[s], sizeof slot[0]);
                ptx::cp_async_bulk(
                    ptx::space_cluster, ptx::space_global, slot[s], x + k * 128, sizeof slot[0], &full[s]);
            }
    } else {
        for (int k = 0; k < tiles; k++) {
            int s = k % 4;
            wait(&full[s], k / 4 & 1);
            float4 v = slot[s][127 - t];
            __syncwarp();
            if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
            out[k * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
    // ### END SOLUTION
}
""",
    "roles",
)

# %% nbgrader={"grade": true, "grade_id": "roles-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.roles", roles)

# %% [markdown]
# **See.** The producer is up to four tiles ahead, so four copies are on their way while the consumers work.

# %%
gpulab.need(roles)
tiles = cp.asarray(np.arange(12 * 512, dtype=np.float32))
gpulab.timeline(roles, (1,), (160,), (tiles, cp.empty_like(tiles), cp.int32(12)))

# %% [markdown]
# **Why.** In `bulk` all warps met at a barrier in every turn, so the fastest warp waited for the slowest. Here a
# consumer warp can be four tiles ahead of another. Matrix products go further: the producer gives most of its
# registers back (`setmaxnreg`), and the consumers take them for their sums.
#
# ## 10 · Four blocks share a copy
#
# Before Hopper, blocks could exchange data through global memory only. Now up to eight of them can be launched as a
# **cluster**: they run at the same time, on SMs of one GPC, and can reach each other's shared memory. `__cluster_dims__(4, 1, 1)` in
# front of a kernel's name makes clusters of four blocks; `ptx::get_sreg_cluster_ctarank()` is a block's rank in its
# cluster.
#
# A copy can be a **multicast**: its source is read once, and the bytes arrive at the same place in the shared
# memory of several blocks. In each of these blocks they are counted at the mbarrier at the same place as
# `full`. So *every* block that receives a multicast has to announce its bytes at its own mbarrier, although
# only one block issues the copy. A mask with one bit for each rank names the blocks:
#
# ```c++
# ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to, from, bytes, &full, (1 << 4) - 1);
# ```
#
# ![Without a cluster, four blocks read the same piece of v four times. With a multicast it is read once and arrives in all four blocks.](drawings/multicast.svg)
#
# Because a copy now writes into other blocks, they have to be ready. Before the first copy, all of them must
# have initialised their mbarriers. Before the next one, all must have read their tile. A **barrier of the
# cluster** makes sure of that. All threads of all four blocks call `ptx::barrier_cluster_arrive()` and then
# `ptx::barrier_cluster_wait()`; the function `meet()` below does both.
#
# **Predict.** Eight rows of 1,024 floats are multiplied by the same v, in clusters of four blocks, one row a block. How
# many bytes of v are read?

# %%
gpulab.predict("async.multicast", ...)

# %% [markdown]
# **Do.** Write `share`: `out[r, i] = a[r, i] * v[i]`.
#
# - `a` and `out` are (rows, n) in float32, `v` is (n,). `rows` is a multiple of 4 and `n` a multiple of 256.
# - One block of 256 threads for each row; four neighbouring blocks are a cluster. Work on pieces of 256 floats.
# - Each block copies its piece of `a` itself. The piece of `v` is copied once for the four.
# - **Budget:** `a` is copied once, and `v` once for four rows; no loads by threads.
#
# About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "share", "locked": false, "schema_version": 3, "solution": true, "task": false}
share = cp.RawKernel(
    HEAD
    + r"""
__device__ void meet() {                  // all threads of the cluster
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) share(const float* a, const float* v, float* out, int n) {
    __shared__ alignas(128) float of_a[256], of_v[256];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    a += blockIdx.x * n;
    out += blockIdx.x * n;
    // ### BEGIN SOLUTION
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    meet();
    for (int k = 0; k < n / 256; k++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_v);
            ptx::cp_async_bulk(
                ptx::space_cluster, ptx::space_global, of_a, a + k * 256, sizeof of_a, &full);
            if (ptx::get_sreg_cluster_ctarank() == 0)
                ptx::cp_async_bulk(
                    ptx::space_cluster, ptx::space_global, of_v, v + k * 256, sizeof of_v, &full, (1 << 4) - 1);
        }
        wait(&full, k & 1);
        out[k * 256 + t] = of_a[t] * of_v[t];
        meet();
    }
    // ### END SOLUTION
}
""",
    "share",
)

# %% nbgrader={"grade": true, "grade_id": "share-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.share", share)

# %% [markdown]
# **See.** The bytes that are copied in for 8 rows of 1,024 floats, beside those that four copies of v would take.

# %%
gpulab.need(share)
a, v = cp.asarray(np.ones((8, 1024), np.float32)), cp.asarray(np.ones(1024, np.float32))
report = gpulab.profile(share, (8,), (256,), (a, v, cp.empty_like(a), cp.int32(1024)))
alone = a.nbytes + 8 * v.nbytes
gpulab.plot.bars(
    {"v for every row": alone, "v once for four rows": report["bulk_load_bytes"]}, "bytes copied in"
)

# %% [markdown]
# **Why.** Matrix products gain most from this. Blocks in one row of the output need the same tiles of A, those in one
# column the same tiles of B. In clusters of 2 × 2 blocks every tile is read once for two blocks, so the bytes that
# leave the L2 cache are halved.
#
# ## 11 · Shared memory of other blocks
#
# A softmax over a long row took three passes in lab 05, or two. Either way the row was read more than once,
# because a block has too little room to keep it. Four blocks have four times the room, and each has to tell
# the others only two numbers: its maximum and its sum. With **distributed shared memory** a thread reads them
# directly from the shared memory of another block:
#
# ```c++
# #include <cooperative_groups.h>
# auto cluster = cooperative_groups::this_cluster();
# float other = *cluster.map_shared_rank(&mine, rank);   // mine in the block of that rank
# cluster.sync();                                        // all threads of all blocks
# ```
#
# ![Four blocks keep a quarter of a row each. Every block writes its maximum to its own shared memory, and after a barrier of the cluster every block reads all four.](drawings/distributed.svg)
#
# **Do.** Write `gather`: `out[r]` is the softmax of `x[r]`.
#
# - `x` and `out` are (rows, n) in float32, with n from 1 to 4,096. Four blocks of 256 threads, a cluster, work on one
#   row; each thread keeps up to four elements in registers.
# - Subtract the row's maximum, as in lab 05.
# - `CUDART_INF_F` is infinity, from `<math_constants.h>`. `over_block(x, largest, parts)` below returns to
#   all threads of a block the largest of their values, or the sum if `largest` is false. Use another row of
#   `parts` for each of the two calls.
# - A row can be so short that some blocks have no element of it. They still have to take part in every
#   barrier.
# - When a block ends, its shared memory is gone. So no block may return while another one may still read from
#   it.
# - **Budget:** each element is read once and written once, and no block reads more than 1,024 elements of a row.
#
# About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "gather", "locked": false, "schema_version": 3, "solution": true, "task": false}
gather = cp.RawKernel(
    r"""
#include <cooperative_groups.h>
#include <math_constants.h>
namespace cg = cooperative_groups;

__device__ float over_block(float x, bool largest, float* parts) {   // parts: 8 floats of shared memory
    for (int d = 16; d; d /= 2) {
        float y = __shfl_xor_sync(~0u, x, d);
        x = largest ? fmaxf(x, y) : x + y;
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int w = 1; w < 8; w++) x = largest ? fmaxf(x, parts[w]) : x + parts[w];
    return x;
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) gather(const float* x, float* out, int n) {
    __shared__ float parts[2][8], largest, sum;
    auto cluster = cg::this_cluster();
    int first = cluster.block_rank() * 1024 + threadIdx.x;   // then first + 256, + 512, + 768
    x += blockIdx.x / 4 * n;
    out += blockIdx.x / 4 * n;
    // ### BEGIN SOLUTION
    float v[4], top = -CUDART_INF_F, total = 0;
    for (int j = 0; j < 4; j++) {
        int i = first + 256 * j;
        v[j] = i < n ? x[i] : -CUDART_INF_F;
        top = fmaxf(top, v[j]);
    }
    top = over_block(top, true, parts[0]);
    if (threadIdx.x == 0) largest = top;
    cluster.sync();
    for (int rank = 0; rank < 4; rank++) top = fmaxf(top, *cluster.map_shared_rank(&largest, rank));
    for (int j = 0; j < 4; j++) total += v[j] = expf(v[j] - top);
    total = over_block(total, false, parts[1]);
    if (threadIdx.x == 0) sum = total;
    cluster.sync();
    total = 0;
    for (int rank = 0; rank < 4; rank++) total += *cluster.map_shared_rank(&sum, rank);
    for (int j = 0; j < 4; j++)
        if (first + 256 * j < n) out[first + 256 * j] = v[j] / total;
    cluster.sync();
    // ### END SOLUTION
}
""",
    "gather",
)

# %% nbgrader={"grade": true, "grade_id": "gather-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.gather", gather)

# %% [markdown]
# **See.** What the sanitizer says if the last `cluster.sync()` is missing.

# %%
gpulab.need(gather)
rows = cp.asarray(np.random.default_rng(3).standard_normal((2, 4000)).astype(np.float32))
soft = cp.empty_like(rows)
before, sync, _ = gather.code.rpartition("cluster.sync();")
if sync:
    hasty = cp.RawKernel(before + "}\n", "gather")
    try:
        print(gpulab.sanitize(hasty, (8,), (256,), (rows, soft, cp.int32(4000))))
    except Exception as error:
        print(error)
else:
    print(
        "Your kernel contains no `cluster.sync();` that this cell could leave out. Which barrier is its last?"
    )

# %% [markdown]
# ## Beyond · The least to send
#
# Open-ended and ungraded. Write a kernel that reverses tiles of 1,024 floats for 4 blocks with 16 tiles each,
# and choose everything else. The figure of merit is **warp instructions per tile**, counted in PTX. A copy
# can also go back to global memory, and fewer threads can move more bytes each.
#
# | kernel | warp instructions per tile |
# |---|---|
# | `bulk` | the cell below |
# | bound: 8 warps · (one load, one store) | 16 |

# %%
gpulab.need(bulk)
many = cp.asarray(np.random.default_rng(2).random(4 * 16 * 1024, dtype=np.float32))


def merit(kernel, threads=256):
    found = cp.empty_like(many)
    report = gpulab.profile(kernel, (4,), (threads,), (many, found, cp.int32(16)))
    if not np.array_equal(found.get(), many.get().reshape(-1, 1024)[:, ::-1].reshape(-1)):
        return "wrong"
    return f"{report['instructions'] / 64:.0f}"


merit(bulk)

# %%
# Your kernel, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. When is a phase of an mbarrier over, if a bulk copy reports to it?</summary>
#
# When all arrivals that it was initialised for and all bytes that were announced in this phase have come.
# </details>
#
# <details><summary>2. Which blocks announce the bytes of a multicast?</summary>
#
# Every block that receives it, at its own mbarrier, although only one block issues the copy.
# </details>
#
# <details><summary>3. A tile of 16-byte pieces is swizzled by 128 bytes. Where is piece 5 of row 11?</summary>
#
# At place 5 XOR 3 = 6, since 11 mod 8 is 3.
# </details>
#
# <details><summary>4. Threads wrote a tile and met at a barrier; then one thread copies it to global memory by a bulk
# copy. What is missing?</summary>
#
# `fence_proxy_async` by every thread that wrote, before the barrier. The engine accesses shared memory
# through the async proxy, which does not see the writes of threads without a fence.
# </details>
#
# <details><summary>5. Why does a kernel with distributed shared memory end with a barrier of the cluster?</summary>
#
# A block's shared memory is gone when the block ends, and another block may not have read it yet.
# </details>

# %%
gpulab.recap("23")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | announce bytes | `mbarrier_arrive_expect_tx(…, &full, bytes)`, once a phase and arrival |
# | copy a row of bytes | `cp_async_bulk(space_cluster, space_global, to, from, bytes, &full)` |
# | copy a box | `cp_async_bulk_tensor(…, tile, &map, {column, row}, &full)` |
# | make a map | `gpulab.tensor_map(array, box, swizzle)`; CUDA: `cuTensorMapEncodeTiled` |
# | read a swizzled tile | piece c of row r at `c ^ r % 8` (128 bytes) |
# | copy back | `fence_proxy_async`, barrier, copy, `commit_group`, `wait_group` |
# | share a copy | the same with a mask of ranks at the end |
# | meet in a cluster | `barrier_cluster_arrive(); barrier_cluster_wait();` or `cluster.sync()` |
# | read another block's memory | `*cluster.map_shared_rank(&value, rank)` |
#
# ### Claims you will meet, and what is right
#
# - *TMA is a faster cp.async.* It moves the same bytes at the same rate. What it saves is threads, registers and
#   address arithmetic, and it brings swizzles, borders and multicasts.
# - *All 32 lanes of the producer warp issue copies.* One does. If all do, each tile is copied 32 times.
# - *A cluster is a larger block.* It has its own barrier, and its blocks can read each other's shared memory, but each
#   keeps its own registers, its own shared memory and its own `__syncthreads()`.
# - *`__syncthreads()` makes stores visible everywhere.* Only to the threads of the block. The copy engine needs a proxy
#   fence in addition.
# - *Clusters can have 16 blocks.* Eight is what every GPU of compute capability 9.0 runs; 16 must be requested by an
#   attribute and are not portable.
#
# ### References
#
# 1. NVIDIA, *CUDA Programming Guide*: asynchronous copies with the Tensor Memory Accelerator, thread block clusters.
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 2. NVIDIA, *Parallel Thread Execution ISA*: `cp.async.bulk`, `cp.async.bulk.tensor`, tensor maps and their swizzles.
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
# 3. NVIDIA, *NVIDIA H100 Tensor Core GPU Architecture*, 2022.
# 4. J. Shah, G. Bikshandi, Y. Zhang, V. Thakkar, P. Ramani, T. Dao, *FlashAttention-3: Fast and Accurate Attention with
#    Asynchrony and Low-precision*, 2024. https://arxiv.org/abs/2407.08608
# 5. NVIDIA, *CUTLASS*: producer and consumer warps for Hopper. https://docs.nvidia.com/cutlass/
