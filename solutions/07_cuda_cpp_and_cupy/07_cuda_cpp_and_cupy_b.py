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
# **About two hours.** You have done part A and lab 06A. You need no GPU.
#
# A kernel is never alone. Something brings its data, something launches it, something keeps its memory, and
# next to it run others. This part is about that, and about writing kernels without writing them.
#
# When you are through, you can
#
# 1. say how many launches and bytes a line of array code costs, and make one kernel of it;
# 2. plan copies and kernels on streams so that they overlap, and order what must be ordered;
# 3. say what a CUDA graph saves and what it does not;
# 4. read what a memory pool holds, and choose between pageable, pinned and unified memory;
# 5. compute a convolution in three ways, and count what each costs.
#
# Two things the simulator cannot do here. It has no clock and runs one thing at a time, so overlap is
# **modelled**, by a few lines that you will use yourself. And array functions such as `a + b` are computed by
# NumPy: only kernels are counted.

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
# **CuPy** is NumPy's interface with arrays on the device. `cp.asarray(host)` copies in, `array.get()` copies
# out, and nothing else crosses. A function that takes both asks `cp.get_array_module(x)`.
#
# ![NumPy's names work on two memories. A call on CuPy's arrays stays on the device; only asnumpy and asarray cross the bus.](drawings/device_arrays.svg)
#
# Shapes and strides are NumPy's, too. They decide what neighbours are. A batch of images has four axes: N
# images, C channels, H rows, W columns. **Channels first** (NCHW) keeps a channel's pixels together,
# **channels last** (NHWC) keeps a pixel's channels together. PyTorch's `channels_last` is a tensor whose shape
# still reads N, C, H, W and whose strides are those of NHWC. Tensor cores want the channels together, which is
# why 16-bit convolutions prefer it; a per-channel mean prefers the other.
#
# **Predict.** A tensor of shape (8, 3, 224, 224) lies channels last. How many elements apart are two
# neighbouring pixels of one channel in a row?

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
# On a GPU every operator of CuPy is a kernel. `a * x + b` is two launches and a temporary array, written by the
# one and read by the other.
#
# ![Written with operators, z = (x − y)² is two kernels with an array between them. As one ElementwiseKernel it reads x and y once and writes z once.](drawings/elementwise.svg)
#
# **Predict.** a, x and b are arrays of a million float32 numbers each. How many MB does `a * x + b` move, an
# operator a kernel?

# %%
gpulab.predict("cupy.temporaries", ...)

# %% [markdown]
# **Kernel fusion** makes one kernel of several: fewer launches, no temporaries. CuPy has three ways.
# `cp.fuse` decorates a function of arrays. A RawKernel is all yours. An **ElementwiseKernel** is one line of
# C++, and CuPy writes the rest: the loop, the bounds, and broadcasting for arrays of different shapes.

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
# `T` stands for any type, as in a template. A kernel may have several outputs: `"T s, T d"` with the statements
# `"s = x + y; d = x - y"` returns both. If you pass arrays for the outputs behind the inputs, it writes there.
#
# A layer's **batch norm** in inference is max((x − mean) / √(var + eps) · gamma + beta, 0): five arithmetic
# steps on a matrix of n rows, with a mean, variance, gamma and beta for each of its c columns. Four of the
# numbers do not depend on x. **Folding** computes with them before: per channel one factor and one shift are
# left, and behind a convolution even those go into its weights and bias. (Order matters: convolution, norm,
# ReLU. Behind a ReLU nothing can be folded.)
#
# **Do.** Write the host function `normalise(x, mean, var, gamma, beta, out)`, with eps = 1e-5. Make and launch
# ElementwiseKernels in it; CuPy compiles a text only once. C++ has `rsqrtf(v)` for 1/√v and `fmaxf(a, b)` for
# the larger of two floats. Leave out array functions such as `cp.sqrt(var)` and `gamma * var`: NumPy computes
# them on the host, and the judge records launches only. **Budget:** 2 launches, 16 bytes per element. About 12
# lines.


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
# **Why.** The step-by-step version writes and reads four matrices that nobody wants. All in one kernel is one
# launch, and every element computes the same root as all others of its column. The caches make the repeated
# loads of the vectors cheap; what counts most on a GPU is 8 bytes per element from DRAM, for both fused
# versions, against 40.
#
# ## 3 · Many into one
#
# A **ReductionKernel** takes four expressions. The **map** sees the inputs. The other two, **reduce** and
# **post-map**, know mapped values only, always called `a` and `b`; the post-map assigns to the output. The
# **identity** is where a sum starts. CuPy writes the tree in shared memory that lab 05 builds by hand.

