# ---
# jupyter:
#   gpulab:
#     lab: "08"
#     hours: 6
#     topics: [C6.7, C7.3, C10.1, C10.4, C10.5, C10.6, C10.7, C10.8, C10.10, C10.11, C20.1, C20.2, C20.3, C20.4, C20.5, C20.6, C20.7, C20.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · PyTorch performance
#
# **5 to 8 hours.** You need lab 01 (tensors, training) and lab 02A (roofline). You do not need a GPU.
#
# A PyTorch program is a list of operations, but most of its time goes into things that the source does not show:
# launches, bytes, waits and copies. Here you make them visible and then reduce them.
#
# By the end you can
#
# 1. say how many launches and bytes a piece of PyTorch costs before you run it;
# 2. find where the host waits for the device, and write code that need not wait;
# 3. explain what an allocator holds, and cut a model's activations to a quarter for a third more arithmetic;
# 4. tell from a trace what a GPU is waiting for: the host, the data, or nothing;
# 5. write a benchmark that you would believe.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 6 | 2.5 to 4 | launches, bytes and waits; graphs; and the allocator |
# | 2 | 7 to 11, detective, recap | 2.5 to 3.5 | activations, input data, profilers, and a benchmark that you can believe |

# %%
import json
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

import gpulab
from gpulab import hardware, plot
from gpulab.profile.ledger import ledger

for kind in (DeprecationWarning, torch.jit.TracerWarning):  # section 5 shows what they are about
    warnings.filterwarnings("ignore", category=kind)
gpulab.start("08")

# %% [markdown]
# ## 1 · What a line of PyTorch costs
#
# By default PyTorch is **eager**: each operation runs as soon as Python reaches it. On a GPU that means one
# **launch** (sometimes several), which reads the operation's inputs from memory and writes its output back. The
# next operation reads that output again. No operations are **fused** into one launch, because when an operation
# is launched, the next one is not yet known.
#
# `gpulab.profile` keeps a **ledger** of a PyTorch function. It sees every operation that PyTorch dispatches,
# below autograd, and counts what eager execution asks for. It needs neither a GPU nor data.
#
# **Predict.** How many launches does `gelu_by_hand` take?

# %%
gpulab.predict("pytorch.gelu_launches", ...)


# %%
def gelu_by_hand(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


x = torch.randn(1024, 1024)
by_hand = gpulab.profile(gelu_by_hand, x)
gpulab.predict("pytorch.gelu_launches", measured=by_hand.launches)
by_hand

# %% [markdown]
# PyTorch also offers this function as a single operation:

# %%
in_one = gpulab.profile(nn.functional.gelu, x)
print(f"by hand: {by_hand.launches} launches, {by_hand.bytes / x.nbytes:.0f} bytes moved for a byte of x")
print(f"in one:  {in_one.launches} launch,   {in_one.bytes / x.nbytes:.0f} bytes moved for a byte of x")

# %% [markdown]
# Every launch costs the host some time, however small the tensors are. You can measure that cost here, because
# the path from Python through the dispatcher to a kernel is the same on a CPU, and only its last step differs.
#
# **Predict.** On this machine, how many µs does it take to add two tensors that hold one number each?

# %%
gpulab.predict("pytorch.overhead", ...)


# %%
def microseconds(run, repeats=7):
    """The median time of one call. Each reading of the clock covers enough calls for 2 ms."""
    run()
    began = time.perf_counter()
    run()
    calls = max(1, int(0.002 / max(time.perf_counter() - began, 1e-7)))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - began) / calls)
    return 1e6 * statistics.median(times)


threads = torch.get_num_threads()
torch.set_num_threads(1)
sizes = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
pairs = {n: (torch.ones(n), torch.ones(n)) for n in sizes}
measured = [(n, microseconds(lambda n=n: torch.add(*pairs[n]))) for n in sizes]
torch.set_num_threads(threads)
gpulab.predict("pytorch.overhead", measured=measured[0][1])

# %% jupyter={"source_hidden": true}
plot.lines(
    {"torch.add": measured},
    "numbers in each tensor",
    "time, µs",
    "On the left the time hardly depends on how many numbers there are, on the right it grows with them (this CPU).",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** Left of the bend you pay for the operation, and right of it for the bytes. On a GPU the bend lies far
# to the right, because a launch takes a few µs, and in every µs an A100's DRAM could move 2 MB (2,039 GB/s, data
# sheet). Published values of "the" launch overhead differ by a factor of ten, because some mean the launch alone
# and others the framework's path to it. Measure yours.
#
# ## 2 · Bytes, not only launches
#
# Two programs with the same number of launches may still move different numbers of bytes. Consider how PyTorch
# **broadcasts**: it combines a row of numbers with a matrix as if the row were repeated, at no cost in memory.
# The result, however, has the size of the matrix.


# %%
def standardise(x, mean, std, weight, bias):
    return (x - mean) / std * weight + bias


# %% [markdown]
# `x` has rows and columns. Each of the other four arguments holds one number per column, as in a batch norm at
# inference.
#
# **Predict.** If x is tall, how many bytes move for each byte of x?

# %%
gpulab.predict("pytorch.standardise_bytes", ...)

# %%
rows = torch.randn(10_000, 64), *(torch.rand(64) + 0.5 for _ in range(4))
naive = gpulab.profile(standardise, *rows)
gpulab.predict("pytorch.standardise_bytes", measured=naive.bytes / rows[0].nbytes)

# %% [markdown]
# **Do.** Write `fold(x, mean, std, weight, bias)`, which computes the same function as `standardise` but moves as
# few bytes as possible. About 3 lines.
#
# - Input: `x` (rows × columns) and four tensors with one number per column, all float32.
# - Output: a tensor of the same shape as `x`.
# - You may use the arithmetic of `torch`, and `torch.addcmul(a, b, c, value=v)`, which computes a + v · b · c in
#   one operation. You may choose the order of the operations.
# - **Budget:** x read once and the result written once, a few numbers per column, plus 10 %.


# %% nbgrader={"grade": false, "grade_id": "fold", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fold(x, mean, std, weight, bias):
    ### BEGIN SOLUTION
    scale = weight / std
    shift = torch.addcmul(bias, mean, scale, value=-1)
    return torch.addcmul(shift, x, scale)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fold-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.fold", fold)

# %% [markdown]
# `check` never runs your function on data. Instead it **records** the operations that your function dispatches on
# tensors that have shapes but no values, and then replays the record on numbers. To the check your code is therefore
# a graph, and anything that a graph cannot hold, such as `.item()`, is refused with a message.
#
# **See.** FLOPs per byte and bytes moved, for both versions.

# %%
gpulab.need(fold)
folded = gpulab.profile(fold, *rows)
for name, report in (("standardise", naive), ("fold", folded)):
    print(f"{name:12} {report.total.intensity:.2f} FLOP/B")
print(f"ridge of an A100: {hardware.roofline('A100', 'float32').ridge:.1f} FLOP/B")
plot.bars(
    {name: report.bytes / rows[0].nbytes for name, report in (("standardise", naive), ("fold", folded))},
    "bytes moved for each byte of x",
    budget=2.2,
    caption="The same function: four passes over the matrix, or one.",
)

# %% [markdown]
# **Why.** Both versions are far to the left of the ridge, so the bytes decide. Arithmetic on rows of 64 numbers is
# free compared with a pass over the matrix. The same trick folds a batch norm into the convolution **before** it. If
# there is a ReLU in between, the trick fails, because norm and convolution together are then no longer one linear
# function.
#
# ## 3 · Many small tensors
#
# An optimiser touches every parameter of a model once per step. For each, Adam keeps two running means, of the
# gradient and of its square. AdamW also shrinks the parameter itself a little (Loshchilov and Hutter, 2019). The
# next cell is the textbook version with PyTorch's default constants. A name that ends in `_` changes its tensor
# in place: `p.addcdiv_(a, b, value=v)` adds v · a / b to p.


# %%
def adamw_by_the_book(params, grads, means, squares, step, lr):
    for p, g, m, v in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - lr * 0.01)  # decoupled weight decay
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)  # both started at zero
        p.addcdiv_(mean, square.sqrt_().add_(1e-8), value=-lr)


# %% [markdown]
# GPT-2 (Radford et al., 2019) has 12 blocks. Each block has two layer norms and four linear layers, and each of
# the six has a weight and a bias. Besides the blocks there are two embeddings and a last norm.
#
# **Predict.** How many parameter tensors does GPT-2 have?

# %%
gpulab.predict("pytorch.tensors", ...)

# %% [markdown]
# The ledger counts without data, so even a model with 124 million parameters costs nothing to examine. The next
# cell builds it from **fake tensors**. A fake tensor has a shape and a type, but no memory.

# %%
from torch._subclasses.fake_tensor import FakeTensorMode

from gpulab.exercises.lab_08_pytorch_performance import gpt_shapes

fake = FakeTensorMode()
shapes = gpt_shapes(width=768, layers=12, vocabulary=50_257, context=1024)
with fake:
    state = [[torch.empty(shape) for shape in shapes] for _ in range(4)]
    book = gpulab.profile(adamw_by_the_book, *state, 3, 1e-3)
parameters = sum(t.numel() for t in state[0])
print(f"{len(shapes)} tensors, {parameters:,} parameters")
print(f"{book.launches:,} launches, {book.bytes / parameters:.0f} bytes moved per parameter")

