# ---
# jupyter:
#   gpulab:
#     lab: "10"
#     hours: 3
#     topics: [C3.7, C3.11, C9.1, C9.2, C9.3, C9.4, C9.5, C9.6, C9.7, C9.8, C9.9]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Mixed precision
#
# **2.5 to 4.5 hours.** You need labs 08 and 09, which show where PyTorch spends its time, and what FP16, BF16 and
# E4M3 can hold.
#
# Tensor cores multiply 16-bit numbers many times as fast as 32-bit ones, and only half as many bytes have to be
# moved. So networks are trained in 16 bits, and lately in 8, and still end up where FP32 ends up. But this takes
# care in four or five places, and you will see each of them fail first. This lab uses no GPU. Results are rounded as
# a GPU would round them, and everything else is the same.
#
# After this lab, you can
#
# 1. say which gradients FP16 loses, and by how much a loss has to be scaled to keep them;
# 2. write a dynamic loss scaler that does the same as PyTorch's at every step;
# 3. put scaling, checking, clipping and updating into the right order;
# 4. predict which type autocast chooses for each operation;
# 5. choose between FP16, BF16 and FP8, and say what each choice costs in memory.

# %%
import math

import numpy as np

import gpulab

gpulab.start("10")

# %% [markdown]
# ## 1 · What FP16 loses
#
# The next cell trains a small GPT to write little stories. Every output of a layer, every weight that it uses and
# every gradient is rounded to a given format (`gpulab.models.emulate`), but the products are summed in FP32, as
# tensor cores do. The loss is also multiplied by 2⁻¹¹. Such factors are common: a mean over a large batch has one,
# and so does an auxiliary loss with a small weight. Here the factor makes the gradients so small that you see the
# damage in a short run. Before the update, the gradients are divided by the factor again, in FP32.

# %%
import torch
from torch.nn import functional as F

from gpulab import plot
from gpulab.models import text, training
from gpulab.models.config import Config
from gpulab.models.emulate import emulate
from gpulab.models.gpt import GPT

torch.set_num_threads(1)  # with tensors as small as these, threads would wait for each other
FACTOR = 2.0**-11
STEPS = 80


def train(format, scale=1.0, watch=None, seed=0, gradients=None):
    """The losses of a short training run; the loss is multiplied by `scale`, the gradients divided by it."""
    torch.manual_seed(seed)
    model = GPT(Config(vocabulary=text.VOCABULARY, context=48, width=48, layers=2, heads=4))
    emulate(model, format, gradients=gradients, watch=watch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    stories, losses = text.Stories(seed), []
    for _ in training.steps(STEPS):
        windows = torch.from_numpy(stories.windows(12, 49))
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        (loss * FACTOR * scale).backward()
        for parameter in model.parameters():
            parameter.grad /= FACTOR * scale
        if all(torch.isfinite(parameter.grad).all() for parameter in model.parameters()):
            optimizer.step()
        losses.append(loss.item())
    return losses


seen = []  # every 64th gradient of the results of all layers


def watch(layer, gradient):
    seen.append(gradient.flatten()[::64].abs().numpy().copy())


runs = {"FP32": train("FP32", watch=watch)}
magnitudes = np.concatenate(seen)
magnitudes = magnitudes[magnitudes > 0]
low, high = np.log2(np.percentile(magnitudes, [10, 90]))
print(f"{magnitudes.size:,} gradients of layers' results, kept in FP32")
print(
    f"from 2^{math.log2(magnitudes.min()):.0f} to 2^{math.log2(magnitudes.max()):.0f}, the middle 80 % from 2^{low:.0f} to 2^{high:.0f}"
)

# %% [markdown]
# **Predict.** What percentage of these gradients does FP16 round to zero? Its smallest positive number is 2⁻²⁴.

# %%
gpulab.predict("mixed.vanished", ...)

# %% jupyter={"source_hidden": true}
powers = np.log2(magnitudes)
ax = plot.axes(7.4, 3.2)
counts, edges, bars = ax.hist(powers, bins=np.arange(-62, 17), color=plot.DEEP)
for bar, left in zip(bars, edges, strict=False):
    bar.set_color(plot.ALARM if left < -25 else plot.AMBER if left < -14 else plot.DEEP)
top = counts.max()
for x, words, colour in (
    (-42, "become zero", plot.ALARM),
    (-19.5, "subnormal", plot.AMBER),
    (1, "normal", plot.DEEP),
):
    ax.annotate(words, (x, 1.06 * top), ha="center", color=colour)
for edge in (-25, -14, 16):
    ax.axvline(edge, color=plot.INK, linewidth=0.8, linestyle=":")
ax.set(xlabel="log2 of the gradient's magnitude", ylabel="gradients", ylim=(0, 1.2 * top))
gpulab.predict("mixed.vanished", measured=100 * float((powers <= -25).mean()))
plot.picture(
    ax, "Left of 2⁻²⁵ gradients become zero in FP16, left of 2⁻¹⁴ they lose digits; few lie further right."
)

# %% [markdown]
# FP16 rounds the gradients to the left of 2⁻²⁵ to zero. To the left of 2⁻¹⁴, a gradient keeps fewer digits the
# smaller it is. To the right, up to 2¹⁶, there is a wide empty space, because almost no gradient is a normal number
# of FP16.
#
# **Why.** A gradient is a product of many small factors. FP16's 5 exponent bits give it 40 powers of two, subnormal
# numbers included, whereas the 8 exponent bits of BF16 and FP32 give more than 250. *Rounding* as such does little
# harm. A relative error of up to 2⁻¹¹ per number is small beside the noise of a batch, and it averages out.
#
# ## 2 · Weights that do not move
#
# The other place where 16 bits fail is the update of the weights.
#
# **Predict.** A weight is 1, in FP16. How large must an update be, at least, to change it?

# %%
gpulab.predict("mixed.stuck", ...)

# %%
steps = np.linspace(0, 0.001, 100_001)
moved = np.float16(1) + steps
gpulab.predict("mixed.stuck", measured=float(steps[np.flatnonzero(moved.astype(np.float16) > 1)[0]]))

# %% [markdown]
# **Do.** Write `master(weight, update, count)`, which adds `update` to `weight`, `count` times, in two ways. Return
# two values of FP16:
#
# - first, the result when the weight is kept in FP16, so that each sum is rounded;
# - second, the result when you add to a **master copy** of full precision (FP32 or a Python float), so that only the
#   copy that the network uses is rounded.
#
# Do not round `update` itself. About 6 lines.


# %% nbgrader={"grade": false, "grade_id": "master", "locked": false, "schema_version": 3, "solution": true, "task": false}
def master(weight, update, count):
    ### BEGIN SOLUTION
    alone, copy = np.float16(weight), weight
    for _ in range(count):
        alone = np.float16(float(alone) + update)
        copy += update
    return [float(alone), float(np.float16(copy))]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "master-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.master", master)

