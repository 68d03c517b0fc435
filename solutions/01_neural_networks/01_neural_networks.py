# ---
# jupyter:
#   gpulab:
#     lab: "01"
#     hours: 4
#     topics: [C1.1, C1.2, C1.3, C1.4, C1.5, C1.6, C1.7, C1.8, C1.9, C1.10, C1.11, C1.12, C1.13, C1.14, C1.15, C1.16, C10.2, C10.3]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Neural networks
#
# **3.5 to 6 hours.** You need Python and NumPy arrays. This lab is a primer: it has no kernels yet, and no other
# lab has to come first. If you have trained transformers and can say what `backward` keeps in memory, do only the
# exercises of sections 7, 9 and 10, and continue with lab 02.
#
# By the end of this lab, you can
#
# 1. work out the gradient of a small network by hand, and explain why each value is visited once;
# 2. say what training does that inference does not, and which results it must keep for that;
# 3. split a batch into pieces without changing its gradient;
# 4. set up the inputs, labels and masks of a language model, and recognise from one number when the labels leak into
#    the inputs;
# 5. count a model's parameters, and the bytes that it takes to train it.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 8 | 2 to 3 | what a network computes, how its gradient is found, and a loop that trains it |
# | 2 | 9 to 14, detective, recap | 2 to 3 | what training keeps in memory, batches in pieces, and what a language model adds |

# %%
import itertools
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import gpulab
from gpulab import hardware

torch.set_num_threads(1)  # these networks are too small to share out
gpulab.start("01")

# %% [markdown]
# ## 1 · What people ask of a model
#
# A **model** is something simple that stands for something complicated. Here is one. The bandwidth of the memory of
# NVIDIA's large GPUs was 900 GB/s in 2017 (V100), 2,039 in 2020 (A100) and 3,350 in 2022 (H100). The model says that
# the bandwidth grows by the same factor every year, so its logarithm plotted over the years is a straight line.
#
# **Predict.** Which bandwidth does this line give for 2024?

# %%
gpulab.predict("neural.bandwidth", ...)

# %%
known = [hardware.find(name) for name in ("V100", "A100", "H100")]
years = [int(gpu.year) for gpu in known]
slope, start = np.polyfit(
    [year - 2017 for year in years], [math.log2(float(gpu.dram_bandwidth) / 1e9) for gpu in known], 1
)


def line(year):
    """The model: GB/s in a year."""
    return 2 ** (slope * (year - 2017) + start)


gpulab.predict("neural.bandwidth", measured=line(2024))
b200 = hardware.find("B200")
gpulab.plot.lines(
    {
        "the line": [(year, line(year)) for year in range(2017, 2029)],
        "data sheets": [(int(gpu.year), float(gpu.dram_bandwidth) / 1e9) for gpu in (*known, b200)],
    },
    "year",
    "GB/s of DRAM",
    "A line through three GPUs passes close to them, but the fourth, the B200, is above it.",
    log_y=True,
)

# %% [markdown]
# S. Page (*The Model Thinker*, 2018) lists seven uses of a model. The next cell shows what each of them means for
# this line.

# %%
uses = {
    "reason": f"If the line is right, bandwidth doubles every {1 / slope:.1f} years.",
    "explain": f"It grew by a factor ({2**slope:.2f} per year) and not by an amount.",
    "design": f"A program for 2028 should suit about {line(2028) / 1e3:.0f} TB/s.",
    "communicate": f"Two numbers, {slope:.2f} and {start:.1f}, say what three data sheets say.",
    "act": f"Whoever waits a year for a new GPU gets {100 * (2**slope - 1):.0f} % more bandwidth.",
    "predict": f"2024: {line(2024):,.0f} GB/s. The B200 has {float(b200.dram_bandwidth) / 1e9:,.0f}.",
    "explore": f"What if it doubled every year? Then 2028 would have {2 ** (11 + start) / 1e6:.1f} PB/s.",
}
for use, answer in uses.items():
    print(f"{use:12} {answer}")

# %% [markdown]
# **Why.** The same line explains the past well, and misses the next GPU by more than a quarter. Fitting what is
# known and predicting what is not known are two different things. A language model is built to predict one thing,
# the next token, and is then used for most of the seven purposes.
#
# ![A model is a function with numbers in it. Data goes in, a prediction comes out, a loss compares it with what is right, and the slope of the loss changes the numbers.](drawings/model.svg)
#
# ### What a parameter does
#
# The models of this course are functions with **parameters**, which are numbers inside the function that are chosen
# so that its outputs fit data. Choosing them is called **training**. A line `m·x + b` has two parameters: `m` tilts
# it, and `b` shifts it. A plane `a·x + b·y + c` has three: `a` and `b` tilt it in two directions, and `c` lifts it. A
# parabola `a·x² + b·x + c` has three as well. Its `a` bends it, and its `c` lifts it.
#
# **Predict.** What does the `b` of a parabola do? At which x is x² + 2x + 1 lowest?

# %%
gpulab.predict("neural.lowest", ...)

# %% jupyter={"source_hidden": true}
places = np.linspace(-3, 3, 61)
gpulab.plot.lines(
    {f"b = {b}": [(x, x * x + b * x + 1) for x in places] for b in (-2, 0, 2)},
    "x",
    "x² + b · x + 1",
    "b is the slope at x = 0: it moves the lowest point sideways and down, and leaves the value at 0 as it is.",
    names_at="start",
)

# %% [markdown]
# A large language model is a function of the same kind with billions of parameters. Its outputs are all that anybody
# sees from outside. How many outputs must you see to know the parameters?
#
# **Do.** Write `read_off(f, kind)`, which finds the parameters of a function from its values. About 10 lines.
#
# - Input: `kind` is `"line"`, `"plane"` or `"parabola"`. `f` is a function of that kind. You call it with a number,
#   `f(x)`, or with two if it is a plane, `f(x, y)`.
# - Output: its parameters, in the order of the formulas above: `[m, b]`, or `[a, b, c]`.
# - **Budget:** as few calls of `f` as there are parameters.


# %% nbgrader={"grade": false, "grade_id": "read_off", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_off(f, kind):
    ### BEGIN SOLUTION
    if kind == "plane":
        c = f(0, 0)
        return [f(1, 0) - c, f(0, 1) - c, c]
    c = f(0)
    if kind == "line":
        return [f(1) - c, c]
    right, left = f(1), f(-1)
    return [(right + left) / 2 - c, (right - left) / 2, c]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "read_off-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.read_off", read_off)

# %% [markdown]
# **Why.** Each value is one equation, and as many equations as unknowns are enough. Real data has noise, so training
# uses far more values than parameters where it can, and looks for the parameters that fit best.
#
# ## 2 · Lines in a row are a line
#
# Take f(x) = 3x − 1 and g(x) = −x + 2. You can add them, multiply them, or use the output of one as the input of the
# other. NumPy does the algebra, and prints the coefficients from the lowest power to the highest.

# %%
from numpy.polynomial import Polynomial

f, g = Polynomial([-1, 3]), Polynomial([2, -1])
print("f + g   ", f + g)
print("f · g   ", f * g)
print("f(g(x)) ", f(g))

# %% [markdown]
# The sum of the two lines and f(g(x)) are lines again. Only the product is curved. The same is true of matrices: two
# linear layers, one after the other, are one linear layer.
#
# ![The lines f and g, and what becomes of them: their sum and f of g are straight again, and only their product is curved.](drawings/composed.svg)

# %%
numbers = np.random.default_rng(1)
A, B, x = numbers.normal(size=(4, 3)), numbers.normal(size=(3, 5)), numbers.normal(size=(2, 4))
np.abs((x @ A) @ B - x @ (A @ B)).max()

