# ---
# jupyter:
#   gpulab:
#     lab: "07"
#     hours: 2
#     topics: [C4.10, C4.11, C7.2, C7.3, C7.4, C7.5, C7.6, C7.8, C11.1]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07B · CuPy and what surrounds a kernel
#
# **2 to 3.5 hours.** You need part A and lab 06A. You do not need a GPU.
#
# A kernel is never alone. Something brings its data, something launches it, something manages its memory, and other
# work runs beside it. This part is about these surroundings. It is also about getting kernels without writing them
# yourself.
#
# By the end of this lab, you can
#
# 1. say how many launches and bytes a line of array code costs, and make one kernel of it;
# 2. plan copies and kernels on streams so that they overlap, and keep the order where it matters;
# 3. say what a CUDA graph saves, and what it does not;
# 4. read what a memory pool holds, and choose between pageable, pinned and unified memory;
# 5. compute a convolution in three ways, and count what each costs.
#
# The simulator has two limits here. It has no clock and runs one thing at a time, so overlap is **modelled**, by a
# few lines of Python that you will use yourself. And array functions such as `a + b` are computed by NumPy, so only
# kernels are counted.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import hardware, plot
from gpulab.profile.engines import Operation, makespan, schedule

gpulab.start("07")

# %% [markdown]
# ## 1 · NumPy's names, the device's memory
#
# **CuPy** offers NumPy's interface for arrays on the device. `cp.asarray(host)` copies an array to the device, and
# `array.get()` copies it back. No other call crosses the bus by itself. A function that should accept both kinds of
# arrays asks `cp.get_array_module(x)` which module to use.
#
# ![NumPy's names work on two memories. A call on CuPy's arrays stays on the device; only asnumpy and asarray cross the bus.](drawings/device_arrays.svg)
#
# Shapes and strides mean the same as in NumPy, and they decide which elements are neighbours in memory. A batch of
# images has four axes: N images, C channels, H rows and W columns. **Channels first** (NCHW) stores the pixels of a
# channel together. **Channels last** (NHWC) stores the channels of a pixel together. PyTorch's `channels_last` is a
# tensor whose shape still reads N, C, H, W, but whose strides are those of NHWC. Tensor cores need the channels
# together, so 16-bit convolutions are faster with channels last. A mean over each channel prefers channels first.
#
# **Predict.** A tensor of shape (8, 3, 224, 224) is stored channels last. How many elements apart are two
# neighbouring pixels of the same channel in a row?

# %%
gpulab.predict("cupy.stride", ...)

# %%
first = cp.empty((8, 3, 224, 224), cp.float32)
last = cp.empty((8, 224, 224, 3), cp.float32).transpose(0, 3, 1, 2)
for name, x in (("channels first", first), ("channels last", last)):
    print(f"{name:15} shape {x.shape}   strides in elements {tuple(s // x.itemsize for s in x.strides)}")

# %% [markdown]
# ## 2 · One line for each element
#
# On a GPU every operator of CuPy is a kernel. So `a * x + b` takes two launches and a temporary array, which the
# first kernel writes and the second reads.
#
# ![Written with operators, z = (x − y)² is two kernels with an array between them. As one ElementwiseKernel it reads x and y once and writes z once.](drawings/elementwise.svg)
#
# **Predict.** a, x and b are arrays of a million float32 numbers each. How many MB does `a * x + b` move, with one
# kernel for each operator?

# %%
gpulab.predict("cupy.temporaries", ...)

# %% [markdown]
# **Kernel fusion** makes one kernel of several. This saves launches and temporary arrays. CuPy offers three ways.
# `cp.fuse` decorates a function of arrays. In a RawKernel you write everything yourself. For an **ElementwiseKernel**
# you write one line of C++, and CuPy adds the loop, the bounds, and the broadcasting of arrays with different shapes.

# %%
multiply = cp.ElementwiseKernel("T x, T y", "T z", "z = x * y", "multiply")
add = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
axpy = cp.ElementwiseKernel("T a, T x, T b", "T z", "z = a * x + b", "axpy")

a, x, b = (cp.asarray(np.random.default_rng(k).random(2**16, dtype=np.float32)) for k in range(3))
for name, run in (
    ("an operator a kernel", lambda a, x, b: add(multiply(a, x), b)),
    ("fused", lambda a, x, b: axpy(a, x, b)),
):
    report = gpulab.profile(run, a, x, b)
    print(
        f"{name:22}launches: {report['launches']}   bytes per element: {report['global_bytes'] / 2**16:.0f}"
    )

# %% [markdown]
# `T` stands for any type, as in a template. A kernel may have several outputs: `"T s, T d"` with the statements `"s =
# x + y; d = x - y"` returns both. If you pass arrays for the outputs after the inputs, the kernel writes into them.
#
# In inference, a **batch norm** with a ReLU computes max((x − mean) / √(var + eps) · gamma + beta, 0). It works on a
# matrix of n rows, and each of its c columns has its own mean, variance, gamma and beta. Most of this arithmetic does
# not depend on x. **Folding** does that part in advance, so that each column needs only one factor and one shift.
# After a convolution, even these two can be folded into its weights and bias. (The order matters: convolution, norm,
# ReLU. A norm after a ReLU cannot be folded.)
#
# **Do.** Write the host function `normalise(x, mean, var, gamma, beta, out)`, which makes and launches
# ElementwiseKernels. About 12 lines.
#
# - Input: `x`, a float32 matrix of shape (n, c), and four float32 vectors of length c. eps = 1e-5. Output: `out`, of
#   the same shape as `x`.
# - C++ has `rsqrtf(v)` for 1/√v, and `fmaxf(a, b)` for the larger of two floats. CuPy compiles each text only once.
# - Do not use array functions such as `cp.sqrt(var)` or `gamma * var`. NumPy would compute them on the host, and the
#   check counts launches only.
# - **Budget:** 2 launches, and 16 bytes per element plus 10 %. Full marks need both.