# %% [markdown]
# **Why.** Updates are small compared with weights. At a learning rate of 10⁻³ or less, they are often a thousand
# times smaller, or more. So the optimizer keeps the weights in FP32 and hands out 16-bit copies. (Stochastic
# rounding, in lab 09, is the alternative.)
#
# ## 3 · One factor for the loss
#
# The empty space on the right of the figure is the way out. Multiply the **loss** by a large factor before the
# backward pass, and by the chain rule every gradient grows by that factor. Divide the gradients by it again, in
# FP32, before you use them. This is **loss scaling** (Micikevicius et al., 2018). An iteration has six steps:
#
# 1. Run the forward pass in 16 bits, with copies of the master weights.
# 2. Compute the loss in FP32.
# 3. Multiply the loss by the scale.
# 4. Run the backward pass in 16 bits.
# 5. Convert the gradients to FP32 and divide them by the scale, so that they are **unscaled**.
# 6. Update the master weights in FP32.

# %% jupyter={"source_hidden": true}
runs["FP16"] = train("FP16")
runs["FP16, loss × 2,048"] = train("FP16", scale=2048.0)
ax = plot.axes(6.6, 3.2)
for (name, losses), colour, width in zip(
    runs.items(), (plot.INK, plot.ALARM, plot.DEEP), (4, 2, 1.5), strict=True
):
    smooth = np.convolve(losses, np.ones(8) / 8, "valid")
    ax.plot(np.arange(8, STEPS + 1), smooth, color=colour, linewidth=width)
    ax.annotate(
        f"{name}  {smooth[-1]:.2f}",
        (STEPS + 1, smooth[-1]),
        color=colour,
        va="bottom" if name == "FP32" else "top" if "×" in name else "center",
    )
ax.set(
    xlabel="step",
    ylabel="loss (nats per character),\nmean of 8 steps",
    xlim=(0, 1.35 * STEPS),
    ylim=(0.4, 3.2),
)
plot.picture(ax, "Without a scale FP16 hardly learns; with one it follows FP32.")

# %% [markdown]
# Without a scale, FP16 hardly learns. With a scaled loss, it follows FP32 almost all the way. But one run is only
# one draw of weights and text, so the next cell adds two more seeds:

# %%
ends = {"FP16": [], "FP16, loss × 2,048": []}
for name, of_seeds in ends.items():
    scale = 2048.0 if "×" in name else 1.0
    others = [train("FP16", scale=scale, seed=seed) for seed in (1, 2)]
    of_seeds += [np.mean(losses[-10:]) for losses in (runs[name], *others)]
    print(f"{name:20} last ten steps, seeds 0, 1, 2: ", "  ".join(f"{end:.2f}" for end in of_seeds))

# %% [markdown]
# Runs that differ only in their seed end some tenths apart. So a difference as small as the one between FP32 and
# scaled FP16 here says nothing, but the difference between the two rows is many times as large.
#
# **Do.** Write `static(gradients)`, which chooses the scale for a list of gradients.
#
# - Input: the gradients as they are without a scale.
# - Output: the power of two with which none of these gradients becomes infinite in FP16, and as few as possible
#   become zero. If all gradients are zero, any power of two will do.
# - FP16 rounds to infinity from 65,520 on.
# - Counted: how many more gradients become zero than with the best power of two. Full marks need 0.
# - Length: about 6 lines.