# %% [markdown]
# **Why.** The difference is only rounding. However many linear layers you stack, the result is a line, a plane, or
# the equivalent in more dimensions. So there must be something between the layers that is not linear. Often this is
# **relu**, max(0, x), which is straight on both sides and bent at one point.
#
# ## 3 · A neuron asks how much two vectors agree
#
# A **neuron** has a weight for each input and a **bias** b. It computes b + x₁w₁ + x₂w₂ + …, the **weighted sum**,
# and applies an **activation** such as relu to it. Without the bias, the sum is the **dot product** of inputs and
# weights. It is large where both are large and have the same sign. So the neuron measures how much the input looks
# like its weights.
#
# ![A neuron multiplies each of three inputs by a weight of its own, adds the three products and a bias, and bends the sum with a function.](drawings/neuron.svg)
#
# The dot product also grows with the lengths of the two vectors. If you divide it by both lengths, you get the
# **cosine similarity**. It is 1 for vectors in the same direction, 0 at a right angle, and −1 in opposite directions.
#
# **Do.** Write `cosine(u, v)` without NumPy. About 5 lines.
#
# - Input: two lists of numbers, of equal length.
# - Output: their cosine similarity, a float. A vector of zeros has no direction, so return 0.0 if one of the two is
#   such a vector.

# %% nbgrader={"grade": false, "grade_id": "cosine", "locked": false, "schema_version": 3, "solution": true, "task": false}
from math import sqrt


def cosine(u, v):
    ### BEGIN SOLUTION
    dot = sum(x * y for x, y in zip(u, v, strict=True))
    lengths = sqrt(sum(x * x for x in u) * sum(y * y for y in v))
    return dot / lengths if lengths else 0.0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "cosine-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.cosine", cosine)

# %% [markdown]
# **See.** A picture of a T with 5 × 5 pixels, flattened to 25 numbers, is compared with four other pictures. A dark
# pixel is 1, and a light one is −1.

# %%
gpulab.need(cosine)
pictures = {
    "T": "##### ..#.. ..#.. ..#.. ..#..",
    "T, a pixel off": "##### ..#.. ..#.. ..#.. ...#.",
    "L": "#.... #.... #.... #.... #####",
    "I": "..#.. ..#.. ..#.. ..#.. ..#..",
    "T, negative": "..... ##.## ##.## ##.## ##.##",
}
pixels = {name: [1 if p == "#" else -1 for p in text if p != " "] for name, text in pictures.items()}
for name, other in pixels.items():
    dot = sum(x * y for x, y in zip(pixels["T"], other, strict=True))
    print(f"{name:16}weighted sum {dot:4}   cosine {cosine(pixels['T'], other):6.2f}")

# %% [markdown]
# **Why.** A neuron whose weights are the T detects T's, and its bias decides how similar the input must be. In
# trained image networks, neurons of the first layers react to edges, later ones to parts, and the last ones to whole
# objects such as faces (M. Zeiler and R. Fergus, 2014). Each of them is still a weighted sum, a bias and an
# activation.
#
# ## 4 · Shapes
#
# Many neurons side by side are a **layer**, and their weights form a **matrix**. A matrix of shape a × b times one of
# b × c is a matrix of a × c. The inner sizes must be equal, and each output is the dot product of a row and a column.
# The order of the factors matters.
#
# ![Four shapes side by side: a number has no axis, a vector has one, a matrix has two, and a batch of matrices has three.](drawings/shapes.svg)
#
# A matrix can be data, such as 1,024 rows of inputs. It can also be a function, such as a rotation. In a product of
# functions the right one acts first:

# %%
quarter, stretch = np.array([[0, -1], [1, 0]]), np.array([[2, 0], [0, 1]])
print("turn, then stretch:", stretch @ quarter @ [1, 0], "  stretch, then turn:", quarter @ stretch @ [1, 0])

# %% [markdown]
# An **adjacency matrix** says which of several people are friends. A matrix that is mostly zeros, like this one, is
# called **sparse**. In the one below, persons 0 and 4 are friends of person 1. Before you run it: what does the
# square of this matrix count?

# %%
friends = np.zeros((5, 5), dtype=int)
friends[[0, 1, 1, 4], [1, 0, 4, 1]] = 1
print(friends @ friends)  # ways from one to another over a friend

# %% [markdown]
# A **tensor** extends vectors and matrices to any number of axes. The number of axes is its **rank**, the **shape**
# lists their lengths, and the **dtype** says what each element is.

# %%
image = torch.zeros((768, 1024, 3), dtype=torch.uint8)  # rows, columns, red green blue
print("a picture:", tuple(image.shape), image.dtype, f"rank {image.dim()}, {image.nbytes:,} bytes")

# %% [markdown]
# One layer for a whole batch is `inputs @ weights + bias`. The bias is one row, which is added to every row of the
# product. This is called **broadcasting**. Everything in this course comes down to this matrix product, which is also
# most of what a GPU does for a neural network.
#
# **Predict.** A batch has 1,024 rows of 512 numbers, and the weights are 512 × 256. How many **FLOP** (floating-point
# operations: multiplications and additions) does the product take?

# %%
gpulab.predict("neural.flop", ...)

# %%
inputs, weights, bias = torch.randn(1024, 512), torch.randn(512, 256), torch.randn(256)
outputs = inputs @ weights + bias
print(tuple(outputs.shape), f"{2 * outputs.numel() * inputs.shape[1]:,} FLOP for the product")

# %% [markdown]
# ## 5 · Nine numbers that can do it
#
# **XOR** is 1 if exactly one of two inputs is 1. No straight line separates its ones from its zeros, so a single
# neuron cannot compute it. The smallest layered network that can is **2-2-1**: two inputs, a **hidden layer** of two
# neurons with relu, and one output without activation.
#
#     h1 = relu(a1·x1 + a2·x2 + a0)
#     h2 = relu(b1·x1 + b2·x2 + b0)
#     out = va·h1 + vb·h2 + c
#
# These are nine parameters. Before you let a program search for them, find them yourself. Here is a useful fact: if
# the sum inside a relu is never negative at the four corners, the relu does not change it. So you may shift a sum up
# until it is never negative, and subtract the shift again in `c`.
#
# **Do.** Write `gate(outputs)`, which returns parameters for any four outputs. About 6 lines. Start with pen and
# paper.
#
# - Input: four numbers, which the network should give at (x1, x2) = (0, 0), (0, 1), (1, 0) and (1, 1). For XOR they
#   are `[0, 1, 1, 0]`.
# - Output: the list `[a1, a2, a0, b1, b2, b0, va, vb, c]`.
# - The check tries XOR, then all sixteen gates, and then any four numbers. Full marks need all of them.


# %% nbgrader={"grade": false, "grade_id": "gate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gate(outputs):
    ### BEGIN SOLUTION
    t00, t01, t10, t11 = outputs
    a, b = t10 - t00, t01 - t00  # the straight part is right at three points
    k = t11 - t10 - t01 + t00  # what is missing at (1, 1)
    lift = abs(a) + abs(b)  # relu never cuts the straight part
    return [a, b, lift, 1, 1, -1, 1, k, t00 - lift]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gate-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.gate", gate)

# %% [markdown]
# **See.** The network as you would write it in PyTorch, with your nine numbers in it.

# %%
gpulab.need(gate)


class Xor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


corners = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
xor = torch.tensor([0.0, 1.0, 1.0, 0.0])
network = Xor()
a1, a2, a0, b1, b2, b0, va, vb, c = map(float, gate([0, 1, 1, 0]))
with torch.no_grad():
    network.fc1.weight.copy_(torch.tensor([[a1, a2], [b1, b2]]))
    network.fc1.bias.copy_(torch.tensor([a0, b0]))
    network.fc2.weight.copy_(torch.tensor([[va, vb]]))
    network.fc2.bias.fill_(c)
