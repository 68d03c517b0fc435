# ---
# jupyter:
#   gpulab:
#     lab: "09"
#     hours: 3
#     topics: [C8.1, C8.2, C8.3, C8.4, C8.5, C8.6, C8.7, C8.8, C8.9, C8.10, C8.11, C8.12, C8.13]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Number formats
#
# **3 to 5 hours.** You need lab 04 for the one kernel, in section 8. The rest is Python.
#
# A network consists of billions of numbers. The number of bits that you keep for each of them decides what fits into
# memory, how many bytes a kernel moves, and how fast the tensor cores run. It also decides which numbers exist at
# all. In this lab you take formats from 64 bits down to 4 apart, bit by bit. Your functions are checked on all codes
# of the shorter formats, and on the difficult codes of the longer ones.
#
# By the end of this lab, you can
#
# 1. read a number from its bits, and write its bits, in any floating-point format;
# 2. say where a format's numbers are, which ones are missing, and what happens beyond the largest;
# 3. predict when a sum or an update with few bits gets stuck, and prevent it;
# 4. quantise a block to MXFP4 by the rule of the standard, and count the bits per number;
# 5. tell what a "4-bit model" stores, and what it computes in.

# %%
import math

import numpy as np

import gpulab
from gpulab import cuda

gpulab.start("09")

# %% [markdown]
# ## 1 · Three fields
#
# A **floating-point** number consists of a sign, a power of two, and a fraction. Its bits form three **fields**, from
# the left: the **sign** (1 bit), the **exponent**, and the **mantissa**. A format is defined by the number of bits in
# the exponent and in the mantissa. The number is
#
# ± 2^(exponent field − bias) · (1 + mantissa field / 2^mantissa bits),
#
# with **bias** = 2^(exponent bits − 1) − 1, so that there are as many small powers as large ones. The 1 in front of
# the fraction is not stored.
#
# For example, FP16 has 5 exponent bits and 10 mantissa bits, so its bias is 2⁴ − 1 = 15. The exponent field 16 and
# the mantissa field 512 mean 2^(16 − 15) · (1 + 512/1,024) = 2 · 1.5 = 3. The figure shows 0.1 in four formats. None
# of them can represent it exactly.

# %% jupyter={"source_hidden": true}
from gpulab import numerics, plot

rows = []
for name in ("FP32", "TF32", "FP16", "BF16"):
    form = numerics.find(name)
    code = int(numerics.encode(0.1, name))
    value = float(numerics.decode(code, name))
    rows.append(plot.Bits(name, code, 1, form.exponent, form.mantissa, f"{value:.10g}"))
plot.bit_fields(rows)

# %% [markdown]
# BF16 and TF32 are FP32 with a shorter mantissa: they have the same range with fewer digits. FP16 has three exponent
# bits fewer than BF16, and three mantissa bits more. TF32 is a format to *compute* in. In memory it takes 32 bits, so
# it does not save any bytes.
#
# **Do.** Write `fields(code, exponent, mantissa)`, which takes a code apart. About 3 lines.
#
# - Input: `code` is a whole number that holds the bits. `exponent` and `mantissa` are the numbers of bits in these
#   fields.
# - Output: a list of three whole numbers: the sign field, the exponent field and the mantissa field.
# - Full marks need all three right for FP16, FP32, BF16 and an 8-bit format.


# %% nbgrader={"grade": false, "grade_id": "fields", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fields(code, exponent, mantissa):
    ### BEGIN SOLUTION
    sign = code >> (exponent + mantissa)
    power = (code >> mantissa) & ((1 << exponent) - 1)
    return [sign, power, code & ((1 << mantissa) - 1)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fields-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.fields", fields)

# %% [markdown]
# ## 2 · Subnormals, infinity, NaN
#
# Two exponent fields have a special meaning (IEEE 754):
#
# - **0**: the number is ± 2^(1 − bias) · mantissa field / 2^mantissa bits, without the leading 1. These are zero and
#   the **subnormal** numbers, which fill the gap between zero and the smallest **normal** number.
# - **all ones**: mantissa 0 means ± **infinity**, and every other mantissa means **NaN** (not a number).
#
# **Predict.** FP16 has 5 exponent bits and 10 mantissa bits. Suppose a decoder treats exponent field 0 like any
# other, but gets zero right. How many of the 65,536 codes does it get wrong?

# %%
gpulab.predict("formats.subnormals", ...)

# %% [markdown]
# **Do.** Write `decode(code, exponent, mantissa)`, which returns the number that a code means. About 9 lines.
#
# - Input: as for `fields`. Output: a Python float.
# - Return `math.inf` or `-math.inf` for infinity, and `math.nan` for every NaN. Zero keeps its sign.
# - Full marks need every number right. The check tries *all* codes of FP16, BF16 and an 8-bit format.
# - You may use your `fields`. Do not use the decoders of `gpulab.numerics`.


# %% nbgrader={"grade": false, "grade_id": "decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(code, exponent, mantissa):
    ### BEGIN SOLUTION
    sign, power, fraction = fields(code, exponent, mantissa)
    bias = 2 ** (exponent - 1) - 1
    factor = -1.0 if sign else 1.0
    if power == 2**exponent - 1:
        return math.nan if fraction else factor * math.inf
    if power == 0:
        return factor * fraction * 2.0 ** (1 - bias - mantissa)
    return factor * (2**mantissa + fraction) * 2.0 ** (power - bias - mantissa)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "decode-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.decode", decode)

