# ---
# jupyter:
#   gpulab:
#     lab: "07"
#     hours: 3
#     topics: [C3.13, C4.5, C5.1, C5.2, C5.3, C5.13, C5.14, C7.7, C11.3]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07A · CUDA C++
#
# **2.5 to 4.5 hours.** You need lab 03 (grids, blocks, reports), and you should be able to read a little C: types,
# `if`, `for`, pointers. You do not need a GPU.
#
# Many GPU programs are written in CUDA C++, which numba has hidden from you so far. In this lab you write it
# yourself. NVIDIA's compiler translates your text as you typed it, and the simulator runs the result.
#
# By the end of this lab, you can
#
# 1. write a CUDA C++ kernel with pointers, pitches and templates, and launch it with arguments of the right types;
# 2. read an error of the compiler, of a launch or of a kernel, and say which of them a real GPU would not have
#    reported;
# 3. move 16 bytes with one instruction;
# 4. find your own lines again in PTX and in machine code;
# 5. say where a multiply-add rounds only once, and make use of it.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import plot
from gpulab.compile import NoDisassembler, cuda_c_module, sass

gpulab.start("07")

# %% [markdown]
# ## 1 · From the first line
#
# `__global__` makes a function a **kernel**: the host launches it, every thread runs it, and it returns nothing.
# `extern "C"` keeps the function's name as it is, because C++ would otherwise add the types of its parameters to the
# name. A thread finds its position in `blockIdx`, `blockDim` and `threadIdx`, which need no import. Every parameter
# has a type, and an array arrives as a **pointer**, which is the address of its first element.


# %%
SAXPY = r"""
extern "C" __global__
void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
saxpy = cp.RawKernel(SAXPY, "saxpy")

x = cp.asarray(np.arange(1000, dtype=np.float32))  # 1. copy in
y = cp.asarray(np.ones(1000, dtype=np.float32))
saxpy((4,), (256,), (cp.float32(2), x, y, cp.int32(x.size)))  # 2. launch: blocks, threads, arguments
y.get()[:5]  # 3. copy out

# %% [markdown]
# CuPy's **RawKernel** takes the text and compiles it when it is first launched. It uses **NVRTC**, NVIDIA's compiler
# as a library. In a program that is all C++ the same steps look like this. Such a program checks after every step
# whether the step succeeded:
#
# ```c++
# float *x, *y;                                     // variables of the host that hold addresses of the device
# CHECK(cudaMalloc(&x, n * sizeof(float)));
# CHECK(cudaMemcpy(x, host_x, n * sizeof(float), cudaMemcpyHostToDevice));    // 1. copy in (and y)
# saxpy<<<(n + 255) / 256, 256>>>(2.0f, x, y, n);                             // 2. launch
# CHECK(cudaGetLastError());                                                  //    was the launch possible?
# CHECK(cudaMemcpy(host_y, y, n * sizeof(float), cudaMemcpyDeviceToHost));    // 3. copy out; waits
# CHECK(cudaFree(x));
# ```
#
# `nvcc program.cu -o program` compiles the program: NVIDIA's compiler translates the kernels, and your machine's own
# C++ compiler translates the rest.
#
# **Predict.** How many blocks of 256 threads do 1,000,000 elements need?

# %%
gpulab.predict("cpp.grid", ...)

# %% [markdown]
# **Why.** Integer division in C rounds down. So `n / 256` blocks would leave out the last elements, and `(n + 255) /
# 256` blocks do not. The last block may then have more threads than elements, and `if (i < n)` keeps those threads
# from doing anything.
#
# ## 2 · Pointers know no shape
#
# ![An array of three rows and four columns is stored in memory row after row. The pointer knows only where it begins; element (1, 2) is at 1 · 4 + 2 = 6.](drawings/rows_in_memory.svg)
#
# A numba array carries its shape and strides with it. A pointer carries nothing: `image[k]` is the element k places
# after the start, whatever you meant. A two-dimensional array is stored row after row, and the distance from the
# start of one row to the start of the next is the **pitch**. It is often larger than the row is long, so that every
# row can start at a multiple of 32 bytes or more. (`cudaMallocPitch` chooses such a pitch.) The bytes in between are
# padding and hold no data.
#
# **Predict.** An image of bytes has a pitch of 512. How many bytes after its start is the element in row 3, column
# 10?

# %%
gpulab.predict("cpp.offset", ...)

# %% [markdown]
# **Do.** Complete the kernel `invert`, which sets `out` to 255 minus `image`. About 4 lines.
#
# - Input: `image`, an image of bytes with `rows` × `cols` elements and a pitch of `pitch` bytes.
# - Output: `out`, bytes with the same pitch. The padding of `out` must stay as it is.
# - Launch: blocks of 32 × 8 threads, in a grid that covers the image.
# - **Budget:** as many sectors loaded, and as many stored, as the image has. Full marks need the right result and
#   this budget, at every size.
# - The check names its sizes as rows × cols in pitch. In *9 × 33 in 64*, columns 33 to 63 are padding.


# %% nbgrader={"grade": false, "grade_id": "invert", "locked": false, "schema_version": 3, "solution": true, "task": false}
invert = cp.RawKernel(
    r"""
