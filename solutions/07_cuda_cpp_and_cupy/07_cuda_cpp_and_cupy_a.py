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
# **About three hours.** You have done lab 03 and know grids, blocks and reports. You can read C a little: types,
# `if`, `for`, pointers. You need no GPU.
#
# numba hid the language that GPUs are mostly programmed in. Here you write it. The text goes through NVIDIA's
# compiler as you typed it, and what comes out runs in the simulator.
#
# When you are through, you can
#
# 1. write a CUDA C++ kernel with pointers, pitches and templates, and launch it with arguments of the right
#    types;
# 2. read a compiler's, a launch's and a kernel's error, and say which of them a real GPU would not have told
#    you;
# 3. move 16 bytes with one instruction;
# 4. find your own lines again in PTX and in machine code;
# 5. say where a multiply-add rounds once, and make use of it.

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
# `__global__` makes a function a **kernel**: the host launches it, a thread runs it, it returns nothing.
# `extern "C"` keeps its name as it is; C++ would append the types of its parameters. A thread finds its place
# in `blockIdx`, `blockDim` and `threadIdx`, which need no import. Parameters have types, and an array arrives
# as a **pointer**: the address of its first element.


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
# CuPy's **RawKernel** takes the text and compiles it when it is first launched, with **NVRTC**, the compiler
# as a library. A program all in C++ says the same in other words, and asks after every step whether it went
# well:
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
# `nvcc program.cu -o program` compiles it: the kernels by NVIDIA's compiler, the rest by your machine's own.
#
# **Predict.** How many blocks of 256 threads do 1,000,000 elements need?

# %%
gpulab.predict("cpp.grid", ...)

# %% [markdown]
# **Why.** Integer division in C rounds down, so `n / 256` blocks leave the last elements out and
# `(n + 255) / 256` do not. The `if (i < n)` is for the threads that are too many.
#
# ## 2 · Pointers know no shape
#
# A numba array brings its shape and strides along. A pointer brings nothing: `image[k]` is k elements behind
# the start, whatever you meant. Two-dimensional data lie row behind row, and the distance from one row to the
# next is the **pitch**. It is often more than the row is long, so that every row starts at a multiple of 32
# bytes or more (`cudaMallocPitch` does that). The bytes between are padding and belong to nobody.
#
# ![An array of three rows and four columns lies in memory row after row. The pointer knows only where it begins; element (1, 2) is at 1 · 4 + 2 = 6.](drawings/rows_in_memory.svg)
#
# **Predict.** An image of bytes has a pitch of 512. How many bytes behind its start lies the element in row
# 3, column 10?

# %%
gpulab.predict("cpp.offset", ...)

# %% [markdown]
# **Do.** Complete `invert`: `out` becomes 255 minus `image` for all `rows` × `cols` elements. The padding of
# `out` stays as it is. Blocks have 32 × 8 threads, and the grid covers the image. The check names its sizes
# rows × cols in pitch: in *9 × 33 in 64* the columns 33 to 63 are padding. **Budget:** as many sectors
# loaded, and as many stored, as the image has. About 4 lines.


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
# **See.** What one warp loads and what it stores. Bytes are small: a whole warp fits into one sector.

# %%
gpulab.need(invert)
gpulab.show("cpp.invert", invert, view="accesses")

