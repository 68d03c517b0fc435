# ---
# jupyter:
#   gpulab:
#     lab: "13"
#     hours: 4
#     topics: [C8.11, C8.13, C14.1, C14.2, C14.3, C14.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13 · Quantisation
#
# **3.5 to 5.5 hours.** You need labs 05 (warp reductions) and 09 (number formats); lab 11 helps.
#
# A language model that writes one token at a time reads all of its weights for each token. This reading limits its
# speed (see the roofline of lab 02). With half the bytes the model can be up to twice as fast, and with a quarter of
# them it fits on a smaller GPU. So weights are kept in 8, 4 or 3 bits, and sometimes activations are too. In this lab
# you quantise a real, small model, measure what it loses, and repair what breaks.
#
# By the end of this lab, you can
#
# 1. turn a tensor into integers with a scale and a zero point, and say how many bits that takes;
# 2. choose the limits of activations, before or during the run, and say what each choice costs;
# 3. explain why outliers ruin 8 bits, and move them where they do no harm;
# 4. round weights so that their errors cancel (GPTQ), or so that the errors fall where they count less (AWQ);
# 5. write a kernel that multiplies 4-bit weights, and read a plot of accuracy against bytes.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 7 | 2 to 3.5 | formats, scales, calibration and outliers; weights rounded by GPTQ and AWQ |
# | 2 | 8 to 10, detective, recap | 1.5 to 2.5 | a kernel for four bits, and what a shipped model consists of |

# %%
import copy
import math

import numpy as np

import gpulab
from gpulab import cuda

gpulab.start("13")

# %% [markdown]
# ## 1 · Integers for reals
#
# ![Absmax quantisation: the largest value is mapped to 127, all others to the nearest step. One outlier makes the steps wide for all values.](drawings/rounding.svg)
#
# **Uniform** (or **affine**) quantisation (Jacob et al., 2018) stores a real number x as a whole number, its **code**
# q:
#
# q = clamp(round(x / scale) + zero, 0, 2^bits − 1), and back: x ≈ scale · (q − zero).
#
# `clamp` cuts off what is outside the range of codes. The **zero point** is the code of the number 0. It is a whole
# number, so 0 itself is kept exactly. That matters, because padding and ReLU produce many zeros.
#
# The range of values goes from low = min(0, smallest) to high = max(0, largest). So scale = (high − low) / (2^bits −
# 1), and zero = round(−low / scale). For example, the values −1, −0.5 and 2 in 2 bits have the scale 3/3 = 1 and the
# zero point 1, so −1 gets code 0 and 2 gets code 3.
#
# **Predict.** The values go from −1 to 3, and codes have 8 bits. What is the zero point?

# %%
gpulab.predict("quant.zero_point", ...)

# %% [markdown]
# **Do.** Write `affine(values, bits)`. About 8 lines.
#
# - Input: `values`, a list of one or more Python floats, and `bits`, the bits of a code.
# - Output: `[scale, zero, [codes]]`, where `zero` and the codes are whole numbers.
# - If all values are 0, the scale is 1, and the zero point and all codes are 0.
# - Python's `round` and `np.round` are both right. Full marks need every number right.


# %% nbgrader={"grade": false, "grade_id": "affine", "locked": false, "schema_version": 3, "solution": true, "task": false}
def affine(values, bits):
    ### BEGIN SOLUTION
    low, high = min(0.0, *values), max(0.0, *values)
    last = 2**bits - 1
    scale = (high - low) / last or 1.0
    zero = round(-low / scale)
    return [scale, zero, [min(max(round(x / scale) + zero, 0), last) for x in values]]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "affine-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.affine", affine)

# %% [markdown]
# **See.** What comes back for every x from −1.5 to 3.5, if the range goes from −1 to 3.

# %%
from gpulab import plot

gpulab.need(affine)
curves = {}
line = np.linspace(-1.5, 3.5, 1001)
for bits in (2, 3):
    scale, zero, _ = affine([-1.0, 3.0], bits)
    back = scale * (np.clip(np.round(line / scale) + zero, 0, 2**bits - 1) - zero)
    curves[f"{bits} bits"] = list(zip(line, back, strict=True))
plot.lines(curves, "x", "what is left of x", "Equal steps, flat ends, and a step through 0.")

# %% [markdown]
# **Why.** Inside the range a number is off by at most half a step, scale/2. One bit more halves this error. Outside
# the range the error grows without limit. Everything in this lab is about these two errors: if the range is too wide,
# the steps are coarse, and if it is too narrow, values are cut.
#
# **Products of codes.** Consider a dot product of n terms, and replace both numbers of each term by scale · (q −
# zero). Then the scales can be taken out of the sum:
#
# Σ x w = scale_x · scale_w · (Σ q_x q_w − zero_w Σ q_x − zero_x Σ q_w + n · zero_x · zero_w).
#
# The first sum contains all the multiplications, and they are between whole numbers. Tensor cores do them in INT8 and
# add the products in INT32. The other three terms are corrections. The last two are known before the run, because
# they depend only on the weights and the zero points. The one with Σ q_x is not.

# %%
gpulab.need(affine)
n, draw = 64, np.random.default_rng(1)
(scale_x, zero_x, q_x), (scale_w, zero_w, q_w) = (affine(draw.standard_normal(n).tolist(), 8) for _ in "xw")
q_x, q_w = np.array(q_x), np.array(q_w)
whole = q_x @ q_w - zero_w * q_x.sum() - zero_x * q_w.sum() + n * zero_x * zero_w
restored = (scale_x * (q_x - zero_x)) @ (scale_w * (q_w - zero_w))
print(
    f"with whole numbers: {q_x @ q_w:,}, corrected {whole:,}, times both scales {scale_x * scale_w * whole:.6f}"
)
print(f"with the restored numbers: {restored:.6f}")

# %% [markdown]
# A range around 0, from −m to m, is called **symmetric**. Its codes can go from −127 to 127 with the zero point 0.
# Then nothing is stored for the zero point, and all corrections are gone. Weights and activations in 8 bits are
# usually symmetric.
#
# ## 2 · Which numbers share a scale
#
# A matrix can have a single scale (**per tensor**). It can have one for each row, which means one for each output
# (**per channel**). Or it can have one for each few neighbours in a row (**per group**). We count 16 bits for a scale
# and 16 for a zero point. (We do not round the scales themselves. FP16 would change a weight by at most 0.05 %.)
#
# ![Which numbers share a scale? One for the whole matrix, one for each row, or one for each group of a row. More scales, smaller errors, more bits.](drawings/who_shares.svg)
#
# **Predict.** Codes have 3 bits, and a group has 128 of them. How many bits is that per weight, with scale and zero
# point?

# %%
gpulab.predict("quant.bits", ...)

# %% [markdown]
# **Do.** Write `grouped(weights, bits, group)`, which quantises a matrix in groups and restores it. About 6 lines.
#
# - Input: `weights`, a list of rows of floats, the bits of a code, and the size of a group.
# - The matrix is read row after row, and each `group` neighbours share a scale and a zero point, as in `affine`. With
#   `group` = columns that is per channel, and with `group` = rows · columns it is per tensor. `group` always divides
#   rows · columns.
# - Output: `[bits per weight, [rows of restored weights]]`. The bits include scales and zero points.
# - Full marks need every number right.


# %% nbgrader={"grade": false, "grade_id": "grouped", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grouped(weights, bits, group):
    ### BEGIN SOLUTION
    w = np.array(weights)
    restored = []
    for part in w.reshape(-1, group):
        scale, zero, codes = affine(part.tolist(), bits)
        restored.append(scale * (np.array(codes) - zero))
    return [bits + 32 / group, np.array(restored).reshape(w.shape).tolist()]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "grouped-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.grouped", grouped)