extern "C" __global__ void invert(
    const unsigned char* image, unsigned char* out, int rows, int cols, int pitch) {
    // ### BEGIN SOLUTION
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols)
        out[row * pitch + col] = 255 - image[row * pitch + col];
    // ### END SOLUTION
}
""",
    "invert",
)

# %% nbgrader={"grade": true, "grade_id": "invert-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.invert", invert)

# %% [markdown]
# **See.** What one warp loads and what it stores. Bytes are small, so the 32 bytes of a whole warp fit into one
# sector.

# %%
gpulab.need(invert)
gpulab.show("cpp.invert", invert, view="accesses")

# %% [markdown]
# **Why.** As in numba, `threadIdx.x` changes fastest within a warp, so it must run along the row. A warp whose lanes
# move one byte each uses 32 of the 128 bytes that its lanes could move with 4 bytes each, which is a quarter. That
# is why kernels for images load four pixels at once. Section 5 does the same with floats.
#
# ## 3 · What goes wrong, and how it looks
#
# ![A launch returns before the kernel has run. A kernel that fails is noticed only by a later call, so the error is reported at a line that is not to blame.](drawings/late_error.svg)
#
# There are three kinds of errors, and they appear at three different times:
#
# - The **compiler** rejects the text. It reports the line.
# - The **launch** is impossible: a block has too many threads or too much shared memory, or there are no blocks. In
#   C++ a launch returns nothing, so you notice this only if the program calls `cudaGetLastError()`.
# - The **kernel** fails while it runs, after the launch has returned. A later call reports the error, usually a copy
#   (the error is **asynchronous**). From then on every call fails (it is **sticky**), and only a new process works
#   again.
#
# The worst mistake is to pass arguments of the wrong type. It reports no error at all, because a launch only copies
# bytes. The next cell shows one example of each. It uses the simulator on every machine, because the last ones could
# damage a GPU's session.


# %%
from gpulab import simulated_cupy as safe


def said(call):
    try:
        call()
    except Exception as error:
        print(f"{error}\n")


kernel = safe.RawKernel(SAXPY, "saxpy")
x64 = safe.asarray(np.arange(1000.0))
x32, y32, two, n = x64.astype(np.float32), x64.astype(np.float32), safe.float32(2), safe.int32(1000)

said(lambda: safe.RawKernel(SAXPY.replace("+ y[i];", "+ y[i]"), "saxpy").compile())
said(lambda: kernel((1,), (2048,), (two, x32, y32, n)))
said(lambda: kernel((4,), (256,), (two, x32, y32, safe.int32(1024))))
said(lambda: kernel((4,), (256,), (2.0, x32, y32, n)))
said(lambda: kernel((4,), (256,), (two, x64, y32, n)))

# %% [markdown]
# **Why.** CuPy itself would accept the last two. A Python `2.0` is eight bytes where the kernel takes four, and an
# array of float64 is read as if it were float32. You get numbers, and they are wrong. The third is an error on a GPU
# too, but it is rarely reported, because a store slightly past the end of an array usually falls into the memory of
# another array. On a GPU run `compute-sanitizer python program.py`, which watches every access.
#
# ## 4 · One text, many types
#
# A **template** is a text in which a type is left open: `template <typename T>`. For every type that you use, the
# compiler makes a separate kernel, called an **instance**, and C++ makes up a name for it. CuPy's **RawModule**
# compiles the instances that you list in `name_expressions`. Then `module.get_function("scale<float>")` finds an
# instance by the name that you wrote.
#
# ![One text with a type T in it becomes a kernel for each type that is asked for.](drawings/template.svg)
#
# **Do.** This task has two cells. First complete the kernel (about 2 lines): it replaces every `x[i]` by `x[i] *
# factor`. Then write the host function `scale(x, factor)` (about 5 lines), which launches the right instance for `x`.
#
# - Input and output: `x`, a one-dimensional device array of float32, float64 or int32, which C++ calls `float`,
#   `double` and `int`. `x` may be empty. `factor` is a Python number.
# - A launch converts nothing. `x.dtype.type(v)` is v in the type of `x`.
# - **Budget:** one launch, and each element read once and written once. Full marks need both, for all three types.


# %% nbgrader={"grade": false, "grade_id": "scale-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
module = cp.RawModule(
    code=r"""