# %% nbgrader={"grade": false, "grade_id": "static", "locked": false, "schema_version": 3, "solution": true, "task": false}
def static(gradients):
    ### BEGIN SOLUTION
    largest = max(abs(g) for g in gradients)
    if largest == 0:
        return 1.0
    factor = 2.0 ** math.floor(math.log2(65504 / largest))
    while 2 * factor * largest < 65520:
        factor *= 2
    return factor
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "static-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.static", static)

# %% [markdown]
# ## 4 · A factor that finds its size
#
# Gradients shrink as training goes on, and now and then a batch has very large ones, so no fixed scale fits for
# long. **Dynamic** loss scaling follows the gradients. The scale starts high. When an infinity or NaN appears among
# the gradients, the step is skipped and the scale is multiplied by `backoff`. After `interval` good steps in a row,
# the scale is multiplied by `growth`. PyTorch's defaults are a first scale of 65,536, a backoff of 0.5, an interval
# of 2,000 and a growth of 2.
#
# **Predict.** The scale starts at 1,024, with an interval of 20 and a growth of 2. What is it after 100 good steps?

# %%
gpulab.predict("mixed.growth", ...)

# %% [markdown]
# **Do.** Write `scaler(overflows, scale, growth, backoff, interval)`, which follows a dynamic scale through a run.
#
# - Input: `overflows` says for each iteration whether an overflow occurred in it. `scale` is the first scale.
# - Output: a list of `[scale, good steps in a row]`, as they are after each iteration. The good steps count from 0
#   again whenever the scale changes.
# - Full marks: no state may differ from that of `torch.amp.GradScaler`.
# - The scale stays far below the largest float32 here. At that limit `GradScaler` keeps the scale, because a larger
#   one would be infinite.
# - Length: about 10 lines.


# %% nbgrader={"grade": false, "grade_id": "scaler", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scaler(overflows, scale, growth, backoff, interval):
    ### BEGIN SOLUTION
    states, good = [], 0
    for overflow in overflows:
        if overflow:
            scale, good = scale * backoff, 0
        else:
            good += 1
            if good == interval:
                scale, good = scale * growth, 0
        states.append([scale, good])
    return states
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scaler-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.scaler", scaler)

# %% [markdown]
# **See.** The figure shows your scaler beside PyTorch's, on gradients whose size wanders. An overflow happens when
# scale × gradient is too large for FP16.

# %%
gpulab.need(scaler)
numbers = np.random.default_rng(3)
sizes = 2.0 ** (np.cumsum(numbers.standard_normal(400)) * 0.6 - 4)
theirs = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=20)
weight = torch.zeros(1, requires_grad=True)
sgd = torch.optim.SGD([weight], lr=1e-4)
scales, overflows = [], []
for size in sizes:
    sgd.zero_grad()
    theirs.scale((weight * float(size)).sum()).backward()
    weight.grad = weight.grad.half().float()
    overflows.append(bool(torch.isinf(weight.grad).any()))
    theirs.step(sgd)
    theirs.update()
    scales.append(theirs.get_scale())
mine = [scale for scale, _ in scaler(overflows, 2.0**16, 2.0, 0.5, 20)]
print(
    "iterations whose scale differs from GradScaler's:",
    sum(a != b for a, b in zip(mine, scales, strict=True)),
)

ax = plot.axes(7, 3)
ax.plot(65504 / sizes, color=plot.INK, linewidth=1)
ax.step(range(400), mine, color=plot.DEEP, where="post")
ax.annotate(
    "largest scale without overflow",
    (120, (65504 / sizes)[:120].max()),
    color=plot.INK,
    va="top",
)
ax.annotate(
    "your scale", (60, mine[60]), color=plot.DEEP, va="top", xytext=(0, -18), textcoords="offset points"
)
ax.set(xlabel="iteration", ylabel="scale")
ax.set_yscale("log", base=2)
plot.picture(ax, "The scale climbs to the limit, falls by half, and climbs again.")

# %% [markdown]
# The scale climbs until it touches the limit, falls by half, and climbs again. Where the gradients grow quickly, it
# falls several times in a row. Each fall costs one skipped step.
#
# ## Detective · The run that hardly learns
#
# **Clipping** limits the length of the gradient, its norm, with all parameters taken together. If the norm is above
# a limit, every gradient is multiplied by limit / norm.
#
# The next cell shows a colleague's training loop, with a name for each of its steps. The colleague reports: "No
# infinities, no skipped steps, the gradients are clipped to 1 as always. The same learning rate as in FP32. It
# hardly learns."

# %%
theirs = [
    "zero",
    "forward",
    "scale",
    "backward",
    "clip",
    "unscale",
    "check",
    "update weights",
    "update scale",
]