# %% [markdown]
# **See.** First, the numbers from 0 to 2 of a format with 3 exponent bits and 2 mantissa bits, computed by your
# `decode`. Then the numbers of FP16 and BF16 near 1.

# %%
gpulab.need(decode)
small = [decode(code, 3, 2) for code in range(28)]
plot.number_line({"subnormal": small[:4], "normal": small[4:]}, within=(0, 2))

# %%
near_one = (1.0, 1.03)
plot.number_line(
    {name: numerics.representable(name) for name in ("FP16", "BF16")}, within=near_one, marked={"1.01": 1.01}
)

# %% [markdown]
# **Why.** Between one power of two and the next the numbers are evenly spaced. At each power of two the spacing
# doubles. So the *relative* spacing stays about the same, 2^−mantissa bits. Rounding to the nearest number has a
# relative error of at most half of that. This bound is called the **unit roundoff**, and in FP16 it is 2⁻¹¹ = 0.05 %.
# Below the smallest normal number the spacing does not get smaller any more, so the relative error grows, up to 100
# %.
#
# ## 3 · Rounding to the nearest
#
# A number that a format does not have is rounded to the nearest one that it has. If it is exactly in the middle, the
# one with the even code is taken (**round to nearest, ties to even**), so that errors do not all go in the same
# direction. A number that is half a step or more beyond the largest finite number becomes infinity.
#
# **Predict.** Count 1, 2, 3, … Which is the first whole number that FP16 does not have?

# %%
gpulab.predict("formats.whole", ...)

# %% [markdown]
# **Do.** Write `encode(x, exponent, mantissa)`, which returns the code of a number. About 12 lines.
#
# - Input: `x`, a Python float, and the numbers of bits as before. Output: the code, a whole number.
# - Round to nearest, ties to even. Handle subnormals, both zeros and both infinities.
# - Full marks need every code right. `math.frexp` and `math.copysign` help, and the encoders of `gpulab.numerics` may
#   not be used.


# %% nbgrader={"grade": false, "grade_id": "encode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(x, exponent, mantissa):
    ### BEGIN SOLUTION
    bias = 2 ** (exponent - 1) - 1
    sign = 1 if math.copysign(1, x) < 0 else 0
    infinity = (2**exponent - 1) << mantissa
    if math.isinf(x):
        code = infinity
    else:
        power = max(math.frexp(x)[1] - 1, 1 - bias) if x else 1 - bias
        steps = round(abs(x) * 2.0 ** (mantissa - power))  # Python's round takes the even one of two
        code = min(((power + bias - 1) << mantissa) + steps, infinity)
    return sign << (exponent + mantissa) | code
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "encode-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.encode", encode)

# %% [markdown]
# **See.** The relative error of rounding for numbers of all magnitudes, computed with your own `encode` and `decode`.

# %% jupyter={"source_hidden": true}
gpulab.need(encode)
numbers = 2.0 ** np.random.default_rng(1).uniform(-32, 20, 6000)
ax = plot.axes(7, 3.2)
for name, colour in (("BF16", plot.AMBER), ("FP16", plot.DEEP)):
    form = numerics.find(name)
    got = np.array(
        [decode(encode(x, form.exponent, form.mantissa), form.exponent, form.mantissa) for x in numbers]
    )
    error = np.abs(got - numbers) / numbers
    shown = np.isfinite(error) & (error > 0)
    ax.plot(numbers[shown], error[shown], ".", color=colour, markersize=2)
ax.annotate("BF16", (2.0**0, 8e-3), color=plot.AMBER)
ax.annotate("FP16", (2.0**16, 1.2e-5), color=plot.DEEP)
ax.annotate("FP16's subnormals", (2.0**-20, 0.1), color=plot.DEEP)
ax.annotate("rounded to zero", (2.0**-28, 1.3), color=plot.DEEP, ha="center", va="bottom")
low = numbers < 2.0**-14
fp16 = numerics.quantize(numbers, "FP16")
print(
    f"{low.mean():.0%} of these numbers lie below FP16's normal ones, {(fp16[low] == 0).mean():.0%} of those become 0"
)
ax.set(yscale="log", xlabel="number", ylabel="relative error", ylim=(1e-6, 5))
ax.set_xscale("log", base=2)
plot.picture(
    ax, "BF16's error is the same everywhere; FP16's is smaller where it is normal, and grows below."
)

# %% [markdown]
# Between 2⁻¹⁴ and 65,504 FP16 is eight times as exact as BF16, because it has three more mantissa bits. Below 2⁻¹⁷ it
# is less exact than BF16, and above 65,504 it has no numbers at all. BF16's error is the same over the whole range.
#
# **Why.** The gradients of a network spread over many powers of two, and most of them are far below 1. FP16 loses the
# small ones (lab 10 counts how many). BF16 keeps them, with fewer digits. BF16 is not FP32 with its last bits cut
# off: it rounds like the other formats. And it can overflow, because the largest FP32 number rounds to infinity.
#
# ## 4 · Eight bits, four ways
#
# Eight bits give only 256 codes, and there are two main ways to use them (Micikevicius et al., 2022). **E5M2** is
# FP16 with a mantissa of 2 bits, and it follows IEEE 754. **E4M3** does without infinity. Its top exponent field
# holds numbers up to 448, and only mantissa 111 there means NaN. Both also have a **FNUZ** variant (finite, no
# negative zero; AMD's MI300). It increases the bias by one. The code 0x80, which would be minus zero, is the only
# NaN, and every other code is a number.
#
# **Predict.** How many different finite numbers does E4M3 have, if zero counts once?