template <typename T>
__global__ void scale(T* x, T factor, int n) {
    // ### BEGIN SOLUTION
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
    // ### END SOLUTION
}
""",
    name_expressions=["scale<float>", "scale<double>", "scale<int>"],
)


# %% nbgrader={"grade": false, "grade_id": "scale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scale(x, factor):
    ### BEGIN SOLUTION
    if x.size == 0:
        return
    name = {"float32": "float", "float64": "double", "int32": "int"}[x.dtype.name]
    kernel = module.get_function(f"scale<{name}>")
    kernel((-(-x.size // 256),), (256,), (x, x.dtype.type(factor), cp.int32(x.size)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scale-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.scale", scale)

# %% [markdown]
# **See.** How many bytes and sectors each type costs, and the names that C++ gave to the instances.

# %%
gpulab.need(scale)
for dtype in (cp.float32, cp.float64, cp.int32):
    report = gpulab.profile(scale, cp.ones(4096, dtype), 3)
    print(f"{np.dtype(dtype).name:8} {report['global_bytes']:7,} B   {report['global_sectors']:5,} sectors")
dict(cuda_c_module(module.code, title="scale", names=module.name_expressions).names)

# %% [markdown]
# **Why.** Read `_Z5scaleIfEvPT_S0_i` from left to right: a function whose name has 5 letters, `scale`, with float
# (`f`) for T, which returns void (`v`) and takes a pointer to T, a T and an int. `extern "C"` prevents such names.
# But a C name can have only one meaning, so a template cannot be `extern "C"`.
#
# ## 5 · Sixteen bytes at a time
#
# ![A float4 load brings four floats with one instruction. The warp asks for 512 bytes at once, in 16 sectors, and issues a quarter of the instructions.](drawings/wide_load.svg)
#
# A lane can load 4, 8 or 16 bytes with one instruction. CUDA has types for this. A `float4` consists of four floats,
# `x`, `y`, `z` and `w`, at an address that is a multiple of 16. Arrays from CuPy start at multiples of 256 bytes, so
# you may write
#
# ```c++
# const float4* a4 = reinterpret_cast<const float4*>(a);
# ```
#
# This counts the same memory in steps of 16 bytes, and converts nothing. The same bytes move, but with a quarter of
# the requests.
#
# **Predict.** How many load requests does it take to read 65,536 floats as float4?

# %%
gpulab.predict("cpp.requests", ...)

# %% [markdown]
# **Do.** Complete the kernel `copy4`, which makes `b` equal to `a`. About 7 lines.
#
# - Input and output: `a` and `b`, arrays of `n` floats that start at a multiple of 256 bytes. `n` need not be a
#   multiple of four.
# - Launch: 1,024 threads, whatever `n` is.
# - **Budget:** n / 128 load requests and as many store requests, plus one each for the tail, and in all no more
#   sectors than the two arrays have. Full marks need both.
# - Sizes include 1, 3, 1,023 and 65,539.


# %% nbgrader={"grade": false, "grade_id": "copy4", "locked": false, "schema_version": 3, "solution": true, "task": false}
copy4 = cp.RawKernel(
    r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    // ### BEGIN SOLUTION
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    const float4* a4 = reinterpret_cast<const float4*>(a);
    float4* b4 = reinterpret_cast<float4*>(b);
    for (int i = first; i < n / 4; i += step) b4[i] = a4[i];
    for (int i = n / 4 * 4 + first; i < n; i += step) b[i] = a[i];
    // ### END SOLUTION
}
""",
    "copy4",
)

# %% nbgrader={"grade": true, "grade_id": "copy4-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.copy4", copy4)

# %% [markdown]
# **See.** One request of your kernel. It asks for all four rows of 128 bytes at once.

# %%
gpulab.need(copy4)
gpulab.show("cpp.copy4", copy4, view="accesses")

# %% [markdown]
# **Why.** C++ has elements of 16 bytes, and numba does not. With fewer requests there are fewer instructions to
# issue, and each of them has more bytes in flight. On a GPU an address that is not a multiple of 16 is an error, not
# just a slow access: `a + 1` cannot be read as a float4.
#
# ## 6 · From your line to PTX
#
# Why should you read what the compiler made of your line? Because it shows whether a load really is 16 bytes wide, or
# whether a multiply-add really is one instruction. **PTX** is the instruction set of a machine that does not exist.
# It has as many registers as a kernel needs, each with a type, and it is translated into the real instructions of
# each GPU. Because PTX outlives GPUs, the PTX of old programs still runs. A line has the form `opcode.modifiers
# destination, sources`:
#
# | PTX | meaning |
# |---|---|
# | `ld.global.f32 %f2, [%rd6];` | load 4 bytes from global memory into a register |
# | `ld.global.v4.f32 {…}, [%rd4];` | load 16 bytes into four registers |
# | `ld.global.nc.f64 %fd1, [%rd6];` | load 8 bytes through the read-only path |
# | `mad.lo.s32 %r1, %r3, %r4, %r5;` | integers: the low 32 bits of r3 · r4 + r5 |
# | `fma.rn.f32 %f4, %f2, %f1, %f3;` | floats: f2 · f1 + f3, rounded once, to nearest |
# | `@%p1 ld.global.v2.f64 {…}, [%rd4];` | load 16 bytes into two registers, if the predicate p1 is true |
# | `@%p1 bra $L__BB0_2;` | jump if p1 is true |
# | `.loc 1 5 5` | the next instructions come from file 1, line 5, column 5 |
#
# **Predict.** How many of saxpy's PTX instructions touch a floating-point number, including the argument `a`?

# %%
gpulab.predict("cpp.opcodes", ...)

# %%
ptx = cuda_c_module(SAXPY, title="saxpy").ptx
print(ptx[ptx.index(".visible") :])

# %% [markdown]
# **Do.** Write the Python function `mix(ptx)`, which counts some instructions in a listing. About 10 lines.
#
# - Input: `ptx`, the PTX of one kernel, as a string of many lines.
# - Output: a dictionary `{"loads": …, "bytes": …, "fused": …}`.
# - `"loads"` is the number of load instructions from global memory. `"bytes"` is the number of bytes that all of
#   these together load for one thread. `"fused"` is the number of fused multiply-adds of floating-point numbers.
# - Count each line once, even if it is in a loop. A load with a predicate counts too.
# - Full marks need all three numbers right for every listing.


# %% nbgrader={"grade": false, "grade_id": "mix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mix(ptx):
    ### BEGIN SOLUTION
    found = {"loads": 0, "bytes": 0, "fused": 0}
    for line in ptx.splitlines():
        words = [word for word in line.split() if not word.startswith("@")]
        parts = words[0].split(".") if words else [""]
        if parts[0] == "ld" and "global" in parts:
            width = next((int(p[1:]) for p in parts if p in ("v2", "v4")), 1)
            found["loads"] += 1
            found["bytes"] += width * int(parts[-1][1:]) // 8
        found["fused"] += parts[0] == "fma"
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mix-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.mix", mix)

# %%
gpulab.need(mix, copy4)
for name, text in (("saxpy", SAXPY), ("copy4", copy4.code)):
    print(name, mix(cuda_c_module(text, title=name).ptx))