# %% [markdown]
# **Do.** Write `adamw_step(params, grads, means, squares, step, lr)`, which performs the same step in place.
# About 4 lines.
#
# - Input: four lists of float32 tensors, the number of the step, and the learning rate.
# - Effect: `params`, `means` and `squares` change, and `grads` stay as they are.
# - You may use `torch._foreach_mul_`, `_foreach_add_` and similar operators, which take whole lists. One more
#   operator is allowed: `torch._fused_adamw_`, which PyTorch's own optimisers call with `fused=True`.
# - `torch.ops.aten._fused_adamw_.default._schema` shows its arguments. `state_steps` is a list of tensors with
#   one float each, `max_exp_avg_sqs` is an empty list here, and everything after `state_steps` is passed by
#   keyword.
# - **Budget:** at most 12 launches for 148 tensors, and 7 numbers moved per parameter (4 read, 3 written), plus
#   10 %.


# %% nbgrader={"grade": false, "grade_id": "adamw-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def adamw_step(params, grads, means, squares, step, lr):
    ### BEGIN SOLUTION
    steps = [torch.full((), float(step))] * len(params)
    torch._fused_adamw_(
        params, grads, means, squares, [], steps,
        lr=lr, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "adamw-step-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.adamw_step", adamw_step)


# %% [markdown]
# **See.** One step on all of GPT-2: by the book, with PyTorch's own optimiser in its three forms, and with yours.


# %%
def optimiser(**how):
    """A step of torch.optim.AdamW, after one that makes its state."""
    params = [nn.Parameter(torch.empty(shape)) for shape in shapes]
    for p in params:
        p.grad = torch.empty_like(p)
    adamw = torch.optim.AdamW(params, **how)
    adamw.step()
    return gpulab.profile(adamw.step)


gpulab.need(adamw_step)
with fake:
    steps = {
        "by the book": book,
        "AdamW, foreach=False": optimiser(foreach=False),
        "AdamW, foreach=True": optimiser(foreach=True),
        "AdamW, fused=True": optimiser(fused=True),
        "yours": gpulab.profile(adamw_step, *state, 3, 1e-3),
    }
for name, report in steps.items():
    print(f"{name:22}{report.launches:7,} launches{report.bytes / parameters:8.1f} bytes per parameter")
plot.bars(
    {name: report.launches for name, report in steps.items()},
    "launches",
    budget=12,
    log=True,
    caption="One step of the same optimiser: a launch for each tensor and operation, or a few for whole lists.",
)

# %% [markdown]
# (With `foreach=False` there are nine operations per tensor, 9 · 148 = 1,332 in all. Of these, 148 count the
# steps, on the CPU. A `torch.tensor(…)` made from a Python number counts as free here, but on a GPU each would be
# a copy.)
#
# **Why.** A multi-tensor kernel gets a list of addresses as its argument. Its 4 KB hold 110 tensors of one list,
# or 36 from each of four lists, so a long list is cut into a few launches. The ledger counts them by the rules in
# `MultiTensorApply.cuh`. In a fused kernel the numbers also stay in registers between the steps of the formula,
# so only seven move per parameter. That is what fusion is for: fewer launches **and** fewer bytes.
#
# ## 4 · No value, no wait
#
# The host runs ahead. It queues launches, and the device works through them. That stops when Python wants a
# **value**, as in `.item()`, `float(t)`, `print(t)`, `if t > 0`, or `x[mask]`, whose size depends on values. The
# host then waits until the device is done, and afterwards the device waits for the next launch. The ledger counts
# these waits as `syncs`, except for `print`, which bypasses it, as do `.tolist()`, `.numpy()`, and `.cpu()` of
# tensors already on the CPU.
#
# ![A fake tensor has shape, type and device but no numbers. Operators work out the shapes of their results, and code that asks for a number stops the trace.](drawings/fake.svg)


# %%
def clip_by_hand(grads, most):
    length = torch.stack([g.norm() for g in grads]).norm()
    if length > most:
        factor = most / (length + 1e-6)
        for g in grads:
            g.mul_(factor)


gradients_of_148 = [torch.randn(shape) for shape in gpt_shapes(width=8, layers=12)]
gpulab.profile(clip_by_hand, gradients_of_148, 1.0)

# %% [markdown]
# `torch.compile` turns Python code into a **graph**. Its first part, Dynamo, follows the bytecode and collects
# operations. Where Dynamo needs a value, it must stop, run what it has, and start again. That is a **graph
# break**, and nothing is fused across it.
#
# **Predict.** Into how many graphs does Dynamo cut `clip_by_hand`?

# %%
gpulab.predict("pytorch.graphs", ...)

# %%
graphs = []


def collect(graph, inputs):
    """A backend that keeps each graph and runs it as it is: no C++ compiler is needed."""
    graphs.append(graph)
    return graph.forward


few = [torch.randn(3) for _ in range(4)]
torch.compile(clip_by_hand, backend=collect)(few, 1.0)
gpulab.predict("pytorch.graphs", measured=len(graphs))
for number, graph in enumerate(graphs, 1):
    operations = [node.name for node in graph.graph.nodes if node.op.startswith("call")]
    print(f"graph {number}: {', '.join(operations)}")

# %% [markdown]
# `torch._dynamo.explain(fn)(*inputs)` gives the reason for each break, and `fullgraph=True` turns a break into an
# error. For a program that you do not want to change, set the environment variable
# `TORCH_LOGS=graph_breaks,recompiles`.
#
# **Do.** Write `clip(grads, most)`, which scales all gradients by min(1, most / (length + 1e-6)), where length is
# the norm of all of them together. About 3 lines.
#
# - Input: `grads`, a list of float32 tensors, and `most`, a number. All gradients may be zero.
# - Effect: the gradients change in place.
# - You may use multi-tensor operations again. `torch._foreach_norm` returns a list of norms.
# - **Budget:** at most 14 launches for 148 tensors, and no wait. If the gradients hold n numbers, n are read for
#   the norm, and n are read and n written for the product, plus 10 %.


# %% nbgrader={"grade": false, "grade_id": "clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip(grads, most):
    ### BEGIN SOLUTION
    length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    torch._foreach_mul_(grads, torch.clamp(most / (length + 1e-6), max=1.0))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "clip-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.clip", clip)

# %%
gpulab.need(clip)
graphs.clear()
torch.compile(clip, backend=collect, fullgraph=True)(few, 1.0)
print(len(graphs), "graph")

# %% [markdown]
# **Why.** The device can multiply by a factor of 1, and that costs less than asking whether it must. PyTorch's
# own `clip_grad_norm_` does the same, and a comment in its source says why (`torch/nn/utils/clip_grad.py`).
#
# ## 5 · From eager code to graphs
#
# **History.** TorchScript came first. `torch.jit.trace` runs the function once and writes down what it saw,
# whereas `torch.jit.script` compiles a subset of Python. Both still work, but both warn that they are deprecated.
# `torch.compile` and `torch.export` have taken their place.
#
# ![A print in the middle of a function breaks the graph in two: compiled, then Python, then compiled. Without the print one graph has all of it.](drawings/graph_break.svg)


# %%
def signed(x):
    return 2 * x if x.sum() > 0 else -x


traced = torch.jit.trace(signed, torch.ones(2), check_trace=False)
print("traced with positive numbers, called with negative ones:", traced(-torch.ones(2)).tolist())
print("the function itself:                                    ", signed(-torch.ones(2)).tolist())

# %% [markdown]
# A trace keeps one branch and forgets that there was a choice. `torch.export` refuses such a function, whereas
# `torch.compile` breaks the graph and stays correct. The next cell shows what a graph without breaks looks like.


# %%
class Gelu(nn.Module):
    def forward(self, x):
        return gelu_by_hand(x)


exported = torch.export.export(Gelu(), (torch.ones(8, 8),))
print(exported.graph_module.code.strip())

# %% [markdown]
# Once it has the graph, a compiler can **fuse** pointwise operations, drop results that nobody uses, and compute
# constants in advance. Inductor, the default backend of `torch.compile`, makes one kernel of a chain like this,
# so x is read once and the result is written once. You can work out these costs from the graph alone. On a GPU,
# `TORCH_LOGS=output_code` shows the kernels that Inductor wrote, in Triton, which lab 11 teaches.

# %%
nodes = exported.graph_module.graph.nodes
chain_ops = [node for node in nodes if node.op == "call_function"]
inputs = sum(node.op == "placeholder" for node in nodes)
print(
    f"eager: {len(chain_ops)} launches, {by_hand.bytes / x.nbytes:.0f} bytes moved for a byte of x (counted)"
)
print(f"fused: 1 launch,   {inputs + 1} bytes moved for a byte of x (modelled: inputs and output once)")

