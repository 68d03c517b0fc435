# ---
# jupyter:
#   gpulab:
#     lab: "27"
#     hours: 3
#     topics: [C27.1, C27.2, C27.3, C27.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 27A · Training in eight and four bits
#
# **2 to 3 hours.** You need labs 09 and 10, which explain E4M3, E2M1, block scales and master weights.
#
# DeepSeek-V3 was trained with most of its products in FP8. NVIDIA trained a model with 12 billion parameters
# on 10 trillion tokens in NVFP4, whose numbers have four bits. The two reports compare such training with
# BF16 and with FP8, and the losses come out nearly the same. The formats alone do not achieve this. What
# matters is where the scales come from, how many numbers share a scale, and how the numbers are rounded. In
# this lab you build these parts, and a small GPT shows what each of them is worth. You need no GPU: operands
# are rounded as tensor cores would read them, and the sums are FP32.
#
# After this lab, you can
#
# 1. find out why a run in FP8 dies after hundreds of good steps;
# 2. choose blocks and scales for a tensor, and count their bytes;
# 3. say which tensors must be quantised twice in a step, and why;
# 4. write NVFP4 with both levels of scales and with stochastic rounding;
# 5. explain what the random Hadamard transform does, and why it needs no inverse.

# %%
import math

import numpy as np
import torch
from torch.nn import functional as F

import gpulab
from gpulab import numerics, plot
from gpulab.models import text, training
from gpulab.models.config import Config
from gpulab.models.gpt import GPT
from gpulab.models.recipes import shorten

gpulab.start("27")
torch.set_num_threads(1)  # with tensors as small as these, threads would wait for each other

# %% [markdown]
# ## 1 · One scale for a whole tensor
#
# E4M3 reaches from 2⁻⁹ to 448, which is 18 powers of two, and a network's tensors seldom lie in just this
# range. So a tensor is multiplied by a **scale** before it is rounded, and the result of the matrix product
# is divided by the scale afterwards. The best scale brings the tensor's largest magnitude, **amax**, to 448.
#
# There are two ways to know amax. **Current scaling** computes the tensor, finds its amax, and reads the tensor
# again to round it. **Delayed scaling** takes the largest amax of the last steps, so that a kernel can round each
# number as it is made.
#
# ![Current scaling reads a tensor twice: once for its largest number, once to round it. Delayed scaling rounds at once, with the largest number of earlier steps.](drawings/two_scales.svg)
#
# In both cases all numbers of the tensor share one scale, so its single largest number determines how the
# others are rounded.
#
# **Predict.** A tensor holds normally distributed numbers with a standard deviation of 1, and one outlier of
# 100,000. With a scale of 448 / amax, what percentage of the numbers does E4M3 round to zero?

# %%
gpulab.predict("bits.underflow", ...)

# %%
values = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
outliers = 10.0 ** np.arange(0, 7.1, 0.5)
lost = [100 * float((numerics.quantize(values * np.float32(448 / o), "E4M3") == 0).mean()) for o in outliers]
gpulab.predict("bits.underflow", measured=lost[10])
ax = plot.axes(6.4, 2.8)
ax.plot(outliers, lost, color=plot.DEEP, marker="o")
ax.set(xscale="log", xlabel="outlier, in spreads of the other numbers", ylabel="rounded to zero, %")
plot.picture(
    ax, "Outliers of up to 10,000 spreads cost almost nothing in E4M3. Beyond that, other numbers vanish."
)

# %% [markdown]
# **Why.** E4M3 is a floating-point format, so a number that is 1,000 times smaller than the largest is still
# rounded with the same relative error. Numbers are lost only when the tensor spans more than those 18 powers
# of two.
#
# ## Detective · The run that dies at step 400
#
# A colleague trains a small network in FP8. Its hidden values are rounded to E4M3 with delayed scaling. The
# history has 16 steps, and a **margin** makes the scale four times smaller than it could be, in case the
# tensor grows. The colleague reports: "For 400 steps the loss is the same as in FP32, then it is NaN. I
# lowered the learning rate to a tenth, and it dies at the same step. I made the history 1,024 steps long, and
# it dies at the same step."