def loop(order, iterations=60, scale=1024.0):
    """Minimises a quadratic by the steps of an iteration, gradients in FP16; returns the distance from the minimum."""
    weights, gradients, good, overflow, path = np.array([3.0, -2.0]), np.zeros(2), 0, False, []
    for _ in range(iterations):
        for step in order:
            if step == "zero":
                gradients = np.zeros(2)
            elif step == "forward":
                slope, factor = np.array([1.0, 0.1]) * weights, 1.0
            elif step == "scale":
                factor = scale
            elif step == "backward":
                gradients = gradients + (slope * factor).astype(np.float16).astype(float)
            elif step == "unscale":
                gradients = gradients / scale
            elif step == "check":
                overflow = not np.isfinite(gradients).all()
            elif step == "clip":
                norm = np.linalg.norm(gradients)
                gradients = gradients / norm if norm > 1 else gradients
            elif step == "update weights" and not overflow:
                weights = weights - 0.05 * gradients
            elif step == "update scale":
                good = 0 if overflow else good + 1
                scale, good = (scale / 2, 0) if overflow else (2 * scale, 0) if good == 20 else (scale, good)
        path.append(np.linalg.norm(weights))
    return path


path = loop(theirs)
print(f"distance from the minimum: {path[0]:.3f} after 1 iteration, {path[-1]:.3f} after {len(path)}")

# %% [markdown]
# **Do.** Find the cause with numbers: copy `loop` into the next cell and print what each step sees. Then write
# `recipe()`, which puts the steps into the right order.
#
# - Output: the list of the nine names, in an order that stays right when gradients overflow and when the scale
#   changes.
# - The check trains with noise, with steep batches that are clipped or overflow, and with a scale that grows after 5
#   good steps.
# - Full marks: an order is right if the weights are right after every iteration.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "recipe", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recipe():
    ### BEGIN SOLUTION
    return [
        "zero",
        "forward",
        "scale",
        "backward",
        "unscale",
        "check",
        "clip",
        "update weights",
        "update scale",
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "recipe-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.recipe", recipe)

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. What slowed the run down? By about which factor was its first update too small,
# and which number from your experiment shows it? Why would clipping to 1 do so little harm in FP32? A person reads
# your answer and gives 1 point for the cause and 1 point for a number that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "recipe-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The gradients were clipped while they were still multiplied by the scale of 1,024. At that point
# their norm was about 3,080, and it was cut to 1. Unscaling then left a norm of 1/1,024, so the first update was
# about a thousand times too small (0.00005 instead of 0.05, at the learning rate of 0.05). In FP32 there is no
# scale, so the limit of 1 met the real norm of about 3, and a step was at most 3 times shorter.
#
# **1 point** (cause without a number): It clips before it unscales.
#
# **0 points:** FP16 rounds the gradients to zero. Or: the learning rate is too small.

# %% [markdown]
# ## 5 · Clipping
#
# The limit on the norm is meant for the *real* gradients, without the scale. PyTorch's `clip_grad_norm_` multiplies
# them by limit / (norm + 10⁻⁶). Leave the 10⁻⁶ out in this exercise.
#
# ![Clipping: a gradient longer than the limit is shortened to the limit, and its direction stays.](drawings/clipping.svg)
#
# **Do.** Write `clip(gradients, scale, limit)`, which unscales the gradients and then clips them.
#
# - Input: `gradients` is a list of numbers that are still multiplied by `scale`.
# - Output: the list of the real gradients, clipped so that their norm is at most `limit`.
# - If one of the gradients is infinite or NaN, return `None` instead, because the step is then skipped.
# - Length: about 6 lines.


# %% nbgrader={"grade": false, "grade_id": "clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip(gradients, scale, limit):
    ### BEGIN SOLUTION
    real = [g / scale for g in gradients]
    if not all(math.isfinite(g) for g in real):
        return None
    norm = math.sqrt(sum(g * g for g in real))
    return [g * limit / norm for g in real] if norm > limit else real
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "clip-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.clip", clip)

# %% [markdown]
# **See.** In a run, watch the norm of the gradients, how often steps are skipped, and the scale. If the scale keeps
# falling, the infinities come from the forward pass, and no scale will help.
#
# ## 6 · Autocast
#
# ![Autocast chooses for each operation: products in 16 bits, sums and exponentials in 32, and additions in the wider type of their inputs.](drawings/autocast.svg)
#
# In practice, nobody casts by hand. Under `with torch.amp.autocast("cuda", dtype=torch.float16):` PyTorch chooses a
# type for each operation from three lists (PyTorch documentation, "Autocast Op Reference"). The table shows parts of
# these lists, and in the last two rows operations that are on none of them:
#
# | the operation runs in | operations in this lab |
# |---|---|
# | float16 | `linear`, `matmul`, `bmm`, `conv2d`, `addmm` |
# | float32 | `softmax`, `log_softmax`, `layer_norm`, `cross_entropy`, `exp`, `log`, `pow`, `sum`, `norm` |
# | the widest type of its inputs | `add`, `mul`, `cat` |
# | the type of its first input | all others here: `relu`, `gelu`, `tanh`, `dropout`, `reshape`, `max` |
# | the type of its first input, into which it writes | `add_`, `mul_` |
#
# **Predict.** A loss is computed by `cross_entropy` from a linear layer's output. How many bits does it have?