# %% [markdown]
# **Without a compiler** you can still reduce the number of launches. A **CUDA graph** records the launches of a
# stream once and replays them with one call. The kernels stay as they were. A graph needs fixed shapes and
# addresses, so each new input is copied into the old buffer. Warm up on a side stream first, and make the streams
# wait for each other (PyTorch documentation, "CUDA Graphs"):
#
# ```python
# side = torch.cuda.Stream()
# side.wait_stream(torch.cuda.current_stream())
# with torch.cuda.stream(side):
#     for _ in range(3): step(static_input)
# torch.cuda.current_stream().wait_stream(side)
# graph = torch.cuda.CUDAGraph()
# with torch.cuda.graph(graph):
#     static_output = step(static_input)
# static_input.copy_(batch); graph.replay()      # for each batch
# ```
#
# `torch.compile(mode="reduce-overhead")` does this for you.
#
# | way to run a program | launches | bytes | needs |
# |---|---|---|---|
# | eager | all | all | nothing |
# | multi-tensor and fused operators | few | few | an existing operator for the task |
# | CUDA graph | 1 from the host | all | fixed shapes and addresses, no waits |
# | compiled | few | few | no graph breaks; compile time at the first call and again for new shapes |
#
# ### Compiled again
#
# Compiling takes seconds, or minutes for a large model, so it should happen once. But the compiler takes some types,
# shapes and Python values for granted, so what it compiles is right only for calls that have them. These conditions
# are called **guards**, and Dynamo checks them at every call. If it finds no version whose guards hold, it compiles
# one more. That is a **recompilation**.
#
# ![A call looks for a version whose guards hold. Version 1 is for 8 rows only, version 2 for any number of rows from 2 on. If none fits, a new version is compiled.](drawings/guards.svg)
#
# **Predict.** A compiled function is called with matrices of 8, 9, 10 and 11 rows, and four columns each. How many
# times is it compiled?

# %%
gpulab.predict("pytorch.compilations", ...)

# %%
import torch._dynamo
from torch._dynamo.utils import counters


def as_is(graph, inputs):
    """A backend that runs the graph as it is."""
    return graph.forward


def compiled_at(calls, dynamic=None, marked=False):
    """Which of the calls of a small function make Dynamo compile it; its counters tell."""
    torch._dynamo.reset()
    counters.clear()
    function = torch.compile(lambda x, factor=2: factor * x + 1, backend=as_is, dynamic=dynamic)
    found = []
    for arguments in calls:
        if marked:
            torch._dynamo.mark_dynamic(arguments[0], 0)
        before = counters["stats"]["unique_graphs"]
        function(*arguments)
        found.append(counters["stats"]["unique_graphs"] > before)
    return found


def rows(*numbers):
    return [(torch.ones(n, 4),) for n in numbers]


gpulab.predict("pytorch.compilations", measured=sum(compiled_at(rows(8, 9, 10, 11))))

# %% [markdown]
# The first version is for 8 rows. When 9 rows arrive, Dynamo notices that this size changes. It compiles a second
# version in which the size is **dynamic**, which means that its value is known only at the call. These rules explain
# all versions (PyTorch documentation, "Dynamic Shapes"; the tests of this course compare them with Dynamo):
#
# 1. In the first version every size is **fixed**.
# 2. Dynamo remembers which sizes it has compiled for. In a later version, an axis is dynamic if its size has not
#    been the same in all compilations so far, including this one. Calls that an old version served do not count.
# 3. A dynamic size can be any number from 2 up. Sizes 0 and 1 are always fixed, because an axis of size 1 is
#    broadcast, which makes it a different program.
#
# **Do.** Write `compiles(shapes)`, which says which calls are compiled. About 10 lines.
#
# - Input: the shapes of the one argument in a series of calls, such as `[[8, 4], [9, 4], [1, 4]]`. They all have the
#   same number of axes, and no size is 0.
# - Output: a list with True for each call that is compiled, and False for each that an earlier version serves.
# - Full marks need every answer right.


# %% nbgrader={"grade": false, "grade_id": "compiles", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compiles(shapes):
    ### BEGIN SOLUTION
    versions, seen, found = [], None, []
    for shape in shapes:
        fits = any(
            all(size == n or (size is None and n > 1) for size, n in zip(version, shape, strict=True))
            for version in versions
        )
        found.append(not fits)
        if not fits:
            seen = (
                shape if seen is None else [a if a == n else None for a, n in zip(seen, shape, strict=True)]
            )
            versions.append([None if a is None and n > 1 else n for a, n in zip(seen, shape, strict=True)])
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compiles-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.compiles", compiles)

# %% [markdown]
# **See.** The next cell calls a compiled function with eight batches, whose lengths are 2 to 9. You can say nothing
# about the lengths, or one of three things. (With `dynamic=False`, more batches would not lengthen the bar: after 8
# versions of a function, Dynamo gives up and runs it eagerly. The limit is `torch._dynamo.config.recompile_limit`.)

# %%
lengths = range(2, 10)
ways = {
    "dynamic=False": compiled_at(rows(*lengths), dynamic=False),
    "nothing said": compiled_at(rows(*lengths)),
    "dynamic=True": compiled_at(rows(*lengths), dynamic=True),
    "mark_dynamic": compiled_at(rows(*lengths), marked=True),
}
plot.bars(
    {name: sum(found) for name, found in ways.items()},
    "compilations of one function",
    caption="If you say that a size will change, the first version is the last.",
)

# %%
three = torch.ones(3)
for name, values in (
    ("Python integers 2, 3, 4, 5", (2, 3, 4, 5)),
    ("True, False, True", (True, False, True)),
    ("tensors of one number", (torch.tensor(0.5), torch.tensor(0.3))),
):
    print(f"{name:28}", compiled_at([(three, value) for value in values]))

# %% [markdown]
# **Why.** `torch._dynamo.mark_dynamic(x, 0)` says that axis 0 of x will change. If you need fixed sizes, for example
# for CUDA graphs, pad to a few lengths instead. Guards also check Python values. A number that changes at every
# call, such as the number of the step, therefore belongs in a tensor. `TORCH_LOGS=recompiles` prints which guard
# failed.
#
# ### One block, compiled once
#
# A transformer repeats one block, and only the weights differ. If you compile the whole model, the compiler works
# through all copies of the block. With **regional compilation**, you compile only the block, and all copies share
# its code (PyTorch tutorials, "Reducing torch.compile cold start compilation time with regional compilation").
#
# **Predict.** Twelve equal blocks are compiled one by one, with `block.compile()`. How many graphs does Dynamo make for
# one pass?

# %%
gpulab.predict("pytorch.regions", ...)


# %%
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(width), nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def operations_of(layers, regional):
    """How many operations are in each graph that one pass makes."""
    torch._dynamo.reset()
    graphs.clear()
    model = nn.Sequential(*(Block(32) for _ in range(layers)))
    if regional:
        for block in model:
            block.compile(backend=collect)
    else:
        model = torch.compile(model, backend=collect)
    with torch.no_grad():
        model(torch.randn(4, 32))
    return [sum(node.op.startswith("call") for node in graph.graph.nodes) for graph in graphs]


as_one, by_block = operations_of(12, regional=False), operations_of(12, regional=True)
print("whole model:    operations in each graph", as_one)
print("block by block: operations in each graph", by_block)
gpulab.predict("pytorch.regions", measured=len(by_block))

# %% jupyter={"source_hidden": true}
depths = (1, 4, 12)
plot.lines(
    {
        "whole model": [(n, sum(operations_of(n, regional=False))) for n in depths],
        "block by block": [(n, sum(operations_of(n, regional=True))) for n in depths],
    },
    "blocks of the model",
    "operations to compile",
    "The whole model grows with its depth; a block that is compiled once stays as large as it is.",
)

# %% [markdown]
# **Why.** Dynamo keeps its versions with the code of `forward`, which all blocks share. Weights are inputs of the
# graph, so different weights need no new version, and the guards of the first block hold for all others. What you
# give up is fusion across the borders of blocks. (In training there are two graphs. The input of the first block
# needs no gradient, whereas the inputs of the others do, and a guard checks this.)
#
# ### The same in TensorFlow
#
# TensorFlow has these ideas under other names. `@tf.function` **traces** a Python function into a graph, once for
# each combination of types and shapes of tensors, and once for each *value* of a Python argument (TensorFlow guide,
# "Better performance with tf.function"). The next cell models this rule with PyTorch's tensors.
#
# **Predict.** A `tf.function` is called with tensors of 8 × 4, 8 × 4 and 9 × 4, then with the Python numbers 2, 3 and 2,
# then with scalar tensors that hold 2 and 3. How many times is it traced?

# %%
gpulab.predict("pytorch.traces", ...)


# %%
class Traced:
    """The rule of tf.function: a key for the arguments, and one trace for each key."""

    def __init__(self):
        self.keys = set()

    def __call__(self, x):
        key = (x.dtype, x.shape) if isinstance(x, torch.Tensor) else (type(x), x)
        new = key not in self.keys
        self.keys.add(key)
        return new


given = [torch.ones(8, 4), torch.ones(8, 4), torch.ones(9, 4), 2, 3, 2, torch.tensor(2), torch.tensor(3)]
function = Traced()
traces = [function(argument) for argument in given]
print("tf.function, modelled:", traces)
gpulab.predict("pytorch.traces", measured=sum(traces))