# %%
gpulab.predict("formats.e4m3_numbers", ...)

# %% [markdown]
# **Do.** Write `decode8(code, variant)`, which returns the number that an 8-bit code means. About 12 lines.
#
# - Input: `code`, from 0 to 255, and `variant`, one of `"E4M3"`, `"E5M2"`, `"E4M3FNUZ"` and `"E5M2FNUZ"`.
# - Output: a Python float; `math.nan` for NaN, and in E5M2 ± `math.inf` for infinity.
# - Full marks need all 256 codes of all four variants right. You may use your `decode` and `fields`.


# %% nbgrader={"grade": false, "grade_id": "decode8", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode8(code, variant):
    ### BEGIN SOLUTION
    exponent, mantissa = int(variant[1]), int(variant[3])
    if variant == "E5M2":
        return decode(code, exponent, mantissa)
    sign, power, fraction = fields(code, exponent, mantissa)
    bias = 2 ** (exponent - 1) - 1
    if variant.endswith("FNUZ"):
        bias += 1
        if code == 0x80:
            return math.nan
    elif code & 0x7F == 0x7F:
        return math.nan
    lead = 2**mantissa if power else 0
    value = (lead + fraction) * 2.0 ** (max(power, 1) - bias - mantissa)
    return -value if sign else value
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "decode8-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.decode8", decode8)

# %% [markdown]
# **See.** The positive numbers of the four variants, on a logarithmic axis.

# %%
gpulab.need(decode8)
variants = ("E4M3", "E4M3FNUZ", "E5M2", "E5M2FNUZ")
plot.number_line(
    {v: [x for x in (decode8(c, v) for c in range(128)) if 0 < x < math.inf] for v in variants}, log=True
)

# %% [markdown]
# **Why.** E4M3 has twice as many numbers per power of two, and E5M2 has twice as many powers. Weights and activations
# are kept in E4M3. Gradients spread further, so the first recipe for FP8 training, for Hopper, kept them in E5M2 (lab
# 10). Recipes with a scale for each small block keep gradients in E4M3 as well, because a block spreads less than a
# whole tensor (DeepSeek-V3, 2024; Mishra et al., 2025).
#
# ## 5 · Sums
#
# A dot product is a long sum, and each addition is rounded. What does this do to the result?
#
# **Predict.** 0.01 is added 1,000 times, one after the other, in FP16. What is the result?

# %%
gpulab.predict("formats.hundredths", ...)

# %%
total, path = np.float16(0), []
for _ in range(1000):
    total = total + np.float16(0.01)
    path.append(float(total))
gpulab.predict("formats.hundredths", measured=float(total))
print("with an FP32 accumulator:", np.full(1000, np.float16(0.01)).sum(dtype=np.float32))

# %% [markdown]
# The exact sum is 10. The next cell adds 8,192 numbers between 0 and 1, whose sum is near 4,096:

# %% jupyter={"source_hidden": true}
numbers = np.random.default_rng(2).random(8192).astype(np.float16)
total, path = np.float16(0), []
for x in numbers:
    total = total + x
    path.append(float(total))
exact = np.cumsum(numbers.astype(np.float64))
ax = plot.axes(6.4, 3)
ax.plot(exact, color=plot.DEEP)
ax.plot(path, color=plot.ALARM)
ax.annotate(
    "exact", (7000, exact[7000]), ha="right", color=plot.DEEP, xytext=(-8, 0), textcoords="offset points"
)
ax.annotate(
    "in FP16, one by one",
    (6500, path[6500]),
    va="top",
    ha="center",
    color=plot.ALARM,
    xytext=(0, -6),
    textcoords="offset points",
)
ax.set(xlabel="numbers added", ylabel="sum so far", ylim=(0, None))
plot.picture(ax, "One by one, the sum in FP16 stays at 2,048 while the exact one goes on to 4,096.")

# %% [markdown]
# The sum stops at 2,048. From there on FP16's spacing is 2, so a number below 1 is less than half a step and changes
# nothing any more.
#
# **Do.** Write `order(n)`, which returns the order in which n numbers should be added. About 6 lines.
#
# - The numbers are in slots 0 to n − 1. Return a list of additions `[a, b]`. Each means "slot a becomes slot a + slot
#   b", rounded to FP16. A slot b that has been added to another may not be used again.
# - At the end slot 0 must hold the sum of all numbers. For n = 1 the list is empty.
# - Additions of different slots can run in the same **step**. Each runs as early as both its slots are ready.
# - **Budget:** ⌈log2 n⌉ steps, and for 8,192 numbers an error of at most 0.3 % of the sum. Full marks need both.


# %% nbgrader={"grade": false, "grade_id": "order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def order(n):
    ### BEGIN SOLUTION
    plan, apart = [], 1
    while apart < n:
        plan += [[slot, slot + apart] for slot in range(0, n - apart, 2 * apart)]
        apart *= 2
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "order-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.order", order)

# %% [markdown]
# **Why.** An addition loses whatever is smaller than the spacing of its result. Added one after the other, small
# numbers meet a large sum. In a tree, numbers meet others of about their own size, so the error grows with log n
# instead of n. A parallel reduction (lab 05) is a tree, and therefore it is faster *and* more exact. Tensor cores
# have another solution: their inputs have few bits, but they accumulate in FP32.
#
# ## 6 · Rounding by chance
#
# **Predict.** A weight is 1. It gets 10,000 updates of +0.001, and each result is rounded to the nearest BF16 number.
# What is the weight afterwards?