# %%
gpulab.predict("mixed.loss_type", ...)

# %% [markdown]
# **Do.** Write `dtypes(program)`, which predicts the type of every result under autocast to float16.
#
# - Input: a program is a list of `[operation, inputs]`, and `inputs` is again a list. Each input is `"float32"`,
#   `"float16"`, or the number of an earlier line, counted from 0.
# - Output: the list of the results' types, one for each line.
# - The operations are those in the table above.
# - Length: about 12 lines.


# %% nbgrader={"grade": false, "grade_id": "dtypes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dtypes(program):
    ### BEGIN SOLUTION
    short = {"linear", "matmul", "bmm", "conv2d", "addmm"}
    long = {"softmax", "log_softmax", "layer_norm", "cross_entropy", "exp", "log", "pow", "sum", "norm"}
    found = []
    for operation, inputs in program:
        given = [found[i] if isinstance(i, int) else i for i in inputs]
        if operation in short:
            found.append("float16")
        elif operation in long:
            found.append("float32")
        elif operation in {"add", "mul", "cat"}:
            found.append("float32" if "float32" in given else "float16")
        else:
            found.append(given[0])
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "dtypes-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.dtypes", dtypes)

# %% [markdown]
# **See.** PyTorch's autocast for the CPU uses bfloat16 and has its own lists, with some of the same entries. Run it:

# %%
x, w = torch.randn(4, 8), torch.randn(8, 8)
with torch.amp.autocast("cpu", dtype=torch.bfloat16):
    y = F.linear(x, w)
    rows = {"linear": y, "relu of it": torch.relu(y), "add of it and FP32": y + x, "matmul of both": y @ w}
    rows["add_ of FP32 to it"] = y.clone().add_(x)
for name, result in rows.items():
    print(f"{name:20}{result.dtype}")

# %% [markdown]
# **By hand**, a linear layer in mixed precision takes three casts: `(x.half() @ weight.half().T).float() + bias`,
# where `weight` is the FP32 parameter. Some guides write `torch.addmm(bias, x, w)` here, but that function takes
# only matrices and fails for activations with three axes. The cast of a weight is part of the graph, so its gradient
# arrives at the parameter in FP32.
#
# The next block is the training loop with autocast and a scaler, in today's spelling. (The old one,
# `torch.cuda.amp…`, causes a warning.)
#
# ```python
# scaler = torch.amp.GradScaler("cuda")
# with torch.amp.autocast("cuda", dtype=torch.float16):
#     loss = F.cross_entropy(model(x), y)
# scaler.scale(loss).backward()
# scaler.unscale_(optimizer)                                  # before clipping
# torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
# scaler.step(optimizer)                                      # skips if an infinity was found
# scaler.update()
# ```
#
# ### In other frameworks
#
# Autocast chooses a type for each *operation*. Keras chooses one for each *layer*: under the policy `mixed_float16` a
# layer keeps its variables in float32, its **variable dtype**, and casts inputs and variables to float16, its **compute
# dtype** (Keras documentation, "Mixed precision policy API"). Whatever the layer contains then runs in float16.
#
# ![PyTorch's autocast: linear runs in float16, softmax in float32. A Keras layer under mixed_float16: product and softmax both run in float16, unless the softmax is a layer of its own with dtype float32.](drawings/policies.svg)
#
# **Predict.** A Keras model under `mixed_float16` is `Dense(16)` and then `Dense(4, activation="softmax")`. How many bits
# does each probability in its output have?

# %%
gpulab.predict("mixed.keras_bits", ...)


# %%
class Dense:
    """A layer under a policy, by Keras's rule."""

    def __init__(self, inputs, outputs, activation=None, compute=torch.float16, variable=torch.float32):
        self.kernel = torch.randn(inputs, outputs).to(variable) / inputs**0.5
        self.activation, self.compute = activation, compute

    def __call__(self, x):
        y = x.to(self.compute) @ self.kernel.to(self.compute)
        return self.activation(y) if self.activation else y


def softmax(x):
    return torch.softmax(x, dim=-1)


first, last = Dense(8, 16), Dense(16, 4, softmax)
probabilities = last(first(torch.ones(2, 8)))
safe = softmax(
    Dense(16, 4)(first(torch.ones(2, 8))).float()
)  # a softmax in a layer of its own, with dtype float32
print(
    "kernel",
    last.kernel.dtype,
    "· output",
    probabilities.dtype,
    "· with a float32 layer behind it",
    safe.dtype,
)
gpulab.predict("mixed.keras_bits", measured=torch.finfo(probabilities.dtype).bits)