# %% [markdown]
# When this lab was written, TensorFlow 2.21 gave the same answers for this series on a CPU. By default, TensorFlow
# does not guess that a size will change, so a tensor of 10 × 4 would need one more trace. With
# `reduce_retracing=True`, it does guess. For 8, 9, 10 and 1 rows it then needed two traces, because TensorFlow does
# not treat size 1 separately. With `input_signature=[tf.TensorSpec([None, 4])]`, you say in advance that the size
# will change, as with `mark_dynamic`.
#
# | PyTorch | TensorFlow |
# |---|---|
# | `torch.compile` | `@tf.function`; with `jit_compile=True` XLA fuses the graph |
# | `DataLoader` with workers and prefetch | `tf.data`: `map` in parallel, `prefetch` |
# | autocast | the policy `mixed_float16` (lab 10) |
# | `DistributedDataParallel` | `tf.distribute.MirroredStrategy` |
# | `torch.profiler` | TensorFlow's profiler, shown in TensorBoard |
#
# (TensorFlow guides "tf.data", "Mixed precision", "Distributed training" and "Profiler".)
#
# ## 6 · Memory that comes back
#
# `cudaMalloc` is a call into the driver, and `cudaFree` makes the host wait for the device. PyTorch therefore has
# a **caching allocator**: it asks CUDA for large **segments**, cuts **blocks** out of them, and keeps the blocks
# that tensors give back. **Allocated** memory is what tensors hold, and **reserved** memory is what the allocator
# holds. `nvidia-smi` shows reserved memory and CUDA's own. `torch.cuda.empty_cache()` returns unused segments.
#
# ![The allocator cuts a segment into blocks. A freed block between two that are in use can serve a smaller tensor, and two free neighbours become one.](drawings/segments.svg)
#
# Its rules, without the second pool for small tensors (`c10/cuda/CUDACachingAllocator.cpp`):
#
# - Round the size up to a multiple of 512 bytes, which decides all that follows.
# - Of all free blocks that are large enough, take the smallest, or the first of several equal ones. Cut off what
#   is left as a free block.
# - If there is none, make a segment: 20 MiB for sizes below 10 MiB, otherwise the size rounded up to a multiple
#   of 2 MiB.
# - A freed block joins its free neighbours in the segment.
#
# **Predict.** A program's first three tensors have 9 MiB each. How many MiB does PyTorch reserve?

# %%
gpulab.predict("pytorch.reserved", ...)

# %% [markdown]
# **Do.** Write `segments(events)`, which follows these rules. About 25 lines.
#
# - Input: a list of events `[name, bytes]`. An event with 0 bytes frees the tensor of that name. 1 MiB is 2²⁰
#   bytes.
# - Output: `[segments made, bytes reserved]`.
# - The first of several equal blocks is in the segment made earliest, at the lowest address.


# %% nbgrader={"grade": false, "grade_id": "segments", "locked": false, "schema_version": 3, "solution": true, "task": false}
def segments(events):
    ### BEGIN SOLUTION
    reserved = []  # of each segment its blocks in order: [bytes, name or None]
    total = 0
    for name, size in events:
        if size:
            size = -(-size // 512) * 512
            fitting = [
                (block[0], i, k)
                for i, blocks in enumerate(reserved)
                for k, block in enumerate(blocks)
                if block[1] is None and block[0] >= size
            ]
            if not fitting:
                whole = 20 * 2**20 if size < 10 * 2**20 else -(-size // 2**21) * 2**21
                fitting = [(whole, len(reserved), 0)]
                reserved.append([[whole, None]])
                total += whole
            room, i, k = min(fitting)
            reserved[i][k] = [size, name]
            if room > size:
                reserved[i].insert(k + 1, [room - size, None])
            continue
        for i, blocks in enumerate(reserved):
            joined = []
            for length, owner in blocks:
                owner = None if owner == name else owner
                if joined and owner is None and joined[-1][1] is None:
                    joined[-1][0] += length
                else:
                    joined.append([length, owner])
            reserved[i] = joined
    return [len(reserved), total]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "segments-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.segments", segments)

# %% [markdown]
# The next cell tries it on a real program, one training step of a small transformer block. The ledger knows when
# each tensor is made and when it dies.

# %%
with fake:
    model = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    tokens = torch.empty(16, 128, 256)
    with ledger() as book_of_step:
        model(tokens).square().mean().backward()
# Each life: bytes, number of the operation that made it, number of the last before it died.
lives = [list(life) for life in book_of_step.lives() if life[0] > 512]


def events_of(lives, rounds=1):
    """The same step several times, as events for `segments`: what dies is freed before the next is made."""
    moments = [(life[2] + 1, 0, i) for i, life in enumerate(lives)]
    moments += [(life[1], 1, i) for i, life in enumerate(lives)]
    one = [(i, lives[i][0] if made else 0) for _, made, i in sorted(moments)]
    return [[r * len(lives) + i, size] for r in range(rounds) for i, size in one]


gpulab.need(segments)
alive = max(sum(size for size, a, b in lives if a <= now <= b) for _, now, _ in lives)
print(f"one step makes {len(lives)} tensors, {sum(life[0] for life in lives) / 2**20:.0f} MiB in all")
for rounds in (1, 2, 10):
    made, reserved = segments(events_of(lives, rounds))
    print(f"{rounds:2} steps: {made} segments, {reserved / 2**20:.0f} MiB reserved")
print(f"at most {alive / 2**20:.1f} MiB are alive at once")

# %% [markdown]
# After the first step the allocator asks for nothing new. The difference between allocated and reserved memory is
# what was cut off and what is in gaps that are too small to use. This is **fragmentation**. If shapes change from
# step to step, the gaps stop fitting. `PYTORCH_ALLOC_CONF=expandable_segments:True` lets one segment grow instead.
#
# An eager allocator decides without knowing what comes next. With a graph it is known when every tensor will die,
# so the memory can be planned.
#
# **Do.** Write `place(tensors)`, which makes such a plan. About 10 lines.
#
# - Input: a list of tensors `[bytes, first, last]`. A tensor is alive from moment first to moment last, both
#   included.
# - Output: a list of their offsets in bytes. Two tensors that are alive at the same time must not overlap.
# - **Budget:** the highest address that a tensor reaches is at most 1.1 times the most that is alive at once. In
#   a training step of only a few blocks a single hole weighs more, so the limit there is 1 + 1.5 / blocks.


# %% nbgrader={"grade": false, "grade_id": "place", "locked": false, "schema_version": 3, "solution": true, "task": false}
def place(tensors):
    ### BEGIN SOLUTION
    offsets = [None] * len(tensors)
    for i in sorted(range(len(tensors)), key=lambda i: -tensors[i][0]):
        size, first, last = tensors[i]
        taken = sorted(
            (offsets[k], offsets[k] + other)
            for k, (other, begin, end) in enumerate(tensors)
            if offsets[k] is not None and begin <= last and first <= end
        )
        at = 0
        for start, stop in taken:
            if at + size <= start:
                break
            at = max(at, stop)
        offsets[i] = at
    return offsets
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "place-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.place", place)

# %% [markdown]
# **See.** Your plan for the training step above. Operations run from left to right and addresses from bottom to
# top. Each box is a tensor.

# %%
gpulab.need(place)
plot.memory_map(lives, place(lives))

# %% jupyter={"source_hidden": true}
moments = range(max(last for _, _, last in lives) + 1)
plot.lines(
    {"alive": [(now, sum(size for size, a, b in lives if a <= now <= b) / 2**20) for now in moments]},
    "operation",
    "MiB alive",
    "Forward piles up activations, backward uses them up.",
    step=True,
)

# %% [markdown]
# **Why.** The memory in use grows while the forward pass keeps activations, and it shrinks while the backward
# pass uses them up. No allocator can go below the peak of this curve. The next section lowers the peak itself.
#
# For a program on a GPU, PyTorch draws such pictures itself. Call `torch.cuda.memory._record_memory_history()`
# before the program and `torch.cuda.memory._dump_snapshot("file.pickle")` after it, then drop the file onto
# pytorch.org/memory_viz. It shows each block with the Python stack that asked for it (reference 1, "Understanding
# CUDA Memory Usage").

# %% [markdown]
# ## End of sitting 1
#
# You can count the launches and bytes of a step, keep the host from waiting, say when a graph has to be compiled
# again, and explain what the allocator holds. The second sitting begins with the largest part of that memory, the
# activations. It then finds out from traces and counts what a GPU is waiting for.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("08")

# %% [markdown]
# ## 7 · Keep it or compute it again
#
# Autograd keeps what the backward pass needs. **Activation checkpointing** keeps only the input of a stretch of
# the model, and it computes the stretch again when the backward pass reaches it.


# %%
def block(h, w):
    return h + torch.tanh(h @ w)


def chain(weights, x):
    h = x
    for w in weights:
        h = block(h, w)
    return h


# %% [markdown]
# There are 32 blocks. An activation has 512 × 16 float32 numbers, which take 32 KiB. For the backward pass
# `h @ w` needs h, and tanh needs its own result.
#
# **Predict.** How many KiB does autograd keep for the backward pass of `chain`?

# %%
gpulab.predict("pytorch.kept", ...)

# %%
with fake:
    weights = [torch.empty(16, 16, requires_grad=True) for _ in range(32)]
    x_chain = torch.empty(512, 16)
    with ledger() as book_of_chain:
        end = chain(weights, x_chain)
    kept = book_of_chain.entries[-1].memory  # bytes held after the last operation
gpulab.predict("pytorch.kept", measured=kept / 1024)

# %% [markdown]
# `torch.utils.checkpoint.checkpoint(fn, *inputs, use_reentrant=False)` returns `fn(*inputs)` and checkpoints that
# stretch. Always pass `use_reentrant=False`. The old way, `True`, cuts autograd's graph if none of the inputs
# requires a gradient. That happens when x is data and the weights belong to a module or a closure. The weights
# then get **no gradient**, and only a warning says so.
#
# **Do.** Write `gradients(weights, x)`, which runs the chain, takes the mean of the squares of its result, and
# leaves the gradients in `w.grad`. About 8 lines.
#
# - Input: `weights`, a list of square float32 matrices that require gradients, and `x`, a float32 matrix.
# - You may use `block` and `checkpoint`.
# - **Budget:** peak memory at most 10 % above that of the best distance between checkpoints, and no block
#   computed forward more than twice.


# %% nbgrader={"grade": false, "grade_id": "gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
from torch.utils.checkpoint import checkpoint