# %%
gpulab.predict("formats.stuck", ...)

# %% [markdown]
# **Stochastic rounding** rounds up with a probability that depends on where the number is between its two neighbours.
# A number that is a quarter of the way up is rounded up in a quarter of all cases. A single result is less exact than
# with rounding to nearest. But the *average* is exact, so many small updates do have their effect.
#
# **Do.** Write `stochastic(bits, noise)`, which rounds an FP32 number to BF16. About 1 line.
#
# - Input: `bits`, the 32 bits of an FP32 number as a whole number, and `noise`, a random whole number from 0 to
#   65,535.
# - Output: the BF16 code, a whole number of 16 bits. It is one of the two neighbours of the number.
# - The magnitude must be rounded up with the right probability, and the *largest* noises round up.
# - Full marks need every code right.


# %% nbgrader={"grade": false, "grade_id": "stochastic", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic(bits, noise):
    ### BEGIN SOLUTION
    return (bits + noise) >> 16
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stochastic-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.stochastic", stochastic)

# %%
gpulab.need(stochastic)
generator = np.random.default_rng(3)
nearest = by_chance = np.float32(1)
paths = {"nearest": [], "stochastic": []}
for noise in generator.integers(0, 1 << 16, 10_000):
    nearest = numerics.quantize(nearest + np.float32(0.001), "BF16")
    code = stochastic(int((by_chance + np.float32(0.001)).view(np.uint32)), int(noise))
    by_chance = numerics.decode(np.uint16(code), "BF16")
    paths["nearest"].append(float(nearest))
    paths["stochastic"].append(float(by_chance))
gpulab.predict("formats.stuck", measured=float(nearest))

ax = plot.axes(6.4, 3)
ax.plot(1 + 0.001 * np.arange(1, 10_001), color=plot.INK, linestyle="--")
ax.annotate("exact", (5000, 6), ha="right", xytext=(-14, 4), textcoords="offset points", color=plot.INK)
for (name, values), colour, at in zip(
    paths.items(), (plot.ALARM, plot.DEEP), ((6000, 1.4), (7300, 7.4)), strict=True
):
    ax.plot(values, color=colour)
    ax.annotate(name, at, color=colour)
ax.set(xlabel="updates of +0.001", ylabel="weight in BF16", ylim=(0, 12))
plot.picture(ax, "Rounded to nearest the weight stays at 1; rounded by chance it follows the exact line.")

# %% [markdown]
# With rounding to nearest the weight never leaves 1. With stochastic rounding it moves randomly around the exact line
# and does not fall behind.
#
# **Why.** Above 1 the spacing of BF16 is 2⁻⁷ = 0.0078, and 0.001 is only an eighth of it. So training with few bits
# needs either stochastic rounding or a **master copy** of the weights in FP32 (lab 10).
#
# ## 7 · Blocks that share a scale
#
# Next come four bits. **E2M1** has the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign. Alone that is useless,
# because a tensor's numbers are hardly ever in this range. So 32 neighbouring numbers share a **scale**. Its format
# is **E8M0**, which has eight exponent bits and nothing else: code e means 2^(e − 127), from 2⁻¹²⁷ to 2¹²⁷, and code
# 255 means NaN. It has no sign, no zero and no infinity. The 32 numbers with their scale are **MXFP4**, a format of
# the OCP standard (MX v1.0, 2023).
#
# **Predict.** How many bits per number does MXFP4 take?

# %%
gpulab.predict("formats.mxfp4_bits", ...)

# %%
for name, form in numerics.BLOCK_FORMATS.items():
    bits = form.bits_per_element
    print(
        f"{name:11} {form.element.name} × {form.size}, scale {form.scale.name}: {bits:5.2f} bits, FP16 is {16 / bits:.2f} ×"
    )

# %% [markdown]
# The standard says how to choose the scale (section 6.3). Let m be the largest magnitude of the block. Then the scale
# is 2^(⌊log2 m⌋ − 2), where 2 is the largest exponent of E2M1 (4 = 2²). Each number is divided by the scale and
# rounded to the nearest of the sixteen numbers. A magnitude above 6 becomes 6. For example, if m = 20, then ⌊log2 20⌋
# = 4, the scale is 2^(4 − 2) = 4, and the number 20 becomes 20/4 = 5, which is rounded to 4.
#
# **Do.** Write `block(values)`, which quantises one block to MXFP4. About 10 lines.
#
# - Input: `values`, a list of 32 Python floats.
# - Output: `[scale code, [32 codes]]`. A number's code is the place of its magnitude in the list above (from 0), plus
#   8 if the number is negative, even if it is rounded to zero.
# - A number in the middle goes to the even code. A block of zeros has scale code 0.
# - Full marks need every code right.


# %% nbgrader={"grade": false, "grade_id": "block", "locked": false, "schema_version": 3, "solution": true, "task": false}
def block(values):
    ### BEGIN SOLUTION
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    largest = max(abs(v) for v in values)
    if largest == 0:
        return [0, [8 if math.copysign(1, v) < 0 else 0 for v in values]]
    power = math.floor(math.log2(largest)) - 2
    codes = []
    for v in values:
        x = min(abs(v) / 2.0**power, 6)
        code = min(range(8), key=lambda c: (abs(magnitudes[c] - x), c % 2))
        codes.append(code + (8 if math.copysign(1, v) < 0 else 0))
    return [power + 127, codes]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "block-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.block", block)

# %% [markdown]
# **See.** 256 numbers in eight blocks. In each block one number is an **outlier**, as happens in a few channels of a
# large language model. Both pictures show the first block.