# %% [markdown]
# Keras 3.15 gave the same types when this lab was written. So its guide tells you to end a model with a layer like
# `Activation("softmax", dtype="float32")` (TensorFlow guide, "Mixed precision"). `model.compile` wraps the optimizer
# in a `LossScaleOptimizer`, which begins at 2¹⁵ and doubles after 2,000 good steps: the scaler of section 4 with a
# different first scale.
#
# In JAX nothing is cast for you. Code casts explicitly, or with a library such as jmp, whose policy names three types:
# of parameters, of the computation and of the output. NVIDIA's Apex had "O1" and "O2" levels before PyTorch took the
# idea over.
#
# ### Optimizers made for it
#
# After a step with master weights, the 16-bit copy that the network uses must be written as well. If unscaling the
# gradients, updating and casting are separate passes over memory, their bytes add up. Apex's `FusedAdam` with
# `master_weights=True` does all of it in one pass (its documentation). Here is such a kernel, without weight decay
# and corrections.
#
# **Predict.** Gradients and the copy are in FP16; master weights and the two moments are in FP32. How many bytes does the
# kernel move for each parameter, read and written?

# %%
gpulab.predict("mixed.fused_bytes", ...)

# %%
from numba import float32

from gpulab import cuda


@cuda.jit
def fused_adam(copy, gradient, master, mean, square, scale, rate):
    i = cuda.grid(1)
    if i < master.size:
        g = float32(gradient[i]) / scale
        m = float32(0.9) * mean[i] + float32(0.1) * g
        v = float32(0.999) * square[i] + float32(0.001) * g * g
        w = master[i] - rate * m / (math.sqrt(v) + float32(1e-8))
        mean[i], square[i], master[i], copy[i] = m, v, w, w


n = 4096
short = [np.ones(n, np.float16) for _ in range(2)]
long = [np.ones(n, np.float32) for _ in range(3)]
counted = gpulab.profile(fused_adam[n // 256, 256], *short, *long, np.float32(8), np.float32(0.01))
fused = counted["global_bytes"] / n
gpulab.predict("mixed.fused_bytes", measured=fused)


# %%
def bytes_of(function, *tensors):
    """What PyTorch moves for each parameter, by the ledger of lab 08."""
    return gpulab.profile(function, *tensors).bytes / n


g16, g32, w32 = torch.ones(n, dtype=torch.float16), torch.ones(n), torch.ones(n)
state = [[torch.ones(n)] for _ in range(4)]


def adam(parameters, gradients, means, squares):
    settings = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8}
    flags = {"amsgrad": False, "maximize": False}
    torch._fused_adam_(parameters, gradients, means, squares, [], [torch.tensor(1.0)], **settings, **flags)


passes = {
    "gradient to FP32": bytes_of(lambda: g16.float()),
    "unscale": bytes_of(lambda: g32.mul_(0.125)),
    "Adam, fused": bytes_of(lambda: adam(*state)),
    "copy to FP16": bytes_of(lambda: w32.half()),
}
for name, moved in passes.items():
    print(f"{name:18}{moved:5.0f} bytes per parameter")
plot.bars(
    {"one kernel": fused, "four passes": sum(passes.values())},
    "bytes moved for each parameter",
    caption="One kernel that unscales, updates and casts moves little more than half of what four passes move.",
)

# %% [markdown]
# **Why.** An optimizer's arithmetic is cheap, so its time is its bytes (lab 08). Other optimizers keep less. 8-bit Adam
# stores each moment in one byte, with a scale for every block (reference 7). torchao's optimizers for pure BF16 leave
# the master weights out and round stochastically instead (lab 09; option `bf16_stochastic_round`).
#
# ## 7 · What it buys
#
# **Predict.** You train with AdamW and autocast to float16. How many bytes does training keep per parameter? In FP32
# it keeps 16, which are 4 bytes each for the parameter, its gradient and two moments. Autocast also caches float16
# copies of the weights. (The drawing shows another set-up, with 16-bit gradients.)
#
# ![What a parameter takes with Adam. In float32: 4 bytes each of weight, gradient and two averages, 16 in all. In mixed precision: a weight and a gradient of 2 bytes, and the optimizer's 12.](drawings/bytes_of_a_parameter.svg)

# %%
gpulab.predict("mixed.amp_bytes", ...)

# %% [markdown]
# **Do.** Write `footprint(parameters, choice)`, which returns the bytes that all the parameters, gradients, moments
# and copies take together.
#
# - `"FP32"` and `"AMP"` are the two choices of the prediction above; AMP is training with autocast.
# - `"BF16 pure"` keeps everything in BF16, without a master copy.
# - `"BF16 + 8-bit Adam"` is the same, but with moments of one byte.
# - Length: about 2 lines.


# %% nbgrader={"grade": false, "grade_id": "footprint", "locked": false, "schema_version": 3, "solution": true, "task": false}
def footprint(parameters, choice):
    ### BEGIN SOLUTION
    each = {"FP32": 4 + 4 + 8, "AMP": 4 + 4 + 8 + 2, "BF16 pure": 2 + 2 + 4, "BF16 + 8-bit Adam": 2 + 2 + 2}
    return parameters * each[choice]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "footprint-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.footprint", footprint)

# %%
from gpulab import hardware