print("outputs:", network(corners).flatten().tolist())
print("parameters:", {name: tuple(p.shape) for name, p in network.named_parameters()})
print("in all:", sum(p.numel() for p in network.parameters()))

# %% [markdown]
# **Why.** One bend is enough: a linear part that is right at three corners, and a relu that is 0 at these three and 1
# at the fourth. So the network *can* compute XOR. Section 8 asks how often training succeeds.
#
# ## 6 · Which way is down
#
# A **loss** is one number that says how wrong the outputs are. Its **gradient** has one number for each parameter,
# which says how fast the loss grows with it. **Gradient descent** takes a small step in the opposite direction: p ←
# p − lr · gradient, where lr is the **learning rate**.
#
# ![The loss over one weight is a valley. A step goes against the slope: a small step comes closer to the lowest point, and one that is too large jumps over it to the other side.](drawings/descent.svg)
#
# The **chain rule** gives the gradient. Write the computation down step by step, as a **tape**, and then go through
# it backwards. The gradient of the last value is 1. Each step passes a share back to every value that it was made
# from. The share is the step's own gradient times its slope with respect to that value. If a value was used several
# times, its shares are added. This is **back-propagation**.
#
# | step | share of i | share of j |
# |---|---|---|
# | `["add", i, j]` | g | g |
# | `["mul", i, j]` | g · value j | g · value i |
# | `["tanh", i]` | g · (1 − t²), where t is the step's own value | |
#
# For example, x · x at 3 is the tape `[["input", 3.0], ["mul", 0, 0]]`. The product passes 1 · 3 to each factor. Both
# are x, so its gradient is 3 + 3 = 6.
#
# **Do.** Write `gradients(tape)`. About 20 lines; `tanh` is imported.
#
# - Input: a list of steps. Step k makes value k, and `["input", x]` gives x.
# - Output: a list with the gradient of *every* value: how fast the last value changes with it. For the example it is
#   `[6.0, 1.0]`.
# - Full marks need every gradient right.

# %% nbgrader={"grade": false, "grade_id": "gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
from math import tanh


def gradients(tape):
    ### BEGIN SOLUTION
    values = []
    for op, *uses in tape:
        if op == "input":
            values.append(uses[0])
        elif op == "add":
            values.append(values[uses[0]] + values[uses[1]])
        elif op == "mul":
            values.append(values[uses[0]] * values[uses[1]])
        else:
            values.append(tanh(values[uses[0]]))
    shares = [0.0] * len(tape)
    shares[-1] = 1.0
    for k in reversed(range(len(tape))):
        op, *uses = tape[k]
        if op == "add":
            shares[uses[0]] += shares[k]
            shares[uses[1]] += shares[k]
        elif op == "mul":
            shares[uses[0]] += shares[k] * values[uses[1]]
            shares[uses[1]] += shares[k] * values[uses[0]]
        elif op == "tanh":
            shares[uses[0]] += shares[k] * (1 - values[k] ** 2)
    return shares
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gradients-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.gradients", gradients)

# %% [markdown]
# **See.** PyTorch keeps such a tape by itself, and `backward()` goes through it. Here is the same tape in PyTorch:

# %%
gpulab.need(gradients)
tape = [["input", 0.5], ["input", -1.5], ["mul", 0, 1], ["tanh", 2], ["mul", 3, 0], ["add", 4, 3]]

values = []
for op, *uses in tape:
    if op == "input":
        values.append(torch.tensor(uses[0], dtype=torch.float64, requires_grad=True))
    else:
        steps = {"add": torch.add, "mul": torch.mul, "tanh": torch.tanh}
        values.append(steps[op](*(values[i] for i in uses)))
        values[-1].retain_grad()  # PyTorch forgets the gradients of results unless it is told not to
values[-1].backward()
for mine, theirs in zip(gradients(tape), values, strict=True):
    print(f"{mine:12.9f}{theirs.grad.item():14.9f}")

# %% [markdown]
# **Why.** One pass backwards gives the gradients with respect to *all* values, however many parameters there are. It
# costs a few times as much as the forward pass. If you changed each parameter a little by itself, you would need a
# forward pass for each.
#
# ## 7 · Each value once
#
# The steps of a tape are in order. Often there is no tape, but only values that know which values they were made
# from, their **parents**. Then the program must choose the order in which it goes backwards. Below is an autograd of
# a dozen lines. It follows every use of every value, as you would read the chain rule: it takes all paths from the
# result, one by one.
#
# ![A value that two others use gets a slope from each. A walk back along every use visits it twice; a walk that waits for both slopes visits it once.](drawings/shared_value.svg)


# %%
class Value:
    def __init__(self, number, *uses):
        self.number, self.grad, self.uses = number, 0.0, uses  # uses: (parent, slope)

    def __add__(self, other):
        return Value(self.number + other.number, (self, 1.0), (other, 1.0))

    def __mul__(self, other):
        return Value(self.number * other.number, (self, other.number), (other, self.number))


def along_every_use(value, share=1.0):
    """Adds the gradients up and returns how many visits that took."""
    value.grad += share
    return 1 + sum(along_every_use(parent, share * slope) for parent, slope in value.uses)


def doubled(times):
    x = y = Value(1.0)
    for _ in range(times):
        y = y + y
    return x, y


x, y = doubled(3)
visits = along_every_use(y)
print(f"three doublings: gradient {x.grad:g}, {visits} visits")

# %% [markdown]
# **Predict.** How many visits does this recursion make for twenty `y = y + y`?

# %%
gpulab.predict("neural.visits", ...)

# %% [markdown]
# **Do.** Write `backward(parents, result)`, which returns an order in which to visit the values. About 9 lines.
#
# - Input: `parents[v]` lists the values that v was made from, twice if v used one twice. The values are numbered in
#   no particular order. `result` is the number of the result.
# - Output: a list of values, which begins with the result. A visit passes on what has arrived at the value since its
#   last visit. At the end nothing may be left that has not been passed on.
# - **Budget:** one visit for each value that the result depends on, and none for others. More visits are allowed, but
#   cost points.
# - For example, the order for `[[], [0, 0], [1, 0]]` and 2 is `[2, 1, 0]`.


# %% nbgrader={"grade": false, "grade_id": "backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backward(parents, result):
    ### BEGIN SOLUTION
    seen, finished = set(), []

    def walk(value):
        seen.add(value)
        for parent in parents[value]:
            if parent not in seen:
                walk(parent)
        finished.append(value)

    walk(result)
    return finished[::-1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "backward-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.backward", backward)

# %% [markdown]
# **See.** The figure shows the number of visits against the number of doublings, for three ways to go back: along
# every use, in your order, and in PyTorch's order, where a hook on each node of the graph counts the visits.

# %%
gpulab.need(backward)


def in_your_order(result):
    values, number = [result], {id(result): 0}
    for value in values:
        for parent, _ in value.uses:
            if id(parent) not in number:
                number[id(parent)] = len(values)
                values.append(parent)
    order = backward([[number[id(parent)] for parent, _ in value.uses] for value in values], 0)
    result.grad = 1.0
    for v in order:
        for parent, slope in values[v].uses:
            parent.grad += slope * values[v].grad
    return len(order)


def in_pytorch(times):
    visits = []
    y = torch.ones((), requires_grad=True)
    for _ in range(times):
        y = y + y
    nodes = {y.grad_fn}
    while more := {n for node in nodes for n, _ in node.next_functions if n} - nodes:
        nodes |= more
    for node in nodes:
        node.register_hook(lambda *_: visits.append(1))
    y.backward()
    return len(visits)


sizes = (1, 2, 4, 8, 12, 16, 20)
counted = {
    "along every use": [(n, along_every_use(doubled(n)[1])) for n in sizes],
    "your order": [(n, in_your_order(doubled(n)[1])) for n in sizes],
    "PyTorch": [(n, in_pytorch(n)) for n in sizes],
}
print("twenty doublings:", {name: f"{pairs[-1][1]:,}" for name, pairs in counted.items()})
gpulab.plot.lines(
    counted,
    "doublings",
    "visits",
    "Along every use the visits double with each doubling, in your order and in PyTorch one is added.",
    log_y=True,
)