# %% nbgrader={"grade": false, "grade_id": "normalise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def normalise(x, mean, var, gamma, beta, out):
    ### BEGIN SOLUTION
    fold = cp.ElementwiseKernel(
        "float32 mean, float32 var, float32 gamma, float32 beta",
        "float32 scale, float32 shift",
        "scale = gamma * rsqrtf(var + 1e-5f); shift = beta - mean * scale",
        "fold",
    )
    apply = cp.ElementwiseKernel(
        "float32 x, float32 scale, float32 shift",
        "float32 out",
        "out = fmaxf(x * scale + shift, 0.0f)",
        "apply",
    )
    apply(x, *fold(mean, var, gamma, beta), out)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "normalise-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cupy.normalise", normalise)

# %%
gpulab.need(normalise)
subtract = cp.ElementwiseKernel("T x, T y", "T z", "z = x - y", "subtract")
inverse_root = cp.ElementwiseKernel("T v", "T r", "r = rsqrtf(v + 1e-5f)", "inverse_root")
relu = cp.ElementwiseKernel("T x", "T z", "z = fmaxf(x, 0.0f)", "relu")
at_once = cp.ElementwiseKernel(
    "T x, T mean, T var, T gamma, T beta",
    "T out",
    "out = fmaxf((x - mean) * rsqrtf(var + 1e-5f) * gamma + beta, 0.0f)",
    "at_once",
)


def step_by_step(x, mean, var, gamma, beta, out):
    relu(add(multiply(multiply(subtract(x, mean), inverse_root(var)), gamma), beta), out)


numbers = np.random.default_rng(1)
batch = cp.asarray(numbers.random((512, 96), dtype=np.float32))
vectors = [cp.asarray(numbers.random(96, dtype=np.float32)) for _ in range(4)]
result = cp.empty_like(batch)
moved = {}
for name, run in (
    ("an operator a kernel", step_by_step),
    ("all in one kernel", lambda *arrays: at_once(*arrays)),
    ("yours", normalise),
):
    report = gpulab.profile(run, batch, *vectors, result)
    moved[f"{name} ({report['launches']})"] = report["global_bytes"] / batch.size
plot.bars(
    moved,
    "bytes that the threads ask for, per element; launches in parentheses",
    caption="One kernel saves four matrices; a column's root computed once saves loads of vectors, too.",
)

# %% [markdown]
# **Why.** The step-by-step version writes and reads four matrices that nobody needs. The version with everything in
# one kernel has one launch, but each element computes the same root as all others in its column. The caches make the
# repeated loads of the vectors cheap. So on a GPU the bytes from DRAM matter most: both fused versions move 8 per
# element, and the step-by-step version moves 40.
#
# ## 3 · Many into one
#
# A **ReductionKernel** takes four expressions. The **map** sees the inputs. The **reduce** expression combines two
# mapped values, which are always called `a` and `b`. The **post-map** sees the reduced value, called `a`, and assigns
# the output. The **identity** is the value with which the reduction starts. From them CuPy generates the tree in
# shared memory that you wrote by hand in lab 05.

# %%
largest = cp.ReductionKernel(
    "T x", "T z", map_expr="fabsf(x)", reduce_expr="max(a, b)", post_map_expr="z = a", identity="0"
)
float(largest(cp.asarray(np.array([1, -7, 3], np.float32))).get())

# %% [markdown]
# **Do.** Write the host function `rms(x, y, out)`, which computes for each row the root of the mean square
# difference, √(mean((x − y)²)). About 8 lines.
#
# - Input: `x` and `y`, float32 matrices of the same shape. Output: `out`, float32, one number for each row.
# - Launch one ReductionKernel, with `axis=1, out=out`.
# - `sqrtf` is the square root of a float. In the post-map, `_in_ind.size() / _out_ind.size()` is the number of
#   elements that were reduced to one result.
# - **Budget:** one launch, and each element read once. Full marks need both.


# %% nbgrader={"grade": false, "grade_id": "rms", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rms(x, y, out):
    ### BEGIN SOLUTION
    kernel = cp.ReductionKernel(
        "float32 x, float32 y",
        "float32 z",
        map_expr="(x - y) * (x - y)",
        reduce_expr="a + b",
        post_map_expr="z = sqrtf(a / (_in_ind.size() / _out_ind.size()))",
        identity="0",
        name="root_mean_square",
    )
    kernel(x, y, axis=1, out=out)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rms-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cupy.rms", rms)

# %% [markdown]
# **See.** The bytes of your kernel, beside those of four kernels that do one step each.