def gradients(weights, x):
    ### BEGIN SOLUTION
    def stretch(h, *some):
        for w in some:
            h = block(h, w)
        return h

    length = max(1, round((len(weights) / 2) ** 0.5))
    h = x
    for first in range(0, len(weights), length):
        h = checkpoint(stretch, h, *weights[first : first + length], use_reentrant=False)
    h.square().mean().backward()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gradients-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.gradients", gradients)


# %% [markdown]
# **See.** How peak memory depends on the distance between checkpoints, according to the ledger.


# %%
def stretch_of(h, *some):
    return chain(some, h)


def step_of(weights, x, distance):
    h = x
    for first in range(0, len(weights), distance):
        h = checkpoint(stretch_of, h, *weights[first : first + distance], use_reentrant=False)
    h.square().mean().backward()


def plain_step(weights, x):
    chain(weights, x).square().mean().backward()


def counted(run, *more):
    with fake:
        weights = [torch.empty(16, 16, requires_grad=True) for _ in range(32)]
        return gpulab.profile(run, weights, torch.empty(512, 16), *more)


all_kept = counted(plain_step)
peaks = {distance: counted(step_of, distance) for distance in (1, 2, 3, 4, 6, 8, 12, 16, 32)}
figure = plot.lines(
    {"with checkpoints": [(d, report.peak / 1024) for d, report in peaks.items()]},
    "blocks between two checkpoints",
    "peak memory, KiB",
    "Few checkpoints make long stretches, many make many inputs; in between lies the least, near √(32 / 2) = 4.",
    limits={"all kept": all_kept.peak / 1024},
    log_x=True,
)
figure.axes.set_ylim(bottom=0)
figure.axes.set_xticks(list(peaks), list(peaks))
figure

# %%
for name, report in (("all kept", all_kept), ("every 4 blocks", peaks[4])):
    print(f"{name:15} peak {report.peak / 1024:6.0f} KiB   matrix FLOPs {report['matrix_flops']:12,}")
print(f"more arithmetic: {peaks[4]['matrix_flops'] / all_kept['matrix_flops'] - 1:.0%}")

# %% [markdown]
# **Why.** Backward costs twice as much as forward. Together they cost three forward passes, so one more adds a
# third. With L blocks and a checkpoint every s blocks, memory holds L / s inputs and, of the stretch that is
# being computed again, 2 s results. Their sum is smallest at s = √(L / 2) (Chen et al., 2016). Real layers are
# less even, so start with what is large and cheap to compute, such as attention scores (Korthikanti et al., 2022;
# lab 16).
#
# %% [markdown]
# ## 8 · Feeding the GPU
#
# Batches must be read, decoded, and brought to the device. `DataLoader` loads them in **workers**. These are
# processes, not threads, because the Python code of one process runs in one thread at a time. Worker w loads
# batches w, w + workers, …, and the loop gets all batches in order. Each worker may be `prefetch_factor` batches
# ahead, and `persistent_workers=True` keeps the processes for the next epoch. With `num_workers=0` the loop loads
# the batches itself, and setting either of these two is an error.
#
# Loading and training form a **pipeline**: its rate is that of the slower stage, not that of both stages one
# after the other.
#
# **Predict.** Each of 20 batches takes 24 ms to load and 8 ms to use, and there are two workers. How many ms does
# it take in all?

# %%
gpulab.predict("pytorch.loader", ...)

# %% [markdown]
# **Do.** Write `epoch(loads, step, workers, prefetch)`, which computes how long such a pipeline takes.
# About 10 lines.
#
# - Input: `loads[i]` is how long batch i takes to load, and `step` is how long each step of training takes. Each
#   of the `workers` may be `prefetch` batches ahead.
# - Output: the time at which the last step is done, if the time starts at 0.
# - Worker i % workers loads batch i. It starts when it has loaded batch i − workers **and** batch i − workers ·
#   prefetch has been handed over. A batch that does not exist is not waited for, so the first ones start at 0.
# - Batch i is handed over when it is loaded and step i − 1 is done. Then step i begins.
# - With 0 workers the loop loads batch i itself, when step i − 1 is done.


# %% nbgrader={"grade": false, "grade_id": "epoch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def epoch(loads, step, workers, prefetch):
    ### BEGIN SOLUTION
    if workers == 0:
        return sum(loads) + step * len(loads)
    loaded, handed, done = [], [], 0
    for i, load in enumerate(loads):
        free = loaded[i - workers] if i >= workers else 0
        asked = handed[i - workers * prefetch] if i >= workers * prefetch else 0
        loaded.append(max(free, asked) + load)
        handed.append(max(loaded[i], done))
        done = handed[i] + step
    return done
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "epoch-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.epoch", epoch)


# %% [markdown]
# **See.** A real loader on this machine. Loading and training only sleep, for the times given above. Each batch
# records when it was loaded, and by which worker. The figure shows the start of the epoch with two workers.


# %%
class Slow(torch.utils.data.Dataset):
    """Items that take 24 ms to load and say when that was."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        began = time.perf_counter()
        time.sleep(0.024)
        worker = torch.utils.data.get_worker_info()
        return torch.tensor([began, time.perf_counter(), worker.id if worker else 0], dtype=torch.float64)


def measured_epoch(workers):
    """The second epoch's spans, in ms: (row, start, stop)."""
    more = (
        {"prefetch_factor": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
        if workers
        else {}
    )
    loader = torch.utils.data.DataLoader(Slow(), batch_size=None, num_workers=workers, **more)
    list(loader)
    spans, zero = [], time.perf_counter()
    for began, ended, worker in loader:
        spans.append((f"worker {int(worker)}" if workers else "loop loads", float(began), float(ended)))
        start = time.perf_counter()
        time.sleep(0.008)
        spans.append(("training", start, time.perf_counter()))
    return [(row, 1e3 * (a - zero), 1e3 * (b - zero)) for row, a, b in spans]


gpulab.need(epoch)
warnings.filterwarnings("ignore", "This DataLoader will create")
runs = {workers: measured_epoch(workers) for workers in (0, 1, 2, 3, 4)}
print("workers   measured   your epoch")
for workers, spans in runs.items():
    print(f"{workers:7}{max(stop for _, _, stop in spans):8.0f} ms{epoch([24] * 20, 8, workers, 2):10} ms")

# %%
plot.timeline(
    [plot.Span(row, max(a, 0), b, "", row) for row, a, b in sorted(runs[2]) if 0 < b < 140],
    unit="ms",
    caption="Both workers load without a pause; training waits wherever its row has a gap.",
)

# %% [markdown]
# **Why.** With two workers, training waits for data. With three, according to your `epoch`, it waits only for the
# first batch, and a fourth worker only takes memory. Measured times are longer, because batches travel between
# processes and workers share this machine's cores. Add workers until the GPU is the slower stage, and no more.
#
# **Text** is best turned into tokens once, before training, and the resulting file is best **mapped** into
# memory. The operating system then reads the pages that a batch touches, and all workers share them.

# %%
tokens_file = Path(tempfile.mkdtemp()) / "tokens.bin"
np.random.default_rng(8).integers(0, 50_257, 2**24, dtype=np.uint16).tofile(tokens_file)
starts = np.random.default_rng(9).integers(0, 2**24 - 1024, 8)


def read_all():
    everything = np.fromfile(tokens_file, np.uint16)
    return np.stack([everything[s : s + 1024] for s in starts])


def read_mapped():
    mapped = np.memmap(tokens_file, np.uint16, "r")
    return np.stack([mapped[s : s + 1024] for s in starts])


assert (read_all() == read_mapped()).all()
print(f"a first batch from a file of 32 MiB: read {microseconds(read_all, 3) / 1e3:.2f} ms, ", end="")
print(f"mapped {microseconds(read_mapped, 3) / 1e3:.2f} ms (measured; the file is in the page cache)")

# %% [markdown]
# **To the device.** `pin_memory=True` puts batches into pages that stay where they are, so that the GPU's copy
# engine can fetch them without a second copy by the CPU. Only then does `batch.to("cuda", non_blocking=True)`
# return at once and overlap with kernels on another stream.
#
# ## 9 · Layouts
#
# A batch of images has four dimensions: batch N, channels C, height H, and width W. PyTorch's shape is always
# N × C × H × W. The **memory format** determines, through the strides, which index runs fastest in memory. By
# default it is W; in `channels_last` it is C.
#
# ![Two channels of six pixels in memory. Contiguous, all pixels of channel 0 come first and then those of channel 1. Channels last, each pixel has its two channels next to each other.](drawings/two_layouts.svg)
#
# **Predict.** A tensor of 8 × 64 × 32 × 32 is channels last. How many elements apart are two neighbours in a row?

# %%
gpulab.predict("pytorch.stride", ...)

# %%
images = torch.randn(8, 64, 32, 32)
last = images.to(memory_format=torch.channels_last)
print("contiguous   ", tuple(images.shape), images.stride())
print("channels last", tuple(last.shape), last.stride())

# %% [markdown]
# Tensor cores compute convolutions with channels last. If cuDNN gets the other layout, it converts (NVIDIA,
# *Convolutional Layers User's Guide*), and a conversion is a copy.
#
# **Predict.** A tensor is converted to channels last and back again. How many bytes move for each of its bytes?

# %%
gpulab.predict("pytorch.layout_bytes", ...)


# %%
def there_and_back(images):
    return images.to(memory_format=torch.channels_last).contiguous()


gpulab.predict("pytorch.layout_bytes", measured=gpulab.profile(there_and_back, images).bytes / images.nbytes)

convolution = nn.Conv2d(64, 64, 3, padding=1, bias=False)
head = nn.Linear(64 * 32 * 32, 10)


def classify(images):
    return head(nn.functional.relu(convolution(images)).flatten(1))


for name, given in (("contiguous", images), ("channels last", last)):
    report = gpulab.profile(classify, given)
    print(
        f"{name:14}", ", ".join(f"{op} {total.bytes / 2**20:.1f} MiB" for op, total in report.by_op.items())
    )

# %% [markdown]
# Where does the copy, `clone`, come from? `flatten` needs the elements of an image in the order C, H, W. With the
# contiguous layout that is a view, but with channels last it takes a copy. Convert once at the entrance of the
# model, weights included (`model.to(memory_format=torch.channels_last)`), and look for copies in the ledger.
#
# ## 10 · Profilers and traces
#
# | tool | sees | use it for |
# |---|---|---|
# | `nvidia-smi` | that some kernel ran, memory, power | is the GPU used at all? |
# | `torch.profiler` | operations, kernels, memory, Python stacks | which operation is slow? what lies between two? |
# | Nsight Systems, `nsys profile` | CPU, CUDA calls, kernels, copies, NVTX ranges | gaps, overlap, many processes |
# | Nsight Compute, `ncu` | one kernel's counters | why is a kernel slow? (lab 04's reports) |
# | compute-sanitizer | memory faults, races | why are results wrong? |
#
# NVTX ranges are names that you give to stretches of a program: `with torch.cuda.nvtx.range("forward"):`. Older
# guides use `nvprof`, which does not support compute capability 8.0 and later. "GPU utilisation 100 %" in
# `nvidia-smi` means that some kernel was running all the time (NVML manual). That kernel may have used a single
# SM.

# %%
from torch.profiler import ProfilerActivity, profile, record_function

network = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))
batch = torch.randn(512, 256)