for name in ("V100", "A100", "H100"):
    gpu = hardware.find(name)
    plain, tensor = float(gpu.peak("float32")), float(gpu.peak("float16", tensor=True))
    print(
        f"{name}: FP32 {plain / 1e12:6.1f} TFLOP/s, FP16 on tensor cores, dense {tensor / 1e12:6.1f}: {tensor / plain:.0f} ×"
    )

# %% [markdown]
# AMP makes *weights and optimizer* larger, not smaller. Its 18 bytes are 4 + 4 + 8 in FP32, for the weight, its
# gradient and Adam's two moments, and 2 for the 16-bit copy of the weight. (The 16 bytes in the drawing are those of
# another set-up, in lab 16, which keeps gradients in 16 bits: 2 + 2 + 12.)
#
# What AMP halves are the activations, which are most of the memory when batches are large, and the bytes that layers
# move. Matrix products also run on tensor cores. The factor above compares only the peak rates. A whole training
# step gains less, often two to three times, because layers that move bytes gain at most two.
#
# Tensor cores work best with **sizes** whose rows are a multiple of 16 bytes, which is 8 numbers of FP16. Since
# cuBLAS 11, other sizes work, too, but more slowly. On an A100, multiples of 128 bytes, or 64 numbers, are best
# (NVIDIA, "Matrix Multiplication Background"). So a vocabulary of 50,257 becomes 50,304 = 786 · 64.
#
# **BF16 or FP16?** BF16 has FP32's range, so it needs no loss scaling and skips no steps. Its rounding is eight
# times coarser, but training tolerates that if the master weights are in FP32. BF16 needs Ampere or later. FP16 has
# more digits and is the choice for inference and for older GPUs. Fine-tuning, too, needs FP32 only for its master
# weights, not for its products.

# %%
runs["BF16"] = train("BF16")
for name, losses in runs.items():  # seed 0; differences of some tenths are chance
    print(f"{name:20} loss of the last ten steps {np.mean(losses[-10:]):.3f}")

# %% [markdown]
# ## 8 · Eight bits: scales from the past
#
# E4M3 has 4 exponent bits and holds numbers from 2⁻⁹ to 448. Each tensor must be moved into that range by its own
# **scale**. The best scale is 448 / **amax**, where amax is the largest magnitude in the tensor.
#
# ![Delayed scaling: the scale of this step comes from the largest values of the last steps, so the tensor is written in eight bits at once, without a first pass for its own maximum.](drawings/delayed_scale.svg)
#
# **Predict.** The next cells make 10,000 activations with a spread of 1/64 and cast them to E4M3 without a scale.
# What percentage of them is off by more than 12.5 %?

# %%
gpulab.predict("mixed.fp8_without", ...)

# %%
from gpulab import numerics

activations = np.random.default_rng(5).standard_normal(10_000).astype(np.float32) / 64


def wrong_by(x, scale):
    back = numerics.quantize(x * np.float32(scale), "E4M3") / np.float32(scale)
    return 100 * float((np.abs(back - x) > 0.125 * np.abs(x)).mean())


gpulab.predict("mixed.fp8_without", measured=wrong_by(activations, 1))
print(f"with 448 / amax: {wrong_by(activations, 448 / np.abs(activations).max()):.1f} %")

# %% [markdown]
# To know amax, you must first compute the whole tensor, and then read it again to scale it. **Delayed scaling**
# avoids the second reading by using the largest amax of the last few steps. In NVIDIA's **Transformer Engine**, it
# is the recipe that came with Hopper. That recipe uses E4M3 for weights and activations and E5M2 for gradients, with
# one scale and one history per tensor ("FP8 Primer", Transformer Engine documentation). There are others:
# Blackwell's MXFP8 has a scale for each 32 values and uses E4M3 everywhere.
#
# **Do.** Write `delayed(amaxes, length, largest)`, which returns the list of the scales that the steps use.
#
# - Input: `amaxes[k]` is the amax of step k. The window of a step holds the amaxes of the last `length` steps
#   *before* it, or of fewer at the start.
# - Output: the scale of each step is `largest` divided by the largest amax in its window.
# - The scale starts at 1. It stays as it was if its window is empty, if the largest amax there is 0, or if any amax
#   there is not finite. (Transformer Engine, too, keeps its scale after an infinity or nothing but zeros:
#   `delayed_scaling.cu`.)
# - Length: about 8 lines.


# %% nbgrader={"grade": false, "grade_id": "delayed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def delayed(amaxes, length, largest):
    ### BEGIN SOLUTION
    scales, scale = [], 1.0
    for k in range(len(amaxes)):
        known = amaxes[max(0, k - length) : k]
        if known and all(math.isfinite(a) for a in known) and max(known) > 0:
            scale = largest / max(known)
        scales.append(scale)
    return scales
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "delayed-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("mixed.delayed", delayed)