# %%
def run(cast, rate=0.02, steps=600):
    """Trains 16 → 64 → 1; `cast(hidden, amaxes)` returns the rounded hidden values and the amax to remember."""
    numbers = np.random.default_rng(0)
    teacher = numbers.standard_normal((16, 1)) / 4
    first, second = numbers.standard_normal((16, 64)) / 4, numbers.standard_normal((64, 1)) / 8
    log = {"loss": [], "amax": [], "true amax": [], "cut off": []}
    for step in range(steps):
        x = numbers.standard_normal((32, 16)).astype(np.float32)
        if step >= 400:
            x[0] *= 20  # the next file of the data begins
        y = np.tanh(x @ teacher)
        hidden = np.maximum(x @ first, 0)
        short, amax = cast(hidden, log["amax"])
        error = short @ second - y
        slope = 2 * error / len(x)
        slope = slope / max(1.0, np.linalg.norm(slope.T @ x))
        back = slope @ second.T * (hidden > 0)
        second -= rate * short.T @ slope
        first -= rate * x.T @ back
        rows = (
            float((error**2).mean()),
            float(amax),
            float(hidden.max()),
            int(((hidden > 1) & (short < 0.9 * hidden)).sum()),
        )
        for name, value in zip(log, rows, strict=True):
            log[name].append(value)
    return log


def theirs(hidden, amaxes, length=16):
    scale = 448 / (4 * max(amaxes[-length:], default=hidden.max()))
    short = numerics.quantize(hidden * scale, "E4M3") / scale
    return short, np.abs(short).max()


log = run(theirs)
first_bad = int(np.flatnonzero(~np.isfinite(log["loss"]))[0])
print(f"loss {np.mean(log['loss'][380:400]):.3f} before step 400; the first NaN comes in step {first_bad}")

# %%
# Your experiment. In steps 398 to 401: what is the true amax, what is the scale, and what is their product?

# %% [markdown]
# **Predict.** From one step to the next, a tensor grows to 24 times the largest amax in its history. By how
# many powers of two must the scale be smaller than 448 / amax of the history, so that the new amax still fits
# below 448?

# %%
gpulab.predict("bits.margin", ...)

# %% [markdown]
# **Do.** Write `cast(tensors, length, recipe)`, which casts one tensor after the other to E4M3 and back.
#
# - Input: `tensors[k]` is the tensor of step k, a list of floats of either sign. `recipe` is `"current"` or
#   `"delayed"`.
# - Scale: 448 / amax. With `"current"`, amax is that of the tensor itself, its largest magnitude. With
#   `"delayed"`, it is the largest amax of the last `length` steps before k. If there is no step before, or
#   that amax is 0, take the tensor's own. If that is 0, too, the scale is 1.
# - A step remembers the amax of its tensor *before* the cast.
# - What exceeds ±448 after scaling is cut off at ±448, so nothing becomes NaN. There is no margin.
# - Output: a list with a list for each step, the numbers divided by the scale again.
# - You may use `numerics.quantize(x, "E4M3")`. Length: about 10 lines.


# %% nbgrader={"grade": false, "grade_id": "cast", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cast(tensors, length, recipe):
    ### BEGIN SOLUTION
    amaxes, found = [], []
    for tensor in tensors:
        x = np.array(tensor, np.float32)
        own = float(np.abs(x).max())
        known = max(amaxes[-length:], default=0.0) if recipe == "delayed" else own
        largest = known or own
        scale = 448 / largest if largest else 1.0
        short = numerics.quantize(np.clip(x * scale, -448, 448), "E4M3")
        found.append((short / scale).tolist())
        amaxes.append(own)
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "cast-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("bits.cast", cast)


# %% [markdown]
# **See.** Cutting off large numbers is only half of the correction. The next cell compares two histories. One
# remembers the amax of the tensor as it came, before the cast; the other remembers the amax of the numbers
# after the cast.