def train_once():
    with record_function("forward"):
        loss = network(batch).square().mean()
    with record_function("backward"):
        loss.backward()


train_once()  # the first run is different; lines that begin with USDT below are the profiler's own
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
    train_once()
by_time = sorted(profiled.key_averages(), key=lambda row: -row.self_cpu_time_total)
print("measured                        calls  µs by itself  µs in all  KiB by itself")
for row in [*by_time[:6], *(row for row in by_time[6:] if row.key in ("forward", "backward"))]:
    print(f"{row.key[:30]:30}{row.count:7}{row.self_cpu_time_total:14.0f}{row.cpu_time_total:11.0f}", end="")
    print(f"{int(row.self_cpu_memory_usage / 1024):15}")

# %% [markdown]
# `profiled.key_averages().table(sort_by="self_cpu_time_total")` prints the whole table, and on a GPU the column
# is `self_device_time_total`. `record_function` names a range. `schedule(wait=…, warmup=…, active=…)` keeps the
# trace of a long run small. The trace itself is JSON, which you can open in Perfetto (ui.perfetto.dev) or read
# with your own code:

# %%
trace_file = Path(tempfile.mkdtemp()) / "trace.json"
profiled.export_chrome_trace(str(trace_file))
events = json.loads(trace_file.read_text())["traceEvents"]
print(next(event for event in events if event.get("name") == "aten::addmm"))

# %% [markdown]
# `ph` is the kind of event (`X` has a duration) and `cat` is its category. `ts`, its start, and `dur`, its
# duration, are in µs. The GPU's work has the categories `kernel`, `gpu_memcpy` and `gpu_memset`, and everything
# else is the host's.
#
# **Do.** Write `idle(trace)`, which measures how long the GPU is idle between the start of its first work and the
# end of its last. About 9 lines.
#
# - Input: such a list of events, in any order. Streams overlap, and only events with `ph` X are sure to have
#   `cat` and `dur`.
# - Output: a list of the total idle time and the longest gap, both in µs, or [0, 0] if the GPU does nothing.


# %% nbgrader={"grade": false, "grade_id": "idle", "locked": false, "schema_version": 3, "solution": true, "task": false}
def idle(trace):
    ### BEGIN SOLUTION
    busy = sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in trace
        if event["ph"] == "X" and event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    gaps, until = [], busy[0][0] if busy else 0
    for start, stop in busy:
        gaps.append(max(0, start - until))
        until = max(until, stop)
    return [sum(gaps), max(gaps, default=0)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "idle-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.idle", idle)


# %% [markdown]
# **See.** A modelled trace. The host needs 8 µs for each operation, and a kernel begins when it has been launched
# and the kernel before it is done.


# %%
def modelled_trace(lengths, host=8):
    """Events of kernels of these lengths, in µs, that a busy host launches one after the other."""
    found, free = [], 0
    for i, length in enumerate(lengths):
        launched = (i + 1) * host
        free = max(free, launched) + length
        found.append({"ph": "X", "cat": "cpu_op", "name": f"op {i}", "ts": i * host, "dur": host})
        found.append({"ph": "X", "cat": "kernel", "name": f"kernel {i}", "ts": free - length, "dur": length})
    return found


gpulab.need(idle)
mixed = modelled_trace([3, 2, 4, 3, 30, 3, 2, 3, 2, 4])
for name, trace in (
    ("short kernels", modelled_trace([3] * 100)),
    ("long kernels", modelled_trace([30] * 100)),
):
    busy = sum(event["dur"] for event in trace if event["cat"] == "kernel")
    waits, longest = idle(trace)
    print(f"{name}: idle {waits / (waits + busy):.0%} of the time, longest gap {longest} µs")
rows_of = {"cpu_op": "host", "kernel": "GPU"}
plot.timeline(
    [
        plot.Span(rows_of[e["cat"]], e["ts"], e["ts"] + e["dur"], e["name"].split()[1], rows_of[e["cat"]])
        for e in sorted(mixed, key=lambda e: e["cat"])
    ],
    unit="µs",
    caption="Short kernels wait for their launch; behind the long one launches wait for the GPU, and no gap is left.",
)

# %% [markdown]
# **Why.** Kernels that are shorter than the host's time per operation leave gaps. The long kernel lets the host
# run ahead, so for a while there are none. You close gaps with larger batches, fewer operations (sections 2 to 5)
# and CUDA graphs, and by avoiding waits. A faster kernel does not close them.
#
# ### What Nsight Systems prints
#
# Nsight Systems records a whole program. These two commands write a report and print one of its tables, the times of
# all kernels by name (*Nsight Systems User Guide*, "nsys stats"):
#
# ```bash
# nsys profile --trace=cuda,nvtx --output=step python train.py
# nsys stats --report cuda_gpu_kern_sum step.nsys-rep
# ```
#
# The next cell prints a table with the same columns for a modelled trace. The step has one long kernel and twenty short
# ones, and the host needs 8 µs to launch each.
#
# **Predict.** The long kernel takes 30 µs, and each of the others 3 µs. What percentage does the column "Time (%)"
# show for the long one?

# %%
gpulab.predict("pytorch.kernel_share", ...)

# %%
step = modelled_trace([3] * 10 + [30] + [3] * 10)
for event in step:
    event["name"] = "gemm" if event["dur"] == 30 else "add" if event["cat"] == "kernel" else event["name"]
by_name = {}
for event in step:
    if event["cat"] == "kernel":
        by_name.setdefault(event["name"], []).append(1000 * event["dur"])
everything = sum(map(sum, by_name.values()))
print("modelled\nTime (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  Name")
for name, times in sorted(by_name.items(), key=lambda item: -sum(item[1])):
    print(
        f"{100 * sum(times) / everything:8.1f}{sum(times):17,}{len(times):11}{statistics.mean(times):10,.0f}",
        end="",
    )
    print(f"{statistics.median(times):10,.0f}{min(times):10,}{max(times):10,}  {name}")
gpulab.predict("pytorch.kernel_share", measured=100 * sum(by_name["gemm"]) / everything)
lasts = 1000 * max(event["ts"] + event["dur"] for event in step)
print(f"\nall kernels together {everything:,} ns; the step lasts {lasts:,} ns: busy {everything / lasts:.0%}")
plot.timeline(
    [plot.Span(rows_of[e["cat"]], e["ts"], e["ts"] + e["dur"], "", rows_of[e["cat"]]) for e in step],
    caption="The table has the lengths of the kernels; the gaps between them are only in the timeline.",
)

# %% [markdown]
# **Why.** The kernels take 30 + 20 · 3 = 90 µs together, and the long one takes 30/90 of that. The percentages add
# up to 100 whatever the GPU does between kernels, so this table never shows a gap. Read it in this order. First
# compare the sum of "Total Time" with the length of the step: here the GPU is idle for nearly half of it. Then look
# at "Instances": many short kernels call for fusion. Only after that, look at the kernel at the top.
#
# ### What Nsight Compute prints
#
# Nsight Compute examines single kernels with the counters of the GPU. It cannot read all counters at once, so it
# runs a kernel several times. Choose few kernels and few metrics:
#
# ```bash
# ncu --kernel-name regex:copy --launch-count 1 --csv --page raw \
#     --metrics gpu__time_duration.sum,dram__bytes.sum,\
# l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum python program.py
# ```
#
# The numbers below are real. They were measured with Nsight Compute 2025.3.1 on an NVIDIA H100 80GB HBM3, for
# kernels that this course uses to validate its simulator. The table has the form of `--csv --page raw`: a row of
# names, a row of units, and one row per launch. We left out the columns that say where a kernel ran, and put the sum
# of the bytes that the DRAM read and wrote into one column.