# %% [markdown]
# **See.** The figure shows what the PTX instructions of saxpy work on. An instruction that is in neither of the
# first two groups computes the index, or compares it with n.

# %%
kinds = {"floating-point numbers": 0, "addresses": 0, "index and guard": 0}
for line in map(str.strip, ptx.splitlines()):
    if line.endswith(";") and not line.startswith("."):
        kind = (
            "floating-point numbers"
            if ".f32" in line
            else "addresses"
            if "%rd" in line
            else "index and guard"
        )
        kinds[kind] += 1
plot.bars(
    kinds,
    "PTX instructions of saxpy",
    caption="Only a quarter of saxpy's instructions touch a floating-point number; the others find out where it is.",
)

# %% [markdown]
# (In our `copy4` the compiler wrote four rounds of the loop one after the other, which means that it **unrolled** the
# loop, and it kept a fifth for the rest. A listing shows each instruction once. It does not say how often the
# instruction runs.)
#
# **Why.** Most of a small kernel only finds out where its data are: it turns indices into addresses, in 64 bits. The
# rest is the real work.
#
# NVRTC and numba are both built on a compiler called LLVM. LLVM translates a program into **LLVM IR**, an
# intermediate language of typed instructions in which every name is assigned once. It optimises the program in this
# form and writes it out as PTX, which looks similar. numba can show the IR of functions for the CPU, and the language
# is the same.

# %%
from numba import float32, njit


@njit(float32(float32, float32, float32))
def one_element(a, x, y):
    return a * x + y


ir = next(iter(one_element.inspect_llvm().values()))
start = ir.index("define")
print(ir[start : ir.index("}", start) + 1])

# %% [markdown]
# In this IR the product and the sum are still two instructions, and no registers have been chosen yet.
#
# ## 7 · From PTX to the machine
#
# **ptxas** turns PTX into **SASS**, the machine code of one GPU generation. It assigns real registers, orders the
# instructions, and marks when each may start. The driver does the same when an old program with PTX meets a new GPU
# (just-in-time compilation). Apart from the names of its opcodes SASS is not documented, but you can read it, with
# `cuobjdump -sass` for a program or with `nvdisasm`. This does not need a GPU.


# %%
def ptx_lines(ptx):
    line, body = 0, ptx[ptx.index("{") :]
    for text in map(str.strip, body.splitlines()):
        if text.startswith(".loc"):
            line = int(text.split()[2])
        elif text.endswith(";") and not text.startswith("."):
            yield " ".join(text.split()), line


def machine_code(ptx, cc=(8, 0)):
    try:
        return sass(ptx, cc)
    except NoDisassembler as missing:
        print(missing)
        return ()


source = [(text, number) for number, text in enumerate(SAXPY.splitlines(), 1) if number > 2]
plot.listings(
    [
        plot.Listing("CUDA C++", tuple(source)),
        plot.Listing("PTX", tuple(ptx_lines(ptx))),
        plot.Listing(
            "SASS of compute capability 8.0", tuple((each.text, each.line) for each in machine_code(ptx))
        ),
    ]
)

# %% [markdown]
# The colours show which instructions come from the same line. `IMAD.WIDE` does what `mul.wide` and `add` do in PTX:
# it multiplies the index by four and adds the address. Arguments are read from constant memory (`c[0x0][…]`) where
# they are needed. The jump has become `@P0 EXIT`. The strange `HFMA2` is a cheap way to put a 4 into R5. The two
# `cvta` turn x and y into addresses of global memory; the compiler attributes them to the line of `i`, which explains
# their colour.
#
# **See.** The same text, compiled for four generations.

# %%
for cc in ((7, 5), (8, 0), (9, 0), (12, 0)):
    count = len(machine_code(cuda_c_module(SAXPY, cc, "saxpy").ptx, cc))
    print(f"compute capability {cc[0]}.{cc[1]}: {count} instructions in SASS")

# %% [markdown]
# **Why.** This course counts PTX instructions, because PTX can run everywhere. Sectors, bytes and barriers are the
# same in SASS. Numbers of instructions are not, so remember that a report counts those of the PTX. On a GPU, Nsight
# Compute counts SASS.
#
# ## 8 · One rounding instead of two
#
# IEEE 754 requires that every operation computes exactly and then rounds once. `a * b + c` is two operations, so it
# rounds twice. A **fused multiply-add**, `fma(a, b, c)`, is one operation and rounds once. It is faster and usually
# more accurate, but its result is not the same number. Unless you forbid it (`--fmad=false`), the compiler may fuse
# where you wrote two operations. PTX shows how far it went: `mul.rn.f32` must round, and ptxas may fuse a plain
# `mul.f32` with the next instruction. Compare the two:


# %%
def arithmetic(lines):
    return [line for line in lines if line.startswith(("mul.", "sub.", "fma.", "FMUL", "FADD", "FFMA"))]


SQUARES = r"""
extern "C" __global__ void squares(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * a[i] - b[i] * b[i];
}
"""
for options in ((), ("--fmad=false",)):
    text = cuda_c_module(SQUARES, title="squares", options=options).ptx
    print(
        options or "as usual", "\n  PTX ", arithmetic([line for line, _ in ptx_lines(text) if ".f32" in line])
    )
    print("  SASS", arithmetic([each.text for each in machine_code(text)]))