# %% [markdown]
# **Why.** The number of paths through a graph grows exponentially with its depth, but the number of values does not.
# An order in which every value comes after all values that were made from it is called **topological** (it is the
# topological order of the backward graph). Transformers and other networks with skip connections have especially many
# paths: one for each choice of going through a layer or around it.
#
# ## 8 · The training loop, two hundred times
#
# Training repeats four lines: compute the loss, clear the gradients, go backwards, take a step.
#
#     loss = loss_of(network(inputs), targets)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#
# The start is random, so a single run says little. The cell below trains 200 networks on XOR side by side, each from
# its own start. Most of them use relu and the mean squared error (**MSE**) as the loss. One kind uses tanh and
# **binary cross-entropy**, which is −ln of the probability that the network gives to the right answer.
#
# A start has learned XOR if its loss at the end, of either kind, is below 0.01. Weights and biases start evenly
# distributed in ± 0.71. With such starts 13 in 48 hidden units are cut off (their relu gives 0) at all four corners,
# and 13 in 48 at no corner.
#
# **Predict.** From how many of 200 starts does 2-2-1 with relu learn XOR, in 2,000 steps at a learning rate of 0.1?

# %%
gpulab.predict("neural.solved", ...)


# %%
def train_xor(hidden, activation, cross_entropy=False, lr=0.1, starts=200, steps=2000):
    """End loss (starts,) and outputs (starts, 4) of networks 2-hidden-1, each with its own start."""
    numbers = torch.Generator().manual_seed(1)

    def uniform(*shape, inputs):  # as nn.Linear starts: ± 1 / √inputs
        return ((2 * torch.rand(starts, *shape, generator=numbers) - 1) / inputs**0.5).requires_grad_()

    w1, b1 = uniform(2, hidden, inputs=2), uniform(1, hidden, inputs=2)
    w2, b2 = uniform(hidden, 1, inputs=hidden), uniform(1, 1, inputs=hidden)
    optimizer = torch.optim.SGD([w1, b1, w2, b2], lr)
    for _ in range(steps):
        outputs = (activation(corners @ w1 + b1) @ w2 + b2).squeeze(2)
        if cross_entropy:
            each = F.binary_cross_entropy_with_logits(outputs, xor.expand(starts, 4), reduction="none")
        else:
            each = (outputs - xor) ** 2
        losses = each.mean(1)
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
    return losses.detach(), (outputs.sigmoid() if cross_entropy else outputs).detach()


trained = {
    "2 relu, MSE": train_xor(2, torch.relu),
    "2 tanh, cross-entropy": train_xor(2, torch.tanh, cross_entropy=True, lr=0.5),
    "4 relu, MSE": train_xor(4, torch.relu),
    "16 relu, MSE": train_xor(16, torch.relu),
}
solved = {name: int((losses < 0.01).sum()) for name, (losses, _) in trained.items()}
gpulab.predict("neural.solved", measured=solved["2 relu, MSE"])

# %%
gpulab.plot.bars(solved, "starts that learn XOR, of 200")

# %% [markdown]
# **See.** Where do those 2-2-1 networks end that do not learn XOR? Each has got stuck at one of a few losses. The
# figure sorts the starts of the relu networks by their loss at the end.

# %%
losses, outputs = trained["2 relu, MSE"]
for level in (1 / 4, 1 / 6, 1 / 8, 0.0):
    there = (losses - level).abs() < 0.005
    example = ", ".join(f"{round(v, 2) + 0.0:.2f}" for v in outputs[there][0].tolist())
    print(f"loss {level:.3f}: {int(there.sum()):3} of 200   outputs of one of them: {example}")

gpulab.plot.lines(
    {
        name: list(enumerate(sorted(ends.tolist())))
        for name, (ends, _) in trained.items()
        if name.endswith("relu, MSE")
    },
    "starts, sorted by end loss",
    "end loss, mean squared error",
    "Of relu units, 16 leave no start stuck; with two or four, the stuck ones share three losses.",
    step=True,
)

# %% [markdown]
# **Why.** A relu that is cut off at all four corners has slope 0 there, so its weights never change again. It is a
# **dead** unit. A relu that is cut off at no corner is a straight line and bends nothing. If both units are of these
# kinds, the best output is ½ everywhere, with a loss of ¼. If the network is flat over three corners, they share the
# output ⅔, and the loss is ⅙. If it is flat over two corners that need different outputs, the loss is ⅛. With many
# units it is unlikely that all of them start badly. This is one reason why networks in practice have far more
# parameters than the task needs.
#
# Look into one of these networks. After `backward()` every parameter has its gradient beside it. One hidden unit is
# dead. Which one is it, and how can you tell?

# %%
torch.manual_seed(1)
network = Xor()
loss = F.mse_loss(network(corners).squeeze(1), xor)
loss.backward()
for name, parameter in network.named_parameters():
    now, slope = ([round(v, 3) for v in t.flatten().tolist()] for t in (parameter.data, parameter.grad))
    print(f"{name:11}{now!s:32} gradient {slope}")

# %% [markdown]
# ## End of sitting 1
#
# You have written the gradient of a network by hand, had it computed with one visit for each value, and watched a
# loop of two hundred steps train with it. The second sitting looks at the price: which results training has to
# keep, how a batch is split, and how all of this grows into a language model.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("01")

# %% [markdown]
# ## 9 · What forward keeps
#
# The backward pass needs results of the forward pass: `mul` needs the other factor, and `tanh` its own value. PyTorch
# keeps them from forward until backward, and they often take more memory than the model itself. **Inference** means
# using the model without training it. It has no labels, no loss and no backward pass, so it does not need to keep
# anything.
#
# There are three switches, and they do different things:
#
# | switch | what it does |
# |---|---|
# | `model.eval()` | changes the layers that behave differently in training, such as dropout and batch norm. *Results are still kept* |
# | `torch.no_grad()` | keeps nothing for a backward pass |
# | `torch.inference_mode()` | the same, and its results can never take part in a backward pass later, which saves bookkeeping |


# %%
class Kept:
    """Counts the bytes that forward keeps for backward, each piece of memory once."""

    def __enter__(self):
        self.pieces = {}
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.note, lambda tensor: tensor)
        self.hooks.__enter__()
        return self

    def note(self, tensor):
        self.pieces[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def __exit__(self, *problem):
        self.hooks.__exit__(*problem)

    def bytes(self, but=()):
        own = {t.untyped_storage().data_ptr() for t in but}
        return sum(t.nbytes for place, t in self.pieces.items() if place not in own)


mlp = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(128, 128), nn.ReLU())))
rows = torch.randn(64, 128)
there_anyway = (rows, *mlp.parameters())
with Kept() as training:
    mlp(rows)
with Kept() as evaluating:
    mlp.eval()(rows)
with Kept() as without, torch.no_grad():
    mlp(rows)
counts = {"train()": training, "eval()": evaluating, "no_grad()": without}
gpulab.plot.bars({name: kept.bytes(but=there_anyway) for name, kept in counts.items()}, "bytes kept")

# %% [markdown]
# **Do.** Write `keep(tape, learn)`, which lists the results that must be kept for the backward pass. About 14 lines.
#
# - Input: a tape as in section 6, whose inputs (weights among them) are `["input"]`. `learn` lists the inputs whose
#   gradients are wanted. The other inputs need no gradient.
# - Output: the numbers of the values that must be kept by the table below. Leave out inputs, because they stay in
#   memory anyway.
# - The backward pass starts at the last value. A step that the last value does not depend on needs nothing.
#
# | step | needed for the gradient of i | needed for the gradient of j |
# |---|---|---|
# | `["add", i, j]` | nothing | nothing |
# | `["mul", i, j]`, `["matmul", i, j]` | value j | value i |
# | `["relu", i]` | its own result | |
#
# - For `[["input"], ["input"], ["mul", 0, 1], ["relu", 2]]` and `[0]` the answer is `[3]`.
# - **Budget:** no value more than the table asks for.