# %% [markdown]
# **The model.** This lab uses a GPT with 106,752 parameters that has learnt to write little stories. The next cell
# trains it if you have not had it before (about half a minute), and keeps it in your cache folder.
#
# There are 11,520 different stories, all equally likely. A model that has learnt everything needs ln 11,520 = 9.35
# **nats** for a story, and no model needs less on average. Whatever a model needs beyond this is **lost**. So we
# measure the loss in nats per story. A loss of 0 is perfect, and a loss of 1 means that the **perplexity** is e times
# the best possible. What the model loses in FP32 is the baseline, and what a format loses beyond the baseline is its
# price.
#
# All models are judged on the same 500 stories. The cell also prints the loss of the same model on three other sets
# of stories. Their spread is the **noise**, so a difference of one or two hundredths of a nat means nothing.

# %%
import torch

from gpulab.models import text
from gpulab.models.pretrained import fresh, story_nats, trained

torch.set_num_threads(1)  # with tensors as small as these, threads would wait for each other
model = trained()
tokens, present = fresh(500)


def layers(model):
    """The linear layers by name, without the output layer, which is the embedding."""
    found = dict(model.named_modules())
    return {name: m for name, m in found.items() if isinstance(m, torch.nn.Linear) and name != "head"}


def lost(model):
    """Nats per story above the least possible."""
    return story_nats(model, tokens, present) - text.STORY_NATS


def ranked(losses):
    """The least first, in hundredths: more digits would be noise."""
    return {name: round(loss, 2) for name, loss in sorted(losses.items(), key=lambda item: item[1])}


@torch.no_grad()
def changed(model, how):
    """A copy of the model whose weights are how(name, rows of weights)."""
    new = copy.deepcopy(model)
    for name, layer in layers(new).items():
        layer.weight.copy_(torch.tensor(how(name, layer.weight.tolist())))
    return new


weights = sum(layer.weight.numel() for layer in layers(model).values())
print(f"{weights:,} weights in {len(layers(model))} matrices; lost {lost(model):.3f} nats per story")
others = [story_nats(model, *fresh(500, seed)) - text.STORY_NATS for seed in (1, 2, 3)]
print("on other stories:", ", ".join(f"{nats:.3f}" for nats in others))

# %%
gpulab.need(grouped)
curves = {"per tensor": [], "per row": [], "per 16": []}
for bits in (2, 3, 4, 8):
    for name, points in curves.items():
        group = {
            "per tensor": lambda w: len(w) * len(w[0]),
            "per row": lambda w: len(w[0]),
            "per 16": lambda w: 16,
        }
        small = changed(model, lambda _, w, group=group[name], bits=bits: grouped(w, bits, group(w))[1])
        points.append((bits, lost(small)))
        print(f"{bits} bits {name:10}: lost {points[-1][1]:7.3f}")
plot.lines(
    curves,
    "bits of a code",
    "lost, nats per story",
    "Eight bits cost nothing, four next to nothing, two a lot.",
    limits={"FP32": lost(model)},
    names_at="start",
    log_y=True,
)

# %% [markdown]
# **Why.** Smaller groups have narrower ranges, so their steps are finer, but they cost bits: 2 bits in groups of 16
# are 2 + 32/16 = 4 bits per weight. At 2 bits the size of the group decides. At 3 bits, rows and groups of 16 are
# equally good within the noise. With 4 bits and more, this model hardly loses anything. So the rest of the lab
# compares at 2 and 3 bits.
#
# ## 3 · Calibration
#
# Weights are known before the run, but activations are not. There are two ways to find their limits:
#
# - **Static** quantisation runs a few texts beforehand (**calibration**), looks at the activations (PyTorch calls
#   this an **observer**), and fixes a limit for each tensor. Everything from −limit to limit gets a code.
# - **Dynamic** quantisation takes the largest magnitude of the current input, per tensor or per token. This costs a
#   pass over the data at each call.
#
# A static limit can be chosen in four ways: the largest magnitude (**min-max**); a **percentile** such as 99.9 %; the
# limit with the smallest mean square error (**MSE**); or the limit whose histogram stays closest to the original
# (**KL** divergence, as in NVIDIA's TensorRT; Migacz 2017).
#
# **Predict.** There are 1,500 normal numbers with standard deviation 1, and symmetric codes of 4 bits. At which limit
# is the mean square error smallest?

# %%
gpulab.predict("quant.limit", ...)

# %% [markdown]
# **Do.** Write `clip(values, bits)`, which returns the limit with the smallest mean square error. About 8 lines.
#
# - Input: `values`, a list of floats, and `bits`. Output: the limit, a positive float.
# - Codes are symmetric: scale = limit / (2^(bits − 1) − 1), and codes go from −(2^(bits − 1) − 1) to 2^(bits − 1) −
#   1.
# - **Budget:** an error of at most 1.03 times the least possible. Full marks need this for values of any
#   distribution, with and without outliers.


# %% nbgrader={"grade": false, "grade_id": "clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip(values, bits):
    ### BEGIN SOLUTION
    x = np.array(values)
    last = 2 ** (bits - 1) - 1

    def error(limit):
        scale = limit / last
        return np.mean((np.clip(np.round(x / scale), -last, last) * scale - x) ** 2)

    limits = np.abs(x).max() * np.arange(1, 1001) / 1000
    return float(min(limits, key=error))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "clip-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.clip", clip)

# %%
gpulab.need(clip)
normal = np.random.default_rng(4).standard_normal(1500)
curves = {}
for bits in (3, 4, 6):
    last = 2 ** (bits - 1) - 1
    curves[f"{bits} bits"] = []
    for limit in np.linspace(0.5, np.abs(normal).max(), 80):
        restored = np.clip(np.round(normal * last / limit), -last, last) * limit / last
        curves[f"{bits} bits"].append((limit, float(np.mean((restored - normal) ** 2))))
print("best limits:", {bits: round(clip(normal.tolist(), bits), 2) for bits in (3, 4, 6)})
gpulab.predict("quant.limit", measured=clip(normal.tolist(), 4))
plot.lines(
    curves,
    "limit, standard deviations",
    "mean square error",
    "The more bits, the further out is the best limit.",
    log_y=True,
)

# %% [markdown]
# **See** it on the model, with activations of 4 bits before every linear layer. (The weights stay as they are.)
# `kl_limit` tries several limits. For each it spreads the histogram up to the limit over the codes, and compares the
# result with the original.


# %%
def collect(model, rows=64):
    """What goes into each linear layer while it reads calibration text: arrays (tokens, channels)."""
    seen, (texts, there) = {}, fresh(rows, seed=77)
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, x, name=name: seen.update({name: x[0][there].double().numpy()})
        )
        for name, layer in layers(model).items()
    ]
    with torch.no_grad():
        model(texts, there)
    for hook in hooks:
        hook.remove()
    return seen


def with_rounded_inputs(model, bits, scale_of):
    """A copy whose linear layers round their inputs; scale_of(name, x) gives the scale."""
    new, last = copy.deepcopy(model), 2 ** (bits - 1) - 1
    for name, layer in layers(new).items():

        def round_it(_, inputs, name=name):
            scale = scale_of(name, inputs[0])
            return (torch.clamp(torch.round(inputs[0] / scale), -last, last) * scale,)

        layer.register_forward_pre_hook(round_it)
    return new


def kl_limit(x, bits, bins=1024):
    counts, edges = np.histogram(np.abs(x), bins)
    levels, best = 2 ** (bits - 1), (math.inf, edges[-1])
    for kept in range(levels, bins + 1, levels):
        p = counts[:kept].astype(float)  # the histogram of what was there
        p[-1] += counts[kept:].sum()  # what is cut ends in the last code
        # q: the same after rounding, each code's count spread evenly over the bins that it stands for
        pieces = counts[:kept].reshape(levels, -1)
        there = pieces > 0
        q = np.where(
            there, pieces.sum(1, keepdims=True) / np.maximum(there.sum(1, keepdims=True), 1), 0
        ).ravel()
        p, q = p / p.sum(), q / max(q.sum(), 1)
        divergence = np.sum(p[p > 0] * np.log(p[p > 0] / np.maximum(q[p > 0], 1e-9)))
        best = min(best, (divergence, edges[kept]))
    return best[1]