# %%
largest = cp.ReductionKernel(
    "T x", "T z", map_expr="fabsf(x)", reduce_expr="max(a, b)", post_map_expr="z = a", identity="0"
)
float(largest(cp.asarray(np.array([1, -7, 3], np.float32))).get())

# %% [markdown]
# **Do.** Write `rms(x, y, out)`: for each row of two matrices the root of the mean square difference,
# √(mean((x − y)²)). `sqrtf` is the root of a float. In the post-map `_in_ind.size() / _out_ind.size()` is how
# many elements went into one result. Call the kernel with `axis=1, out=out`. **Budget:** one launch; each element read once. About 8
# lines.


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
# **Why.** `cp.sqrt(((x - y) ** 2).mean(axis=1))` says the same in one line of Python and four kernels. The
# difference and its square are arrays as large as the inputs, and in a memory-bound program their bytes are
# the time.
#
# ## 4 · Streams, events and engines
#
# A **stream** is a queue: its operations run one after the other, and operations of different streams may run
# at the same time. Nothing else orders streams, except **events**. `event = a.record()` puts a mark into
# stream a; `b.wait_event(event)` lets stream b go on only when the mark is reached.
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
# A GPU has **engines** that work side by side: one that copies in, one that copies out, and the SMs. A race
# between streams is the worst of bugs: mostly the copy wins, and all is well.
#
# Here is the model of this lab. An operation starts when its stream, its engine and the events it waits for
# allow it; each engine works in the order of issue. All data take 1 per stage, in c chunks 1/c each.
#
# **Predict.** How long do 8 chunks take if they overlap as well as they can? And with a single copy engine for
# both ways, when each chunk's copy in, kernel and copy out are issued before the next chunk's?

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
# The copy in of chunk 1 stands in the copy engine's queue behind the copy out of chunk 0, and that waits for
# the kernel. Eight streams, and nothing overlaps. Data-centre GPUs have an engine for each way (or more), many
# consumer cards of old had one; then issue order is part of the program. Now with two:
#
# **Do.** Write `pipeline(chunks, buffers)`. It returns a plan, a list in the order of issue of
#
# ```python
# {"stream": 0, "do": "in", "chunk": 0, "after": []}
# ```
#
# `"do"` is `"in"`, `"kernel"` or `"out"`, and `"after"` lists places in the plan whose end the operation waits
# for (events; it may be left out). Chunk k lives in buffer `k % buffers`. The judge refuses a plan in which
# neither a stream nor an event keeps a kernel from starting before its copy, or a copy in from overwriting a
# chunk that is still needed; engines do not count as a promise. Then it measures the makespan in the model.
# **Budget:** the shortest possible, 1.25 for 8 chunks in 3 buffers. About 5 lines.


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
# **See.** Your plan with one, two and three buffers, on the model's clock. In the figure each stream has its
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
# **A second look.** A colleague gives each engine a stream of its own, "and the order is right anyway". The
# plan is even shorter than the bound. Why?


# %%
def by_engine(chunks, buffers):
    return [{"stream": do, "do": do, "chunk": k} for k in range(chunks) for do in ("in", "kernel", "out")]


print(makespan(operations_of(by_engine(8, 3), 8)))

# %% [markdown]
# Write your reason down, then see what the check says.

# %%
gpulab.check("cupy.pipeline", by_engine, attempt=False)