# %% nbgrader={"grade": false, "grade_id": "keep", "locked": false, "schema_version": 3, "solution": true, "task": false}
def keep(tape, learn):
    ### BEGIN SOLUTION
    wanted = set(learn)
    for value, (op, *uses) in enumerate(tape):
        if wanted.intersection(uses):
            wanted.add(value)
    needed, reached = set(), {len(tape) - 1}
    for value in reversed(range(len(tape))):
        op, *uses = tape[value]
        if value in wanted and value in reached:
            reached.update(uses)
            if op == "relu":
                needed.add(value)
            elif op in ("mul", "matmul"):
                i, j = uses
                needed |= ({j} if i in wanted else set()) | ({i} if j in wanted else set())
    return [value for value in needed if tape[value][0] != "input"]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "keep-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.keep", keep)

# %% [markdown]
# **See.** Your rules against PyTorch, on the network above followed by a product. First all layers learn, then only
# the last one, as in fine-tuning, and then none.

# %%
gpulab.need(keep)
tape, of_layers, before = [["input"]], [], 0  # of_layers: weights and bias of each
for _ in range(4):
    w = len(tape)
    tape += [["input"], ["input"], ["matmul", before, w], ["add", w + 2, w + 1], ["relu", w + 3]]
    of_layers.append([w, w + 1])
    before = w + 4
tape += [["input"], ["mul", before, len(tape)]]

layers = [m for m in mlp if isinstance(m, nn.Linear)]
for name, first in (("all layers", 0), ("the last", 3), ("none", 4)):  # the first layer that learns
    for i, layer in enumerate(layers):
        layer.requires_grad_(i >= first)
    targets = torch.randn(64, 128)
    with Kept() as kept:
        (mlp(rows) * targets).sum()
    learn = [value for layer in of_layers[first:] for value in layer]
    yours = 4 * 64 * 128 * len(keep(tape, learn))
    theirs = kept.bytes(but=(*there_anyway, targets))
    print(f"{name:12} you {yours:8,} bytes   PyTorch {theirs:8,} bytes")

# %% [markdown]
# A custom function tells autograd itself what to keep and which gradients to pass on. Before you read on: which of x,
# weight and bias does the backward pass of x · weightᵀ + bias need? (PyTorch stores weights as outputs × inputs.
# `addmm` accepts only two axes.)


# %%
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)  # not bias: its slope is 1
        return torch.addmm(bias, x.flatten(0, -2), weight.t()).unflatten(0, x.shape[:-1])

    @staticmethod
    def backward(ctx, grad):  # a gradient for each argument of forward
        x, weight = ctx.saved_tensors
        rows, shares = x.flatten(0, -2), grad.flatten(0, -2)
        return grad @ weight, shares.t() @ rows, shares.sum(0)


x, weight, bias = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 5), (4, 5), (4,)))
print("as nn.functional.linear:", torch.allclose(Linear.apply(x, weight, bias), F.linear(x, weight, bias)))
print("gradients hold against nudging:", torch.autograd.gradcheck(Linear.apply, (x, weight, bias)))

# %% [markdown]
# **Why.** What forward keeps grows with the batch, the length of the sequences and the number of layers. Lab 08
# trades it for time (checkpointing). Labs 02 and 16 count it for large models.
#
# ## 10 · A batch in pieces
#
# A batch that does not fit into memory is cut into **micro-batches**. Each of them goes forward and backward, and
# `backward()` adds to the gradients that are already there. The step comes after the last one. This is **gradient
# accumulation**. The result should be the same as for the whole batch, and it is, if each piece has the right weight.
#
# ![A batch of eight examples is worked through in four pieces of two. Each piece adds its slopes to a sum that stays, and one step of the optimizer follows after the last piece.](drawings/pieces.svg)
#
# **Predict.** One piece has a mean loss of 4.0 over 10 tokens, and the other has 2.0 over 30 tokens. What is the mean
# loss over all 40 tokens?

# %%
gpulab.predict("neural.halves", ...)

# %% [markdown]
# Many guides divide each piece's loss by the number of pieces. That is right only if all pieces have equally many
# tokens. Many guides also step after every k pieces and forget the last, incomplete group.
#
# **Do.** Write `accumulate(tokens, batch, room)`, which plans the passes. About 9 lines.
#
# - Input: row r has `tokens[r]` tokens. Each `batch` consecutive rows are a batch, and the last batch may have fewer.
# - A pass takes some rows of one batch, in any order, padded to the longest of them. Number of rows times longest row
#   must not exceed `room`. A single row never does.
# - Output: a list of passes `[rows, weight, step]`: the numbers of the rows, the factor for their *mean loss per
#   token*, and whether the optimizer steps after the pass.
# - Every row is in one pass, every token of a batch counts the same, and each batch ends with one step.
# - For example, `accumulate([3, 1], 2, 6)` is `[[[0, 1], 1.0, True]]`. Without rows the list is empty.
# - **Budget:** as few passes as possible.


# %% nbgrader={"grade": false, "grade_id": "accumulate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulate(tokens, batch, room):
    ### BEGIN SOLUTION
    plan = []
    for first in range(0, len(tokens), batch):
        rows = sorted(range(first, min(first + batch, len(tokens))), key=lambda row: -tokens[row])
        total = sum(tokens[row] for row in rows)
        while rows:
            fit = room // tokens[rows[0]]
            now, rows = rows[:fit], rows[fit:]
            plan.append([now, sum(tokens[row] for row in now) / total, not rows])
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "accumulate-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.accumulate", accumulate)

# %% [markdown]
# **See.** The smallest language model is a table that has, for each token, the scores of the next one. The cell
# computes its gradient for a batch of twelve rows in three ways: for the whole batch at once, by your plan, and with
# equal weights for all pieces.

# %%
gpulab.need(accumulate)
lengths = [3, 40, 7, 22, 5, 31, 12, 4, 18, 9, 26, 2]
text = [torch.randint(0, 20, (n + 1,), generator=torch.Generator().manual_seed(n)) for n in lengths]


def gradient(passes):
    table = nn.Embedding(20, 20)
    nn.init.zeros_(table.weight)
    for rows, weight, _ in passes:
        tokens = torch.cat([text[row][:-1] for row in rows])
        following = torch.cat([text[row][1:] for row in rows])
        (weight * F.cross_entropy(table(tokens), following)).backward()  # backward adds up
    return table.weight.grad


plan = accumulate(lengths, 12, 80)
whole = gradient([[range(12), 1.0, True]])
alike = gradient([[rows, 1 / len(plan), step] for rows, _, step in plan])
for name, other in (("your weights", gradient(plan)), ("all alike", alike)):
    off = ((other - whole).norm() / whole.norm()).item()
    print(f"{name:14}off by {100 * off:.4f} % in {len(plan)} passes")