# %% [markdown]
# **Why.** `threadIdx.x` runs fastest through a warp, as in numba, so it must run along the row. A warp that
# moves bytes uses a quarter of what a request can carry. Kernels on images load four pixels at once for that
# reason; section 5 does it with floats.
#
# ## 3 · What goes wrong, and how it looks
#
# ![A launch returns before the kernel has run. A kernel that fails is noticed only by a later call, so the error is reported at a line that is not to blame.](drawings/late_error.svg)
#
# Three kinds of error, at three times:
#
# - The **compiler** refuses the text. You get the line.
# - The **launch** is impossible: too many threads in a block, too much shared memory, no blocks. In C++ the
#   launch returns nothing, so nobody notices unless the program asks `cudaGetLastError()`.
# - The **kernel** fails while it runs, after the launch has returned. The error comes out of a later call,
#   mostly a copy (**asynchronous**), and from then on every call fails: it is **sticky**, and only a new
#   process is well again.
#
# Then there is the worst kind, which is no error: wrong types of arguments. The launch copies bytes. The cell
# shows one of each. It uses the simulator on every machine, because the last ones could harm a GPU's session.


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
# **Why.** CuPy itself passes the last two on: a Python `2.0` is eight bytes where the kernel takes four, and
# an array of float64 is read as if it were float32. You get numbers, and they are wrong. The third one is
# real on a GPU too, but seldom said: a store a little behind an array most often hits somebody else's memory.
# On a GPU run `compute-sanitizer python program.py`, which watches every access.
#
# ## 4 · One text, many types
#
# A **template** is a text with a type left open: `template <typename T>`. Every type that is used becomes a
# kernel of its own, an **instance**, with a name that C++ makes up. CuPy's **RawModule** compiles the
# instances in `name_expressions`, and `module.get_function("scale<float>")` finds one by the name you wrote.
#
# ![One text with a type T in it becomes a kernel for each type that is asked for.](drawings/template.svg)
#
# **Do.** Two cells. Complete the kernel: every `x[i]` becomes `x[i] * factor`. Then write the host function
# `scale(x, factor)`, which launches the instance for the dtype of `x`: float32, float64 or int32, which C++
# calls `float`, `double` and `int`. `x` may be empty. A launch converts nothing: `x.dtype.type(v)` is v in the
# type of x. **Budget:** one launch; each element read once and written once. About 2 and 5 lines.


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
# **See.** The names that C++ gave the instances, and what the type costs.

# %%
gpulab.need(scale)
for dtype in (cp.float32, cp.float64, cp.int32):
    report = gpulab.profile(scale, cp.ones(4096, dtype), 3)
    print(f"{np.dtype(dtype).name:8} {report['global_bytes']:7,} B   {report['global_sectors']:5,} sectors")
dict(cuda_c_module(module.code, title="scale", names=module.name_expressions).names)

# %% [markdown]
# **Why.** `_Z5scaleIfEvPT_S0_i` reads: a function of 5 letters, `scale`, with float (`f`) for T, which
# returns void (`v`) and takes a pointer to T, a T and an int. `extern "C"` avoids that, but a C name can have
# only one meaning, so templates cannot have one.
#
# ## 5 · Sixteen bytes at a time
#
# ![A float4 load brings four floats with one instruction. The warp asks for 512 bytes at once, in 16 sectors, and issues a quarter of the instructions.](drawings/wide_load.svg)
#
# A lane can load 4, 8 or 16 bytes with one instruction. CUDA has types for it: a `float4` is four floats `x`,
# `y`, `z`, `w` at an address that is a multiple of 16. Arrays from CuPy start at multiples of
# 256 bytes, so
#
# ```c++
# const float4* a4 = reinterpret_cast<const float4*>(a);
# ```
#
# counts the same memory in steps of 16 bytes. Nothing is converted. What moves stays the same; how often you
# ask falls to a quarter.
#
# **Predict.** How many load requests does it take to read 65,536 floats as float4?

# %%
gpulab.predict("cpp.requests", ...)

# %% [markdown]
# **Do.** Complete `copy4`: `b` becomes equal to `a`. The launch has 1,024 threads, whatever `n` is, and `n`
# need not be a multiple of four. **Budget:** n / 128 loads and as many stores, plus one each for the tail. In
# all no more sectors than the arrays have. About 7 lines.


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
# **See.** One request of your kernel. All four rows of 128 bytes are asked for at once.

# %%
gpulab.need(copy4)
gpulab.show("cpp.copy4", copy4, view="accesses")

# %% [markdown]
# **Why.** numba has no element of 16 bytes; C++ has. Fewer requests mean fewer instructions to issue, and
# more bytes in flight for each. An address that is no multiple of 16 is an error on a GPU, not a slow access:
# `a + 1` cannot be read as float4.
#
# ## 6 · From your line to PTX
#
# **PTX** is the instruction set of a machine that nobody builds. It has as many registers as you like, each
# with a type, and every GPU's real instructions are made from it. It outlives GPUs: the PTX of old programs
# still runs. A line reads `opcode.modifiers destination, sources`:
#
# | PTX | says |
# |---|---|
# | `ld.global.f32 %f2, [%rd6];` | load 4 bytes from global memory into a register |
# | `ld.global.v4.f32 {…}, [%rd4];` | load 16 bytes into four |
# | `ld.global.nc.f64 %fd1, [%rd6];` | load 8 bytes, on the read-only path |
# | `mad.lo.s32 %r1, %r3, %r4, %r5;` | integers: the low 32 bits of r3 · r4 + r5 |
# | `fma.rn.f32 %f4, %f2, %f1, %f3;` | floats: f2 · f1 + f3, rounded once, to nearest |
# | `@%p1 ld.global.v2.f64 {…}, [%rd4];` | load 16 bytes into two, if the predicate p1 holds |
# | `@%p1 bra $L__BB0_2;` | jump if p1 holds |
# | `.loc 1 5 5` | what follows comes from file 1, line 5, column 5 |
#
# **Predict.** How many of saxpy's PTX instructions touch a floating-point number, the argument `a` included?