# %% [markdown]
# Everything starts at once: kernels compute on what has not arrived yet. On a GPU the copies may be a little
# ahead, and the result right, for months. Only events or a shared stream make it sure.
#
# **Why.** One stream per buffer needs no event: a buffer's next copy in comes behind its last copy out. Streams
# per engine work as well, with two events for each chunk. More chunks come closer to 1, until the overhead of
# a copy or a launch is as large as the chunk. Stages are seldom equal: the longest one sets the pace. And two
# kernels on two streams overlap only if the first leaves SMs free.
#
# ## 5 · What a graph saves
#
# Every launch costs the CPU a few microseconds, and a small kernel may take less. A **CUDA graph** is a
# sequence of launches that is recorded once (**capture**) and then started as a whole. While a stream
# captures, nothing runs.
#
# ![Without a graph each of five small kernels waits for its launch. A graph is launched once and its kernels follow one another at once.](drawings/graph.svg)

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
# **Why.** As many kernels run, with the same bytes; the host asks once. A graph fuses nothing. It keeps the
# addresses of its arrays, so new inputs are copied into the old arrays (`x[...] = new`), and before a capture
# with PyTorch a few warm-up steps run on the capturing stream, with `wait_stream` before and after. What the
# host decides in the middle (an `if` on a result, a size that changes) cannot be captured; CUDA 12.3 and later
# have conditional nodes for some of it.
#
# The other way to stop launching is one kernel whose blocks wait for each other: **cooperative groups**,
# `this_grid().sync()`, with no more blocks than the GPU holds at once. A group over several GPUs existed; CUDA
# 13 dropped it.
#
# ## 6 · Memory that is kept
#
# `cudaMalloc` is a slow call into the driver, and `cudaFree` waits until the GPU has finished its work. So CuPy, like
# PyTorch, has a **memory pool**: freed memory stays with the pool and serves the next array that fits. Sizes are rounded up to 512 bytes.
#
# ![A pool keeps freed blocks. A new array takes a kept block that is large enough; only when there is none is the device asked.](drawings/pool.svg)
#
# **Predict.** Three arrays of 1,000,000 bytes are made and freed one after the other. How many bytes does the
# pool hold then?

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
ax.step(range(len(held)), held, where="post", color="#d55e00")
ax.step(range(len(used)), used, where="post", color="#0072b2")
ax.annotate("held by the pool", (8.1, held[8] + 0.08), color="#d55e00", ha="right")
ax.annotate("used by arrays", (8.3, 0.5), color="#0072b2")
for step, words in ((10, "200,000 B: rounding"), (12, "600,000 B: fragmentation")):
    ax.annotate(
        words,
        (step, held[step]),
        (step - 0.4, held[step] + 0.25),
        ha="right",
        color="#767676",
        arrowprops={"arrowstyle": "->", "color": "#767676"},
    )
ax.set(xlabel="arrays made or freed, in order", ylabel="MB")
plot.picture(
    ax,
    "Between the lines memory is free and the pool keeps it; arrows show where it asks for more all the same.",
)

# %% [markdown]
# Where the two lines part, memory is free and held. At 10 the first block has 199,680 bytes left, and 200,000
# round up to 200,192: the pool asks for more. At 12 two free pieces have 600,064 bytes together, which is what
# 600,000 round up to. Neither has them alone, so the pool asks again: **fragmentation**.
#
# | memory | is | good for |
# |---|---|---|
# | pageable host memory | ordinary | copies go through a pinned buffer of the driver, and do not overlap |
# | **pinned** | pages that stay where they are | DMA: full speed, asynchronous; the system has less to give |
# | **unified** | one address for both sides | pages move when touched; a first touch costs a page fault |
# | stream-ordered pool (`cudaMallocAsync`) | the driver's own pool | frees that wait for a stream, not the CPU |
# | virtual memory management (`cuMemCreate`, `cuMemMap`) | addresses and pages apart | arrays that grow in place |

# %%
pinned = cp.cuda.alloc_pinned_memory(4 * 1000)
host = np.frombuffer(pinned, np.float32, 1000)
host[:] = np.arange(1000)
on_device = cp.asarray(host)
print("from pinned memory:", on_device.get()[-1])