# %%
gpulab.need(block)
draws = np.random.default_rng(0)
values = draws.standard_normal(256).astype(np.float32)
values[11::32] = draws.uniform(15, 25, 8) * draws.choice([-1, 1], 8)


def through_mxfp4(x):
    """What is left of numbers that are kept in MXFP4, by your own `block`."""
    back = []
    for part in x.reshape(-1, 32):
        scale, codes = block([float(v) for v in part])
        back.append(numerics.decode(codes, "E2M1") * 2.0 ** (scale - 127))
    return np.concatenate(back)


def drawn(ax, x, y, title):
    ax.bar(range(32), x[:32], color=plot.DEEP, width=0.8)
    ax.plot(range(32), y[:32], "D", color=plot.ALARM, markersize=3.5)
    ax.set(title=title, xlabel="place in the block")


signs = np.random.default_rng(5).choice([-1.0, 1.0], 256)
rotated = numerics.hadamard(values, signs)
axes = plot.axes(9, 3.2, 1, 2)
drawn(axes[0], values, through_mxfp4(values), "as it is")
drawn(axes[1], rotated, through_mxfp4(rotated), "rotated")
limit = 1.1 * max(np.abs(values[:32]).max(), np.abs(rotated[:32]).max())
for ax in axes:
    ax.set(ylim=(-limit, limit))
axes[0].annotate("bars: number\ndiamonds: MXFP4", (31, limit), ha="right", va="top", color=plot.INK)
axes[0].set_ylabel("value")
plot.picture(
    axes[0], "As it is, most numbers beside the outlier become 0; rotated, each stays near its value."
)

# %% [markdown]
# On the left the outlier sets the scale of its block, and nearly all other numbers become 0.
#
# On the right all 256 numbers were **rotated** first, which means that they were multiplied by an **orthonormal**
# Hadamard matrix with random signs. (A square matrix is orthonormal if it keeps all lengths and its inverse is its
# transpose.) The rotation spreads each outlier over 256 places. If *both* factors of a product are rotated, the
# product does not change, because the rotations cancel: (xH)(Hᵀw) = xw.
#
# **Predict.** The 256 numbers are rotated, quantised, and rotated back. How many times smaller is their error than
# without rotation?

# %%
gpulab.predict("formats.rotated", ...)

# %%
gpulab.need(block)
plain = np.linalg.norm(through_mxfp4(values) - values)
turned = np.linalg.norm(numerics.hadamard(through_mxfp4(rotated)) * signs - values)
print(f"error without rotation {plain:.2f}, with rotation {turned:.2f}")
gpulab.predict("formats.rotated", measured=plain / turned)

# %% [markdown]
# A rotation does not always pay off. Without outliers there is nothing to spread:

# %%
gpulab.need(block)
smooth = np.random.default_rng(1).standard_normal(256).astype(np.float32)
back = numerics.hadamard(through_mxfp4(numerics.hadamard(smooth, signs))) * signs
print(
    f"no outliers: {np.linalg.norm(through_mxfp4(smooth) - smooth):.2f}, rotated {np.linalg.norm(back - smooth):.2f}"
)

# %% [markdown]
# **Why.** A shared scale is only as good as its largest number allows. Three things help: smaller blocks (NVFP4 has
# blocks of 16 with a finer scale in E4M3, and one FP32 scale for the whole tensor), rotations, and keeping some
# layers in BF16.
#
# ## 8 · Back to thirty-two bits, in a kernel
#
# A GPU without FP4 units unpacks the numbers and computes in FP16 or FP32. It saves bytes, not arithmetic. The next
# cell shows how many bytes the weights of a model with 120 billion parameters take:

# %%
for name, bits in (("FP32", 32), ("BF16", 16), ("E4M3", 8), ("MXFP4", 4.25)):
    print(f"{name:6} {120e9 * bits / 8 / 1e9:6.1f} GB")

# %% [markdown]
# **Do.** Write the kernel `dequantize(packed, scales, out)`, which turns MXFP4 into float32. About 15 lines.
#
# - Input: `packed`, uint8; each byte holds two E2M1 codes, the first in its lower half. `scales`, uint8; one E8M0
#   code for every 32 numbers (here from 100 to 149).
# - Output: `out`, float32, two numbers for each byte of `packed`.
# - Launch: one thread for each byte, in blocks of 128.
# - Make the 32 bits of each result as integers. `out.view(np.uint64)` has one element for two results.
# - Convert what you load to `np.uint32` first, because numba turns a mixture of signed and unsigned integers into
#   floats.
# - **Budget:** no more sectors stored than `out` has, and 140 instructions per warp. Full marks need both, and every
#   bit right.


# %% nbgrader={"grade": false, "grade_id": "dequantize", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit(device=True)
def float_bits(code, scale):
    ### BEGIN SOLUTION
    sign = (code & np.uint32(8)) << np.uint32(28)
    magnitude = code & np.uint32(7)
    # 1 to 6: exponent field scale + f − 1 and one mantissa bit, that is the magnitude moved as a whole.
    moved = ((scale - np.uint32(1)) << np.uint32(23)) + (magnitude << np.uint32(22))
    if magnitude < np.uint32(2):  # 0, and 0.5 = 2^−1
        moved = magnitude * ((scale - np.uint32(1)) << np.uint32(23))
    return sign | moved
    ### END SOLUTION