# %% [markdown]
# **Why.** With equal weights the short pieces counted too much. The right weights hold for any mean, over tokens,
# rows or pixels. Libraries had this wrong for years, and Hugging Face's Transformers corrected it in October 2024
# (huggingface.co/blog/gradient_accumulation). With several GPUs, the weight of a piece is its share of the tokens on
# all of them. The gradients should then be exchanged once per step, not once per pass (`no_sync()`, lab 15).
#
# ## 11 · A transformer, block by block
#
# A **language model** gets **tokens**, which are characters here. For each place it returns **logits**: a score for
# every token that may come next. The GPT below is written out in `gpulab/models/gpt.py`.
#
# ![A block of a transformer from bottom to top: norm, attention, plus; norm, MLP, plus. Each plus adds what was there before the norm.](drawings/block.svg)
#
# 1. **Embedding**: a row of a table for each token, plus one for its place. Llama instead rotates queries and keys by
#    an angle (**rotary**).
# 2. **Attention**: each token has a **query**, a **key** and a **value**. Scores are query · key / √(head width).
#    Softmax turns them into weights, and the output is the weighted sum of the values. Several **heads** do this side
#    by side.
# 3. **Feed-forward**: two layers with an activation between them, four times as wide inside.
# 4. Around attention and around feed-forward there is a **residual** connection, x + f(norm(x)), with **layer norm**
#    or RMS norm.
# 5. A last norm and the **head**, which often uses the embedding table again (**tied**).

# %%
from gpulab.models import gpt, training
from gpulab.models.config import Config

print(gpt.GPT(Config(vocabulary=24, context=80, width=48, layers=1, heads=4)))

# %% [markdown]
# `Config` is a model's size and form (`Config?`). `GPT(config, attend=…)` accepts your own attention function:
# `attend(queries, keys, values, allowed)`. The first three have the shape (rows, heads, tokens, head width), and
# `allowed` is True where a query may look. A model that writes keeps the keys and values of earlier tokens in a
# **cache**, so only the newest token needs a query.

# %%
from gpulab.models.text import STORY_NATS, VOCABULARY, Stories, decode, encode

torch.manual_seed(0)
model = gpt.GPT(Config(VOCABULARY, context=80, width=48, layers=2, heads=4))
tokens = torch.tensor([encode("ana lost a red kite")])
attention = model.blocks[0].attention
x = model.blocks[0].attention_norm(model.embed(tokens) + model.places.weight[: tokens.shape[1]])
queries, keys, values = (
    part(x).unflatten(2, (4, 12)).transpose(1, 2)
    for part in (attention.query, attention.key, attention.value)
)
scores = queries @ keys.transpose(2, 3) / math.sqrt(12)
scores = scores.masked_fill(~torch.ones(19, 19).tril().bool(), -math.inf)  # nobody looks ahead
by_hand = attention.out((scores.softmax(-1) @ values).transpose(1, 2).flatten(2))

shapes = {"tokens": tokens, "x": x, "queries": queries, "scores": scores, "output": by_hand}
for name, tensor in (shapes | {"logits": model(tokens)}).items():
    print(f"{name:9}{tuple(tensor.shape)}")
theirs = attention(x, gpt.may_look(19), torch.arange(19)[None])  # x, the mask, the places (for rotary)
print("by hand as in the model:", torch.allclose(by_hand, theirs, atol=1e-6))

# %% [markdown]
# **See.** Which places depend on which tokens? The cell changes one token at a time, and marks the places whose
# logits change. Nothing is marked to the right of the diagonal because of the **causal mask**: the score of a later
# token is −∞ before the softmax. In the second picture the first three places are padding. No token depends on them,
# and each depends only on itself.


# %%
def influence(model, tokens, present=None):
    """(length, length): True at (i, j) where the logits of place i change with token j."""
    with torch.no_grad():
        before = model(tokens, present)
        changed = []
        for j in range(tokens.shape[1]):
            other = tokens.clone()
            other[:, j] = (other[:, j] + 1) % VOCABULARY
            changed.append((model(other, present) != before).any(-1)[0])
    return torch.stack(changed, 1)


axes = gpulab.plot.axes(8, 4.9, 1, 2)
present = torch.tensor([[False] * 3 + [True] * 9])
for ax, title, where in zip(axes, ("no padding", "padding at 0, 1, 2"), (None, present), strict=True):
    gpulab.plot.mask(influence(model, tokens[:, :12], where), "logits of place", "token changed", ax)
    ax.set_title(title)
gpulab.plot.picture(axes[0])

# %% [markdown]
# ## 12 · Shifted labels, padding, and who may look where
#
# The label of a place is the **next** token, so the labels are the tokens shifted by one. If you forget to shift
# them, the model learns to copy its input, with a loss near zero. The last place has no label. The rows of a batch
# are padded to the longest one. Padding gets the label −100, which `cross_entropy` ignores.
#
# ![Left: the label of each token is the token after it, and the last place has none. Right: the causal mask of five tokens; each row may look at itself and at what comes before it.](drawings/shift_and_mask.svg)
#
# Masks have opposite meanings in different functions. In `scaled_dot_product_attention` a boolean True means *may
# look*. In `nn.MultiheadAttention` a True in `key_padding_mask` means *ignore*. A float mask is *added* to the
# scores.
#
# If a place may look nowhere, its softmax is 0/0. Written by hand, and by default in `nn.MultiheadAttention`, that is
# NaN; `scaled_dot_product_attention` gives zeros (PyTorch 2.13). So let padding look at itself.
#
# **Do.** Write `labels(rows, side)`. About 9 lines.
#
# - Input: lists of tokens, at least one each, and `"right"` or `"left"`, the side of the padding. Pad with 0 to the
#   longest row. 0 may also be a real token.
# - Output: three lists with an entry for each row: the padded inputs; the labels, −100 where there is none; and for
#   each place the list of places at which it may look, in order.
#
# For `[[5, 6, 7], [8]]` and `"right"` they are
#
#     [[5, 6, 7], [8, 0, 0]]
#     [[6, 7, -100], [-100, -100, -100]]
#     [[[0], [0, 1], [0, 1, 2]], [[0], [1], [2]]]


# %% nbgrader={"grade": false, "grade_id": "labels", "locked": false, "schema_version": 3, "solution": true, "task": false}
def labels(rows, side):
    ### BEGIN SOLUTION
    longest = max(len(row) for row in rows)
    inputs, targets, look = [], [], []
    for row in rows:
        first = longest - len(row) if side == "left" else 0
        after = first + len(row)
        inputs.append([0] * first + row + [0] * (longest - after))
        targets.append([inputs[-1][i + 1] if first <= i < after - 1 else -100 for i in range(longest)])
        look.append([list(range(first, i + 1)) if first <= i < after else [i] for i in range(longest)])
    return inputs, targets, look
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "labels-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.labels", labels)

# %% [markdown]
# **Why.** Padding on the right comes after all real tokens, so the causal mask alone hides it from them. Only the
# labels need care. Padding on the left is used in generation. The causal mask does not hide it from the real tokens,
# so the mask must exclude it too, and places must be counted from the first real token.
#
# ## 13 · What surrounds the descent
#
# Most training runs share these parts:
#
# | part | what it does | in GPT-3 (arXiv:2005.14165, appendix B) |
# |---|---|---|
# | **Adam** | divides a running mean of the gradient by the root of a running mean of its square | β 0.9 and 0.95 |
# | **AdamW** | also shrinks the weights, by lr · decay | decay 0.1 |
# | **clipping** | scales all gradients down if their joint length exceeds a limit | limit 1.0 |
# | **schedule** | the learning rate rises from 0 (warm-up), then falls along half a cosine | rises over 375 million tokens; falls to a tenth |
#
# Both of Adam's means start at 0, and Adam corrects for that. Three more parts are common: the **initialisation**,
# which in GPT-2 is normal with a standard deviation of 0.02; **layer-wise rates** for very large batches (LAMB,
# arXiv:1904.00962), which scale a layer's step to the length of its weights; and **validation**, the loss on data
# that the model was never trained on.
#
# **Predict.** AdamW takes its very first step, with a learning rate of 0.1, one parameter, a gradient of 0.001, and
# no decay. How far does the parameter move?

# %%
gpulab.predict("neural.first_step", ...)