# %%
gpulab.predict("cpp.opcodes", ...)

# %%
ptx = cuda_c_module(SAXPY, title="saxpy").ptx
print(ptx[ptx.index(".visible") :])

# %% [markdown]
# **Do.** Write `mix(ptx)`: for the listing of one kernel return `{"loads": …, "bytes": …, "fused": …}`: the
# load instructions from global memory, the bytes that all of them load for one thread, and the fused
# multiply-adds of floating-point numbers. Count each line once, as it stands. About 10 lines of Python.


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
# (In our copy4 the compiler wrote four turns of the loop one after the other, **unrolled**, and kept a fifth for
# what is left. A listing says what stands there, not how often it runs.)
#
# **Why.** Half of a small kernel finds out where it is: indices become addresses, in 64 bits. What is left is
# the work. Behind NVRTC, and behind numba, stands LLVM. A text becomes **LLVM IR**: typed instructions in
# which every name is assigned once. It is optimised there and leaves as PTX, which looks much like it. numba
# shows the IR of CPU functions, and it is the same language.

# %%
from numba import float32, njit


@njit(float32(float32, float32, float32))
def one_element(a, x, y):
    return a * x + y


ir = next(iter(one_element.inspect_llvm().values()))
start = ir.index("define")
print(ir[start : ir.index("}", start) + 1])

# %% [markdown]
# Here the product and the sum are still two, and nobody has chosen a register yet.
#
# ## 7 · From PTX to the machine
#
# **ptxas** turns PTX into **SASS**, the machine code of one generation: it picks real registers, orders the
# instructions and says when each may start. The driver does the same for PTX in an old program on a new GPU
# (just-in-time compilation). SASS is not documented beyond the names of its opcodes, but it can be read, with
# `cuobjdump -sass` for a program or `nvdisasm`. No GPU is needed for that.


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
# `IMAD.WIDE` does what PTX says in `mul.wide` and `add`: index times four plus address. Arguments are read from
# constant memory (`c[0x0][…]`) right where they are needed, the jump has become `@P0 EXIT`, and the odd
# `HFMA2` is a cheap way to put a 4 into R5. The two `cvta` mark x and y as addresses of global memory; the
# compiler books them on the line of `i`, hence their colour.
#
# **See.** The same text for four generations.

# %%
for cc in ((7, 5), (8, 0), (9, 0), (12, 0)):
    count = len(machine_code(cuda_c_module(SAXPY, cc, "saxpy").ptx, cc))
    print(f"compute capability {cc[0]}.{cc[1]}: {count} instructions in SASS")

# %% [markdown]
# **Why.** The course counts PTX, because that is what can run everywhere. Sectors, bytes and barriers are the
# same in SASS; numbers of instructions are not, and a report's instructions are those of the PTX. On a GPU,
# Nsight Compute counts SASS.
#
# ## 8 · One rounding instead of two
#
# IEEE 754 asks of every operation: compute exactly, then round once. `a * b + c` is two operations and rounds
# twice. A **fused multiply-add**, `fma(a, b, c)`, is one and rounds once: faster, mostly more accurate, and
# not the same number. Unless you forbid it (`--fmad=false`), the compiler may fuse where you wrote two. PTX
# says how far it went: `mul.rn.f32` must round, a plain `mul.f32` may be fused by ptxas with what follows.
# Compare:


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
# As usual, SASS has one FMUL and one FFMA: a² is not rounded, b² is. The simulator runs the PTX and rounds
# both, so here a GPU and the simulator may differ. Write the fused form yourself, and both do the same.
#
# **Predict.** Of 1,000 pairs with a = b, for how many is `fma(a, a, -(b * b))` exactly 0?

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
ax.plot(a.get(), out_fused.get() / 2**-24, ".", color="#d55e00", markersize=3)
ax.plot(a.get(), out_separate.get() / 2**-24, ".", color="#0072b2", markersize=3)
ax.annotate("rounded once: what b · b lost", (1.02, 2.15), color="#d55e00")
ax.annotate("rounded twice: always 0", (1.02, -2.35), color="#0072b2")
ax.set(xlabel="a", ylabel="a² − a², in units of 2⁻²⁴", ylim=(-2.6, 2.6))
plot.picture(ax, "A fused a² − a² is the error of rounding a², up to one unit either way and two from √2 on.")