@cuda.jit
def dequantize(packed, scales, out):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if i < packed.size:
        both = np.uint32(packed[i])
        scale = np.uint32(scales[i >> 4])
        first = float_bits(both & np.uint32(15), scale)
        second = float_bits(both >> np.uint32(4), scale)
        out.view(np.uint64)[i] = np.uint64(first) | (np.uint64(second) << np.uint64(32))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "dequantize-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.dequantize", dequantize)

# %% [markdown]
# **See.** What the kernel moves. A row is 128 bytes of memory, and each group of cells is a sector of 32 bytes.

# %%
gpulab.need(dequantize)
gpulab.show("formats.dequantize", dequantize, view="accesses")

# %% [markdown]
# **Why.** In a product of a matrix and a vector each weight is read once. With 4.25 bits instead of 16 that is 16 /
# 4.25 = 3.8 times fewer bytes, and the time shrinks with them. This kernel computes the sixteen values with
# arithmetic. Others use a table. Which is faster depends on what else the kernel does.
#
# ## 9 · All formats in one table
#
# Integers are formats too. INT8 and INT4 have evenly spaced numbers and a scale (lab 13). INT1, one bit, is used by
# a few networks with weights of ±1. The next cell lists the other formats. Its rates are *dense*: they leave out the
# 2:4 sparsity that doubles many advertised figures.
#
# ![Formats to scale: float32 has 1 sign bit, 8 exponent bits and 23 fraction bits; float16 has 1, 5 and 10; bfloat16 has 1, 8 and 7; E4M3 has 1, 4 and 3; E2M1 has 1, 2 and 1.](drawings/formats.svg)

# %%
print("format      bits     largest   smallest normal   smallest   digits")
for name in ("FP64", "FP32", "TF32", "BF16", "FP16", "E5M2", "E4M3", "E3M2", "E2M3", "E2M1", "E8M0"):
    f = numerics.find(name)
    digits = (f.mantissa + 1) * math.log10(2)
    print(f"{name:10}{f.bits:5d}{f.largest:14.4g}{f.smallest_normal:16.3g}{f.smallest:14.3g}{digits:8.1f}")

# %%
from gpulab import hardware

for name in ("V100", "A100", "H100", "B200"):
    gpu = hardware.find(name)
    rates = []
    for dtype in ("float32", "tfloat32", "float16", "bfloat16", "float8", "float4"):
        try:
            rates.append(f"{dtype} {float(gpu.peak(dtype, tensor=dtype != 'float32')) / 1e12:,.4g}")
        except ValueError:  # it has no such rate
            continue
    print(f"{gpu.name:6} dense TFLOP/s: " + ", ".join(rates))

# %% [markdown]
# **Two models that you can download.** *DeepSeek-V3.1* keeps weights and activations in E4M3, half the bytes of FP16.
# Only the *scale factors* are E8M0 ("UE8M0"), so that they fit the MX formats (model card, 2025). *gpt-oss-120b* has
# 117 billion parameters, of which 5.1 billion are active for a token. The weights of its experts are MXFP4, and the
# rest is BF16. It was trained for this, and no FP16 version was published to compare with (OpenAI, model card, 2025).
#
# ### Loading one today
#
# ![Three ways to load one file of four-bit weights. A GPU with units for FP4 multiplies them as they are. An older one unpacks them in the kernel. A loader without such a kernel unpacks all to BF16, which takes 3.8 times the memory.](drawings/ways_to_load.svg)
#
# What a four-bit file needs in memory depends on the loader. Take gpt-oss-120b. Of its 116.8 billion parameters the
# experts are MXFP4: 36 layers, 128 experts in each, and three matrices of 2,880 × 2,880 in an expert. Everything else
# is BF16 (model card, 2025).
#
# **Predict.** How many GB do these weights take? (1 GB = 10⁹ bytes. Section 7 has the bits of MXFP4.)

# %%
gpulab.predict("formats.gpt_oss", ...)

# %%
parameters, experts = 116.8e9, 36 * 128 * 3 * 2880**2
as_stored = (experts * 4.25 + (parameters - experts) * 16) / 8 / 1e9
unpacked = parameters * 16 / 8 / 1e9
gpulab.predict("formats.gpt_oss", measured=as_stored)
print(f"experts: {experts / parameters:.1%} of the parameters")
print(
    f"as stored {as_stored:.1f} GB = {as_stored * 1e9 / 2**30:.1f} GiB, unpacked to BF16 {unpacked:.1f} GB\n"
)

for name in ("T4", "RTX 4090", "A100", "H100", "H200", "RTX PRO 6000", "B200"):
    gpu = hardware.find(name)
    memory = float(gpu.dram_bytes) / 1e9
    try:
        how = f"multiplies FP4 ({float(gpu.peak('float4', tensor=True)) / 1e15:.1f} PFLOP/s dense)"
    except ValueError:
        how = "unpacks in the kernel"
    fits = "fits" if as_stored < memory else "does not fit"
    print(f"{name:13}{memory:6.0f} GB: {fits:13}{how:34} unpacked: {'fits' if unpacked < memory else 'no'}")
plot.bars(
    {"as stored": as_stored, "BF16": unpacked},
    "GB of weights",
    budget=float(hardware.find("H100").dram_bytes) / 1e9,
    caption="As stored, the model fits on one H100 (dashed); unpacked it would need three.",
)