def static(limits, bits):
    return lambda name, _: limits[name] / (2 ** (bits - 1) - 1)


def dynamic(bits, **along):
    return lambda _, x: x.abs().amax(**along).clamp(min=1e-9) / (2 ** (bits - 1) - 1)


plain_inputs = collect(model)

# %%
gpulab.need(clip)
ways = {
    "min-max": lambda x, bits: np.abs(x).max(),
    "99.9 %": lambda x, bits: np.percentile(np.abs(x), 99.9),
    "MSE": lambda x, bits: clip(x.ravel()[::51].tolist(), bits),
    "KL": kl_limit,
}
for bits in (8, 4):
    limits = {
        way: {name: float(find(x, bits)) for name, x in plain_inputs.items()} for way, find in ways.items()
    }
    scales = {way: static(found, bits) for way, found in limits.items()}
    scales |= {"dynamic, tensor": dynamic(bits), "dynamic, token": dynamic(bits, dim=-1, keepdim=True)}
    found = {way: lost(with_rounded_inputs(model, bits, scale)) for way, scale in scales.items()}
    print(f"{bits} bits: " + ", ".join(f"{way} {nats:.3f}" for way, nats in found.items()))
plot.bars(
    ranked(found),
    "nats lost per story, activations of 4 bits",
    log=True,
    caption="At 4 bits cutting a few pays, and a scale per token needs no calibration.",
)

# %% jupyter={"source_hidden": true}
from gpulab.plot import style

gpulab.need(clip)
layer = "blocks.0.feed.down"
ax = plot.axes(7, 3.2)
ax.hist(np.abs(plain_inputs[layer]).ravel(), bins=120, color=style.DEEP)
for k, (way, of) in enumerate(sorted(limits.items(), key=lambda item: item[1][layer])):
    ax.axvline(of[layer], color=style.ALARM, linestyle=("-", "--", ":", "-.")[k])
    right = k == 0
    ax.annotate(
        f" {way} ",
        (of[layer], 0.92 - 0.1 * k),
        xycoords=("data", "axes fraction"),
        ha="left" if right else "right",
        color=style.ALARM,
    )
ax.set(yscale="log", xlabel=f"magnitude of what enters {layer}", ylabel="how many")
plot.picture(ax, "Limits for 4 bits: the further left, the finer the steps, and the more is cut.")

# %% [markdown]
# **Why.** Only few values are large. With 4 bits it is cheaper to cut them than to make the steps wide for all. A
# scale per token needs no calibration, and a product of matrices still works, because a token is a row of the input,
# and the scale of a row can be taken out of its dot products.
#
# KL follows the bulk of the values. GELU leaves most of them between −0.17 and 0, and with few codes KL spends all
# codes there. It was made for 8 bits, but here it gains nothing even then.
#
# ## 4 · Training with rounded weights
#
# Rounding *after* training is called **post-training quantisation** (PTQ). Training a little longer with the rounding
# in place is called **quantisation-aware training** (QAT). Its forward pass uses the restored weights. Its backward
# pass has a problem: the derivative of a staircase is 0 almost everywhere. The **straight-through estimator** acts as
# if there were no rounding: the gradient passes unchanged where a value is inside the range, and it is 0 where the
# value was cut (Bengio et al., 2013).
#
# **Do.** Write `fake(values, gradients, scale, zero, bits)`. About 6 lines.
#
# - Input: two lists of floats of equal length, a scale, a zero point and the bits of a code.
# - Output: two lists: the values after the round trip of section 1, and the gradients that pass.
# - A value is cut if round(x / scale) + zero is outside 0 … 2^bits − 1. Its gradient becomes 0.
# - Full marks need every number right.


# %% nbgrader={"grade": false, "grade_id": "fake", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fake(values, gradients, scale, zero, bits):
    ### BEGIN SOLUTION
    last = 2**bits - 1
    codes = [round(x / scale) + zero for x in values]
    restored = [scale * (min(max(code, 0), last) - zero) for code in codes]
    passed = [g if 0 <= code <= last else 0.0 for g, code in zip(gradients, codes, strict=True)]
    return [restored, passed]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fake-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.fake", fake)

# %% [markdown]
# **See.** The model at 2 bits per row, trained further with the same rule in PyTorch. Here the ranges follow the
# weights, so nothing is cut, and every gradient passes.

# %%
from torch.nn.utils import parametrize

from gpulab.models import gpt


class Straight(torch.autograd.Function):
    """Rounds each row to 2 bits on the way forward; gradients pass."""

    @staticmethod
    def forward(ctx, w):
        low, high = w.amin(1, keepdim=True).clamp(max=0), w.amax(1, keepdim=True).clamp(min=0)
        scale = (high - low) / 3
        zero = torch.round(-low / scale)
        return scale * (torch.clamp(torch.round(w / scale) + zero, 0, 3) - zero)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Rounded(torch.nn.Module):
    def forward(self, w):
        return Straight.apply(w)


def train_rounded(start, steps=100, rate=1e-3, rounded=Rounded):
    """QAT: the model afterwards, and (step, lost) on the way."""
    new, stories = copy.deepcopy(start), text.Stories(5)
    for layer in layers(new).values():
        parametrize.register_parametrization(layer, "weight", rounded())
    optimizer, path = torch.optim.AdamW(new.parameters(), lr=rate, weight_decay=0), []
    for step in range(steps + 1):
        if step % 25 == 0:
            path.append((step, lost(new)))
        optimizer.param_groups[0]["lr"] = rate * (1 - step / (steps + 1))
        optimizer.zero_grad()
        gpt.loss(new, *map(torch.from_numpy, stories.padded(16))).backward()
        optimizer.step()
    return new, path


_, path = train_rounded(model)
print(f"2 bits: lost {path[0][1]:.2f} before, {path[-1][1]:.2f} after {path[-1][0]} steps")
plot.lines(
    {"2 bits, trained on": path, "FP32": [(0, lost(model)), (100, lost(model))]},
    "steps",
    "lost, nats per story",
    "A hundred steps bring most of the loss back.",
    log_y=True,
)

# %% [markdown]
# **Why.** The weights move until the *rounded* weights work well. QAT needs the training data and the time to train.
# For a model with a hundred billion weights that is often too much, so the next sections do without training.
#
# ## 5 · Outliers
#
# In large language models a few channels grow activations that are about 20 times (Dettmers et al., 2022) to 100
# times (Xiao et al., 2022) as large as the rest. Our model is too small for this, so we plant two such channels. We
# multiply the norms' weights and biases of two channels by 50, and divide by 50 the weights that read them. The model
# still computes the same function.
#
# **Predict.** Codes are symmetric with 8 bits, and the tensor has one scale. The largest magnitude of one channel is
# 50 times that of the others. How many different codes can each of the other channels use at most?

# %%
gpulab.predict("quant.codes_left", ...)

# %%
from gpulab.models.outliers import plant_outliers, readers_of_norms

gpulab.need(affine, grouped)
planted = plant_outliers(copy.deepcopy(model), channels=(5, 23), factor=50.0)
inputs = collect(planted)


def by_row(bits):
    return lambda _, w: grouped(w, bits, len(w[0]))[1]


def largest(inputs):
    return {name: float(np.abs(x).max()) for name, x in inputs.items()}


eight = changed(planted, by_row(8))
results = {"FP32": lost(planted), "W8": lost(eight)}
for bits in (8, 6):
    results[f"W8A{bits}, static"] = lost(with_rounded_inputs(eight, bits, static(largest(inputs), bits)))
    results[f"W8A{bits}, per token"] = lost(
        with_rounded_inputs(eight, bits, dynamic(bits, dim=-1, keepdim=True))
    )
layer = "blocks.0.attention.query"
of_activations = np.round(127 * inputs[layer] / np.abs(inputs[layer]).max())
of_weights = []
for row in layers(planted)[layer].weight.tolist():
    _, zero, codes = affine(row, 8)
    of_weights.append(np.array(codes) - zero)  # rows have zero points of their own