# %%
gpulab.need(rms)
total = cp.ReductionKernel(
    "T x", "T z", map_expr="x", reduce_expr="a + b", post_map_expr="z = a", identity="0", name="total"
)
root = cp.ElementwiseKernel("T v, int32 n", "T r", "r = sqrtf(v / n)", "root")


def rms_in_four_kernels(x, y, out):
    difference = subtract(x, y)
    root(total(multiply(difference, difference), axis=1), cp.int32(x.shape[1]), out)


left, right = (cp.asarray(numbers.random((200, 333), dtype=np.float32)) for _ in range(2))
of_rows = cp.empty(200, cp.float32)
runs = {
    "four kernels": gpulab.profile(rms_in_four_kernels, left, right, of_rows),
    "yours": gpulab.profile(rms, left, right, of_rows),
}
plot.bars(
    {f"{name} ({run['launches']})": run["global_bytes"] / left.size for name, run in runs.items()},
    "bytes that the threads ask for, per element; launches in parentheses",
    caption="A reduction that maps first reads its two inputs and writes nothing in between.",
)

# %% [markdown]
# **Why.** `cp.sqrt(((x - y) ** 2).mean(axis=1))` says the same in one line of Python, but it takes four kernels. The
# difference and its square are arrays as large as the inputs. In a memory-bound program the time is the time to move
# their bytes.
#
# ## 4 · Streams, events and engines
#
# A **stream** is a queue. Its operations run one after the other, and operations of different streams may run at the
# same time. Streams are ordered only by **events**: `event = a.record()` puts a mark into stream a, and
# `b.wait_event(event)` lets stream b continue only after the mark has been reached.
#
# ```python
# with reader:                          # a stream
#     x.set(host)                       # copy in, from pinned memory
#     ready = reader.record()
# worker.wait_event(ready)              # without this line: a race
# with worker:
#     kernel(…, (x,))
# ```
#
# A race between streams is an especially bad fault, because usually the copy is fast enough and the result is right.
#
# A GPU has **engines** that work at the same time: one that copies in, one that copies out, and the SMs. In the model
# of this lab an operation starts as soon as its stream, its engine and the events that it waits for allow it. Each
# engine handles its operations in the order in which they were issued. Each of the three stages takes a time of 1 for
# all data, so in c chunks it takes 1/c per chunk.
#
# **Predict.** How long do 8 chunks take if they overlap as well as they can? And how long do they take with a single
# copy engine for both directions, if each chunk's copy in, kernel and copy out are issued before those of the next
# chunk?

# %%
gpulab.predict("cupy.overlap", ...)
gpulab.predict("cupy.one_copy_engine", ...)


# %%
def chunk_by_chunk(chunks, streams, engines=("in", "kernel", "out")):
    return [
        Operation(f"stream {k % streams}", engine, 1 / chunks, label=str(k))
        for k in range(chunks)
        for engine in engines
    ]


def drawn(operations, ax=None):
    spans = [
        plot.Span(each.engine, when.start, when.stop, each.label, str(each.stream))
        for each, when in zip(operations, schedule(operations), strict=True)
    ]
    return plot.timeline(spans, "stages", ax)


print("one stream, one chunk           ", makespan(chunk_by_chunk(1, 1)))
print("one copy engine, chunk by chunk ", makespan(chunk_by_chunk(8, 8, ("copy", "kernel", "copy"))))
drawn(chunk_by_chunk(8, 8, ("copy", "kernel", "copy")))

# %% [markdown]
# The copy in of chunk 1 waits in the copy engine's queue behind the copy out of chunk 0, and that waits for the
# kernel. So in spite of eight streams nothing overlaps. Data-centre GPUs have an engine for each direction (or more).
# Many older consumer cards had only one, so there the order of issue matters. From here on there are two.
#
# **Do.** Write the function `pipeline(chunks, buffers)`, which returns a plan. About 5 lines.
#
# - The plan is a list of operations in the order of issue, each of the form
#
# ```python
# {"stream": 0, "do": "in", "chunk": 0, "after": []}
# ```
#
# - `"do"` is `"in"`, `"kernel"` or `"out"`. `"after"` lists the places in the plan (from 0) of operations that this
#   one waits for, as with events. You may leave it out.
# - Chunk k is kept in buffer `k % buffers`.
# - A stream or an event must keep each kernel from starting before its copy in, and each copy in from overwriting a
#   chunk that is still needed. The order of an engine does not count as a guarantee.
# - **Budget:** the shortest possible time in the model, 1.25 for 8 chunks in 3 buffers. Full marks need it for every
#   number of chunks and buffers.