# %% [markdown]
# The model card gives 60.8 GiB for the file. What becomes of the four bits is the loader's choice:
#
# | tool | what you write | what happens to the four bits |
# |---|---|---|
# | Transformers, MXFP4 | `from_pretrained(name, dtype="auto")` | stay, from compute capability 7.5 on, with Triton 3.4 and the package `kernels`; else BF16 |
# | Transformers, MXFP4 | `Mxfp4Config(dequantize=True)` | unpacked to BF16, for fine-tuning |
# | Transformers, bitsandbytes | `BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")` | a 16-bit model is rounded to NF4 (lab 13) as it is loaded |
# | vLLM | `vllm serve openai/gpt-oss-120b` | stay |
# | llama.cpp, Ollama | a GGUF file | stay |
#
# (Transformers documentation, "MXFP4" and "bitsandbytes".) There is no `torch.mxfp4`, so `dtype="mxfp4"` is an error.
#
# **See.** The bytes of such a file. Each block of 32 numbers is 16 bytes, with the first number in the low four bits, and
# one byte for the scale, 2^(e − 127) (Transformers source, `integrations/mxfp4.py`). Five lines read it:

# %%
TABLE = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def read_blocks(blocks, scales):
    """Numbers of MXFP4 from bytes of (blocks, 16) and scales of (blocks,)."""
    codes = np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(len(blocks), 32)
    return np.ldexp(TABLE[codes], scales[:, None].astype(int) - 127)


numbers = np.random.default_rng(4).standard_normal((2, 32)).astype(np.float32)
packed = numerics.encode_blocks(numbers, "MXFP4")
codes = packed.codes.reshape(2, 32).astype(np.uint8)
file_blocks, file_scales = codes[:, ::2] | codes[:, 1::2] << 4, packed.scales.ravel().astype(np.uint8)
print("bytes of the first block:", file_blocks[0].tobytes().hex(" "), "· scale", file_scales[0])
print(
    "read back as encoded:",
    np.array_equal(read_blocks(file_blocks, file_scales), packed.decode().reshape(2, 32)),
)

# %% [markdown]
# **Why.** Four bits save memory on every GPU, but they save arithmetic only where units multiply FP4: NVIDIA's from
# Blackwell on, AMD's from the MI355X on. Older GPUs unpack and compute at the rate of FP16 or FP8. In lab 24 you multiply
# NVFP4 numbers with their scales on Blackwell's tensor cores.
#
# **Below four bits** there is no MX format: the standard has 8, 6 and 4 bits and MXINT8. Networks with weights of 2
# bits or fewer must be trained with such weights, and choosing the bits layer by layer is a search, not a format.
# Lab 13 does both.
#
# ## Detective · The same bytes
#
# A checkpoint in E4M3 moves from one vendor's GPU to another's. The loader copies the bytes. "The loss is far off,
# and a few rows are NaN. But the bytes are the same, I compared them."
#
# ![The same eight bits, 0100 1000, read in two formats: in E4M3 four bits are the exponent, in E5M2 five. The numbers differ.](drawings/same_byte.svg)

# %%
weights = np.random.default_rng(6).standard_normal(4096).astype(np.float32)
weights[np.abs(weights) < 0.0009] = -0.0
checkpoint = numerics.encode(weights, "E4M3")
there = numerics.decode(checkpoint, "E4M3")
here = numerics.decode(checkpoint, "E4M3FNUZ")
print("NaN here:", int(np.isnan(here).sum()))
print("first weights there:", there[:5])
print("first weights here: ", here[:5])

# %% [markdown]
# **Do.** Find out what the same byte means in the two formats, for all 256 bytes. The first cell is free for this.
# Then write `adopt(code)`, which translates a code. About 4 lines.
#
# - Input: an E4M3 code, from 0 to 255. Output: `[new code, factor]`.
# - The new code, read as E4M3FNUZ and multiplied by the factor, must mean the same number as the old code in E4M3.
#   NaN must stay NaN.
# - The factor is the same for all codes. Full marks need all 256 right.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "adopt", "locked": false, "schema_version": 3, "solution": true, "task": false}
def adopt(code):
    ### BEGIN SOLUTION
    mended = {0x80: 0x00, 0x7F: 0x80, 0xFF: 0x80}  # minus zero; the two NaN
    return [mended.get(code, code), 2]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "adopt-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("formats.adopt", adopt)

# %% [markdown]
# ### Your answer
#
# A colleague's GPU code drops FP16's subnormals: "They are only 3 % of the codes." In three to five sentences: what
# happens to those gradients of a network that are subnormal, what does this do to the weights, and which number that
# you saw printed or counted in this lab shows that 3 % is the wrong measure? A person reads this: 1 point for the
# cause, 1 point for such a number.

# %% [markdown] nbgrader={"grade": true, "grade_id": "subnormal-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Without subnormals every gradient below 2⁻¹⁴ = 6.1e-5 becomes zero, and the weights with such
# gradients stop learning. With subnormals FP16 reaches down to 6e-8, though with fewer and fewer digits. The share of
# the codes says nothing, because what counts is where the numbers are: of those in the plot of section 3, spread
# evenly over powers of two, 35 % lay below the normal ones, not 3 %.
#
# **1 point** (cause without a number): Small gradients become zero, so the weights that they belong to no longer
# change.
#
# **0 points:** The loss becomes infinite. Or: it saves memory.

# %% [markdown]
# ## Beyond · Sixteen values of your own
#
# Open-ended and ungraded. With 4 bits and a scale per block you may choose any sixteen values. Weights are about
# normally distributed. The figure of merit is the **root mean square error, in % of the block's own root mean
# square**. It is taken over blocks of 32 normal numbers, each block divided by its largest magnitude, so your values
# are between −1 and 1.
#
# | values | error |
# |---|---|
# | evenly spaced from −1 to 1 | printed by the cell below |
# | E2M1 / 6 | printed by the cell below |
# | ours, from the quantiles of such blocks, refined by Lloyd's algorithm | 8.1 % |
# | bound | 2⁻⁴ = 6.25 % for 4 bits per number of a normal source (rate-distortion theory, Shannon 1959); it does not count the information that the scale adds |