# %%
def cutting(hidden, amaxes, behind):
    scale = 448 / max(amaxes[-16:], default=hidden.max())
    short = numerics.quantize(np.clip(hidden * scale, 0, 448), "E4M3") / scale
    return short, (short if behind else hidden).max()


ax = plot.axes(6.8, 3.0)
for behind, colour, name in (
    (True, plot.ALARM, "amax after the cast"),
    (False, plot.DEEP, "amax before the cast"),
):
    log = run(lambda hidden, amaxes, behind=behind: cutting(hidden, amaxes, behind))
    ax.plot(range(380, 480), log["cut off"][380:480], color=colour, linewidth=1.5)
    ax.annotate(
        name, (481, np.mean(log["cut off"][470:480])), color=colour, va="center", annotation_clip=False
    )
    print(f"{name}: {sum(log['cut off'][401:])} numbers cut off after step 400")
ax.set(xlabel="step", ylabel="numbers cut off", xlim=(380, 530))
plot.picture(
    ax, "With the amax from before the cast, one step is cut off. With that from after it, every step is."
)

# %% [markdown]
# After the cast no number exceeds 448 / scale. So a history of amaxes from after the cast never shows that
# the tensor has grown, and the scale can rise but never fall.
#
# ### Your answer
#
# Answer in three to five sentences. Why does the colleague's run die at step 400, and why at no other step? Why did
# neither the learning rate nor the long history help? Cite the amax of step 400 and the largest of the history from
# your own experiment. A person reads your answer and gives 1 point for the cause and 1 point for both numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "cast-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** From step 400 on the data has an input 20 times as large. The hidden values reach about 40, whereas
# the largest amax in the history is about 4.8. The margin covers a factor of 4, but the tensor grew 8 times, so
# scaled numbers exceeded 464, and E4M3 has no infinity: they became NaN, and so did all weights. The scale knows the
# past only. The learning rate does not change the data, and a longer history holds no amax as large (5.7 at most).
#
# **1 point** (cause without numbers): The scale is from the steps before, and the data becomes larger.
#
# **0 points:** The learning rate is too high. Or: the gradients explode.

# %% [markdown]
# ## 2 · A small GPT in eight bits
#
# The next cell trains a GPT on short generated stories. Because we know how they are generated, we know the
# lowest loss that any model can reach, the **floor**. A row of 49 characters begins with the first letter of
# a name, which determines the name. What the remaining 48 characters tell is chosen at random: one of 6
# deeds, 5 colours, 8 things and 6 places. So the floor is ln(6 · 5 · 8 · 6) / 48 = 0.151 nats per character.
# The figure of merit is the **gap** between the loss and the floor.
#
# `gpulab.models.recipes.shorten` makes the linear layers compute by a recipe: in each of a layer's three
# products of a training step, both operands are rounded. The embedding, which is also the last layer, stays
# as it is, as do norms and attention.

# %%
FLOOR = math.log(6 * 5 * 8 * 6) / 48
STEPS = 120