# %% [markdown]
# Without the option, SASS has one FMUL and one FFMA: it rounds b² but not a². The simulator runs the PTX and rounds
# both squares. So on this line a GPU and the simulator may differ. If you write the fused form yourself, both give
# the same result.
#
# **Predict.** Take 1,000 pairs with a = b. For how many of them is `fma(a, a, -(b * b))` exactly 0?

# %%
gpulab.predict("cpp.zeros", ...)

# %%
fused = cp.RawKernel(
    SQUARES.replace("a[i] * a[i] - b[i] * b[i]", "fmaf(a[i], a[i], -(b[i] * b[i]))"), "squares"
)
separate = cp.RawKernel(SQUARES, "squares", ("--fmad=false",))
a = cp.asarray(np.random.default_rng(7).random(1000, dtype=np.float32) + np.float32(1))
out_fused, out_separate = cp.empty(1000, cp.float32), cp.empty(1000, cp.float32)
fused((4,), (256,), (a, a, out_fused, cp.int32(1000)))
separate((4,), (256,), (a, a, out_separate, cp.int32(1000)))
zeros = int((out_fused.get() == 0).sum())
print(f"a² − a² is exactly 0 for {zeros} of 1,000 fused and for {(out_separate.get() == 0).sum()} unfused")
gpulab.predict("cpp.zeros", measured=zeros)

# %% jupyter={"source_hidden": true}
ax = plot.axes(7, 3.2)
ax.plot(a.get(), out_fused.get() / 2**-24, ".", color=plot.ALARM, markersize=3)
ax.plot(a.get(), out_separate.get() / 2**-24, ".", color=plot.DEEP, markersize=3)
ax.annotate("rounded once: what b · b lost", (1.02, 2.15), color=plot.ALARM)
ax.annotate("rounded twice: always 0", (1.02, -2.35), color=plot.DEEP)
ax.set(xlabel="a", ylabel="a² − a², in units of 2⁻²⁴", ylim=(-2.6, 2.6))
plot.picture(ax, "A fused a² − a² is the error of rounding a², up to one unit either way and two from √2 on.")

# %% [markdown]
# What looks like noise is the exact rounding error of b², and a GPU that fuses may return it where you expect 0. The
# error doubles at √2, where a² passes 2 and the last bit of a² is worth twice as much. So a fused multiply-add can
# give you the error of any product. Sums that keep track of such errors are twice as accurate (lab 05).
#
# **Two names for one place.** A store through one pointer may change what another pointer points to (**aliasing**).
# The compiler must assume this, so it loads again after the store. To avoid the second load, load into variables
# first, or write `float* __restrict__ p`, which promises that p is the only way to its memory.
#
# **Do.** Complete the kernel `two_product`. About 4 lines.
#
# - Input: `a` and `b`, arrays of `n` doubles. Output: for each i, `p[i]` is a · b rounded, and `e[i]` is a · b − p,
#   exactly.
# - Launch: one thread for each element, in blocks of 256.
# - **Budget:** 3 floating-point operations and 16 loaded bytes per element, and 34 instructions per warp. Full marks
#   need all three. Sizes include 257 and 0.


# %% nbgrader={"grade": false, "grade_id": "two_product", "locked": false, "schema_version": 3, "solution": true, "task": false}
two_product = cp.RawKernel(
    r"""
extern "C" __global__ void two_product(
    const double* a, const double* b, double* p, double* e, int n) {
    // ### BEGIN SOLUTION
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double x = a[i], y = b[i], product = x * y;
        p[i] = product;
        e[i] = fma(x, y, -product);
    }
    // ### END SOLUTION
}
""",
    "two_product",
)

# %% nbgrader={"grade": true, "grade_id": "two_product-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.two_product", two_product)

# %% [markdown]
# **Why.** `a * b - p` does not give the error, because the compiler sees that it already has this product, and
# subtracts the product from itself. Before there was a fused multiply-add, T. J. Dekker split both factors into
# halves and needed 17 operations (1971).
#
# ## 9 · The tool box
#
# | task | tool |
# |---|---|
# | build a program from C++ with kernels | `nvcc` |
# | make PTX while the program runs; make SASS from it | NVRTC; `ptxas`, nvJitLink |
# | read the code inside a program | `cuobjdump`, `nvdisasm` |
# | stop in a thread and look at its variables | `cuda-gdb` |
# | find bad accesses, races, uninitialised memory | `compute-sanitizer` |
# | see what happened when: copies, launches, gaps | Nsight Systems |
# | see one kernel's counts and times | Nsight Compute (`nvprof` is gone since CUDA 13) |
#
# ![A program with machine code for 8.0 and 9.0 and with PTX. An A100 and an H100 take the machine code. For a GPU that came later the driver compiles the PTX.](drawings/fat_binary.svg)
#
# A program contains a **fat binary**: machine code for the GPUs that it knows, and PTX for later ones. The entries
# have names. `sm_90` is machine code for compute capability 9.0, and `compute_90` is PTX that was written for it.
# NVRTC builds the entry that you name. The next cell asks NVRTC directly, through NVIDIA's own Python bindings, for
# five builds of one text.

# %%
from cuda.bindings import nvrtc