# %%
moved = {}
for size in (0.001, 1000.0):
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=0.1, weight_decay=0.0)
    parameter.grad = torch.tensor([size])
    optimizer.step()
    moved[size] = -parameter.item()
gpulab.predict("neural.first_step", measured=moved[0.001])
print({size: round(distance, 4) for size, distance in moved.items()})

# %% [markdown]
# The text to learn is generated while the model trains. It consists of little stories in which five words are picked,
# evenly and independently, and four of them are repeated:
#
#     hana drew a white bell near the pier. who drew a white bell? hana.
#
# The picks are from 8, 6, 5, 8 and 6 words. These five picks are all that cannot be foreseen. So no model's mean
# loss on fresh stories can be below their **entropy**, which is ln(8 · 6 · 5 · 8 · 6) = ln 11,520 nats per story.
#
# **Predict.** How many nats per character is that? Use the story above as a typical one.

# %%
gpulab.predict("neural.floor", ...)

# %%
print(Stories(0).text(180))
fresh, there = (torch.from_numpy(array) for array in Stories(99).padded(200))
characters = int((gpt.next_token_labels(fresh, there) != gpt.IGNORE).sum())
floor = STORY_NATS * len(fresh) / characters
gpulab.predict("neural.floor", measured=floor)


# %%
def train(model, steps, rate=0.008, rows=16):
    """Trains on stories; returns (step, loss on fresh stories) every 25 steps."""
    stories = Stories(1)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    log = []
    for step in training.steps(steps + 1):
        if step % 25 == 0:
            with torch.no_grad():
                log.append((step, gpt.loss(model, fresh, there).item()))
        for group in optimizer.param_groups:
            wave = 0.55 + 0.45 * math.cos(math.pi * step / steps)
            group["lr"] = rate * min(1, (step + 1) / 20) * wave
        batch, present = (torch.from_numpy(array) for array in stories.padded(rows))
        optimizer.zero_grad()
        gpt.loss(model, batch, present).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return log


def written(model, seed):
    """What the model writes after a line break."""
    start = torch.tensor([encode("\n")])
    return decode(gpt.generate(model, start, 68, torch.Generator().manual_seed(seed))[0].numpy())


log = train(model, 300)
for seed in range(3):
    print(written(model, seed).split("\n")[1])

# %% jupyter={"source_hidden": true}
gpulab.plot.lines(
    {"fresh stories": log},
    "steps",
    "loss, nats per character",
    "The loss on fresh stories falls towards the entropy and stays above it.",
    limits={"entropy": floor},
)

# %% [markdown]
# **Why.** The model has learned to spell and to repeat. Every story is newly generated, and no pick depends on
# earlier stories, so learning them by heart does not help. For ordinary text nobody knows the entropy. Here it is
# known, so a loss below it proves that something is wrong.
#
# ## Detective · Too good
#
# A colleague has changed the attention. It makes its own mask, so no mask needs to be passed around. `cached` counts
# the earlier keys when the model writes; in training there are none. "The same model, the same data, half the steps,
# and a fraction of your loss. On *fresh* stories."


# %%
def attend_quick(queries, keys, values, allowed):
    length, cached = queries.shape[2], keys.shape[2] - queries.shape[2]
    look = torch.ones(length, keys.shape[2], dtype=torch.bool).tril(cached + 1)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=look)


torch.manual_seed(0)
quick = gpt.GPT(model.config, attend=attend_quick)
quick_log = train(quick, 150)
print(f"entropy {floor:.3f}   yours {log[-1][1]:.3f}   the colleague's {quick_log[-1][1]:.3f}")
gpulab.plot.lines(
    {"yours, 300 steps": log, "the colleague's, 150": quick_log},
    "steps",
    "loss, nats per character",
    "The colleague's loss on fresh stories is far below the entropy.",
    limits={"entropy": floor},
    log_y=True,
)

# %%
for seed in range(3):
    print(repr(written(quick, seed)))

# %% [markdown]
# **Do.** The loss was computed as above, on newly generated stories. And yet no model can be that good. Find out how
# this one does it. `influence(quick, tokens)` says which place depends on which token, and `gpulab.plot.mask(…,
# "logits of place", "token changed")` draws it. Then correct one number above, train again, and let the corrected
# model write. The cell below is free.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what is wrong, which number proves it before you have found the line, and why is the
# text so bad although the loss is so good? A person reads this: 1 point for the cause, 1 point for a number of your
# own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "too-good-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The mask is off by one: `tril(cached + 1)` lets each place look at the next token, which is its label.
# The loss on fresh stories ended at 0.04 nats per character, below the entropy of 0.145. That is impossible without
# seeing what comes next. `influence(quick, tokens)` marks 35 cells to the right of the diagonal, two in each row but
# the last (there are two layers, and each looks one token ahead), where the causal model has none. When the model
# generates, the next token is not there yet, so it has nothing to copy and writes nonsense. With `tril(cached)` the
# loss is above the entropy again, and the model writes words.
#
# **1 point** (cause without a number): The attention can see the next token.
#
# **0 points:** The model has overfitted, or learned the stories by heart. (They are newly generated, and no pick
# depends on earlier ones.)

# %% [markdown]
# ## 14 · How large models are
#
# A layer from a to b numbers has a · b weights and b biases. A transformer consists of such layers:
#
# | part | parameters |
# |---|---|
# | embedding; head, unless tied | vocabulary × width each |
# | learned places | positions × width |
# | queries, output of attention | width × width each |
# | keys, values | width × (kv_heads · head width) each, where head width = width / heads |
# | feed-forward | 2 matrices of width × hidden, 3 if gated |
# | norms: two in each layer, one at the end | width each; 2 · width if `norm` is `"layer"` and `biases` is true |
#
# With `biases`, every matrix inside a layer has one bias for each of its outputs. The head has none. A **mixture of
# experts** has several feed-forward blocks in each layer, and a **router** of width × experts, without biases, which
# picks the ones that a token uses. If `experts` is 1, there is a plain feed-forward block and no router.
#
# **Do.** Write `parameters(model)`. About 15 lines.
#
# - Input: a dictionary. The cell above this one prints its keys.
# - Output: a list of two numbers: all parameters, and those that one token uses (all except the experts that are not
#   picked).
# - Full marks need both right for every model.

# %%
from gpulab.models import known


def sizes_of(model):
    config = model.config
    return {
        "vocabulary": config.vocabulary,
        "positions": config.context if config.positions == "learned" else 0,
        "width": config.width,
        "layers": config.layers,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "hidden": config.hidden,
        "gated": config.gated,
        "biases": config.bias,
        "norm": config.norm,  # "layer" or "rms"
        "tied": config.tied,
        "experts": model.experts,
        "used_experts": model.used_experts,
    }


sizes_of(known.find("Mixtral 8x7B"))