# %% nbgrader={"grade": false, "grade_id": "pipeline", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pipeline(chunks, buffers):
    ### BEGIN SOLUTION
    return [
        {"stream": k % buffers, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pipeline-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cupy.pipeline", pipeline)

# %% [markdown]
# **See.** Your plan with one, two and three buffers, on the model's clock. In the figure each stream has its own
# colour.


# %%
def operations_of(plan, chunks):
    return [
        Operation(each["stream"], each["do"], 1 / chunks, tuple(each.get("after") or ()), str(each["chunk"]))
        for each in plan
    ]


gpulab.need(pipeline)
for buffers in (1, 2, 3):
    print(f"buffers: {buffers}   makespan: {makespan(operations_of(pipeline(8, buffers), 8)):.3f}")
drawn(operations_of(pipeline(8, 3), 8))

# %% [markdown]
# **A second look.** A colleague gives each engine its own stream, and says: "The order is right anyway." This plan is
# even shorter than the bound. Why?


# %%
def by_engine(chunks, buffers):
    return [{"stream": do, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")]


print(makespan(operations_of(by_engine(8, 3), 8)))

# %% [markdown]
# Write down your reason. Then run the check.

# %%
gpulab.check("cupy.pipeline", by_engine, attempt=False)

# %% [markdown]
# Everything starts at once, so kernels compute on data that have not arrived yet. On a GPU the copies may be slightly
# ahead, and the result may be right for months. Only events or a shared stream guarantee it.
#
# **Why.** With one stream per buffer you need no events, because the next copy into a buffer waits in the queue
# behind the last copy out of it. One stream per engine works as well, with two events for each chunk. More chunks
# bring the time closer to 1, until the overhead of a copy or a launch is as large as the chunk. The longest stage
# sets the pace. Two kernels on two streams overlap only if the first leaves SMs free.
#
# ## 5 · What a graph saves
#
# ![Without a graph each of five small kernels waits for its launch. A graph is launched once and its kernels follow one another at once.](drawings/graph.svg)
#
# Every launch costs the CPU a few microseconds, and a small kernel may run for less than that. A **CUDA graph** is a
# sequence of launches that is recorded once (**capture**) and then started as a whole. Nothing runs while a stream is
# capturing.

# %%
from gpulab import simulated_cupy as simulated  # on every machine, because it counts

x = simulated.zeros(1024, np.float32)
three = [simulated.ElementwiseKernel("T x", "T y", f"y = x {op}", name) for op, name in
         (("+ 1", "plus_one"), ("* 2", "times_two"), ("- 3", "minus_three"))]  # fmt: skip

stream = simulated.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    for kernel in three:
        kernel(x, x)
    graph = stream.end_capture()
print("after the capture:", x.get()[0])

calls = {"launched one by one": 0, "as a graph": 0}
kernels = {"launched one by one": 0, "as a graph": 0}
for step in range(20):
    kernels["as a graph"] += gpulab.profile(graph.launch)["launches"]
    calls["as a graph"] += 1
    for kernel in three:
        kernels["launched one by one"] += gpulab.profile(kernel, x, x)["launches"]
        calls["launched one by one"] += 1
for way in calls:
    print(f"{way:19} calls of the host: {calls[way]}   kernels run: {kernels[way]}")

# %% [markdown]
# **Why.** The same number of kernels runs, with the same bytes, but the host makes only one call. A graph fuses
# nothing. It keeps the addresses of its arrays, so new inputs must be copied into the old arrays (`x[...] = new`).
# Before a capture with PyTorch, a few warm-up steps must run on the capturing stream, with `wait_stream` before and
# after them. A decision that the host makes in the middle (an `if` on a result, a size that changes) cannot be
# captured. CUDA 12.3 and later have conditional nodes for some such cases.
#
# There is another way to avoid launches: one kernel whose blocks wait for each other. **Cooperative groups** offer
# `this_grid().sync()` for this, provided there are no more blocks than the GPU holds at once. There was also a group
# over several GPUs, but CUDA 13 dropped it.
#
# ## 6 · Memory that is kept
#
# `cudaMalloc` is a slow call into the driver, and `cudaFree` waits until the GPU has finished its work. CuPy
# therefore has a **memory pool**, as PyTorch does: freed memory stays in the pool and is used for the next array that
# fits. Sizes are rounded up to multiples of 512 bytes.
#
# ![A pool keeps freed blocks. A new array takes a kept block that is large enough. The pool asks the device only when there is none.](drawings/pool.svg)
#
# **Predict.** Three arrays of 1,000,000 bytes are made and freed one after the other. How many bytes does the pool
# hold after that?

# %%
gpulab.predict("cupy.held", ...)

# %%
pool = cp.cuda.MemoryPool()
used, held = [0], [0]


def note():
    used.append(pool.used_bytes() / 1e6)
    held.append(pool.total_bytes() / 1e6)


with cp.cuda.using_allocator(pool.malloc):
    for _ in range(3):
        array = cp.empty(1_000_000, cp.uint8)
        note()
        del array
        note()
    print(f"after three arrays of 1,000,000 B, one after the other: {pool.total_bytes():,} B held")
    several = []
    for size in (400_000, 400_000, 1_000_000, 200_000):
        several.append(cp.empty(size, cp.uint8))
        note()
    del several[0]
    note()
    several.append(cp.empty(600_000, cp.uint8))
    note()
    del several
    note()
    pool.free_all_blocks()
    note()

ax = plot.axes(7, 2.8)
ax.step(range(len(held)), held, where="post", color=plot.ALARM)
ax.step(range(len(used)), used, where="post", color=plot.DEEP)
ax.annotate("held by the pool", (8.1, held[8] + 0.08), color=plot.ALARM, ha="right")
ax.annotate("used by arrays", (8.3, 0.5), color=plot.DEEP)
for step, words in ((10, "200,000 B: rounding"), (12, "600,000 B: fragmentation")):
    ax.annotate(
        words,
        (step, held[step]),
        (step - 0.4, held[step] + 0.25),
        ha="right",
        color=plot.INK,
        arrowprops={"arrowstyle": "->", "color": plot.INK},
    )
ax.set(xlabel="arrays made or freed, in order", ylabel="MB")
plot.picture(
    ax,
    "Between the lines memory is free and the pool keeps it; arrows show where it asks for more all the same.",
)

# %% [markdown]
# Where the two lines differ, the pool holds free memory. At step 10 the first block has 199,680 bytes left, but
# 200,000 bytes are rounded up to 200,192, so the pool asks the device for more. At step 12 two free pieces have
# 600,064 bytes together, which is exactly what 600,000 bytes are rounded up to. But neither piece is large enough
# alone, so the pool asks again. This is called **fragmentation**.
#
# | memory | what it is | what it means for you |
# |---|---|---|
# | pageable host memory | ordinary host memory | copies go through a pinned buffer of the driver, and do not overlap |
# | **pinned** | pages that stay in their place | the GPU copies directly (DMA): full speed, asynchronous; less memory is left for the system |
# | **unified** | one address for both sides | pages move when they are touched; a first touch costs a page fault |
# | stream-ordered pool (`cudaMallocAsync`) | the driver's own pool | freeing waits for a stream, not for the CPU |
# | virtual memory management (`cuMemCreate`, `cuMemMap`) | addresses and pages are managed separately | arrays can grow in place |

# %%
pinned = cp.cuda.alloc_pinned_memory(4 * 1000)
host = np.frombuffer(pinned, np.float32, 1000)
host[:] = np.arange(1000)
on_device = cp.asarray(host)
print("from pinned memory:", on_device.get()[-1])

# %% [markdown]
# **Unified memory** (`cp.cuda.malloc_managed`) moves pages when they are needed. Since Pascal and CUDA 8 it may be
# larger than the GPU's memory, and `cudaMemPrefetchAsync` moves pages in advance. **Compressed memory** (A100 and
# later) must be requested for each allocation, and it saves bandwidth, not space. Several processes on one GPU can
# take turns (**time slicing**), run side by side and share its faults (**MPS**), or each own a part of it (**MIG**).
#
# ## 7 · Convolution three ways
#
# A convolution layer with K filters of C × r × r takes K · C · r² products for each output pixel. The three ways
# below compute the same sums. They differ in what they store and in how many products they take.
#
# ![Three ways to compute a convolution: a sum at each position of the filter, one large product after the patches have been laid out as rows, and fewer products by Winograd's trick.](drawings/convolution.svg)
#
# - **im2col** writes the r² · C inputs of every output pixel into a column. Then the layer is one matrix product. An
#   *implicit* GEMM builds these columns in shared memory and never writes them to global memory.
# - **FFT** multiplies spectra. The number of products per pixel does not depend on r.
# - **Winograd** needs fewer products for small filters, and a few more additions.
#
# **Predict.** F(2, 3) computes two outputs of a filter with three taps from four products. How many products per
# output does it take for a 3 × 3 filter, if it is used along both axes?

# %%
gpulab.predict("cupy.tile", ...)

# %% [markdown]
# **The puzzle.** Along one axis, two outputs are y₀ = d₀g₀ + d₁g₁ + d₂g₂ and y₁ = d₁g₀ + d₂g₁ + d₃g₂. That is six
# products. Choose (d₀ − d₂)·g₀ and (d₁ − d₃)·g₂ as two of the four new products. If you subtract the first from y₀
# and add the second to y₁, two sums are left:
#
#     u = d₁ · g₁ + d₂ · (g₀ + g₂)          v = d₁ · (g₀ + g₂) + d₂ · g₁
#
# In v the two factors of d₁ and d₂ are exchanged, so two products are enough for both sums.
#
# **Do.** Write the function `winograd()`, which returns `{"inputs": …, "weights": …, "outputs": …}`. About 5 lines.
#
# - Each value is a list of rows of numbers. Product k is (row k of inputs · d) times (row k of weights · g).
# - Each row of outputs gives one y, as a sum of the products with these factors. So with 4 products the lists are 4 ×
#   4, 4 × 3 and 2 × 4.
# - **Budget:** 4 products. Full marks need it and the right y. The check verifies every coefficient.


# %% nbgrader={"grade": false, "grade_id": "winograd", "locked": false, "schema_version": 3, "solution": true, "task": false}
def winograd():
    ### BEGIN SOLUTION
    return {
        "inputs": [[1, 0, -1, 0], [0, 1, 1, 0], [0, 1, -1, 0], [0, 1, 0, -1]],
        "weights": [[1, 0, 0], [0.5, 0.5, 0.5], [-0.5, 0.5, -0.5], [0, 0, 1]],
        "outputs": [[1, 1, 1, 0], [0, 1, -1, -1]],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "winograd-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cupy.winograd", winograd)

# %% [markdown]
# **See.** All three ways on one layer, with 8 channels, 8 filters of 3 × 3 and an image of 18 × 18. The third uses
# your matrices, along both axes. Products and extra memory are counted from the shapes of the arrays that the code
# makes.

# %%
gpulab.need(winograd)
numbers = np.random.default_rng(3)
image, filters = numbers.standard_normal((8, 18, 18)), numbers.standard_normal((8, 8, 3, 3))
C, K, r, P = 8, 8, 3, 16  # channels, filters, taps, output pixels along an axis
windows = np.lib.stride_tricks.sliding_window_view(image, (r, r), axis=(1, 2))
direct = np.einsum("cyxij,kcij->kyx", windows, filters)

columns = windows.transpose(0, 3, 4, 1, 2).reshape(C * r * r, P * P)
by_matrix = (filters.reshape(K, -1) @ columns).reshape(K, P, P)

spectra, of_filters = np.fft.rfft2(image), np.fft.rfft2(filters, (18, 18))
products = np.einsum("cyx,kcyx->kyx", spectra, of_filters.conj())
by_fft = np.fft.irfft2(products, (18, 18))[:, :P, :P]

inputs, weights, outputs = (np.array(winograd()[name]) for name in ("inputs", "weights", "outputs"))
tiles = np.lib.stride_tricks.sliding_window_view(image, (4, 4), axis=(1, 2))[:, ::2, ::2]
of_tiles = np.einsum("ua,cyxab,vb->cyxuv", inputs, tiles, inputs)
of_weights = np.einsum("ua,kcab,vb->kcuv", weights, filters, weights)
sums = np.einsum("cyxuv,kcuv->kyxuv", of_tiles, of_weights)
by_winograd = np.einsum("pu,kyxuv,qv->kypxq", outputs, sums, outputs).reshape(K, P, P)

ways = {  # name: result, real products of the main step, numbers kept besides input, filters and output
    "im2col": (by_matrix, K * columns.size, columns.size),
    "FFT": (by_fft, 4 * of_filters.size, 2 * (spectra.size + of_filters.size + products.size)),
    "Winograd": (by_winograd, K * of_tiles.size, of_tiles.size + of_weights.size + sums.size),
}
print(f"{'':10}largest error   products per output   extra numbers per output")
for name, (result, count, extra) in ways.items():
    error = np.abs(result - direct).max()
    print(f"{name:10}{error:13.1e}{count / direct.size:22.1f}{extra / direct.size:27.1f}")

# %% [markdown]
# **See.** How the number of products changes with the size of the filter, for an image of 56 × 56 and many channels.
# The figure shows products per output pixel, filter and channel. It leaves out the transforms, whose cost many
# channels and filters share. This is modelled from the formulas.

# %%
sizes = np.arange(1, 12)
side = 56
full = side + sizes - 1  # the FFT's side: no output may wrap around
by_size = {
    "direct, im2col": sizes**2,
    "FFT, all of the image": 4 * full * (full // 2 + 1) / side**2,
    "Winograd F(2, r)": ((sizes + 1) / 2) ** 2,
}
ax = plot.axes(7, 3.2)
for (name, values), colour, at, shift in zip(
    by_size.items(), (plot.DEEP, plot.LEAF, plot.ALARM), (5, 8, 9), ((-8, 2), (0, -14), (6, -12)), strict=True
):
    ax.plot(sizes, values, "o-", color=colour, markersize=4)
    ha = "right" if shift[0] < 0 else "left"
    ax.annotate(name, (sizes[at], values[at]), xytext=shift, textcoords="offset points", color=colour, ha=ha)
ax.set(
    xlabel="taps of the filter along an axis, r",
    ylabel="products per output",
    yscale="log",
    xticks=sizes,
    xlim=(0.5, 13),
)
plot.picture(
    ax, "Direct costs grow with r², Winograd's a quarter as fast; the FFT's stay, and win from r = 4 on."
)

# %% [markdown]
# **Why.** For 3 × 3 filters Winograd takes 4 products where the direct way takes 9. FFT takes about two, whatever the
# filter. Its cost is in the transforms and in the complex arrays, so it saves time only for large filters. Larger
# Winograd tiles save more products but lose accuracy, because their matrices contain larger numbers. All of this
# counts products, and tensor cores have made products cheap: cuDNN's Winograd is "not supported on Hopper+" (comment
# in its header). What usually runs is implicit GEMM on tensor cores.
#
# A library tries several ways and remembers the best: `torch.backends.cudnn.benchmark = True` times the algorithms at
# the first call with each shape. With `deterministic = True` it only tries algorithms that repeat their results, but
# next time it may choose another of them, whose results differ in the last bits. For reproducible runs leave it off,
# and use `torch.use_deterministic_algorithms(True)`. Some algorithms need **workspace**, which is memory besides
# input and output, and they are not used where there is too little.
#
# ## 8 · Who has written it already
#
# Most kernels that a network needs have been written already. So the first question about an operation is which
# library has it:
#
# | library | what it offers | from Python |
# |---|---|---|
# | cuBLAS, cuBLASLt, CUTLASS | matrix products (lab 06) | `cp.matmul`, `torch.matmul` |
# | cuDNN | convolution, attention and norms, fused as graphs; its old functions for single operations are deprecated | `torch.nn.functional.conv2d` |
# | cuFFT | Fourier transforms | `cp.fft`, `torch.fft` |
# | cuRAND | random numbers | `cp.random` |
# | cuSOLVER | factorisations, eigenvalues, linear equations | `cp.linalg`, `torch.linalg` |
# | cuSPARSE | sparse matrices | `cupyx.scipy.sparse` |
# | Thrust, CUB, libcu++ (CCCL) | sorting, scans and reductions in C++ | `cp.sort`, `cp.cumsum` |
# | NCCL | collectives between GPUs | `torch.distributed` |
# | TensorRT | inference of a whole network | `torch_tensorrt` |
# | RAPIDS (cuDF, cuML) | data frames, machine learning | `cudf`, `cuml` |
#
# (CuPy's documentation, "Overview" and "Installation", lists the CUDA libraries that it calls. A call may choose
# between several, so ask a profiler for the names of the kernels.)
#
# <details><summary>Which library? (a) The sum of a gradient over eight GPUs. (b) The eigenvalues of a covariance
# matrix. (c) The 50 largest of a million scores. (d) A 3 × 3 convolution in half precision. (e) The product of a
# matrix with 1 % of its entries and a vector.</summary>
#
# (a) NCCL. (b) cuSOLVER. (c) CUB, or what the framework builds on it. (d) cuDNN. (e) cuSPARSE.
# </details>
#
# The CPU has a good BLAS too, so it is a fair opponent. Measure yours before you praise a GPU.

# %%
import time

n = 1024
left, right = (np.random.default_rng(k).random((n, n), dtype=np.float32) for k in range(2))
times = []
for _ in range(5):
    start = time.perf_counter()
    left @ right
    times.append(time.perf_counter() - start)
rate = 2 * n**3 / min(times)
peak = float(hardware.find("A100").peak("float32"))
print(f"measured here: {rate / 1e9:,.0f} GFLOP/s in float32 · A100's peak: {peak / 1e9:,.0f} GFLOP/s")

# %% [markdown]
# **cuBLAS counts in columns.** It keeps the convention of Fortran, for which the first BLAS was written: the elements
# of a column are neighbours, and the **leading dimension** `ld` is the distance from one column to the next. NumPy,
# CuPy and PyTorch store a matrix row by row.
#
# **Predict.** The numbers 1 to 6 are stored one after the other. For NumPy they are the rows 1, 2, 3 and 4, 5, 6.
# cuBLAS reads the same memory as a matrix of three rows with `ld` = 3. What does it find in its row 0 and column 1?

# %%
gpulab.predict("cupy.column", ...)

# %%
stored = np.arange(1, 7)


def as_cublas_reads(memory, rows, cols, ld):
    """Element (i, j) is at i + j · ld."""
    return np.array([[memory[i + j * ld] for j in range(cols)] for i in range(rows)])


print("row by row:\n", stored.reshape(2, 3))
print("as cuBLAS reads it:\n", as_cublas_reads(stored, 3, 2, 3))
gpulab.predict("cupy.column", measured=as_cublas_reads(stored, 3, 2, 3)[0, 1])

# %% [markdown]
# ![The numbers 1 to 6 in memory. Stored row by row they are a matrix of two rows and three columns. Read in columns the same memory is the transposed matrix.](drawings/column_order.svg)
#
# cuBLAS sees the transposed matrix. You need no copy to put this right, because (A B)ᵀ = Bᵀ Aᵀ: if you give it your B
# as the first matrix and your A as the second, it computes the transposed product in its own order, and that is your C
# in yours.
#
# `cublasSgemm(handle, transa, transb, m, n, k, &alpha, first, lda, second, ldb, &beta, out, ldc)` computes, in columns,
# out = op(first) · op(second), where op(x) is x for `"N"` and the transposed x for `"T"` (cuBLAS documentation,
# "cublas<t>gemm()"). `out` has m rows and n columns, op(first) is m × k, and op(second) is k × n. Each `ld` must be at
# least the number of rows of its matrix *as it is stored*, before op.
#
# **Do.** Write `gemm(rows, cols, inner, pitch_a, pitch_b, pitch_c, b_transposed)`, which plans a call of cuBLAS for
# matrices that are stored row by row. About 5 lines.
#
# - Wanted: C = A · B. A is `rows` × `inner`, and C is `rows` × `cols`. B is `inner` × `cols`. If `b_transposed` is true,
#   B is stored as `cols` × `inner` instead, as the weights of PyTorch's `nn.Linear` are.
# - The pitches are the distances from row to row, in elements. They may be larger than the rows are long.
# - Output: a dictionary with the keys `first` and `second` (`"A"` or `"B"`), `transa` and `transb` (`"N"` or `"T"`),
#   `m`, `n`, `k`, `lda`, `ldb` and `ldc`. `lda` belongs to the first matrix, and `ldb` to the second.
# - Full marks need a plan that computes C at every size.


# %% nbgrader={"grade": false, "grade_id": "gemm", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gemm(rows, cols, inner, pitch_a, pitch_b, pitch_c, b_transposed):
    ### BEGIN SOLUTION
    operands = {"first": "B", "second": "A", "transa": "T" if b_transposed else "N", "transb": "N"}
    sizes = {"m": cols, "n": rows, "k": inner}
    return operands | sizes | {"lda": pitch_b, "ldb": pitch_a, "ldc": pitch_c}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gemm-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cupy.gemm", gemm)

# %% [markdown]
# **See.** Your plan for a linear layer of 4,096 outputs and 1,024 inputs, and a batch of 8.

# %%
gpulab.need(gemm)
gemm(8, 4096, 1024, 1024, 1024, 4096, True)

# %% [markdown]
# **Why.** There is no need to copy a matrix in order to transpose it, because the flags and the order of the operands
# tell the library all that it needs. The same goes for the pitches, so a slice of a larger matrix needs no copy
# either.

# %% [markdown]
# ## Beyond · Unequal stages
#
# Open-ended and ungraded. For all data together, the copy in takes 1, the kernel 2, and the copy out 1. Every
# operation takes 0.02 more, whatever its size. Chunks need not be equal. The figure of merit is the **makespan** in
# the model, the time from the first start to the last end. You may use as many streams as you like.
#
# | plan | makespan |
# |---|---|
# | all at once, one stream | 4.06 |
# | 8 equal chunks | printed by the cell below |
# | ours | 2.26 |
# | bound: the kernel, and the 0.02 of each operation of one chunk, 2 + 3 · 0.02 | 2.06 |


# %%
def merit(shares):
    if abs(sum(shares) - 1) > 1e-9 or min(shares) <= 0:
        return "no plan"
    times = {"in": 1, "kernel": 2, "out": 1}
    return makespan(
        [Operation(k, do, part * time + 0.02) for k, part in enumerate(shares) for do, time in times.items()]
    )


print(f"{merit([1]):.2f}  {merit([1 / 8] * 8):.2f}")

# %%
# Your shares, then merit([…]).

# %% [markdown]
# ## Recap
#
# <details><summary>1. How many launches and bytes does <code>cp.exp(a - b) * c</code> cost, in float32, on a
# GPU?</summary>
#
# It costs three launches, and 12 + 8 + 12 = 32 bytes per element. One fused kernel moves 16.
# </details>
#
# <details><summary>2. A copy on stream A fills what a kernel on stream B reads. It has worked for months. What
# is missing?</summary>
#
# An event is missing: A records it after the copy, and B waits for it before the kernel. So far the copy has always
# been fast enough.
# </details>
#
# <details><summary>3. Your step launches 60 kernels of 3 µs each. What does a CUDA graph change?</summary>
#
# The host makes one call instead of 60, so the GPU does not wait for launches. The kernels, their bytes and their
# order stay the same.
# </details>
#
# <details><summary>4. <code>nvidia-smi</code> shows 20 GB in use, but your arrays have 5. Where are the other 15?</summary>
#
# They are in the memory pool, freed but kept for the next array. `free_all_blocks()` gives them back.
# </details>
#
# <details><summary>5. When does a convolution by Winograd lose, although it takes fewer products?</summary>
#
# It loses when products are cheap (tensor cores), when the transforms and the workspace cost more than the products
# save (few channels), and when accuracy matters (large tiles).
# </details>

# %%
gpulab.recap("07")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | make one kernel for each element | `cp.ElementwiseKernel("T x", "T y", "y = …", "name")` |
# | map, reduce and finish | `cp.ReductionKernel("T x", "T y", "map", "a + b", "y = a", "0", "name")` |
# | fuse a function | `@cp.fuse()` |
# | order two streams | `event = a.record()`, `b.wait_event(event)` |
# | capture a graph | `stream.begin_capture()`, `graph = stream.end_capture()`, `graph.launch()` |
# | know the time of a pipeline of c chunks, equal stages | (c + 2) / c, with three buffers |
# | see what the pool holds | `cp.get_default_memory_pool().total_bytes()` |
# | multiply matrices stored row by row with cuBLAS | give it B first and A second, and swap m and n |
# | get pinned memory | `cp.cuda.alloc_pinned_memory(bytes)` |
#
# ### Claims you will meet, and what is right
#
# - *CUDA graphs fuse kernels.* They replay the kernels with one call.
# - *Put work on two streams and it runs at the same time.* It does so only if engines and SMs are free. And a stream
#   must wait for what another stream makes.
# - *A final `synchronize()` makes streams safe.* It comes after the race.
# - *Unified memory could oversubscribe from CUDA 6 on.* It could from Pascal and CUDA 8 on.
# - *Memory compression is automatic and makes room.* It must be requested, and it saves bandwidth, not space.
# - *cuDNN: `benchmark = True` and `deterministic = True` give reproducible speed.* Each algorithm repeats its
#   results, but the benchmark may choose another one in the next run.
# - *Fuse convolution, ReLU, batch norm.* In this order nothing can be folded, because the norm must follow the
#   convolution.
# - *cuDNN's `cudnnActivationForward` has GELU.* It does not. The graph interface has it.
#
# ### References
#
# 1. CuPy, *User Guide*: User-Defined Kernels, Memory Management, Accessing CUDA Functionalities.
#    https://docs.cupy.dev/en/stable/user_guide/
# 2. NVIDIA, *CUDA Programming Guide*: Asynchronous Concurrent Execution, CUDA Graphs, Unified Memory.
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. M. Harris, "How to Overlap Data Transfers in CUDA C/C++", NVIDIA Technical Blog, 2012.
# 4. S. Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014. https://arxiv.org/abs/1410.0759
# 5. A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. https://arxiv.org/abs/1509.09308
# 6. S. Winograd, *Arithmetic Complexity of Computations*, SIAM, 1980.
# 7. NVIDIA, *cuBLAS Library* documentation, "Data Layout". https://docs.nvidia.com/cuda/cublas/
# 8. PyTorch, *CUDA semantics* and *Reproducibility*. https://docs.pytorch.org/docs/stable/notes/