def build(source, architecture):
    """The PTX of CUDA C++, as text, and its machine code, as bytes. Raises ValueError with NVRTC's complaint."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"text.cu", 0, [], [])
    option = f"--gpu-architecture={architecture}".encode()
    (outcome,) = nvrtc.nvrtcCompileProgram(program, 1, [option])

    def part(size, fetch):
        found = bytes(size(program)[1])
        fetch(program, found)
        return found

    if outcome != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = part(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        raise ValueError(log.decode().rstrip("\0\n"))
    ptx = part(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    return ptx.decode().rstrip("\0"), part(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)


for architecture in ("compute_80", "sm_80", "sm_90", "compute_90a", "sm_90a"):
    text, machine = build(SAXPY, architecture)
    head = [line for line in text.splitlines() if line.startswith((".version", ".target"))]
    print(f"{architecture:12} PTX: {', '.join(head):28} machine code: {len(machine):,} bytes")

# %% [markdown]
# `.target` says which GPU the PTX was written for, and `.version` which edition of the language it uses. A driver
# that is older than the compiler may not know that edition, and then it refuses the PTX (NVIDIA, *CUDA
# Compatibility*). Machine code needs no translation, so this cannot happen to it.
#
# An architecture whose name ends in `a` has instructions that no other GPU has. The next kernel uses one of Hopper's
# (lab 23): it lets four warps ask for more registers.

# %%
OWN = r"""
extern "C" __global__ void own() { asm volatile("setmaxnreg.inc.sync.aligned.u32 64;"); }
"""
for architecture in ("sm_90a", "sm_90"):
    try:
        print(f"{architecture}: {len(build(OWN, architecture)[1]):,} bytes of machine code")
    except ValueError as complaint:
        print(f"{architecture}: {str(complaint).splitlines()[0]}")

# %% [markdown]
# **Predict.** The next cell takes the PTX of saxpy for `compute_80` and has it compiled for nine GPUs, from
# compute capability 7.5 to 12.1, as their drivers would. Among them are 8.0, 8.6 and 8.9. For how many of the nine
# does it work?

# %%
gpulab.predict("cpp.forward", ...)

# %%
from gpulab.compile import CompileError, resources

GPUS = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1))


def compiles(ptx, cc):
    """Whether nvJitLink, NVIDIA's way from PTX to machine code as a library, makes code for a GPU."""
    try:
        resources(ptx, cc)
    except CompileError:
        return False
    return True


names = ("compute_75", "compute_80", "compute_90", "compute_90a", "compute_100a", "compute_100f")
goes = [[compiles(build(SAXPY, name)[0], cc) for cc in GPUS] for name in names]
gpulab.predict("cpp.forward", measured=sum(goes[names.index("compute_80")]))
ax = plot.axes(7, 3.2)
plot.mask(goes, "PTX for", "GPU of compute capability", ax, rows=names, columns=[f"{a}.{b}" for a, b in GPUS])
plot.picture(
    ax, "PTX goes to its own GPU and all later ones; with a it stays on its GPU, with f in its family."
)

# %% [markdown]
# **Why.** PTX goes forward only, to its own GPU and to all later ones. With `a` it goes nowhere else, and with `f` it
# stays in its **family**, here 10.0 and 10.3. Machine code goes less far than PTX. Here are the rules (*CUDA
# Programming Guide*, "Compute Capabilities"; NVIDIA's compatibility guide for Ada has those of machine code):
#
# | entry | machine code (`sm_`) runs on | PTX (`compute_`) can be compiled for |
# |---|---|---|
# | `86` | 8.6, and 8.x with a higher x | 8.6 and everything later |
# | `100a` | 10.0 only | 10.0 only |
# | `100f` | 10.0, and 10.x with a higher x | 10.0, and 10.x with a higher x |
#
# If the program contains machine code that runs on the GPU, the driver takes it. Only if there is none does the
# driver compile PTX. If neither fits, the launch fails with "no kernel image is available".
#
# **Do.** Write `way(binary, gpu)`, which says what a program does on a GPU. About 12 lines.
#
# - Input: `binary`, a list of entries such as `"sm_80"`, `"sm_90a"` or `"compute_100f"`, in any order. `gpu` is a
#   compute capability as text, such as `"8.6"` or `"12.0"`.
# - Output: `"machine code"`, `"PTX"` or `"nothing"`.
# - The last digit in a name is the minor number, so `sm_103` is for 10.3. Compute capabilities are ordered by major
#   number first.
# - Full marks need every answer right.


# %% nbgrader={"grade": false, "grade_id": "way", "locked": false, "schema_version": 3, "solution": true, "task": false}
def way(binary, gpu):
    ### BEGIN SOLUTION
    major, minor = map(int, gpu.split("."))
    found = "nothing"
    for entry in binary:
        kind, name = entry.split("_")
        digits = name.rstrip("af")
        of = int(digits[:-1]), int(digits[-1])
        if name.endswith("a"):
            fits = of == (major, minor)
        elif kind == "sm" or name.endswith("f"):
            fits = of[0] == major and of[1] <= minor
        else:
            fits = of <= (major, minor)
        if fits and kind == "sm":
            return "machine code"
        found = "PTX" if fits else found
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "way-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.way", way)

# %% [markdown]
# **See.** A program whose makers compiled it for Ampere and for Hopper, with and without PTX.

# %%
gpulab.need(way)
for binary in (["sm_80", "sm_90a"], ["sm_80", "sm_90a", "compute_90"], ["sm_80", "sm_90a", "compute_90a"]):
    print(
        f"{', '.join(binary):30}",
        *(f"{gpu}: {way(binary, gpu)}" for gpu in ("8.9", "9.0", "12.0")),
        sep="   ",
    )

# %% [markdown]
# **Why.** A program that contains PTX without a suffix runs on a new generation as it is. To use the new units, compile
# it again with a compiler that knows them: CUDA 12.8 was the first for Blackwell (10.0 and 12.0; its release notes). Toolkits
# also drop the oldest generations. CUDA 13 generates no code for Volta (7.0):