def train(recipe, keep=("head",), seed=0):
    """The losses of a short run; every batch is new text, so they are those of a test."""
    torch.manual_seed(seed)
    model = GPT(Config(vocabulary=text.VOCABULARY, context=48, width=48, layers=1, heads=4))
    shorten(model, recipe, keep, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    stories, losses = text.Stories(seed), []
    for step in training.steps(STEPS):
        optimizer.param_groups[0]["lr"] = 6e-3 * min(1, (step + 1) / 10) * (1 - step / STEPS)
        windows = torch.from_numpy(stories.windows(12, 49))
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


gaps = {}
for name in ("FP32", "FP8, current", "FP8, delayed"):
    gaps[name] = np.mean(train(name)[-20:]) - FLOOR
    print(f"{name:14} gap {gaps[name]:.3f} nats")

# %% [markdown]
# A run of this length shows no cost of eight bits: the gaps differ by less than the 0.01 to 0.02 that another
# seed changes. Both FP8 runs use the usual recipe for Hopper: E4M3 for weights and activations and E5M2,
# which has more range and fewer digits, for gradients.
#
# ## 3 · A scale for each block
#
# In a large model, some channels are thousands of times as large as others, and no single scale suits them
# all. So each **block** of neighbouring numbers gets its own scale:
#
# | recipe | activations and gradients | weights | scale |
# |---|---|---|---|
# | DeepSeek-V3 | 1 × 128 | 128 × 128 | FP32 |
# | MXFP8 | 1 × 32 | 1 × 32 | power of two, 8 bits |
# | NVFP4 | 1 × 16 | 16 × 16 | E4M3, and FP32 for the tensor |
#
# ![Blocks of a matrix: a row of the first has a scale for each four numbers of a token; a square of the second has one for each four by four.](drawings/blocks.svg)
#
# The next cell quantises a tensor in which one of the 256 channels is 10 million times as large as the
# others.

# %%
wild = np.random.default_rng(2).standard_normal((64, 256)).astype(np.float32)
wild[:, 7] *= 1e7
for size in (256, 128, 32, 16):
    cut = wild.reshape(64, -1, size)
    scale = np.abs(cut).max() / 448 if size == 256 else np.abs(cut).max(2, keepdims=True) / 448
    back = (numerics.quantize(cut / scale, "E4M3") * scale).reshape(wild.shape)
    lost = 100 * float((back == 0).mean())
    print(f"{'one scale for all' if size == 256 else f'blocks of 1 × {size}':18} {lost:5.1f} % become zero")

# %% [markdown]
# With smaller blocks, fewer neighbours of the large channel are rounded to zero. Blocks use current scaling,
# because a kernel that holds a whole block can compute its amax at once. And the range of E5M2 is no longer
# needed: DeepSeek-V3 and NVIDIA's recipe for MXFP8 use **E4M3 in both passes**.
#
# In MXFP8 a block's numbers are divided by a scale that is a power of two, so amax / 448 has to be rounded,
# and it must be rounded **up**. The MX standard takes the exponent ⌊log2 amax⌋ − 8 instead. Divided by that
# scale, a block's largest number can be nearly 512, but E4M3 ends at 448 (A. Mishra et al., 2025).
#
# **Do.** Write `tiles(x, rows, columns, powers)`, which quantises a matrix to E4M3 in blocks of `rows` × `columns`.
#
# - Input: `x` is float32, (m, n). Blocks at the lower and right edges may be smaller.
# - Output: a dictionary with `"codes"`, uint8 (m, n), and `"scales"`, one for each block: float32 if `powers` is 0, or
#   uint8 if it is 1. A byte s means 2^(s − 127).
# - A number is read back as decoded code · scale, so here you *divide* by the scale before you encode. A
#   block of zeros must come back as zeros.
# - You may use `numerics.encode(…, "E4M3", saturate=True)`.
# - Counted: the root mean square error, relative to each block's amax, at most 1.1 times that of the best
#   scales; the relative error of a block's largest number, at most 6 %; and the bytes of what you return, one
#   for each number and those of one scale for each block.
# - Length: about 14 lines.


# %% nbgrader={"grade": false, "grade_id": "tiles", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiles(x, rows, columns, powers):
    ### BEGIN SOLUTION
    m, n = x.shape
    down, across = math.ceil(m / rows), math.ceil(n / columns)
    padded = np.zeros((down * rows, across * columns), np.float32)
    padded[:m, :n] = x
    blocks = padded.reshape(down, rows, across, columns)
    scales = np.abs(blocks).max((1, 3)) / np.float32(448)
    scales[scales == 0] = 1
    if powers:
        mantissa, exponent = np.frexp(scales)
        exponent -= mantissa == 0.5
        scales = np.ldexp(np.float32(1), exponent)
    codes = numerics.encode(blocks / scales[:, None, :, None], "E4M3", saturate=True)
    codes = codes.reshape(padded.shape)[:m, :n]
    return {"codes": codes, "scales": (exponent + 127).astype(np.uint8) if powers else scales}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tiles-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("bits.tiles", tiles)

# %%
for name in ("FP8, tiles", "MXFP8"):
    gaps[name] = np.mean(train(name)[-20:]) - FLOOR
    print(f"{name:14} gap {gaps[name]:.3f} nats")

# %% [markdown]
# ## 4 · One tensor, two products
#
# A block must lie along the axis over which a product **sums**, because its scale is applied to a partial sum. But
# each tensor takes part in two products, which sum over different axes:
#
# ![Activations of tokens by width: the forward product sums along a row, over the width; the gradient of the weights sums along a column, over the tokens.](drawings/two_sums.svg)
#
# A tensor with flat blocks therefore has to be stored twice: quantised once along its rows and once along its
# columns, with blocks of 1 × 32 and 32 × 1, for example. These are two different roundings of the same
# numbers. A square block is the same block after a transpose, so one copy serves both products. This is why
# weights have square blocks in two of the three recipes. (On Hopper, tensor cores read FP8 operands along one
# axis only, so a second copy of the codes is kept there anyway. Count as on Blackwell, which reads along
# both.)
#
# **Do.** Write `stored(tokens, width, bits, rows, columns, scale_bytes)`, which returns the bytes that both products
# need of a tensor of `tokens` × `width`.
#
# - An element has `bits` bits. A block of `rows` × `columns` has a scale of `scale_bytes`. A block that is
#   cut off at the edge has a scale, too.
# - The forward product sums over the width and uses the blocks as given. The other product needs them transposed.
# - Blocks with `rows` = `columns` serve both products with one copy.
# - Ignore NVFP4's scale of the tensor.
# - Length: about 4 lines.


# %% nbgrader={"grade": false, "grade_id": "stored", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stored(tokens, width, bits, rows, columns, scale_bytes):
    ### BEGIN SOLUTION
    total = 0
    for r, c in {(rows, columns), (columns, rows)}:
        total += tokens * width * bits // 8 + math.ceil(tokens / r) * math.ceil(width / c) * scale_bytes
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stored-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("bits.stored", stored)

# %%
print(f"{'BF16':22}{2 * 4096 * 4096 / 1e6:6.1f} MB")
for name, block in {
    "FP8, 128 × 128": (8, 128, 128, 4),
    "FP8, 1 × 128": (8, 1, 128, 4),
    "MXFP8, 1 × 32": (8, 1, 32, 1),
    "NVFP4, 1 × 16": (4, 1, 16, 1),
}.items():
    print(f"{name:22}{stored(4096, 4096, *block) / 1e6:6.1f} MB")

# %% [markdown]
# If both copies are kept, MXFP8 takes more memory than BF16, because each copy has a byte for each number and
# the scales in addition. A framework can drop one copy after the forward product and keep only the one for
# the backward pass.
#
# ## 5 · What four bits hold
#
# E2M1 has eight magnitudes: 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
#
# **Predict.** NVFP4 has a scale of 8 bits for every 16 numbers. How many bits does a number take, its share
# of the scale included?

# %%
gpulab.predict("bits.nvfp4_bits", ...)

# %% jupyter={"source_hidden": true}
x = np.linspace(0, 6, 1201)
ax = plot.axes(6.4, 2.8)
ax.plot(x, numerics.quantize(x.astype(np.float32), "E2M1"), color=plot.DEEP, linewidth=1.8)
ax.plot([0, 6], [0, 6], color=plot.INK, linewidth=0.8, linestyle=":")
ax.set(xlabel="number, relative to its block's scale", ylabel="what E2M1 makes of it")
plot.picture(ax, "E2M1 has steps of 0.5 up to 2, of 1 up to 4, and one step of 2 from 4 to 6.")

# %% [markdown]
# With four bits, a step is a large fraction of the number itself: 5, halfway between 4 and 6, is off by 20 %.
# When numbers are rounded to the nearest, equal numbers all make the *same* error. In a weight or an
# activation this is a small disturbance of the model, and training adapts to it. In a gradient it is a
# **bias**: the error has the same sign in every step, so it adds up. The next cell takes a thousand steps of
# 0.3, in a block whose largest number is 1.

# %%
numbers = np.random.default_rng(3)
exact, nearest, chance = 0.0, 0.0, 0.0
for _ in range(1000):
    exact += 0.3
    nearest += float(numerics.quantize(np.float32(0.3 * 6), "E2M1")) / 6
    chance += (2.0 if numbers.random() < (1.8 - 1.5) / 0.5 else 1.5) / 6
print(
    f"sum of the exact steps {exact:.1f}, rounded to the nearest {nearest:.1f}, rounded by chance {chance:.1f}"
)

# %% [markdown]
# ## 6 · Four bits, two levels of scales
#
# **Stochastic rounding** (lab 09) rounds up with a probability equal to the number's relative position
# between its two neighbours: 1.8 is 60 % of the way from 1.5 to 2, so it becomes 2 in 60 % of the cases. A
# single error is larger, but the result is right on average. NVIDIA's recipe rounds gradients this way, and
# weights and activations to the nearest.
#
# ![Two levels of scales: the tensor's scale in float32 brings the largest block scale to 448; a block's scale in E4M3 brings its largest number to 6.](drawings/two_levels.svg)
#
# The scale of a block is stored in E4M3, so it must not leave the range of E4M3. Therefore the whole tensor
# shares a second scale, in FP32:
#
# 1. The tensor's scale is amax / (6 · 448).
# 2. A block's scale is its amax / 6 / the tensor's scale, encoded in E4M3.
# 3. A number is divided by the *decoded* block scale and by the tensor's scale.

# %%
small = np.float32(1e-6) * np.abs(numbers.standard_normal(5)).astype(np.float32)
print("block scales without the tensor's:", numerics.quantize(small / 6, "E4M3"))
print("and with it:                      ", numerics.quantize(small / 6 / (small.max() / 2688), "E4M3"))

# %% [markdown]
# **Do.** Write `four(x, draws)`, which quantises a matrix to NVFP4 with stochastic rounding.
#
# - Input: `x` is float32, (m, n), with n a multiple of 32 and not all numbers 0. `draws` has its shape and
#   holds random numbers, uniform from 0 to 1. Round a magnitude up where its draw is less than its relative
#   position between the two neighbours.
# - Output: a dictionary with `"codes"`, uint8 (m, n / 2), the even column in the low four bits; `"scales"`, uint8
#   (m, n / 16), E4M3 codes of blocks of 1 × 16; `"scale"`, one float32.
# - A code's low three bits number the eight magnitudes of `GRID`, and bit 3 is the sign. A magnitude above 6 becomes 6.
# - You may use `numerics.encode` and `numerics.decode` for the scales.
# - Counted: the error, as in `tiles`, at most 1.1 times that of the reference; the bias, measured where all
#   numbers of a block are alike, at most 1.5 % of their mean; and the bytes.
# - Length: about 12 lines.

# %%
GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


# %% nbgrader={"grade": false, "grade_id": "four", "locked": false, "schema_version": 3, "solution": true, "task": false}
def four(x, draws):
    ### BEGIN SOLUTION
    amax = np.abs(x).reshape(len(x), -1, 16).max(2)
    scale = np.float32(amax.max() / (6 * 448))
    scales = numerics.encode(amax / 6 / scale, "E4M3", saturate=True)
    wide = np.repeat(numerics.decode(scales, "E4M3") * scale, 16, axis=1)
    v = np.minimum(np.abs(x) / np.where(wide > 0, wide, 1), 6)
    low = np.minimum(np.searchsorted(GRID, v, side="right") - 1, 6)
    up = draws < (v - GRID[low]) / (GRID[low + 1] - GRID[low])
    codes = low + up + 8 * (x < 0)
    return {"codes": (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), "scales": scales, "scale": scale}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "four-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("bits.four", four)

# %% [markdown]
# ## 7 · Layers that stay
#
# Some layers suffer more from four bits than others. NVIDIA kept about 15 % of the linear layers in BF16, most of
# them at the end of the network, and reports that training diverged with all of them in FP4.
#
# **Predict.** On some GPU, four-bit products are four times as fast as those in BF16, and 15 % of the work
# stays in BF16. How many times as fast as in BF16 are the linear layers together?

# %%
gpulab.predict("bits.bf16_rest", ...)

# %%
shares = np.linspace(0, 0.5, 51)
ax = plot.axes(6.2, 2.6)
ax.plot(100 * shares, 1 / (shares + (1 - shares) / 4), color=plot.DEEP)
ax.set(xlabel="work that stays in BF16, %", ylabel="speed-up, ×")
plot.picture(ax, "The first 15 % in BF16 take the speed-up from 4 to 2.8: Amdahl's law.")

# %% [markdown]
# ## 8 · A rotation that cancels
#
# One outlier makes the other 15 numbers of its block small relative to the block's scale, and E2M1 has few
# values for small numbers. A rotation spreads the outlier over the block. Take the numbers of 16 tokens in
# one channel as a column, and multiply it by an orthogonal matrix H, one with H Hᵀ = 1. The usual choice is a
# **Hadamard matrix**, all of whose entries are ±1/4. Before the product, each of the 16 tokens gets a random
# sign, so that no pattern in the data can match a pattern of the matrix. Signs and matrix together are the
# **random Hadamard transform**.
#
# The gradient of the weights is dW = dYᵀ X, which sums over tokens. If both operands are rotated along the
# tokens, the rotations cancel: (H dY)ᵀ (H X) = dYᵀ Hᵀ H X = dYᵀ X. Nothing has to be undone. The other two
# products sum over other axes, and NVIDIA's recipe does not rotate them.
#
# ![One outlier in a block of 16 numbers; after the transform all 16 have the same magnitude, a quarter of it.](drawings/rotation.svg)

# %% [markdown]
# **Do.** Write `rotate(x, dy, signs, matrix)` in PyTorch, which rotates both operands and multiplies them.
#
# - Input: `x` (t, a) and `dy` (t, b), with t a multiple of 16; `signs` (16,), ±1; `matrix` (16, 16), orthogonal.
# - Token j of each tile of 16 tokens is multiplied by `signs[j]`; then the tile is multiplied by `matrix`
#   from the left.
# - Output: three tensors, the rotated `x` (t, a), the rotated `dy` (t, b), and dW (b, a), computed from these
#   two. (In training, both would be quantised before dW is computed.)
# - Counted: the FLOPs of matrix products, at most 32 · t · (a + b) + 2 · t · a · b; and at most 12 launches
#   of operations, however large t is.
# - Length: about 5 lines.


# %% nbgrader={"grade": false, "grade_id": "rotate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rotate(x, dy, signs, matrix):
    ### BEGIN SOLUTION
    both = torch.cat((x, dy), 1)
    turned = ((matrix * signs) @ both.view(-1, 16, both.shape[1])).view(both.shape)
    turned_x, turned_dy = turned[:, : x.shape[1]], turned[:, x.shape[1] :]
    return turned_x, turned_dy, turned_dy.T @ turned_x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rotate-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("bits.rotate", rotate)

# %% [markdown]
# **See.** Now everything together. "NVFP4, plain" rounds all operands to the nearest in blocks of 1 × 16. "NVFP4" has
# square blocks for weights, stochastic rounding for gradients, and the rotation.

# %%
for name in ("NVFP4, plain", "NVFP4"):
    gaps[name] = np.mean(train(name)[-20:]) - FLOOR
gaps["NVFP4, feed.down kept"] = np.mean(train("NVFP4", keep=("head", "feed.down"))[-20:]) - FLOOR

# %% jupyter={"source_hidden": true}
ax = plot.axes(6.8, 3.2)
ax.barh(list(gaps), list(gaps.values()), color=[plot.INK] + [plot.DEEP] * 4 + [plot.ALARM] * 3)
for row, gap in enumerate(gaps.values()):
    ax.annotate(f" {gap:.3f}", (gap, row), va="center")
ax.invert_yaxis()
ax.set(xlabel="gap to the floor, nats per character", xlim=(0, 1.2 * max(gaps.values())))
plot.picture(ax, "Gaps of one seed each; seeds alone move a gap by 0.01 to 0.02.")

# %% [markdown]
# Read the bars with care. The run is short, the model is tiny, and bars that differ by less than 0.02 do not differ.
# On this model, unlike on NVIDIA's, the full recipe is not better than the plain one: stochastic rounding adds
# noise, and in 120 steps a bias has little time to add up. The techniques were chosen for runs of trillions of
# tokens. A small experiment that shows no gain does not refute them, and it does not confirm them either.
#
# ## Beyond · How many layers may go
#
# This task is open-ended and ungraded. The **figure of merit** is the share of the weights of the linear layers that
# compute in NVFP4 while the mean gap of three seeds stays within 0.02 nats of FP32's. The naive choice is no layer (0 %),
# the reference is all but `feed.down` (67 %), and the bound is 100 %. Change
# `keep`, and the recipe, too: `gpulab.models.recipes.Recipe` and `Scheme` are its parts.

# %%
# Your runs: np.mean([np.mean(train("NVFP4", keep=…, seed=seed)[-20:]) for seed in (0, 1, 2)]) - FLOOR

# %% [markdown]
# ## Recap
#
# <details><summary>1. What does a delayed scale not know?</summary>
#
# The tensor that it is applied to. If that is larger than all of the history, its largest numbers are cut off, or
# become NaN where nothing cuts them off.
# </details>
#
# <details><summary>2. Why is MXFP8's scale rounded up?</summary>
#
# Rounded down, it leaves the largest numbers of a block up to 14 % above 448, where E4M3 ends.
# </details>
#
# <details><summary>3. Why do weights have square blocks?</summary>
#
# A square block is the same after a transpose, so the forward and the backward product see the same rounded weights.
# </details>
#
# <details><summary>4. Which tensors does NVFP4 training round stochastically?</summary>
#
# The gradients, because a bias in a gradient adds up from step to step.
# </details>
#
# <details><summary>5. Why does training need no inverse of the Hadamard transform?</summary>
#
# Both operands of dW = dYᵀ X are rotated along the axis of the sum, and Hᵀ H = 1.
# </details>

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | scale of a block in E4M3 | amax / 448; as a power of two, rounded up |
# | scales of NVFP4 | tensor: amax / 2,688 in FP32; block: amax / 6 / tensor's, in E4M3 |
# | bits per number | MXFP8 8.25, NVFP4 4.5 |
# | blocks of DeepSeek-V3 | 1 × 128 for activations, 128 × 128 for weights |
# | which tensors are quantised twice? | those with flat blocks |
# | what stays in higher precision? | embedding, head, norms, attention, master weights, some last layers |
#
# ### Claims you will meet, and what is right
#
# - *FP8 training means E4M3 forward and E5M2 backward.* That is the recipe with one scale per tensor. With scales of
#   blocks, E4M3 serves both passes.
# - *A longer amax history is safer.* It remembers large values for longer. But a value that has not occurred
#   yet is in no history.
# - *Four bits halve the memory of training.* Master weights and the optimizer's moments keep their 32 bits
#   (lab 10). Only the operands of the products shrink.
#
# ### References
#
# 1. P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022. https://arxiv.org/abs/2209.05433
# 2. NVIDIA, *Transformer Engine documentation*, on delayed and current scaling.
#    https://docs.nvidia.com/deeplearning/transformer-engine/
# 3. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.3. https://arxiv.org/abs/2412.19437
# 4. Open Compute Project, *OCP Microscaling Formats (MX) Specification*, version 1.0, 2023.
# 5. A. Mishra et al., "Recipes for Pre-training LLMs with MXFP8", 2025. https://arxiv.org/abs/2506.08027
# 6. NVIDIA, "Pretraining Large Language Models with NVFP4", 2025. https://arxiv.org/abs/2509.25149