# %%
REPORT = """\
==PROF== Connected to process 4711 (/usr/bin/python3)
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
"","","us","Mbyte","",""
"0","copy","13.440","18.338304","131,072","524,288"
"1","strided-32","28.512","71.78112","32,768","1,048,576"
"2","transpose-naive","80.192","24.606464","131,072","524,288"
"3","chase","139.008","0.523520","256","8,164"
"4","matmul-registers","137.600","4.729088","442,368","1,769,472"
"""

# %% [markdown]
# **Do.** Write `read_ncu(report)`, which reads such a table. About 14 lines. Python's module `csv` handles the
# quotation marks.
#
# - Input: the text of a report. Lines that begin with `==` may precede the table. There may be more columns, and
#   they may be in any order.
# - Units vary from report to report: `ns`, `us`, `ms` or `s`, and `byte`, `Kbyte`, `Mbyte` or `Gbyte`, in steps of
#   1,000. Numbers may have commas between thousands.
# - Output: a list with `[name, gigabytes, sectors]` for each launch: the kernel's name, the throughput of the DRAM
#   in 10⁹ bytes per second, and the sectors per load request (0 if there was no request).
# - Full marks need every number right to one part in a million.


# %% nbgrader={"grade": false, "grade_id": "read_ncu", "locked": false, "schema_version": 3, "solution": true, "task": false}
import csv


def read_ncu(report):
    ### BEGIN SOLUTION
    scales = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
    lines = [line for line in report.splitlines() if line and not line.startswith("==")]
    names, units, *rows = csv.reader(lines)
    found = []
    for row in rows:
        cells = {name: (text, unit) for name, text, unit in zip(names, row, units, strict=True)}

        def number(name, cells=cells):
            text, unit = cells[name]
            return float(text.replace(",", "")) * scales.get(unit, 1)

        requests = number("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")
        sectors = number("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
        rate = number("dram__bytes.sum") / number("gpu__time_duration.sum") / 1e9
        found.append([cells["Kernel Name"][0], rate, sectors / requests if requests else 0])
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "read_ncu-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.read_ncu", read_ncu)

# %% [markdown]
# **Predict.** `chase` follows a chain of addresses: each load returns the address of the next one. Only a single
# warp runs. What percentage of the H100's 3,350 GB/s (data sheet) does it reach?

# %%
gpulab.predict("pytorch.chase_share", ...)

# %%
gpulab.need(read_ncu)
bandwidth = float(hardware.find("H100").dram_bandwidth) / 1e9
measured_kernels = read_ncu(REPORT)
for name, rate, sectors in measured_kernels:
    print(
        f"{name:18}{rate:7,.0f} GB/s  {rate / bandwidth:6.1%} of the bandwidth   {sectors:4.1f} sectors per request"
    )
gpulab.predict("pytorch.chase_share", measured=100 * measured_kernels[3][1] / bandwidth)
plot.bars(
    {name: rate for name, rate, _ in measured_kernels},
    "GB/s of DRAM, measured on an H100",
    caption="The busiest DRAM belongs to the most wasteful kernel, which reads 32 sectors for each request.",
)

# %% [markdown]
# **Why.** `strided-32` has the highest throughput and the worst access: it uses 4 of every 32 bytes that it loads
# (lab 04). `chase` spends its time on latency, because each load waits for the one before. `matmul-registers` reads
# little, but arithmetic is not its limit either: 2 · 768³ operations in 137.6 µs are 6.6 TFLOP/s, a tenth of the
# peak of 66.9. The next metrics to ask for are its warps and its stalls. `transpose-naive` looks innocent because
# its loads are perfect. Its *stores* are not, as `…_op_st.sum` would show.
#
# ## 11 · Which limit is it?
#
# ![Which limit is it? First whether the GPU is idle between kernels: then it is the host. Else whether bytes or operations are near the peak: then it is memory or arithmetic. If neither is, it is latency.](drawings/which_limit.svg)
#
# | you see | the limit is | what helps |
# |---|---|---|
# | gaps on the GPU's timeline while the host is busy | the host, launches | larger batches, fusion, CUDA graphs |
# | gaps while the loader is busy | data | workers, prepared data, pinned memory |
# | gaps after a copy or an `.item()` | waits | keep values on the device |
# | no gaps, DRAM throughput **high** | memory | fusion, smaller types, reuse |
# | no gaps, use of tensor or FP pipes **high** | arithmetic | smaller types, tensor cores, fewer FLOPs |
# | no gaps, both low | latency | more warps, more independent loads |
#
# Some guides say the opposite, but a *low* throughput does not mean that memory is the limit.
#
# Two tests need no profiler (He, 2022). First, double the batch. If a step takes hardly longer, the limit does not
# grow with the batch and is usually the host. Second, divide the ledger's FLOPs by the time and by the peak, and its
# bytes by the time and by the bandwidth. Each result is the fraction of the limit that you reach.
#
# **Work from the top** down: first the step, then the operations, then one kernel. Make one change at a time, and
# measure before and after each. The checklist:
#
# 1. The GPU is never idle.
# 2. There are no waits in the loop.
# 3. Data arrive before they are needed.
# 4. Operations are few and large.
# 5. The type is bfloat16 wherever that is safe (lab 10).
# 6. Sizes are multiples of 64, or at least of 8 (lab 06).
# 7. No memory is reserved needlessly.
# 8. A benchmark would notice if performance got worse.
#
# **Instruments of your own.** A mean hides what users feel, so report percentiles and throughput.

# %%
numbers = np.random.default_rng(11)
before = 20 + numbers.gamma(2, 1.5, 400)  # ms per request, made up
after = np.where(numbers.random(400) < 0.04, 60, 19 + numbers.gamma(2, 1.5, 400))
print("            mean   p50   p95   p99   requests/s")
for name, times in (("before", before), ("after", after)):
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    print(f"{name:8}{times.mean():8.1f}{p50:6.1f}{p95:6.1f}{p99:6.1f}{1000 / times.mean():10.1f}")
print(f"after: one request in {len(after) / (after == 60).sum():.0f} takes 60 ms")

# %% [markdown]
# The median got better, but some requests now wait three times as long.
#
# **Regressions.** Counts do not fluctuate: 12 launches are always 12 launches, so a test can demand them, as the
# checks of this lab do. Times fluctuate, so compare interleaved runs, and raise an alarm only if the interval of
# their ratio excludes 1.
#
# ![Times of many requests: the median says what half of them take at most, and says nothing about the slow end, where the 99th percentile is.](drawings/tail.svg)


# %%
def slower(before, after, draws=2000):
    """The 95 % interval of the ratio of medians, by bootstrap: draw again and again from what was measured."""
    numbers = np.random.default_rng(0)
    ratios = [
        np.median(numbers.choice(after, len(after))) / np.median(numbers.choice(before, len(before)))
        for _ in range(draws)
    ]
    return np.percentile(ratios, [2.5, 97.5])


def first_bad(versions, bad):
    """Bisection: the first version for which bad(version) is true, in log2(n) tests."""
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bad(versions[middle]) else (middle + 1, high)
    return versions[low]


print("the same twice: ", np.round(slower(before[::2], before[1::2]), 3))
print("2 % slower:     ", np.round(slower(before[::2], 1.02 * before[1::2]), 3))
print("10 % slower:    ", np.round(slower(before[::2], 1.10 * before[1::2]), 3))
print("first bad of 64:", first_bad(range(64), lambda version: version >= 41))

# %% [markdown]
# An interval that includes 1 raises no alarm, so 200 requests hide a slowdown of 2 %. To see it, take more requests,
# a quieter machine, or a count.

# %% [markdown]
# ## Detective · A benchmark that lies
#
# A colleague times a compiled function on a GPU. This GPU is a model with a clock, so the truth is known: a call
# takes `launch` µs of the host, then `cold` µs of the GPU.

# %%
import inspect

from gpulab.exercises.lab_08_pytorch_performance import ClockedGPU

print(inspect.getsource(ClockedGPU))


# %%
def colleagues(facts):
    gpu = ClockedGPU(facts)
    began = gpu.now()
    for _ in range(10):
        gpu.call()
    return (gpu.now() - began) / 10


facts = {"compile": 0, "launch": 5, "cold": 200, "warm": 40, "flush": 30, "hiccup": 12}
print("the truth:", facts["launch"] + facts["cold"], "µs")

# %% [markdown]
# **Predict.** What does `colleagues(facts)` return, in µs?

# %%
gpulab.predict("pytorch.lie", ...)

# %%
gpulab.predict("pytorch.lie", measured=colleagues(facts))

# %% [markdown]
# **Do.** Write `benchmark(now, call, flush, synchronize)`, which measures one call on a GPU. The colleague's
# version tells four lies. About 12 lines.
#
# - Input: four functions, those of a `ClockedGPU`. `benchmark` learns nothing else about this GPU.
# - Output: how many µs pass from the call until its result is there. The function has been compiled before, its
#   inputs come from DRAM, and other users of the machine must not change the answer.


# %% nbgrader={"grade": false, "grade_id": "benchmark", "locked": false, "schema_version": 3, "solution": true, "task": false}
def benchmark(now, call, flush, synchronize):
    ### BEGIN SOLUTION
    call()
    times = []
    for _ in range(21):
        flush()
        synchronize()
        began = now()
        call()
        synchronize()
        times.append(now() - began)
    return statistics.median(times)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "benchmark-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("pytorch.benchmark", benchmark)