# %% [markdown]
# **Why.** The past is a good guess, but a wrong guess is costly. If a tensor is larger in one step than in all of
# its history, its largest numbers become NaN or are cut to 448. Newer recipes scale blocks of 32 numbers as they are
# written (MXFP8 on Blackwell, lab 09), so they need no history.
#
# ## Beyond · How few bits
#
# This task is open-ended and ungraded. Train the small GPT with gradients in E5M2 and everything else in FP16. The
# figure of merit is the **smallest loss scale**, a power of two, with which the loss comes within 0.2 of FP32's. A
# loss here is the mean over the last ten steps and the seeds 0, 1 and 2, because with one seed alone, chance would
# decide.
#
# | forward, gradients | scale | loss |
# |---|---|---|
# | FP32, FP32 | none | printed by the cell below |
# | FP16, E5M2 | 256 | printed by the cell below |
# | FP16, E5M2 | yours | within 0.2 of FP32's |
#
# E5M2's smallest positive number is 2⁻¹⁶, which is 256 times FP16's. Does E5M2 need 256 times FP16's scale? And
# where does a larger scale begin to do harm?


# %%
def end(format, **settings):
    """The loss of the last ten steps, the mean of three seeds."""
    return np.mean([train(format, seed=seed, **settings)[-10:] for seed in (0, 1, 2)])


print(
    f"FP32: {end('FP32'):.2f}   E5M2 gradients, a scale of 256: {end('FP16', scale=256.0, gradients='E5M2'):.2f}"
)

# %%
# Your runs: end("FP16", scale=…, gradients="E5M2")

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which is scaled, the loss or the gradients, and when is it undone?</summary>
#
# The loss is scaled, before the backward pass. The gradients are unscaled in FP32 before they are checked, clipped
# and used.
# </details>
#
# <details><summary>2. Why is the scale a power of two?</summary>
#
# A power of two changes exponents only, so scaling and unscaling round nothing.
# </details>
#
# <details><summary>3. Your scale halves at every step. What is wrong?</summary>
#
# The infinities or NaN come from the forward pass or the loss. Look there, because no scale fixes them.
# </details>
#
# <details><summary>4. Does AMP halve a model's memory?</summary>
#
# No. Parameters, gradients and moments stay in FP32, and a 16-bit copy is added. Activations are halved.
# </details>
#
# <details><summary>5. BF16 needs no loss scaling. What does it need?</summary>
#
# It needs master weights in FP32 (or stochastic rounding), because its numbers are up to 0.8 % apart.
# </details>

# %%
gpulab.recap("10")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | what does FP16 round to zero? | magnitudes up to 2⁻²⁵ = 3.0e-8 |
# | what does FP16 round to infinity? | magnitudes from 65,520 on |
# | in which order do the steps of an iteration run? | scale, backward, unscale, check, clip, update, update scale |
# | how does a dynamic scale change? | × 0.5 and a skipped step after an overflow; × 2 after 2,000 good steps |
# | which types does autocast choose? | 16 bits for products; FP32 for exponentials, norms, losses and sums |
# | how many bytes per parameter does AdamW need? | FP32 16, AMP 18, pure BF16 8 |
# | what does Keras cast? | a layer's inputs and variables; end with a float32 layer |
# | what does a fused step with master weights move? | 28 bytes for each parameter |
# | what is Hopper's recipe for FP8? | E4M3 forward, E5M2 gradients, a scale per tensor = largest / amax |
# | which sizes suit tensor cores? | rows of a multiple of 16 bytes, or better of 128 |
#
# ### Claims you will meet, and what is right
#
# - *Gradients are scaled up before the FP32 update.* The loss is scaled up before the backward pass. Before the
#   update, the gradients are scaled *down*.
# - *`torch.cuda.amp.autocast()` and `torch.cuda.amp.GradScaler()`.* Both are deprecated. Write
#   `torch.amp.autocast("cuda", …)` and `torch.amp.GradScaler("cuda")`.
# - *Fine-tuning needs FP32.* The usual choice is BF16 under autocast, with the weights kept in FP32. No product
#   needs FP32.
# - *Dimensions must be multiples of 8.* They should be. Since cuBLAS 11, others have run, too, but more slowly.
# - *Mixed precision halves memory.* It halves activations.
#
# ### References
#
# 1. P. Micikevicius et al., "Mixed Precision Training", ICLR 2018. https://arxiv.org/abs/1710.03740
# 2. PyTorch, "Automatic Mixed Precision package", with the Autocast Op Reference.
#    https://docs.pytorch.org/docs/stable/amp.html
# 3. D. Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019.
#    https://arxiv.org/abs/1905.12322
# 4. P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022. https://arxiv.org/abs/2209.05433
# 5. NVIDIA, *Transformer Engine documentation*, "FP8 Primer"; and its source,
#    `transformer_engine/common/recipe/delayed_scaling.cu`. https://github.com/NVIDIA/TransformerEngine
# 6. NVIDIA, *Matrix Multiplication Background User's Guide*.
# 7. T. Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022.
#    https://arxiv.org/abs/2110.02861
# 8. Keras, "Mixed precision policy API". https://keras.io/api/mixed_precision/policy/
# 9. NVIDIA, *Apex documentation*, `apex.optimizers.FusedAdam`. https://nvidia.github.io/apex/optimizers.html
# 10. torchao, *Low-bit optimizers*. https://github.com/pytorch/ao