# %% [markdown]
# **Unified memory** (`cp.cuda.malloc_managed`) moves pages on demand, and may be larger than the GPU's memory,
# since Pascal and CUDA 8; `cudaMemPrefetchAsync` moves them before they are missed. **Compressed memory** (A100
# and later) is asked for per allocation and saves bandwidth, not space. Several processes on one GPU take turns
# (**time slicing**), run side by side and share its faults (**MPS**), or own a slice of it (**MIG**).
#
# ## 7 · Convolution three ways
#
# A convolution layer with K filters of C × r × r takes K · C · r² products for each output pixel. It is the
# same sum in all three ways; what differs is where the work goes.
#
# ![Three ways to a convolution: sums where the filter stands, one large product after the patches have been laid out as rows, and fewer products by Winograd's trick.](drawings/convolution.svg)
#
# - **im2col** writes the r² · C inputs of every output pixel into a column. Then the layer is one matrix product.
#   *Implicit* GEMM builds the columns in shared memory and never writes them.
# - **FFT** multiplies spectra: products per pixel do not depend on r.
# - **Winograd** takes fewer products for small filters, with a few more additions.
#
# **Predict.** F(2, 3) computes two outputs of a filter with three taps by four products. How many products per
# output does it take for a 3 × 3 filter, used along both axes?

# %%
gpulab.predict("cupy.tile", ...)

# %% [markdown]
# **The puzzle.** Along one axis, y₀ = d₀g₀ + d₁g₁ + d₂g₂ and y₁ = d₁g₀ + d₂g₁ + d₃g₂: six products. Choose two
# of the four cleverly, (d₀ − d₂)·g₀ and (d₁ − d₃)·g₂. Subtract the first from y₀ and add the second to y₁. Two
# sums are left,
#
#     u = d₁ · g₁ + d₂ · (g₀ + g₂)          v = d₁ · (g₀ + g₂) + d₂ · g₁
#
# in which d₁ and d₂ have only exchanged their factors. Two products do for both.
#
# **Do.** Write `winograd()`. It returns `{"inputs": …, "weights": …, "outputs": …}`, three lists of rows:
# product k is (row k of inputs · d) times (row k of weights · g), and y is outputs times the products. The
# check works out every coefficient. **Budget:** 4 products. About 5 lines.


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
# **See.** All three on one layer: 8 channels, 8 filters of 3 × 3, an image of 18 × 18. Your matrices do the
# third, along both axes. Products and extra memory are counted from the shapes of the arrays that the code
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
# **See.** How it changes with the filter's size, for an image of 56 × 56 and many channels: products per output
# pixel, filter and channel, without the transforms, which many channels and filters share. Modelled from the
# formulas.

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
    by_size.items(), ("#0072b2", "#009e73", "#d55e00"), (5, 8, 9), ((-8, 2), (0, -14), (6, -12)), strict=True
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
# **Why.** For 3 × 3 Winograd takes 4 products where the plain way takes 9. FFT takes about two, whatever the
# filter; what it costs are the transforms and the complex arrays, so in time it pays for large filters. Larger Winograd tiles save more and
# lose accuracy: their matrices hold larger numbers. All of this counts products. Tensor cores made products
# cheap: cuDNN's Winograd is "not supported on Hopper+" (comment in its header), and implicit GEMM on tensor
# cores is what mostly runs.
#
# A library tries and remembers: `torch.backends.cudnn.benchmark = True` times the algorithms at the first call
# of each shape. It may choose differently the next time, so it does not go with `deterministic = True`; for
# reproducible runs use `torch.use_deterministic_algorithms(True)`. Some algorithms need **workspace**, memory
# beyond input and output, and are left out where there is none.
#
# ## 8 · Who has written it already
#
# | library | does |
# |---|---|
# | cuBLAS, cuBLASLt, CUTLASS | matrix products (lab 06) |
# | cuDNN | convolution, attention, norms, fused as graphs; its old functions for single operations are deprecated |
# | cuFFT, cuRAND, cuSOLVER, cuSPARSE | transforms, random numbers, solvers, sparse matrices |
# | Thrust, CUB, libcu++ (CCCL) | sorting, scans, reductions in C++ |
# | NCCL | collectives between GPUs |
# | TensorRT | inference of a whole network |
# | RAPIDS (cuDF, cuML), CuPy | data frames, machine learning, arrays |
#
# And an honest opponent: the CPU has a BLAS, too, and it is good. Measure yours before you praise a GPU.

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
# ## Beyond · Unequal stages
#
# Open-ended and ungraded. Copy in takes 1, the kernel 2, copy out 1, all for the whole of the data, and every
# operation 0.02 more, whatever its size. Chunks need not be equal. The figure of merit is the **makespan**, in
# the model, with as many streams as you like.
#
# | plan | makespan |
# |---|---|
# | all at once, one stream | 4.06 |
# | 8 equal chunks | the cell below |
# | ours | 2.26 |
# | bound: the kernel, and the 0.02 of each operation of one chunk | 2.06 |


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
# Three launches. 12 + 8 + 12 = 32 bytes per element; one fused kernel moves 16.
# </details>
#
# <details><summary>2. A copy on stream A fills what a kernel on stream B reads. It has worked for months. What
# is missing?</summary>
#
# An event: A records it after the copy, B waits for it before the kernel. So far the copy was fast enough.
# </details>
#
# <details><summary>3. Your step launches 60 kernels of 3 µs each. What does a CUDA graph change?</summary>
#
# One call of the host instead of 60, so the GPU does not wait for launches. The kernels, their bytes and their
# order stay.
# </details>
#
# <details><summary>4. <code>nvidia-smi</code> shows 20 GB in use, your arrays have 5. Where are the
# others?</summary>
#
# In the memory pool: freed, kept for the next array. `free_all_blocks()` gives them back.
# </details>
#
# <details><summary>5. When does a convolution by Winograd lose, although it takes fewer products?</summary>
#
# When products are cheap (tensor cores), when the transforms and workspace cost more than they save (few
# channels), and when accuracy counts (large tiles).
# </details>