# %%
from gpulab.compile import compiler_version, supported_capabilities

print(compiler_version(), "compiles for", ", ".join(f"{a}.{b}" for a, b in supported_capabilities()))
try:
    build(SAXPY, "sm_70")
except ValueError as complaint:
    print(complaint)

# %% [markdown]
# **A build for the debugger.** `nvcc -G` (NVRTC's `--device-debug`) optimises nothing and keeps every variable in a
# place where `cuda-gdb` finds it: `break saxpy`, `run`, `print i`, `cuda thread 5`. `-lineinfo` only notes which
# line an instruction comes from. Profilers need nothing else.
#
# **Predict.** How many times as many instructions does the machine code of saxpy have in a debug build?

# %%
gpulab.predict("cpp.debug", ...)

# %%
builds = {
    "-lineinfo": cuda_c_module(SAXPY, title="saxpy"),
    "-G": cuda_c_module(SAXPY, title="saxpy", variables=True),
}
instructions = {name: len(machine_code(module.ptx)) for name, module in builds.items()}
if all(instructions.values()):  # there is a disassembler
    gpulab.predict("cpp.debug", measured=instructions["-G"] / instructions["-lineinfo"])
plot.bars(
    instructions,
    "instructions of saxpy's machine code",
    caption="A build for the debugger has several times the instructions, so its times say nothing.",
)

# %% [markdown]
# ## 10 · The same from PyTorch
#
# PyTorch's tensors are in the same memory as CuPy's arrays. `cp.asarray(tensor)` and `torch.from_dlpack(array)` share
# that memory without a copy. There are three ways to use your own kernel from PyTorch:
#
# - as a RawKernel on such shared arrays;
# - with `torch.utils.cpp_extension.load_inline(…)`, which runs nvcc and makes a Python module;
# - as a registered operator (`torch.library`), which autograd and `torch.compile` then know.
#
# ![A tensor of PyTorch and an array of CuPy look at the same memory: only the address is handed over, and nothing is copied.](drawings/shared_pointer.svg)
#
# Remember three things. A launch returns before the work is done, so call `torch.cuda.synchronize()` before you read
# a clock. PyTorch and CuPy each have a current **stream** (part B), so launch on the same one. And `is_available()`,
# `device_count()` and `memory_allocated()` tell you what there is and what you use.

# %%
try:
    import torch
except ImportError:
    print("PyTorch is not installed; nothing else in this lab needs it")
else:
    print("CUDA is available:", torch.cuda.is_available(), "· devices:", torch.cuda.device_count())

# %% [markdown]
# ## Detective · The shuffle that was tested
#
# Before each epoch a training loop shuffles its examples on the GPU: `out[i] = a[(i * step) % n]`, where `step` is a
# prime that does not divide `n`. Then i · step modulo n takes every value exactly once. The author says: "An int
# product overflowed and faulted, so I made it unsigned. I tested every size up to 80,000, element by element, and
# nothing has crashed since." By now the data have grown to 100,003 examples.


# %%
shuffle_tested = cp.RawKernel(
    r"""
extern "C" __global__ void shuffle(const float* a, float* out, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[(unsigned)i * (unsigned)step % (unsigned)n];
}
""",
    "shuffle",
)

STEP = 48_271