# %% [markdown]
# What looks like noise is the exact rounding error of b², and a GPU that fuses may give it where you expect 0.
# It doubles at √2, where a² passes 2 and its last bit is worth twice as much. A fused multiply-add can hand you the error of any product, and sums that carry
# their errors along are twice as accurate (lab 05).
#
# **Two names for one place.** The compiler must assume that a store through one pointer changes what another
# points to (**aliasing**); after it, it loads again. Load into variables first, or promise with
# `float* __restrict__ p` that p is the only way to its memory.
#
# **Do.** Complete `two_product`: for doubles, `p[i]` is a · b rounded, `e[i]` is a · b − p, exactly.
# **Budget:** 3 operations and 16 loaded bytes per element, 34 instructions for each warp. About 4 lines.


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
# **Why.** `a * b - p` does not do: the compiler sees the product that it has already and subtracts it from
# itself. Before there was an fma, T. J. Dekker cut both factors in half and needed 17 operations (1971).
#
# ## 9 · The tool box
#
# | you want | tool |
# |---|---|
# | a program from C++ with kernels | `nvcc` |
# | PTX while the program runs; SASS from it | NVRTC; `ptxas`, nvJitLink |
# | to read what is inside | `cuobjdump`, `nvdisasm` |
# | to stop in a thread and look at its variables | `cuda-gdb` |
# | bad accesses, races, uninitialised memory | `compute-sanitizer` |
# | what happened when: copies, launches, gaps | Nsight Systems |
# | one kernel's counts and times | Nsight Compute (`nvprof` is gone since CUDA 13) |
#
# A program holds a **fat binary**: SASS for the generations it knows, PTX for those to come. A new generation
# runs the PTX of old programs at once. For its new units it wants a compiler that knows it: CUDA 12.8 was the
# first for Blackwell (10.0 and 12.0; its release notes). Names that end in `a`, as in `sm_90a`, use instructions of one
# generation only and run on no other. Toolkits also drop the oldest: CUDA 13 has no code for Volta (7.0).

# %%
from gpulab.compile import compiler_version, supported_capabilities

print(compiler_version(), "compiles for", ", ".join(f"{a}.{b}" for a, b in supported_capabilities()))

# %% [markdown]
# ## 10 · The same from PyTorch
#
# PyTorch's tensors lie in the same memory, and `cp.asarray(tensor)` or `torch.from_dlpack(array)` share it
# without a copy. Your kernels come in three ways: as a RawKernel on such arrays; with
# `torch.utils.cpp_extension.load_inline(…)`, which runs nvcc and makes a Python module; or as a registered
# operator (`torch.library`), which autograd and `torch.compile` then know.
#
# ![A tensor of PyTorch and an array of CuPy look at the same memory: only the address is handed over, and nothing is copied.](drawings/shared_pointer.svg)
#
# Three things to keep in mind. A launch returns before the work is done, so a clock needs
# `torch.cuda.synchronize()`. PyTorch has a current **stream**, CuPy another (part B): launch on the same one.
# And `is_available()`, `device_count()`, `memory_allocated()` say what there is and what you use.

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
# Before each epoch a training loop shuffles its examples on the GPU: `out[i] = a[(i * step) % n]`, with a
# prime `step` that does not divide `n`. Then i · step modulo n takes every value once. "An int product
# overflowed and faulted, so I made it unsigned. I tested every size up to 80,000, element by element. And
# nothing has crashed since." The data have grown to 100,003 examples.


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
# **Do.** Find out what the epoch of 100,003 examples is missing, from where on, and why there. The first cell
# is free. Then mend the kernel. The check takes steps of its own, too. About 2 lines.

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
# In three to five sentences: what was wrong, from which i on and how you worked that number out, and why
# neither a fault nor the tested sizes could show it. A person reads this: 1 point for the cause, 1 point for
# a number of your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "shuffle-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** `i * step` is computed in 32 bits and keeps the rest modulo 2³². From i = 88,977 on, which is
# the first i with i · 48,271 ≥ 2³² = 4,294,967,296, the index is another one. In my run 11,026 of the 100,003
# positions were wrong: some examples came twice and some never. The sizes up to 80,000 never reach that
# product, and `% n` makes every wrong index a valid one, so nothing faults.
#
# **1 point** (cause without a number): The unsigned product overflows for large i; one factor must be 64 bits
# wide.
#
# **0 points:** The modulo is wrong for large n. Or: there is a race between threads.