# %%
blocks = np.random.default_rng(8).standard_normal((4000, 32))


def merit(table):
    table = np.sort(np.asarray(table, float))
    scale = np.abs(blocks).max(axis=1, keepdims=True)
    x = blocks / scale
    nearest = table[np.abs(x[..., None] - table).argmin(axis=-1)]
    return f"{100 * np.sqrt((((nearest - x) * scale) ** 2).mean() / (blocks**2).mean()):.1f} %"


print("even:", merit(np.linspace(-1, 1, 16)), "  E2M1:", merit(np.unique(numerics.representable("E2M1") / 6)))

# %%
# Your table, then merit(table).

# %% [markdown]
# ## Recap
#
# <details><summary>1. What does FP16 code 0x0001 mean?</summary>
#
# The exponent field is 0 and the mantissa is 1. So it means 2⁻¹⁴ · 2⁻¹⁰ = 2⁻²⁴ = 6.0e-8, the smallest positive
# number.
# </details>
#
# <details><summary>2. What is 2,048 + 1 in FP16?</summary>
#
# It is 2,048. The exact sum 2,049 is in the middle between 2,048 and 2,050, and the tie goes to the even code.
# </details>
#
# <details><summary>3. Why do people keep a master copy of the weights in FP32 beside BF16 weights?</summary>
#
# An update smaller than half of BF16's spacing (0.4 % of the weight) would never have any effect.
# </details>
#
# <details><summary>4. What is the scale of an MXFP4 block whose largest magnitude is 20?</summary>
#
# It is 2^(4 − 2) = 4, code 129. 20/4 = 5 is in the middle between 4 and 6, and it goes to 4, the even code.
# </details>
#
# <details><summary>5. A GPU without FP4 units runs an MXFP4 model. What is gained?</summary>
#
# Memory and bandwidth, 3.76 × against FP16. The arithmetic runs at the rate of the format to which the weights are
# unpacked.
# </details>

# %%
gpulab.recap("09")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | value of a normal code | ± 2^(e − bias) · (1 + m / 2^M) |
# | value with exponent field 0 | ± 2^(1 − bias) · m / 2^M |
# | spacing at x | 2^(⌊log2 x⌋ − M), never below that of the smallest normal number |
# | error of rounding | half the spacing; relative 2^−(M+1) in the normal range |
# | sums | use a tree or an FP32 accumulator; one by one the sum stops at about 2^(M+1) times the addend |
# | small updates | use stochastic rounding, or a master copy in FP32 |
# | E4M3 | bias 7, numbers up to 448, NaN 0x7F and 0xFF, no infinity |
# | FNUZ | bias + 1, NaN 0x80, no minus zero, no infinity |
# | MXFP4 | scale 2^(⌊log2 max⌋ − 2) for 32 numbers of E2M1; 4.25 bits per number |
# | NVFP4 | E4M3 scale for 16 numbers, FP32 scale for the tensor; 4.5 bits per number |
#
# ### Claims you will meet, and what is right
#
# - *FP16's machine epsilon is 6e-4.* The spacing at 1 is 2⁻¹⁰ = 9.8e-4, and the unit roundoff is half of that.
# - *BF16 is FP32 cut off, and cannot overflow.* It is rounded to nearest, and FP32's largest number becomes infinity.
# - *TF32 halves memory and is on by default.* It takes 32 bits, and PyTorch leaves it off for matrix products.
# - *E8M0 goes from 1 to 2²⁵⁵, and has a zero.* It goes from 2⁻¹²⁷ to 2¹²⁷, code 255 is NaN, and there is no zero.
# - *The MXFP4 scale is max / 6, or max / 2^Emax.* It is a power of two, from the floor of a logarithm. So magnitudes
#   between 6 and 8 times the scale are cut to 6.
# - *MXFP4 is 4 × smaller than FP16 and has one to two digits.* It is 3.76 × smaller, and it has less than one digit.
# - *FP4 doubles the speed of an H100.* An H100 has no FP4 units. What shrinks is memory traffic.
# - *DeepSeek-V3.1 is stored in UE8M0.* Only its scale factors are. Its numbers are E4M3.
#
# ### References
#
# 1. *IEEE Standard for Floating-Point Arithmetic*, IEEE 754-2019.
# 2. P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022. https://arxiv.org/abs/2209.05433
# 3. B. Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022. https://arxiv.org/abs/2206.02915
# 4. Open Compute Project, *OCP Microscaling Formats (MX) Specification*, v1.0, 2023.
# 5. NVIDIA, "Pretraining Large Language Models with NVFP4", 2025. https://arxiv.org/abs/2509.25149
# 6. S. Gupta et al., "Deep Learning with Limited Numerical Precision", ICML 2015 (stochastic rounding).
#    https://arxiv.org/abs/1502.02551
# 7. N. Higham, *Accuracy and Stability of Numerical Algorithms*, SIAM, 2nd ed., 2002, chapter 4 (sums).
# 8. OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025. https://arxiv.org/abs/2508.10925
# 9. Hugging Face, *Transformers documentation*, "MXFP4". https://huggingface.co/docs/transformers/quantization/mxfp4
# 10. D. Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019. https://arxiv.org/abs/1905.12322