# %% nbgrader={"grade": false, "grade_id": "parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def parameters(model):
    ### BEGIN SOLUTION
    width, hidden, biases = model["width"], model["hidden"], int(model["biases"])
    shared = width // model["heads"] * model["kv_heads"]
    into_hidden = 2 if model["gated"] else 1
    attention = 2 * width * width + 2 * width * shared + biases * 2 * (width + shared)
    expert = (into_hidden + 1) * width * hidden + biases * (into_hidden * hidden + width)
    router = width * model["experts"] if model["experts"] > 1 else 0
    norm = width * (2 if model["norm"] == "layer" and biases else 1)
    outside = model["vocabulary"] * width * (1 if model["tied"] else 2) + model["positions"] * width + norm
    return [
        outside + model["layers"] * (attention + router + 2 * norm + experts * expert)
        for experts in (model["experts"], model["used_experts"])
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "parameters-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("neural.parameters", parameters)

# %% [markdown]
# **Predict.** Training in mixed precision with Adam takes these bytes for each parameter: 2 for the weight, 2 for the
# gradient, and 4 each for a float32 copy and Adam's two means (ZeRO, arXiv:1910.02054). How many TB is that for the
# 175 billion parameters of GPT-3?

# %%
gpulab.predict("neural.training_bytes", ...)

# %%
gpulab.need(parameters)
print("model               yours             stated   weights, 2 B   training, 16 B")
for each in known.MODELS:
    count, used = parameters(sizes_of(each))
    extra = f"   {used / 1e9:.1f} billion a token" if used < count else ""
    print(
        f"{each.name:14}{count:19,}{each.stated:15.3g}{2 * count / 1e9:12,.1f} GB{16 * count / 1e9:13,.1f} GB{extra}"
    )

with torch.device("meta"):  # shapes without memory
    print("\nGPT-3 as a module:", f"{gpt.parameters(gpt.GPT(known.find('GPT-3').config)):,}")

# %% [markdown]
# **See.** More models, from the smallest to the largest, counted by the same rules. A convolution with k × k windows
# from a to b channels has k · k · a · b weights and b biases.


# %%
def dense(*sizes):
    return sum(a * b + b for a, b in itertools.pairwise(sizes))


def convolutions(*layers):
    return sum(k * k * a * b + b for k, a, b in layers)


# Sizes: Y. LeCun et al. 1998, with the third layer fully connected; A. Krizhevsky et al. 2012, where two GPUs
# each saw half of the channels in layers 2, 4 and 5.
models = {
    "XOR, 2-2-1": dense(2, 2, 1),
    "digits, 784-128-10": dense(784, 128, 10),
    "LeNet-5": convolutions((5, 1, 6), (5, 6, 16), (5, 16, 120)) + dense(120, 84, 10),
    "AlexNet": convolutions((11, 3, 96), (5, 48, 256), (3, 256, 384), (3, 192, 384), (3, 192, 256))
    + dense(9216, 4096, 4096, 1000),
    "10⁸ users × 64": 64 * 10**8,
} | {name: parameters(sizes_of(known.find(name)))[0] for name in ("GPT-2", "Llama 2 7B", "GPT-3")}
gpulab.plot.bars(dict(sorted(models.items(), key=lambda each: each[1])), "parameters", log=True)

# %% [markdown]
# **Why.** The makers of LeNet-5 say 60,000, those of AlexNet 60 million, and those of BERT-large 340 million
# (arXiv:1810.04805). A recommender is mostly one table. For GPT-4 every published figure is an estimate, because
# nobody outside knows. In large models nearly all parameters are in matrices of width × width and width × hidden. In
# GPT's form hidden is 4 · width. A layer then has 4 · width² in its attention and 2 · 4 · width² in its feed-forward
# block, which is 12 · width² in all, so the model has about 12 · layers · width². Training takes 16 bytes per
# parameter *before* any activation, which is eight times the memory of 2-byte weights.
#
# ## Beyond · The smallest storyteller
#
# Open-ended and ungraded. Which model with the fewest parameters gets below 0.20 nats per character on fresh stories,
# within 1,000 steps of 16 stories? The figure of merit is its number of parameters.
#
# | model | parameters | loss |
# |---|---|---|
# | the one above, 300 steps | 61,632 | printed by the cell below |
# | a table from each character to the next | 576 | 1.75, because it forgets everything before |
# | ours, 1,000 steps, the better of two seeds | 2,256 | 0.19 |
# | bound | none is known | 0.145 |

# %%
print(f"{gpt.parameters(model):,} parameters, {log[-1][1]:.3f} nats per character")

# %% [markdown]
# ## Recap

# %%
gpulab.recap("01")

# %% [markdown]
# Can you do it now? Answer first, and then open.
#
# <details><summary>1 · z = x · x + x at x = 3. Which share does each use of x add to its gradient, and what is the
# sum?</summary>
#
# The product passes 3 to each of its two factors, and the sum passes 1, so the gradient is 3 + 3 + 1 = 7.
# </details>
#
# <details><summary>2 · A colleague calls <code>model.eval()</code> and still runs out of memory at inference.
# Why?</summary>
#
# `eval()` changes only layers such as dropout and batch norm. Results are kept for a backward pass until the call is
# inside `no_grad()` or `inference_mode()`.
# </details>
#
# <details><summary>3 · Four micro-batches have 100, 100, 100 and 20 tokens. By which factor is the last one's mean loss
# multiplied?</summary>
#
# By 20 / 320 = 0.0625, and not by ¼.
# </details>
#
# <details><summary>4 · A language model's loss falls to 0.02 after a few steps. Name two mistakes that do
# this, and a test for both.</summary>
#
# The labels may not be shifted, or the attention may have no causal mask. Change a later token, and see whether the
# logits of an earlier place change. Look at one row of inputs beside its labels.
# </details>
#
# <details><summary>5 · A model has 7 billion parameters. What do its weights take in 16 bits, and what does
# training with Adam in mixed precision take before activations?</summary>
#
# The weights take 7 billion · 2 bytes = 14 GB. Training takes 7 billion · 16 bytes = 112 GB.
# </details>
#
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | (a × b) @ (b × c) | (a × c), 2 · a · b · c FLOP |
# | linear layers in a row | they are one linear layer; put an activation between them |
# | a value used twice | its shares are added |
# | order of the backward pass | each value once, after all values that were made from it |
# | what forward keeps | `mul`, `matmul` the other factor, `relu`, `tanh` their own result, `add` nothing |
# | no backward pass | `with torch.inference_mode():`; `eval()` is about dropout and batch norm |
# | weight of a piece | its tokens / the batch's tokens |
# | labels | tokens shifted by one, −100 for padding and the last place |
# | where place i may look | at j ≤ i if j is not padding; padding looks at itself |
# | GPT's parameters | about 12 · layers · width², plus the tables |
# | memory | weights 2 B per parameter; training with Adam in mixed precision 16 B per parameter, plus activations |
#
# ### Claims you will meet, and what is right
#
# - *The smallest XOR network has 4 parameters, and training finds them.* 2-2-1 has nine, and from most starts
#   training with relu does not find them.
# - *`torch.tensor([768, 1024, 3], dtype=torch.uint8)` is an image.* It would be three numbers, and it fails because
#   they do not fit into a byte. Write `torch.zeros((768, 1024, 3), dtype=torch.uint8)`.
# - *`eval()` stops PyTorch from keeping activations.* Only `no_grad` and `inference_mode` do.
# - *A `src_key_padding_mask` of ones lets all tokens take part.* True means ignore, so no token is looked at. Float
#   ones are added to all scores, and hide nothing.
# - *The labels of a language model are its inputs.* They are the inputs only where a library shifts them for you.
# - *Divide the loss by the number of micro-batches.* This is right only if all have equally many tokens.
# - *Adam takes two to three times the model's memory.* It takes 8 bytes per parameter. That is twice the weights in
#   float32, and four times those in 16 bits, or six times with the float32 copy.
# - *GPT-3 in 16 bits needs 650 GB for its weights.* 175 billion · 2 bytes are 350 GB; 652 GiB is float32.
#
# ### References
#
# 1. D. Rumelhart, G. Hinton, R. Williams, "Learning representations by back-propagating errors", Nature 323, 1986.
# 2. A. Baydin et al., "Automatic Differentiation in Machine Learning: a Survey", JMLR 18, 2018.
#    https://arxiv.org/abs/1502.05767
# 3. A. Vaswani et al., "Attention Is All You Need", 2017. https://arxiv.org/abs/1706.03762
# 4. A. Radford et al., "Language Models are Unsupervised Multitask Learners", OpenAI, 2019.
# 5. I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2019. https://arxiv.org/abs/1711.05101
# 6. S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020.
#    https://arxiv.org/abs/1910.02054
# 7. PyTorch, "Autograd mechanics". https://docs.pytorch.org/docs/stable/notes/autograd.html