for what, codes in (("activations", of_activations), ("weights", np.array(of_weights))):
    used = [len(np.unique(column)) for column in codes.T]
    others = [count for channel, count in enumerate(used) if channel not in (5, 23)]
    print(
        f"codes in use, {what:11}: channels 5 and 23: {used[5]}, {used[23]}; others {np.mean(others):.1f} on average"
    )
plot.bars(
    ranked(results),
    "nats lost per story",
    log=True,
    caption="Eight bits for the weights cost nothing, for the activations a lot.",
)

# %% [markdown]
# **W8A8** means weights and activations in 8 bits, so the product itself runs on integers. W8A6 has activations of 6
# bits. Rounding the weights does no harm, but rounding the activations does. Yet the lines above show that the two
# planted columns of the weights use as few codes as the ordinary channels of the activations. The difference is
# their number: in the weights only 2 of the 64 terms of each product are coarse, whereas in the activations the
# other 62 are rounded to almost nothing. A scale per token helps where a token's outliers are small.
#
# **SmoothQuant** (Xiao et al., 2022) moves the large magnitudes to where there is room for them. Divide channel j of
# the activations by a factor s_j, and multiply column j of the weights by the same factor. The product does not
# change. The division is free, because the norm before the layer can do it. With s_j = (largest |x_j|)^½ / (largest
# |w_j|)^½ activations and weights share the burden equally.
#
# **Do.** Write `smooth(activations, weights)`, which returns the factors. About 5 lines.
#
# - Input: `activations`, one row for each token, and `weights`, one row for each output. Columns are channels in
#   both.
# - Output: a list with one positive factor for each channel. A channel may be all 0.
# - With your factors, the check rounds the activations with a single scale and the weights with one per row, both
#   symmetric in 8 bits.
# - **Budget:** with outliers, at most 0.15 times the outputs' error without factors. Full marks need it.


# %% nbgrader={"grade": false, "grade_id": "smooth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smooth(activations, weights):
    ### BEGIN SOLUTION
    x = np.abs(np.array(activations)).max(axis=0)
    w = np.abs(np.array(weights)).max(axis=0)
    factors = np.ones(len(x))
    both = (x > 0) & (w > 0)
    factors[both] = np.sqrt(x[both] / w[both])
    return factors.tolist()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "smooth-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.smooth", smooth)

# %%
gpulab.need(grouped, smooth)


@torch.no_grad()
def smoothed(model, inputs):
    """A copy with your factors in its norms and in the weights that read them."""
    new = copy.deepcopy(model)
    names = {layer: name for name, layer in layers(new).items()}
    for block in new.blocks:
        for norm, readers in readers_of_norms(block):
            rows = torch.cat([reader.weight for reader in readers])
            factors = torch.tensor(smooth(inputs[names[readers[0]]][:500].tolist(), rows.tolist()))
            for parameter in norm.parameters():
                parameter /= factors
            for reader in readers:
                reader.weight *= factors
    return new


soft = smoothed(planted, inputs)
after = collect(soft)
eight = changed(soft, by_row(8))
for bits in (8, 6):
    results[f"W8A{bits}, smoothed"] = lost(with_rounded_inputs(eight, bits, static(largest(after), bits)))
print(f"the same function: lost {lost(soft):.3f}")
print(", ".join(f"{name}: {nats:.3g}" for name, nats in results.items()))
plot.bars(
    ranked(results),
    "nats lost per story",
    log=True,
    caption="Smoothed, even six bits for the activations cost next to nothing.",
)

# %% jupyter={"source_hidden": true}
gpulab.need(grouped, smooth)
layer = "blocks.0.attention.query"
axes = plot.axes(8, 4, 2, 2, sharey="row", sharex=True)
for column, (title, values, owner) in enumerate((("before", inputs, planted), ("after", after, soft))):
    rows = dict(layers(owner))[layer].weight.detach().numpy()
    for ax, data, what in zip(
        axes[:, column], (values[layer], rows), ("activations", "weights"), strict=True
    ):
        ax.bar(range(64), np.abs(data).max(axis=0), color=style.DEEP, width=1.0)
        ax.set(yscale="log")
        if column == 0:
            ax.set_ylabel(f"largest |{what[:-1]}|")
    axes[0, column].set_title(title)
    axes[1, column].set_xlabel("channel")
plot.picture(
    axes[1, 0],
    "Before, two channels stick out of the activations and are tiny in the weights; after, both are level.",
)

# %% [markdown]
# **Why.** The harm is done where *most* channels have only a few codes. After smoothing no channel does. A scale per
# *channel* of the activations would help too, but it cannot be taken out of a dot product over the channels.
# SmoothQuant puts it into the weights beforehand. Lab 09's rotation is another remedy.
#
# ## 6 · GPTQ: errors that cancel
#
# From here on only weights are rounded. When a model writes for one user, most of the time goes into reading them.
# Rounding to nearest makes the error of each *weight* small. But what counts is the error of the *outputs*. If E is
# the matrix of errors, with rows as in the weights, and X are the inputs, the squared error is
#
# ‖X Eᵀ‖² = trace(E H Eᵀ), with H = XᵀX.
#
# Up to a factor of 2, H is the **Hessian** of this error. An example: two inputs are always equal, their weights are
# 0.4 and 0.4, and codes are whole numbers. Rounded to nearest, both weights become 0, and the sum of 0.8 is lost.
# Instead, add the first error to the second weight: 0.4 + 0.4 = 0.8 becomes 1, and the sum is off by only 0.2.
#
# **GPTQ** (Frantar et al., 2022) does this column after column. After rounding column j it takes the error of each
# row, e = before − after, and *subtracts* e · U[j, j+1:] / U[j, j] from the remaining columns. U is upper triangular,
# and UᵀU = H⁻¹.
#
# <details><summary>Why U, and why subtract?</summary>
#
# With weight j held at its code, trace(E H Eᵀ) is least when the others change by −e · A[j, later] / A[j, j], where
# A is the inverse of H without the columns that are done. For every j, row j of U is row j of that A up to a factor,
# so one factorisation is enough for all columns (reference 5). The sign follows from this: for inputs that rise and
# fall together U[j, later] is *negative*, so subtracting adds. </details>
#
# Run the example, and see how closely a layer's inputs are related.

# %%
together = np.array([[1.01, 1.0], [1.0, 1.01]])  # H of the example, with 1 % added to the diagonal
upper = np.linalg.cholesky(np.linalg.inv(together)).T
print(f"U[0, 1] / U[0, 0] = {upper[0, 1] / upper[0, 0]:.2f}")
x = plain_inputs["blocks.1.attention.value"]  # without outliers, which would be most of it
parts = np.linalg.eigvalsh(x.T @ x)[::-1]
most = int(np.searchsorted(np.cumsum(parts) / parts.sum(), 0.9)) + 1
print(
    f"{most} directions of {len(parts)} hold 90 % of what enters 1.attention.value, the layer `value` of block 1"
)
plot.lines(
    {"1.attention.value": list(enumerate(100 * np.cumsum(parts) / parts.sum(), 1))},
    "directions, the strongest first",
    "share of what enters the layer (%)",
    "A few directions of a layer's inputs hold most of them, so the inputs go together.",
    limits={"90 %": 90},
)

# %% [markdown]
# **Predict.** That layer is rounded to 3 bits. How large is the error of its outputs with GPTQ, as a fraction of the
# error of rounding to nearest?

# %%
gpulab.predict("quant.gptq_error", ...)

# %% [markdown]
# **Do.** Write `gptq(weights, hessian, scales, zeros, bits)`, which returns the codes. About 12 lines.
#
# - Input: `weights`, a list of rows; `hessian`, the matrix H as a list of rows; and for row i the scale `scales[i]`
#   and the zero point `zeros[i]`, as section 1 makes them.
# - Output: the codes, a list of rows of whole numbers from 0 to 2^bits − 1.
# - Some channels may always be 0, and then H has no inverse. So first add 1 % of the mean of H's diagonal to its
#   diagonal.
# - `np.linalg.cholesky(A)` is the *lower* triangular L with L Lᵀ = A.
# - **Budget:** at most half the error of rounding to nearest, for rows of 128 at 3 bits (3.25 bits per weight with
#   scale and zero point). Full marks need it.