# %% [markdown]
# A fifth lie needs a compiler, which need not compute what nobody uses:


# %%
def timed_body(x):
    torch.erf(x).square()  # the result goes nowhere


graphs.clear()
torch.compile(timed_body, backend=collect)(torch.ones(8))
graph = graphs[0].graph
counts = [sum(node.op.startswith("call") for node in graph.nodes)]
graph.eliminate_dead_code()
counts.append(sum(node.op.startswith("call") for node in graph.nodes))
print(f"operations in the graph: {counts[0]}; after dead code is removed: {counts[1]}")

# %% [markdown]
# ![The host launches in 5 µs and goes on, while the GPU works for 200 µs. A clock that is read when the launch returns measures the launch. One that is read after synchronize measures the call.](drawings/launch_returns.svg)
#
# On a real GPU, call `torch.cuda.synchronize()` before each reading of the clock, write a buffer larger than the
# L2 before each call, and return and check the result. Alternatively, use **CUDA events**, which the GPU stamps
# with the time when it reaches them in the stream. If the GPU is idle by then, the time still includes the host's
# path to the launch:
#
# ```python
# start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
# start.record(); result = function(x); stop.record()
# torch.cuda.synchronize()
# milliseconds = start.elapsed_time(stop)
# ```
#
# `torch.utils.benchmark.Timer` synchronises and repeats for you, but it does not flush. `triton.testing.do_bench`
# uses events and flushes.
#
# ### Your answer
#
# Make copies of your `benchmark` with 21 repetitions, and leave out one cure in each:
#
# - every `synchronize`;
# - the flush;
# - the median, with the mean in its place;
# - the warm-up, with the mean in place of the median.
#
# Run each copy on the `facts` above with `"compile": 2_000_000`. Which result is furthest from the truth? Which
# results make the function look *better* than it is, and which *worse*? What would more repetitions change?
# Answer in three to five sentences. A person reads this: 1 point for the causes, 1 point for numbers that you
# measured.

# %%
# Your experiment.

# %% [markdown] nbgrader={"grade": true, "grade_id": "lies-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Without waiting, a call seems to take 5 µs instead of 205, about forty times too fast, because
# only the launch is timed. Without the flush it seems to take 45 µs, because the inputs are still in the L2. Both
# make the function look better, and no number of repetitions helps, because every repetition is wrong in the same
# way. The mean gives 834 µs, because a quarter of the calls are disturbed. Repetitions do not change that, but
# the median does. Without the warm-up the mean gives 95,967 µs, by far the furthest from the truth, because
# compiling adds 2,000,000 / 21 = 95,238 µs. Repetitions dilute it, and the median removes it.
#
# **1 point** (causes without numbers): Missing synchronisation and the warm cache make it look faster,
# compilation and disturbances slower.
#
# **0 points:** It should be repeated more often. Or: GPUs are always noisy.

# %% [markdown]
# ## Beyond · A layer norm from parts
#
# This task is open-ended and ungraded. Write a layer norm of the rows of a matrix without using an operator for
# norms: y = (x − mean) / √(var + 1e-5) · weight + bias. The figure of merit is **launches plus bytes moved for
# each byte of x**, counted by the ledger.
#
# | function | launches + bytes moved for each byte of x |
# |---|---|
# | line by line | see the cell below |
# | ours | 12 |
# | PyTorch's own operator, one launch | 3 |

# %%
wide = torch.randn(4096, 1024), torch.rand(1024), torch.rand(1024)
right_norm = nn.functional.layer_norm(wide[0], (1024,), *wide[1:])


def norm_by_line(x, weight, bias):
    centred = x - x.mean(1, keepdim=True)
    variance = (centred * centred).mean(1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * weight + bias


def merit(function):
    report = gpulab.profile(function, *wide)
    if any("_norm" in op and op != "linalg_vector_norm" for op in report.by_op):
        return "an operator does it whole: build it from parts"
    right = torch.allclose(function(*wide), right_norm, atol=1e-4)
    return round(report.launches + report.bytes / wide[0].nbytes, 1) if right else "wrong"


merit(norm_by_line)


# %%
# Your `norm`, then merit(norm).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A chain of five pointwise operations works on a matrix of 100 MB. What would fusing it
# save?</summary>
#
# It saves four of five launches. With one input it also saves eight of ten passes over memory, so 200 MB move
# instead of 1 GB.
# </details>
#
# <details><summary>2. Why is <code>if loss &gt; best:</code> expensive in a training loop, and what else does it
# cost?</summary>
#
# The host waits for the value and launches nothing in the meantime, so the GPU idles afterwards. The `if` also
# breaks a compiled graph and rules out a CUDA graph.
# </details>
#
# <details><summary>3. <code>nvidia-smi</code> shows 30 GB, <code>torch.cuda.memory_allocated()</code> 18 GB.
# Where are the other 12?</summary>
#
# The caching allocator has reserved part of them, as free blocks, cut-off remainders and gaps. The CUDA context
# takes the rest.
# </details>
#
# <details><summary>4. What do checkpoints every √(L / 2) blocks cost, and what do they save?</summary>
#
# They cost one more forward pass, which is about a third more arithmetic. Activations fall from 2 L to about
# 2 √(2 L).
# </details>
#
# <details><summary>5. Training takes 50 ms a step and loading takes 120 ms a batch. How many workers do you
# need?</summary>
#
# You need three, which together bring a batch every 40 ms. Two bring one only every 60 ms, so the GPU waits.
# </details>

# %%
gpulab.recap("08")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | launches and bytes of anything | `gpulab.profile(function, *args)`, with fake tensors for large ones |
# | a formula on rows and a matrix | combine the rows first |
# | a loop over parameters | `torch._foreach_…`, `fused=True` |
# | what makes the host wait | `.item()`, `float`, `print`, `if` on tensors, `x[mask]`, `nonzero` |
# | graph breaks | find them with `torch._dynamo.explain`, forbid them with `fullgraph=True` |
# | allocated or reserved memory | allocated is what tensors hold, reserved is what the allocator holds |
# | checkpoints | `checkpoint(fn, …, use_reentrant=False)`, every √(L / 2) blocks |
# | recompilations | `TORCH_LOGS=recompiles`; `mark_dynamic(x, axis)` for a size that changes |
# | long compile times | compile the repeated block: `block.compile()` |
# | Nsight Systems | sum of kernel times against the length of the step, then the number of instances |
# | Nsight Compute | few metrics, one launch; bytes per second *and* sectors per request |
# | number of workers | load time / step time, rounded up |
# | layout | convert once; look for `clone` in the ledger |
# | clock | synchronise, warm up, flush, repeat, take the median, use the result |
#
# ### Claims you will meet, and what is right
#
# - *A launch costs 20–40 µs.* A bare launch takes a few µs, and a framework's dispatch adds its own time.
#   Measure.
# - *`with torch.jit.script:` fuses a block.* It is not a context manager. TorchScript is deprecated, so use
#   `torch.compile` and `torch.export`.
# - *Conv + ReLU + BatchNorm fuse.* The norm folds into the convolution only if it follows it directly.
# - *`torch.addmm` makes any linear layer one operation.* It takes only matrices, so view a batch of sequences as
#   one.
# - *`checkpoint(layer, x)` saves memory.* Without `use_reentrant=False`, and with an input that requires no
#   gradient, the layer is not trained at all. The memory saved is that of the missing graph.
# - *DataLoader is multi-threaded; pinned memory avoids address translation.* Workers are processes. Pinned pages
#   cannot be moved, so the GPU can fetch them itself.
# - *In-place operations make a softmax memory-efficient.* Each line that is not in place makes a full-size
#   temporary, so count those lines.
# - *Low DRAM throughput means memory-bound.* High DRAM throughput does.
# - *nvprof is deprecated but useful.* It does not run on the A100 and later GPUs.
# - *The profiler shows occupancy.* The traces hold an estimate. Nsight Compute measures occupancy.
# - *A boolean mask shows warp divergence.* `x[mask]` is a `nonzero` and a gather, with a wait in between.
#
# ### References
#
# 1. PyTorch documentation, "CUDA semantics", "torch.compile", "Automatic differentiation: checkpoint",
#    "torch.profiler". https://docs.pytorch.org/docs/stable/
# 2. PyTorch sources: `c10/cuda/CUDACachingAllocator.cpp`, `aten/src/ATen/native/cuda/MultiTensorApply.cuh`.
#    https://github.com/pytorch/pytorch
# 3. J. Ansel et al., "PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and
#    Graph Compilation", ASPLOS 2024.
# 4. T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.
#    https://arxiv.org/abs/1604.06174. V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
#    Models", 2022. https://arxiv.org/abs/2205.05198
# 5. I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
#    https://arxiv.org/abs/1711.05101
# 6. A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
# 7. NVIDIA, *Convolutional Layers User's Guide*, "Tensor Layouts".
# 8. NVIDIA, *Nsight Systems User Guide*, *Nsight Compute CLI*. https://docs.nvidia.com/nsight-systems/
# 9. PyTorch documentation, "Dynamic Shapes" and "Dealing with Recompilations"; PyTorch tutorials, "Reducing
#    torch.compile cold start compilation time with regional compilation".
# 10. TensorFlow, "Better performance with tf.function". https://www.tensorflow.org/guide/function
# 11. H. He, "Making Deep Learning Go Brrrr From First Principles", 2022. https://horace.io/brrr_intro.html