# %% [markdown]
# ## Beyond · The cheapest saxpy
#
# Open-ended and ungraded. Write a `saxpy` and choose its launch for 2²⁰ elements. It has to be right for any
# smaller n, too. The figure of merit is **warp instructions per 32 elements**, counted in PTX.
#
# | kernel | instructions per 32 elements |
# |---|---|
# | section 1 | the cell below |
# | ours | 2.05 |
# | bound: 3 requests and 4 fma for 4 · 32 elements | 1.75 |

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
# A device array of float64, `cp.float32(f)` and `cp.int32(n)`. A Python float has eight bytes.
# </details>
#
# <details><summary>2. A program prints garbage and reports no error. Which three checks do you
# make?</summary>
#
# `cudaGetLastError()` after the launch, an error check on the next call that waits, and one run under
# compute-sanitizer. With CuPy also: the dtypes of the arguments.
# </details>
#
# <details><summary>3. Which arrays can be read as float4, and what does it save?</summary>
#
# Those that start at a multiple of 16 bytes. Three of four requests and the instructions for them; no sector.
# </details>
#
# <details><summary>4. Your PTX has two loads where you wrote one. Why might that be?</summary>
#
# There is a store between two uses, and the pointers might alias. A variable or `__restrict__` cures it.
# </details>
#
# <details><summary>5. The CPU and the GPU differ in the last bit of a dot product. Who is wrong?</summary>
#
# Nobody: they fuse and order differently. Each rounds as IEEE 754 asks; the fused one mostly lies closer.
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
# | element (row, col) | `image[row * pitch + col]`; large arrays: `(size_t)row * pitch + col` |
# | many types | `template <typename T>`, `RawModule(code=…, name_expressions=["k<float>"])` |
# | 16 bytes a lane | `reinterpret_cast<const float4*>(a)`, aligned to 16 |
# | round once | `fmaf(a, b, c)`, `fma(a, b, c)`; round twice: `__fmul_rn`, `__fadd_rn` |
# | no aliasing | `const float* __restrict__ x` |
# | 64-bit product | widen a factor first: `(long long)i * step` |
# | see PTX, SASS | `gpulab.compile.cuda_c_module(text).ptx`, `gpulab.compile.sass(ptx)` |
#
# ### Claims you will meet, and what is right
#
# - *A launch is `kernel<<blocks, threads>>(…)`.* It has three angle brackets on each side, and a semicolon.
# - *A thread runs on a CUDA core.* Warps are issued to pipelines; a thread is bound to none.
# - *Use nvprof.* It knows no GPU from compute capability 8.0 on and left the toolkit with CUDA 13; Nsight
#   Systems and Nsight Compute are its heirs.
# - *CUDA 13 compiles for V100.* It refuses `sm_70`.
# - *The GPU computes inaccurately.* Single operations are rounded as on a CPU; what differs is fusing and
#   order.
# - *`global_data[blockIdx.x] = sum` while other blocks still read `global_data`.* Seen in a published
#   example: results belong into an array of their own.
#
# ### References
#
# 1. NVIDIA, *CUDA Programming Guide*. https://docs.nvidia.com/cuda/cuda-programming-guide/
# 2. NVIDIA, *Parallel Thread Execution ISA*. https://docs.nvidia.com/cuda/parallel-thread-execution/
# 3. NVIDIA, *CUDA Binary Utilities* (cuobjdump, nvdisasm, the opcodes of SASS).
#    https://docs.nvidia.com/cuda/cuda-binary-utilities/
# 4. N. Whitehead, A. Fit-Florea, *Precision and Performance: Floating Point and IEEE 754 Compliance for
#    NVIDIA GPUs*. https://docs.nvidia.com/cuda/floating-point/
# 5. T. J. Dekker, "A floating-point technique for extending the available precision", *Numerische Mathematik*
#    18, 1971.
# 6. IEEE Standard for Floating-Point Arithmetic, IEEE 754-2019.
# 7. CuPy, *User-Defined Kernels*. https://docs.cupy.dev/en/stable/user_guide/kernel.html