# %% nbgrader={"grade": false, "grade_id": "gptq", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gptq(weights, hessian, scales, zeros, bits):
    ### BEGIN SOLUTION
    w, h = np.array(weights), np.array(hessian)
    scale, zero = np.array(scales), np.array(zeros)
    h = h + 0.01 * np.mean(np.diag(h)) * np.eye(len(h))
    upper = np.linalg.cholesky(np.linalg.inv(h)).T
    codes = np.zeros(w.shape, int)
    for j in range(w.shape[1]):
        codes[:, j] = np.clip(np.round(w[:, j] / scale) + zero, 0, 2**bits - 1)
        error = (w[:, j] - scale * (codes[:, j] - zero)) / upper[j, j]
        w[:, j + 1 :] -= np.outer(error, upper[j, j + 1 :])
    return codes.tolist()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gptq-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.gptq", gptq)

# %% [markdown]
# **See.** The error that GPTQ leaves in each layer of the model with outliers, and what the model loses.

# %%
gpulab.need(affine, grouped, gptq)
hessians = {name: x.T @ x for name, x in inputs.items()}


def output_error(name, before, after):
    off = np.array(after) - np.array(before)
    return float(np.sum((off @ hessians[name]) * off))


def by_gptq(bits, shares=None):
    def how(name, w):
        scales, zeros, _ = zip(*(affine(row, bits) for row in w), strict=True)
        codes = gptq(w, hessians[name].tolist(), scales, zeros, bits)
        after = np.array(scales)[:, None] * (np.array(codes) - np.array(zeros)[:, None])
        if shares is not None:
            shares[name.removeprefix("blocks.")] = output_error(name, w, after) / output_error(
                name, w, by_row(bits)(name, w)
            )
        return after.tolist()

    return how


shares, losses = {}, {}
for bits in (2, 3):
    losses[f"{bits} bits, nearest"] = lost(changed(planted, by_row(bits)))
    losses[f"{bits} bits, GPTQ"] = lost(changed(planted, by_gptq(bits, shares)))
gpulab.predict("quant.gptq_error", measured=shares["1.attention.value"])
for name, value in losses.items():
    print(f"{name:16}: lost {value:.3f}")
plot.bars(
    ranked(shares),
    "times the output error of rounding to nearest, 3 bits",
    caption="GPTQ leaves less than half of the error in every layer.",
)

# %% [markdown]
# **Why.** The inputs of a layer are far from independent, and a few directions hold most of them. GPTQ uses this. It
# needs only the inputs for some calibration text, but no gradients and no training.
#
# ## 7 · AWQ: a finer grid where it counts
#
# **AWQ** (activation-aware weight quantisation, Lin et al., 2023) takes a different approach. The error of a weight
# is multiplied by its activation, so the weights of channels with large activations count most. Multiply column j of
# the weights by s_j, round, and divide by s_j again. A column that was made larger is rounded more finely relative
# to its size, as long as the rows' ranges do not grow much. The factors are s_j = (mean |x_j|)^α, and α is found by
# trying. In the model the norm before a layer does the division. A layer without one (`attention.out`, `feed.down`)
# keeps the factors and divides its inputs.
#
# **Do.** Write `awq(weights, activations, bits)`, which returns the factors. About 12 lines; your `grouped` helps.
#
# - Input: `weights`, a list of rows, one for each output; `activations`, a list of rows, one for each token; and
#   `bits`.
# - Output: a list with one positive factor for each channel. A channel may be all 0.
# - Weights are rounded per row, with scale and zero point as in section 1.
# - **Budget:** with outliers, at most half of the mean square error that the outputs have without factors. Full marks
#   need it.


# %% nbgrader={"grade": false, "grade_id": "awq", "locked": false, "schema_version": 3, "solution": true, "task": false}
def awq(weights, activations, bits):
    ### BEGIN SOLUTION
    w, x = np.array(weights), np.array(activations)
    size = np.maximum(np.abs(x).mean(axis=0), 1e-6)

    def error(alpha):
        factors = size**alpha
        rounded = np.array(grouped((w * factors).tolist(), bits, w.shape[1])[1])
        return np.mean((x @ (rounded / factors - w).T) ** 2)

    return (size ** min(np.arange(0, 1.01, 0.1), key=error)).tolist()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "awq-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.awq", awq)

# %%
gpulab.need(grouped, awq)


def by_awq(bits):
    def how(name, w):
        factors = np.array(awq(w, inputs[name][:400].tolist(), bits))
        return (np.array(by_row(bits)(name, (np.array(w) * factors).tolist())) / factors).tolist()

    return how


for bits in (2, 3):
    losses[f"{bits} bits, AWQ"] = lost(changed(planted, by_awq(bits)))
plot.bars(
    ranked({"FP32": lost(planted), **losses}),
    "nats lost per story",
    log=True,
    caption="At 3 bits both ways help as much; at 2 bits GPTQ stands alone.",
)

# %% [markdown]
# **Why.** In the planted model two columns of the weights were divided by 50. As section 5 showed, 8 bits left them a
# few codes. With 3 bits and fewer they have only one, so what these channels say is lost. AWQ gives them more. If
# activations are even, all factors are about equal, and AWQ changes nothing. At 2 bits it is not enough: with four
# codes *every* column is coarse, and AWQ can only choose which are less so. GPTQ makes the errors cancel.

# %% [markdown]
# ## End of sitting 1
#
# You can turn a model's tensors into integers, and you know six ways to lose less while doing so: finer groups,
# better limits, training, smoothing, errors that cancel, and a finer grid where it counts. So far the integers were
# only simulated in floating point. In the second sitting a kernel computes with four-bit weights, and you decide
# how many bits each layer gets.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("13")

# %% [markdown]
# ## 8 · Four bits in a kernel
#
# Fewer bits gain nothing without a kernel that reads the codes. Restoring the weights to FP16 in memory first moves
# *more* bytes than before. So a kernel must unpack the codes in registers.
#
# The weights are packed as follows. A `uint32` word holds 8 codes, with code 0 in the lowest 4 bits. A weight is
# scale · (code − 8), and 64 neighbouring columns share a scale. The order is chosen for the kernel. A row is cut into
# **chunks** of 256 columns, and each chunk has 32 words, one for each lane. Code j of lane l is column 32 j + l of
# the chunk. So code 0 of word 1 is column 1, and code 1 of word 0 is column 32.
#
# **Predict.** Scales are FP32. How many times fewer bytes than in FP16 do these weights take?

# %%
gpulab.predict("quant.kernel_bytes", ...)

# %% [markdown]
# **Do.** Write the kernel `multiply(packed, scales, x, out)`, which computes out = W x. About 20 lines.
#
# - Input: `packed`, uint32 of shape (rows, columns / 8); `scales`, float32 of shape (rows, columns / 64); `x`,
#   float32, one number for each column. The columns are a multiple of 256, at most 2,048.
# - Output: `out`, float32, one number for each row.
# - Launch: a block of 256 threads, so 8 warps, for every 32 rows.
# - `cuda.shfl_sync(mask, value, lane)` passes one lane's value to all, and all 32 lanes must call it.
# - Shift words by `np.uint32(…)`, and convert a code to `np.int32` before you subtract 8, because unsigned numbers
#   wrap around below 0.
# - **Budget:** 24 sectors loaded per row of 1,024 columns. The codes are 16 and the scales 2. The block reads x once
#   for its 32 rows, which is 128 / 32 = 4 per row. Full marks need it.