# %%
gpulab.recap("07")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | one kernel for each element | `cp.ElementwiseKernel("T x", "T y", "y = …", "name")` |
# | map, reduce, finish | `cp.ReductionKernel("T x", "T y", "map", "a + b", "y = a", "0", "name")` |
# | fuse a function | `@cp.fuse()` |
# | order two streams | `event = a.record()`, `b.wait_event(event)` |
# | capture | `stream.begin_capture()`, `graph = stream.end_capture()`, `graph.launch()` |
# | pipeline of c chunks, equal stages | (c + 2) / c, with three buffers |
# | what the pool holds | `cp.get_default_memory_pool().total_bytes()` |
# | pinned memory | `cp.cuda.alloc_pinned_memory(bytes)` |
#
# ### Claims you will meet, and what is right
#
# - *CUDA graphs fuse kernels.* They replay them with one call.
# - *Put work on two streams and it runs at the same time.* Only if engines and SMs are free; and what one
#   stream made, the other must wait for.
# - *A final `synchronize()` makes streams safe.* It comes after the race.
# - *Unified memory could oversubscribe from CUDA 6 on.* From Pascal and CUDA 8 on.
# - *Memory compression is automatic and makes room.* It must be asked for and saves bandwidth, not space.
# - *cuDNN: `benchmark = True` and `deterministic = True` give reproducible speed.* They contradict each other.
# - *Fuse convolution, ReLU, batch norm.* In that order nothing folds: the norm has to follow the convolution.
# - *cuDNN's `cudnnActivationForward` has GELU.* It has not; the graph interface has.
#
# ### References
#
# 1. CuPy, *User Guide*: User-Defined Kernels, Memory Management, Accessing CUDA Functionalities.
#    https://docs.cupy.dev/en/stable/user_guide/
# 2. NVIDIA, *CUDA Programming Guide*: Asynchronous Concurrent Execution, CUDA Graphs, Unified Memory.
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. M. Harris, "How to Overlap Data Transfers in CUDA C/C++", NVIDIA Technical Blog, 2012.
# 4. S. Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014.
#    https://arxiv.org/abs/1410.0759
# 5. A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
#    https://arxiv.org/abs/1509.09308
# 6. S. Winograd, *Arithmetic Complexity of Computations*, SIAM, 1980.
# 7. PyTorch, *CUDA semantics* and *Reproducibility*. https://docs.pytorch.org/docs/stable/notes/