def shuffled(kernel, n):
    out = cp.empty(n, cp.float32)
    examples = cp.asarray(np.arange(n, dtype=np.float32))
    kernel((-(-n // 256),), (256,), (examples, out, cp.int32(n), cp.int32(STEP)))
    return out.get()


for n in (1_000, 20_000, 80_000):
    print(n, "right:", np.array_equal(shuffled(shuffle_tested, n), np.arange(n) * STEP % n))
epoch = shuffled(shuffle_tested, 100_003)
print("100003: from", epoch.min(), "to", epoch.max(), "and no error")

# %% [markdown]
# **Do.** Find out what is wrong in the epoch of 100,003 examples, at which i it begins, and why it begins there. The
# first cell is free for your experiments. Then write the corrected kernel. About 2 lines.
#
# - Input and output: `a` and `out`, arrays of `n` floats. `n` and `step` are ints.
# - Full marks need the right result at every size. The check also uses other values of `step`.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "shuffle", "locked": false, "schema_version": 3, "solution": true, "task": false}
shuffle = cp.RawKernel(
    r"""
extern "C" __global__ void shuffle(const float* a, float* out, int n, int step) {
    // ### BEGIN SOLUTION
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[(long long)i * step % n];
    // ### END SOLUTION
}
""",
    "shuffle",
)

# %% nbgrader={"grade": true, "grade_id": "shuffle-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cpp.shuffle", shuffle)

# %% [markdown]
# ### Your answer
#
# In three to five sentences, say what was wrong, from which i on and how you found that number, and why neither a
# fault nor the tested sizes could show it. A person reads this: 1 point for the cause, 1 point for a number of your
# own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "shuffle-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** `i * step` is computed in 32 bits, which keeps only the remainder modulo 2³². From i = 88,977 on,
# which is the first i with i · 48,271 ≥ 2³² = 4,294,967,296, the index is a different one. In my run 11,026 of the
# 100,003 positions were wrong: some examples came twice and some never. The sizes up to 80,000 never reach that
# product, and `% n` makes every wrong index a valid one, so nothing faults.
#
# **1 point** (cause without a number): The unsigned product overflows for large i, so one factor must be 64 bits
# wide.
#
# **0 points:** The modulo is wrong for large n. Or: there is a race between threads.

# %% [markdown]
# ## Beyond · The cheapest saxpy
#
# Open-ended and ungraded. Write a `saxpy` and choose its launch for 2²⁰ elements. It must be right for any smaller n
# as well. The figure of merit is **warp instructions per 32 elements**, counted in PTX.
#
# | kernel | instructions per 32 elements |
# |---|---|
# | section 1 | printed by the cell below |
# | ours | 2.05 |
# | bound: 3 requests and 4 fma for 4 · 32 elements, (3 + 4) / 4 | 1.75 |

# %%
N = 2**20
big = np.random.default_rng(1).random(N, dtype=np.float32)


def merit(kernel, grid, block):
    for n in (1, 5000, N - 3, N):
        x, y = cp.asarray(big), cp.asarray(big)
        report = gpulab.profile(kernel, grid, block, (cp.float32(2), x, y, cp.int32(n)))
        if not np.allclose(y.get(), np.where(np.arange(N) < n, 3 * big, big), rtol=1e-6):
            return f"wrong for n = {n:,}"
    return f"{report['instructions'] / (N / 32):.2f}"


merit(saxpy, (N // 256,), (256,))

# %%
# Your saxpy, then merit(…, (…,), (…,)).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A kernel takes <code>double* x, float f, int n</code>. What do you pass from
# Python?</summary>
#
# Pass a device array of float64, `cp.float32(f)` and `cp.int32(n)`. A Python float has eight bytes, which is too many
# for `float f`.
# </details>
#
# <details><summary>2. A program prints garbage and reports no error. Which three checks do you
# make?</summary>
#
# Call `cudaGetLastError()` after the launch, check for an error in the next call that waits, and run the program once
# under compute-sanitizer. With CuPy, check the dtypes of the arguments as well.
# </details>
#
# <details><summary>3. Which arrays can be read as float4, and what does it save?</summary>
#
# Arrays that start at a multiple of 16 bytes. It saves three of four requests and the instructions for them, but no
# sectors.
# </details>
#
# <details><summary>4. Your PTX has two loads where you wrote one. Why might that be?</summary>
#
# There is a store between two uses of the value, and the pointers might alias. A variable or `__restrict__` removes
# the second load. </details>
#
# <details><summary>5. The CPU and the GPU differ in the last bit of a dot product. Which one is wrong?</summary>
#
# Neither is wrong. They fuse and order the operations differently. Each rounds as IEEE 754 requires, and the fused
# result is usually closer to the exact one.
# </details>

# %%
gpulab.recap("07")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | compile and launch | `k = cp.RawKernel(text, "name")`, `k((blocks,), (threads,), (x, cp.int32(n)))` |
# | cover n elements | `(n + threads - 1) / threads` blocks and `if (i < n)` |
# | address element (row, col) | `image[row * pitch + col]`; in large arrays `(size_t)row * pitch + col` |
# | support many types | `template <typename T>`, `RawModule(code=…, name_expressions=["k<float>"])` |
# | move 16 bytes per lane | `reinterpret_cast<const float4*>(a)`, aligned to 16 |
# | round once | `fmaf(a, b, c)`, `fma(a, b, c)`; round twice: `__fmul_rn`, `__fadd_rn` |
# | promise that there is no aliasing | `const float* __restrict__ x` |
# | get a 64-bit product | widen a factor first: `(long long)i * step` |
# | run on GPUs to come | put PTX into the program: `nvcc -gencode arch=compute_80,code=[sm_80,compute_80]` |
# | see PTX and SASS | `gpulab.compile.cuda_c_module(text).ptx`, `gpulab.compile.sass(ptx)` |
#
# ### Claims you will meet, and what is right
#
# - *A launch is `kernel<<blocks, threads>>(…)`.* It has three angle brackets on each side, and a semicolon.
# - *A thread runs on a CUDA core.* Warps are issued to pipelines, and a thread is not bound to any of them.
# - *Use nvprof.* It supports no GPU from compute capability 8.0 on, and the toolkit dropped it with CUDA 13. Nsight
#   Systems and Nsight Compute have replaced it.
# - *CUDA 13 compiles for V100.* It rejects `sm_70`.
# - *The GPU computes inaccurately.* Single operations are rounded as on a CPU. What differs is fusing and order.
# - *`global_data[blockIdx.x] = sum` while other blocks still read `global_data`.* This is from a published example,
#   and it is a race. Results belong in an array of their own.
#
# ### References
#
# 1. NVIDIA, *CUDA Programming Guide*. https://docs.nvidia.com/cuda/cuda-programming-guide/
# 2. NVIDIA, *Parallel Thread Execution ISA*. https://docs.nvidia.com/cuda/parallel-thread-execution/
# 3. NVIDIA, *CUDA Binary Utilities* (cuobjdump, nvdisasm, the opcodes of SASS).
#    https://docs.nvidia.com/cuda/cuda-binary-utilities/
# 4. N. Whitehead, A. Fit-Florea, *Precision and Performance: Floating Point and IEEE 754 Compliance for NVIDIA GPUs*.
#    https://docs.nvidia.com/cuda/floating-point/
# 5. T. J. Dekker, "A floating-point technique for extending the available precision", *Numerische Mathematik* 18,
#    1971.
# 6. IEEE Standard for Floating-Point Arithmetic, IEEE 754-2019.
# 7. CuPy, *User-Defined Kernels*. https://docs.cupy.dev/en/stable/user_guide/kernel.html
# 8. NVIDIA, *Ada GPU Architecture Compatibility Guide* (which machine code and which PTX runs where).
#    https://docs.nvidia.com/cuda/ada-compatibility-guide/