# %% nbgrader={"grade": false, "grade_id": "multiply", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def multiply(packed, scales, x, out):
    ### BEGIN SOLUTION
    shared = cuda.shared.array(2048, np.float32)
    columns = x.size
    for i in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        shared[i] = x[i]
    cuda.syncthreads()
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    for k in range(4):
        row = 32 * cuda.blockIdx.x + 4 * warp + k
        if row < out.size:
            mine = np.float32(0)
            if lane < columns // 64:
                mine = scales[row, lane]
            total = np.float32(0)
            for chunk in range(columns // 256):
                word = packed[row, 32 * chunk + lane]
                for pair in range(4):
                    part = np.float32(0)
                    for place in (2 * pair, 2 * pair + 1):
                        code = np.int32((word >> np.uint32(4 * place)) & np.uint32(15)) - np.int32(8)
                        part += np.float32(code) * shared[256 * chunk + 32 * place + lane]
                    total += part * cuda.shfl_sync(0xFFFFFFFF, mine, 4 * chunk + pair)
            for apart in (16, 8, 4, 2, 1):
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, apart)
            if lane == 0:
                out[row] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "multiply-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.multiply", multiply)

# %% [markdown]
# **See.** How many sectors each of your lines loads per row, beside what the weights alone would take in FP16:

# %%
gpulab.need(multiply)
matrix = cuda.to_device(np.random.default_rng(9).integers(0, 1 << 32, (64, 128), dtype=np.uint32))
operands = (matrix, cuda.to_device(np.ones((64, 16), np.float32)), cuda.to_device(np.ones(1024, np.float32)))
counted = gpulab.profile(multiply[2, 256], *operands, cuda.to_device(np.zeros(64, np.float32)))
loads = {
    f"{line.line}: {line.text.strip()[:40]}": line.metrics["global_load_sectors"] / 64
    for line in counted.lines
    if line.metrics["global_load_sectors"]
}
together = counted["global_load_sectors"] / 64
plot.bars(
    {**loads, "all of your kernel": together, "the weights in FP16": 1024 * 2 / 32},
    "sectors loaded per row of 1,024",
    caption=f"Your kernel loads {together:.0f} sectors a row, x and scales included; FP16 weights alone are 64.",
)

# %% [markdown]
# **Why.** For one user the product of a matrix and a vector is limited by memory, because each weight is used once.
# With 4.5 bits instead of 16 there are 16 / 4.5 = 3.6 times fewer bytes, not counting x. The authors of GPTQ measured
# a gain of about 3.25 × for a whole model on A100s, with 3-bit weights, which are five times fewer bytes (reference
# 5, practical speedups). With many users at once the arithmetic becomes the limit, and unpacking is extra work.
#
# ## 9 · Four bits without equal steps
#
# Sixteen codes need not be evenly spaced. **NF4** (Dettmers et al., 2023) uses quantiles of the normal distribution,
# because weights are about normally distributed: its codes are close together where there are many weights. **MXFP4**
# has the numbers of E2M1, and a power of two as the scale of 32 numbers (lab 09). The next cell makes the values of
# NF4 by the recipe of its authors.

# %%
from statistics import NormalDist

from gpulab import numerics

quantile, offset = NormalDist().inv_cdf, 0.9677083
upper = [quantile(p) for p in np.linspace(offset, 0.5, 9)[:-1]]
lower = [-quantile(p) for p in np.linspace(offset, 0.5, 8)[:-1]]
nf4 = np.sort([*upper, 0.0, *lower]) / max(upper)
plot.number_line(
    {"INT4": np.linspace(-1, 1, 16), "NF4": nf4, "E2M1 / 6": numerics.representable("E2M1") / 6},
    within=(-1, 1),
    caption="INT4's steps are equal; NF4 and E2M1 have theirs close together around 0, where weights are many.",
)


# %%
def by_nf4(_, w, block=64):
    parts = np.array(w).reshape(-1, block)
    scale = np.abs(parts).max(axis=1, keepdims=True)
    nearest = np.abs(parts[..., None] / scale[..., None] - nf4).argmin(axis=-1)
    return (nf4[nearest] * scale).reshape(np.shape(w)).tolist()


def by_block_format(format):
    return lambda _, w: (
        numerics.encode_blocks(np.array(w, np.float32).ravel(), format).decode().reshape(np.shape(w)).tolist()
    )


# %% [markdown]
# **Accuracy against bytes.** The next figure shows all methods on the model with outliers. The bytes include all
# scales, and the runs of sections 6 and 7 are taken from there. A run is crossed out if another one is better in
# both, because it is not on the **Pareto front**. Remember the noise of section 2: if two runs differ by less than
# 0.02, it is chance which of them is crossed out.

# %%
gpulab.need(affine, grouped, smooth, gptq, awq)
rows = [len(layer.weight) for layer in layers(planted).values()]
per_row = 32 * sum(rows) / weights  # bits per weight that scales and zero points take
factors = 16 * sum(
    layer.in_features for name, layer in layers(planted).items() if name.endswith(("out", "down"))
)  # bits of AWQ's factors where no norm can hold them
print(f"scales and zero points by row: {per_row:.3f} bits per weight; AWQ's factors: {factors / weights:.3f}")

runs = {
    "FP16": (16, lambda _, w: torch.tensor(w).half().tolist()),
    "8 by row": (8 + per_row, by_row(8)),
    "4 by row": (4 + per_row, by_row(4)),
    "3 by 16": (5, lambda _, w: grouped(w, 3, 16)[1]),
    "2 by 16": (4, lambda _, w: grouped(w, 2, 16)[1]),
    "NF4": (4 + 16 / 64, by_nf4),  # one FP16 scale for 64
    "MXFP4": (4.25, by_block_format("MXFP4")),
    "NVFP4": (4.5, by_block_format("NVFP4")),
}
points = {
    name: (bits * weights / 8 / 1000, lost(changed(planted, how))) for name, (bits, how) in runs.items()
}
for name, nats in losses.items():  # of sections 6 and 7
    bits, way = name.split(" bits, ")
    extra = factors / weights if way == "AWQ" else 0
    points[f"{bits} {way}"] = ((int(bits) + per_row + extra) * weights / 8 / 1000, nats)
trained_on, _ = train_rounded(soft)
points["2 QAT"] = ((2 + per_row) * weights / 8 / 1000, lost(trained_on))
for name, (kilobytes, nats) in points.items():
    print(f"{name:9} {kilobytes:6.1f} kB   lost {nats:.3f}")
plot.pareto(
    points,
    "weights of the linear layers (kB)",
    "lost, nats per story",
    "Below four bits the way of rounding decides, not the number of bits alone.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# QAT started from the smoothed model, and it had training data, which the others did without.
#
# **Why.** Each step to fewer bits needs more knowledge: 8 bits need none, 4 bits need fine scales, 3 bits need
# activations, and 2 bits need training. Knowledge can be worth more than bits: GPTQ at 2 bits loses less than
# rounding to nearest at 3.
#
# ## 10 · What is shipped
#
# ![What a packed file holds for a group of 32 weights of four bits: 16 bytes of weights, two in each byte, and a scale of two bytes. Together 4.5 bits for each weight.](drawings/packed_file.svg)
#
# The next cell prints how many bytes the weights of published models take. Where codes are integers, it counts 32
# bits of scale and zero point for each group of 128:

# %%
from gpulab.models import known

print("model            " + "".join(f"{name:>10}" for name in ("FP16", "INT8", "INT4", "INT3", "INT2")))
for name in ("Llama 2 7B", "Llama 2 70B", "Llama 3 405B"):
    sizes = [known.find(name).stated * bits / 8e9 for bits in (16, 8.25, 4.25, 3.25, 2.25)]
    print(f"{name:17}" + "".join(f"{size:7.1f} GB" for size in sizes))

# %% [markdown]
# **Two released models.** *DeepSeek-V3.1* was trained in FP8, with E4M3 weights and activations and E8M0 scales for
# blocks. Nothing was rounded afterwards (model card, 2025). *gpt-oss-120b* was trained for MXFP4 weights in its
# experts and BF16 in the rest, so its 117 billion parameters fit on a GPU with 80 GB. Its makers evaluated it in
# MXFP4 only, so nobody can say what the four bits cost (model card, 2025). Both are QAT in spirit. A GPU whose tensor
# cores lack FP4 restores the codes in the kernel, as in section 8, and multiplies in 16 bits.
#
# **Names on model hubs**, in this lab's words:
#
# | name | what it is |
# |---|---|
# | GPTQ, AWQ | sections 6 and 7, usually 4 bits in groups of 128 |
# | bitsandbytes, 8 bits | a scale per row and per token; channels with outliers stay in 16 bits (reference 3) |
# | bitsandbytes, 4 bits | NF4 in groups of 64, whose scales may be rounded as well: double quantisation (reference 7) |
# | GGUF, Q4_K | 4 bits in groups of 32 with a scale and a minimum, which have 6 bits each: 4.5 bits per weight (reference 10) |
# | W8A8, W4A16 | the bits of weights and the bits of activations |
#
# ### Below four bits
#
# There is no standard of block formats below four bits: MX v1.0 has MXFP8, MXFP6, MXFP4 and MXINT8. Models have
# been trained with **ternary** weights, though: each is −1, 0 or 1, times one scale for the matrix (BitNet b1.58, Ma et
# al., 2024). Their scale is the mean magnitude of the weights, and codes are round(w / scale), cut to −1 … 1.
#
# ![Weights of −1, 0 and 1: a product becomes an addition, a subtraction or nothing. Three values are log₂ 3 = 1.58 bits of information.](drawings/ternary.svg)
#
# **Predict.** A byte has 256 values, and 3⁵ = 243. So five ternary weights fit into one byte, read as a number in base
# 3. How many bits is that per weight?

# %%
gpulab.predict("quant.trits", ...)


# %%
def packed_trits(codes):
    """Five codes of −1, 0 and 1 in each byte, the first one as the lowest digit in base 3."""
    digits = np.asarray(codes).reshape(-1, 5) + 1
    return (digits * 3 ** np.arange(5)).sum(axis=1).astype(np.uint8)


def unpacked_trits(packed):
    return (packed[:, None] // 3 ** np.arange(5) % 3).ravel().astype(int) - 1


codes = np.random.default_rng(2).integers(-1, 2, 20_000)
small = packed_trits(codes)
print(
    f"{codes.size:,} weights in {small.size:,} bytes; back again:",
    np.array_equal(unpacked_trits(small), codes),
)
gpulab.predict("quant.trits", measured=8 * small.size / codes.size)

# %% [markdown]
# The next cell rounds this lab's model to ternary weights, first after training, and then with 100 more steps of
# training, as in section 4.


# %%
class StraightTernary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        scale = w.abs().mean()
        return scale * torch.clamp(torch.round(w / scale), -1, 1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Ternary(torch.nn.Module):
    def forward(self, w):
        return StraightTernary.apply(w)


_, path = train_rounded(model, rounded=Ternary)
print(
    f"ternary weights: lost {path[0][1]:.1f} nats after rounding, {path[-1][1]:.2f} after {path[-1][0]} steps"
)
plot.lines(
    {"ternary, trained on": path, "FP32": [(0, lost(model)), (100, lost(model))]},
    "steps",
    "lost, nats per story",
    "Rounded to three values the model knows nothing; training brings it back most of the way.",
    log_y=True,
)

# %% [markdown]
# **Why.** With one scale and three values nearly every weight moves far, so the model must learn again. That is why
# ternary models are trained as such from the start. No tensor core multiplies 2- or 3-bit numbers, so what fewer bits
# save is memory and bandwidth.
#
# ### Precision that adapts
#
# Layers differ. Rounding one layer may ruin a model, whereas rounding another has no visible effect. With **adaptive
# precision** every layer gets its own bits: files for llama.cpp give some layers 2 bits and others 6. Somebody must
# choose them, and that is a search: among all choices within a budget of bits, which one has the least total error?
#
# **Do.** Write `allocate(sizes, errors, budget)`. About 10 lines.
#
# - Input: `sizes[l]` is the number of weights in layer l, a multiple of 1,024. `errors[l]` is a list of four numbers:
#   the error that layer l adds with 2, 3, 4 and 8 bits. `budget` is the number of bits for all weights together. It
#   always allows 2 bits for each.
# - Output: a list with 2, 3, 4 or 8 for each layer. The sum of sizes · bits must not be above the budget.
# - **Budget:** a sum of errors at most 1.02 times the least possible, with 4, 12 and 32 layers. Full marks need all
#   three. Trying all choices takes too long for 32 layers.


# %% nbgrader={"grade": false, "grade_id": "allocate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def allocate(sizes, errors, budget):
    ### BEGIN SOLUTION
    best = {0: (0.0, [])}  # the least error for each number of bits that the layers so far may take
    for size, row in zip(sizes, errors, strict=True):
        new = {}
        for spent, (error, chosen) in best.items():
            for bits, more in zip((2, 3, 4, 8), row, strict=True):
                at = spent + size * bits
                if at <= budget and (at not in new or error + more < new[at][0]):
                    new[at] = (error + more, [*chosen, bits])
        best = new
    return min(best.values())[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "allocate-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.allocate", allocate)

# %% [markdown]
# **See.** Your choice for this model. The next cell rounds one matrix at a time, and takes what the model loses on 100
# stories as that matrix's error. Then it rounds all matrices as you choose, and measures on the 500 stories.

# %%
gpulab.need(grouped, allocate)
few = fresh(100)
shapes = {name: layer.weight.numel() for name, layer in layers(model).items()}


def only(matrix, bits):
    """The model with this one matrix rounded, by row."""
    return changed(model, lambda name, w: grouped(w, bits, len(w[0]))[1] if name == matrix else w)


best_nats = story_nats(model, *few)
errors = [
    [max(0.0, story_nats(only(name, bits), *few) - best_nats) for bits in (2, 3, 4, 8)] for name in shapes
]
adapted, hoped = [], []
for average in (2, 2.25, 2.5, 3):
    chosen = dict(zip(shapes, allocate(list(shapes.values()), errors, int(average * weights)), strict=True))
    taken = sum(chosen[name] * size for name, size in shapes.items()) / weights
    adapted.append(
        (taken, lost(changed(model, lambda name, w, of=chosen: grouped(w, of[name], len(w[0]))[1])))
    )
    sums = [row[(2, 3, 4, 8).index(bits)] for row, bits in zip(errors, chosen.values(), strict=True)]
    hoped.append((taken, lost(model) + sum(sums)))
    print(
        f"{taken:.2f} bits: {list(chosen.values())}   lost {adapted[-1][1]:.2f}, hoped for {hoped[-1][1]:.2f}"
    )
alike = [
    (bits, lost(changed(model, lambda _, w, bits=bits: grouped(w, bits, len(w[0]))[1]))) for bits in (2, 3)
]
plot.lines(
    {"bits by layer": adapted, "the sum of errors": hoped, "the same for all": alike},
    "bits per weight on average",
    "lost, nats per story",
    "Half a bit more, in the right layers, removes most of the loss; the sum of errors promises too much.",
    log_y=True,
)

# %% [markdown]
# **Why.** The first extra bits buy most. But the errors were measured one at a time, with all other layers intact, and
# together they are worse than their sum. So the search finds good places, and only a measurement of the whole model
# says what they cost.
#
# What follows for the field? Fewer bits need more knowledge of the model, so the work moves from the format to training
# and search.
#
# **In PyTorch** use torchao, because `torch.ao.quantization` is deprecated. Its dynamic INT8 replaces `Linear`
# modules only. It leaves the input projections of `MultiheadAttention` in float32 without a warning.
#
# ## Detective · The bytes that were not there
#
# A colleague packs the weights into 4 bits: "FP32 to INT4 should be 8 times smaller. Ours is better!"


# %%
class Packed(torch.nn.Module):
    """A linear layer with two 4-bit codes to a byte, one scale and one zero point for 64 of them."""

    def __init__(self, layer):
        super().__init__()
        outputs, inputs = layer.weight.shape
        self.register_buffer("codes", torch.zeros(outputs, inputs // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.ones(outputs, inputs // 64, dtype=torch.float16))
        self.register_buffer("zeros", torch.zeros(outputs, inputs // 64, dtype=torch.uint8))
        self.bias = layer.bias


def report(model):
    return sum(p.numel() * p.element_size() for p in model.parameters()) / 1000


packed = copy.deepcopy(model)
for block in packed.blocks:
    for part in (block.attention, block.feed):
        for name, layer in list(part.named_children()):
            setattr(part, name, Packed(layer))
print(
    f"FP32 {report(model):.1f} kB, INT4 {report(packed):.1f} kB: {report(model) / report(packed):.1f} times smaller"
)

# %% [markdown]
# **Do.** Find out what a file of this model must contain, and what the report counts. Use the next cell for this.
# `packed.state_dict()` is a good place to start. Then write `size(entries)`, which returns the bytes of a model's
# state. About 6 lines.
#
# - Input: a list of entries `[name, shape, dtype, storage]`. `shape` is a list of whole numbers. An empty shape is
#   one element.
# - Entries with the same storage number show the same memory, which counts once.
# - float32, float16, bfloat16, int32, int8, uint8 and bool take 4, 2, 2, 4, 1, 1 and 1 bytes.
# - Output: the number of bytes, 0 for no entries. Full marks need it right for every state.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "size", "locked": false, "schema_version": 3, "solution": true, "task": false}
def size(entries):
    ### BEGIN SOLUTION
    widths = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}
    storages = {storage: math.prod(shape) * widths[dtype] for _, shape, dtype, storage in entries}
    return sum(storages.values())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "size-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("quant.size", size)

# %%
import io

gpulab.need(size)


def entries(model):
    return [
        [name, list(t.shape), str(t.dtype).removeprefix("torch."), t.untyped_storage().data_ptr()]
        for name, t in model.state_dict().items()
    ]


for name, each in (("FP32", model), ("INT4", packed)):
    file = io.BytesIO()
    torch.save(each.state_dict(), file)
    print(f"{name}: {size(entries(each)) / 1000:.1f} kB by your count, {file.tell() / 1000:.1f} kB in a file")
print(f"{size(entries(model)) / size(entries(packed)):.1f} times smaller")

# %% [markdown]
# The file also has headers and names, so it is larger than your count. And why is it not 8 times smaller? Embedding,
# norms and biases stay in FP32 (the 33.8 kB that the colleague counted), and the scales and zero points come in
# addition to the codes.
#
# ### Your answer
#
# In three to five sentences: why did 8 bits for the activations cost the model with outliers so much, although 8 bits
# for its weights cost nothing? And why does SmoothQuant still work at 6 bits, where a scale per token does not? Cite
# two numbers that you measured. A person reads this: 1 point for the cause, 1 point for the numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "outlier-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** One scale must hold all channels of a tensor, and two of them are 50 times as large, so the 62 others
# had at most 7 of the 255 codes left. In the weights the same two columns have as few codes, but they are small, so
# they do not widen the range of any row, and the 62 others keep theirs. Static W8A8 lost 1.3 nats per story, and
# weights in 8 bits lost 0.09, as FP32 did. A scale per token must still hold the outliers of its token: at 6 bits it
# loses 32 nats. SmoothQuant divides the channels themselves, so all have fine steps, and it loses 0.10.
#
# **1 point** (cause without numbers): The outliers make the scale so large that the other channels, which are nearly
# all, are rounded away. In the weights, only two channels are.
#
# **0 points:** Activations need more bits than weights. Or: the outliers overflow 8 bits. Or: the spread is wider
# than 8 bits hold (so it is in the weights, too).

# %% [markdown]
# ## Beyond · Two bits and a half
#
# Open-ended and ungraded. Round the model with outliers to at most 2.5 bits per weight, everything counted, without
# training. The figure of merit is the number of nats that it loses per story.
#
# | method | lost |
# |---|---|
# | 2 bits by row (2.375 with scales and zero points), to nearest | printed in section 6 |
# | GPTQ at 2 bits by row | printed in section 6 |
# | yours: GPTQ and AWQ together? better limits for rows? more bits for some layers? | |
# | bound | what FP32 loses, in section 5 |

# %%
# Your way: def mine(name, w): …, then lost(changed(planted, mine))

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which codes and which scale do −1, 0 and 3 have in 2 bits?</summary>
#
# The scale is 4/3, and the zero point is round(0.75) = 1. The codes are 0, 1 and 3, which mean −1.33, 0 and 2.67.
# </details>
#
# <details><summary>2. When is the largest magnitude a bad limit, and when is it a good one?</summary>
#
# It is bad with few bits or many small values, because cutting a few values is cheaper than wide steps for all. It is
# good with many bits, and when the few large values carry most of the energy.
# </details>
#
# <details><summary>3. Dynamic per token or static per tensor: what does each cost?</summary>
#
# Dynamic reads the input once more at each call, and needs no calibration. Static costs nothing in the run, but it is
# wrong when the data change.
# </details>
#
# <details><summary>4. What do GPTQ and AWQ need that rounding to nearest does not?</summary>
#
# They need the inputs of each layer from calibration text: GPTQ needs their products H = XᵀX, and AWQ needs their
# mean magnitudes.
# </details>
#
# <details><summary>5. A 4-bit model runs no faster than its FP16 version. What may be wrong?</summary>
#
# Perhaps the weights are restored to FP16 in memory before the product. Or many rows are multiplied at once, so the
# arithmetic is the limit and not the bytes.
# </details>

# %%
gpulab.recap("13")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | code of x | clamp(round(x / scale) + zero, 0, 2^bits − 1) |
# | back from a code | scale · (code − zero) |
# | bits per weight | bits + (bits of scale and zero point) / group |
# | error inside the range | at most scale / 2 |
# | symmetric codes | scale = limit / (2^(bits − 1) − 1), zero in the middle |
# | straight-through estimator | the gradient passes where nothing was cut |
# | SmoothQuant | x_j / s_j and w_j · s_j, s_j = √(max abs x_j / max abs w_j) |
# | GPTQ | round a column, subtract e · U[j, later] / U[j, j] from the rest |
# | AWQ | columns · s_j before rounding, / s_j after; s_j = (mean abs x_j)^α |
# | ternary weights | scale = mean of abs w, codes −1, 0, 1; five in a byte |
# | bits by layer | the least sum of errors within a budget, then measure the whole |
# | kernel | read codes once, unpack them in registers, keep x in shared memory |
#
# ### Claims you will meet, and what is right
#
# - *q = round((x − zero) / scale).* With a zero point that is a whole number it is clamp(round(x / scale) + zero).
#   The other form has a real offset, and without a clamp it leaves the range.
# - *Dynamic quantisation of a transformer makes all its matrices INT8.* It changes only those of `Linear` modules.
# - *The size of a model is the sum over `parameters()`.* Packed weights are buffers, so compare files.
# - *H100 multiplies INT4.* No INT4 rate is published for Hopper and later. INT4 weights are unpacked first (lab 02).
# - *MXFP3 and MXFP2 are next.* The standard has none below MXFP4.
#
# ### References
#
# 1. B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
#    CVPR 2018. https://arxiv.org/abs/1712.05877
# 2. Y. Bengio et al., "Estimating or Propagating Gradients Through Stochastic Neurons", 2013.
#    https://arxiv.org/abs/1308.3432
# 3. T. Dettmers et al., "LLM.int8()", NeurIPS 2022. https://arxiv.org/abs/2208.07339
# 4. G. Xiao et al., "SmoothQuant", ICML 2023. https://arxiv.org/abs/2211.10438
# 5. E. Frantar et al., "GPTQ", ICLR 2023. https://arxiv.org/abs/2210.17323
# 6. J. Lin et al., "AWQ", MLSys 2024. https://arxiv.org/abs/2306.00978
# 7. T. Dettmers et al., "QLoRA" (NF4), NeurIPS 2023. https://arxiv.org/abs/2305.14314
# 8. S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
# 9. S. Ma et al., "The Era of 1-bit LLMs", 2024. https://arxiv.org/abs/2402.17764
# 10. I. Kawrakow, "k-quants", llama.cpp, 2023. https://github.com/ggml-org/llama.cpp/pull/1684
