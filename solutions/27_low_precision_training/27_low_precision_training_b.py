# ---
# jupyter:
#   gpulab:
#     lab: "27"
#     hours: 2
#     topics: [C27.5, C27.6, C27.7]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 27B · Muon and scaling laws
#
# **1.5 to 2 hours.** You have done part A.
#
# Fewer bits make a step cheaper. This part is about needing fewer steps, and about deciding before a run how
# many parameters and how many tokens to spend its compute on. **Muon**, an optimizer that makes updates
# orthogonal, reached a given loss with about half the training FLOPs of AdamW in the experiments of Moonshot
# AI (2025). A **scaling law** predicts the loss of a run that nobody has made yet from runs that cost a
# hundredth of it.
#
# After this lab, you can
#
# 1. orthogonalise an update by matrix products alone, and count its FLOPs;
# 2. distribute matrices over ranks so that none waits long;
# 3. plan small runs under a budget, fit a law, and forecast a large run;
# 4. split a budget between parameters and tokens, with the cost of serving included;
# 5. say when such a fit misleads.

# %%
import math

import numpy as np
import torch
from torch.nn import functional as F

import gpulab
from gpulab import plot
from gpulab.models import text, training
from gpulab.models.config import Config
from gpulab.models.gpt import GPT

gpulab.start("27")
torch.set_num_threads(1)

# %% [markdown]
# ## 1 · Why an update should be orthogonal
#
# The gradient of a weight matrix is a sum of a few strong directions and many weak ones. Its singular values
# often span several powers of ten, so a step of SGD moves the weights along the strong directions and hardly
# at all along the others. Muon replaces the singular values of the momentum with numbers near 1, so that the
# weights move about equally far in all directions.
#
# A singular value decomposition could do that, but it cannot use tensor cores well. Muon applies an odd
# polynomial instead, five times:
#
# X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X, with a = 3.4445, b = −4.7750, c = 2.0315 (K. Jordan, 2024).
#
# The polynomial leaves the singular vectors of X as they are and changes each singular value s on its own: it
# becomes a s + b s³ + c s⁵. This is the **Newton–Schulz iteration**. Before the first step, X is divided by
# its Frobenius norm, so that no singular value exceeds 1.

# %% jupyter={"source_hidden": true}
s = np.geomspace(1e-4, 1, 400)
ax, y = plot.axes(6.6, 3.2), s.copy()
for step in range(1, 6):
    y = 3.4445 * y - 4.7750 * y**3 + 2.0315 * y**5
    ax.plot(s, y, color=plot.DEEP, linewidth=0.6 + 0.35 * step, alpha=0.3 + 0.14 * step)
    rising = int(np.argmax(y > 0.35))
    ax.annotate(f"{step} ", (s[rising], y[rising]), color=plot.DEEP, va="bottom", ha="right")
ax.set(
    xscale="log",
    xlabel="singular value before, relative to the norm",
    ylabel="after 1 to 5 steps",
    ylim=(0, 1.35),
)
plot.picture(
    ax, "Five steps bring singular values above 0.002 to between 0.7 and 1.2; smaller ones stay small."
)

# %% [markdown]
# The result is only roughly orthogonal, with singular values between 0.7 and 1.2. That is enough for
# training. Coefficients that converge to exactly 1 would need more steps for small singular values.
#
# ## 2 · What an orthogonal update costs
#
# **Predict.** A layer has 4,096 × 4,096 weights, and a training step has 2²⁰ (about 1 million) tokens.
# Forward and backward pass take 6 FLOPs per weight and token. As a percentage of that, what do five
# Newton–Schulz steps take? Each has three products of 4,096 × 4,096 matrices, of 2 · 4,096³ FLOPs.

# %%
gpulab.predict("scaling.overhead", ...)

# %% jupyter={"source_hidden": true}
tokens = np.geomspace(2**14, 2**24, 50)
ax = plot.axes(6.2, 2.8)
ax.plot(tokens, 100 * 5 * 6 * 4096**3 / (6 * 4096**2 * tokens), color=plot.DEEP)
ax.set(xscale="log", yscale="log", xlabel="tokens in a step", ylabel="Muon's share, %")
plot.picture(
    ax,
    "The overhead is 5 · width / tokens: 2 % at a million tokens, and more than all the rest below 20,480.",
)

# %% [markdown]
# **Do.** Write `polar(g)` in PyTorch: five Newton–Schulz steps with the coefficients above.
#
# - Input: `g`, float32, a matrix of any shape, wide or tall.
# - First divide by the Frobenius norm.
# - Output: a matrix of the shape of `g`.
# - Counted: FLOPs of matrix products. With m the shorter side and n the longer, at most 5 · (4·m²·n + 2·m³).
#   That is three products a step: two of 2·m²·n and one of 2·m³.
# - Length: about 7 lines.


# %% nbgrader={"grade": false, "grade_id": "polar", "locked": false, "schema_version": 3, "solution": true, "task": false}
def polar(g):
    ### BEGIN SOLUTION
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / x.norm()
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "polar-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("scaling.polar", polar)

# %% [markdown]
# **See.** The next cell trains the small GPT with AdamW and with Muon, which uses your `polar`. Muon updates
# the matrices of the blocks; the embedding, biases and norms stay with AdamW, as is usual. An update is
# multiplied by 0.2 · √(longer side), which gives it about the size of AdamW's in long runs (Moonshot AI,
# 2025). Each optimizer gets the best of three learning rates: 0.012 for AdamW, 0.036 for Muon's matrices.

# %%
FLOOR, STEPS = math.log(6 * 5 * 8 * 6) / 48, 100


def train(muon):
    """The losses of a short run; nats per character."""
    torch.manual_seed(0)
    model = GPT(Config(vocabulary=text.VOCABULARY, context=48, width=48, layers=2, heads=4))
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2] if muon else []
    chosen = {id(p) for p in matrices}
    adam = torch.optim.AdamW([p for p in model.parameters() if id(p) not in chosen], lr=6e-3)
    momenta = [torch.zeros_like(p) for p in matrices]
    stories, losses = text.Stories(0), []
    for step in training.steps(STEPS):
        rate = (6e-3 if muon else 12e-3) * min(1, (step + 1) / 10) * (1 - step / STEPS)
        adam.param_groups[0]["lr"] = rate
        windows = torch.from_numpy(stories.windows(12, 49))
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        model.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            for p, momentum in zip(matrices, momenta, strict=True):
                momentum.mul_(0.95).add_(p.grad)
                p -= 6 * rate * 0.2 * math.sqrt(max(p.shape)) * polar(p.grad + 0.95 * momentum)
        losses.append(loss.item())
    return losses


ax = plot.axes(6.6, 3.0)
for name, muon, colour in (("AdamW", False, plot.INK), ("Muon", True, plot.DEEP)):
    losses = np.convolve(train(muon), np.ones(8) / 8, "valid")
    ax.plot(np.arange(8, STEPS + 1), losses, color=colour)
    ax.annotate(
        f"{name}, gap {losses[-1] - FLOOR:.2f}",
        (STEPS + 1, losses[-1]),
        color=colour,
        va="bottom",
        annotation_clip=False,
    )
ax.axhline(FLOOR, color=plot.INK, linestyle=":", linewidth=0.8)
ax.set(xlabel="step", ylabel="nats per character", xlim=(0, 1.3 * STEPS))
plot.picture(ax, "Loss of the small GPT with AdamW and with Muon. The dotted line is the floor.")

# %% [markdown]
# The learning rate decides such a comparison. With 0.006 for both, AdamW's gap was 0.36 and Muon's 0.46, so AdamW
# seemed to win. AdamW at 0.012 and 0.024 reached 0.28 and 0.80; Muon at 0.018 and 0.036 reached 0.09 and 0.05. One
# seed and three rates are still a small experiment, but here the difference is far larger than that between seeds.
#
# ## 3 · Which rank computes which matrix
#
# AdamW treats each number on its own, so its state can be cut anywhere: ZeRO (lab 16) gives each rank an
# equal slice. Newton–Schulz needs a *whole* matrix. A common solution is to assign whole matrices to each
# rank. The rank gathers their gradients, computes their updates, and sends the updates to all others.
#
# ![Three ranks with whole matrices. Balanced by the number of matrices, one rank has both large ones and ends last; balanced by FLOPs, all end together, in half the time.](drawings/who_makes_what.svg)
#
# **Do.** Write `shard(shapes, ranks)`, which chooses the rank of each matrix.
#
# - Input: `shapes` is a list of `[rows, columns]`. A matrix costs 4·m²·n + 2·m³ for a step, m being its shorter side.
# - Output: a list of ranks, from 0 to `ranks` − 1, one for each matrix.
# - Counted: the FLOPs of the busiest rank, at most 1.05 times a lower bound: the mean of all ranks or the
#   cost of the largest matrix, whichever is more.
# - Length: about 7 lines.


# %% nbgrader={"grade": false, "grade_id": "shard", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shard(shapes, ranks):
    ### BEGIN SOLUTION
    def cost(i):
        m, n = sorted(shapes[i])
        return 4 * m * m * n + 2 * m**3

    busy, chosen = [0] * ranks, [0] * len(shapes)
    for i in sorted(range(len(shapes)), key=cost, reverse=True):
        chosen[i] = busy.index(min(busy))
        busy[chosen[i]] += cost(i)
    return chosen
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "shard-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("scaling.shard", shard)

# %% [markdown]
# **Why.** Shapes with equally many elements differ in cost: 64 × 1,024 and 256 × 256 both have 65,536, but a
# step takes 17 and 101 million FLOPs. If a matrix is too large for one rank, the products themselves are
# distributed (lab 17).
#
# ## 4 · A law of five numbers
#
# Chinchilla's authors (J. Hoffmann et al., 2022) trained over 400 models and described their losses by
#
# L(N, D) = E + A / Nᵅ + B / Dᵝ.
#
# N is the number of parameters and D the number of tokens. E is the entropy of the text, the floor that no
# model gets below. The second term is the loss that a model of this size cannot avoid because it is too
# small, the third the loss because it has seen too little text. Training takes about 6 · N · D FLOPs, so on a
# fixed budget a larger N means a smaller D.
#
# The next cell makes nine runs of the small GPT, on a scale that fits a notebook, and counts their FLOPs.

# %%
RUNS = []
for width in (8, 16, 32):
    torch.manual_seed(0)
    model = GPT(Config(vocabulary=text.VOCABULARY, context=48, width=width, layers=1, heads=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    stories, losses = text.Stories(0), []
    for step in training.steps(160):
        windows = torch.from_numpy(stories.windows(8, 49))
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step + 1 in (40, 80, 160):
            RUNS.append(
                (sum(p.numel() for p in model.parameters()), 8 * 48 * (step + 1), np.mean(losses[-8:]))
            )
ax = plot.axes(6.2, 3.0)
for n in sorted({n for n, _, _ in RUNS}):
    points = [(d, loss) for m, d, loss in RUNS if m == n]
    ax.plot(*zip(*points, strict=True), marker="o", color=plot.DEEP)
    ax.annotate(
        f"{n:,} parameters",
        points[-1],
        color=plot.DEEP,
        va="center",
        xytext=(8, 0),
        textcoords="offset points",
    )
ax.set(xscale="log", xlabel="tokens", ylabel="nats per character", xlim=(1.2e4, 1.6e5))
plot.picture(ax, "More parameters and more tokens both lower the loss of the small GPT.")

# %% [markdown]
# Nine runs on one core are too few and too noisy to determine five numbers. The next task gives you a
# simulated laboratory with a larger budget. Its `train(parameters, tokens)` returns at once the loss that
# such a run would have, with a noise of 0.03 % of the loss, about as much as the mean of a few seeds would
# have.
#
# ## 5 · A law from runs of your own
#
# How do you fit the law? For given α and β it is linear in E, A and B, because E + A / Nᵅ + B / Dᵝ is a sum
# of three known columns, 1, N^(−α) and D^(−β), with unknown factors. So linear least squares finds these
# three, and a grid over both exponents finds the pair that leaves the smallest error. The runs must vary N
# and D independently of each other; otherwise the two terms cannot be told apart.
#
# ![The loss over the number of parameters for three budgets of FLOPs. Each curve has a lowest point: left of it the model is too small, right of it too few tokens are left. A larger budget lowers the curve and moves its lowest point to the right.](drawings/budgets.svg)
#
# **Do.** Write `forecast(train, budget, target)`, which makes small runs, fits a law to them, and forecasts
# the best run of `target` FLOPs.
#
# - `train(parameters, tokens)` returns a loss. Both arguments are positive numbers. A run costs 6 · parameters ·
#   tokens FLOPs.
# - Your runs may cost `budget` FLOPs together: 5 · 10¹⁸, which is 1/200 of the target of 10²¹.
# - The losses follow E + A / Nᵅ + B / Dᵝ, with exponents between 0.2 and 0.6. The five numbers differ from
#   case to case.
# - Output: `[parameters, tokens, loss]`, the split of `target` that you recommend, with 6 · parameters ·
#   tokens = `target`, and the loss that you expect there.
# - Counted: the FLOPs of your runs; the **regret**, by how much the true loss of your split exceeds the
#   lowest possible, at most 0.005 nats; and the error of your forecast, at most 0.04 nats.
# - You may use NumPy. Length: about 20 lines.


# %% nbgrader={"grade": false, "grade_id": "forecast", "locked": false, "schema_version": 3, "solution": true, "task": false}
def forecast(train, budget, target):
    ### BEGIN SOLUTION
    sizes = [(n, budget / 8 / 6 / n / k) for n in np.geomspace(1e7, 1e9, 6) for k in (1, 4, 16, 64)]
    losses = np.array([train(float(n), float(d)) for n, d in sizes])
    n, d = np.array(sizes).T / [[1e8], [1e9]]
    best = None
    for a in np.linspace(0.2, 0.6, 81):
        for b in np.linspace(0.2, 0.6, 81):
            columns = np.stack([np.ones(len(n)), n**-a, d**-b], 1) / losses[:, None]
            found = np.linalg.lstsq(columns, np.ones(len(n)), rcond=None)[0]
            error = ((columns @ found - 1) ** 2).sum()
            if best is None or error < best[0]:
                best = error, a, b, *found
    _, a, b, e, of_size, of_tokens = best
    n = np.geomspace(1e7, 1e12, 2000)
    d = target / 6 / n
    loss = e + of_size * (n / 1e8) ** -a + of_tokens * (d / 1e9) ** -b
    i = loss.argmin()
    return [float(n[i]), float(d[i]), float(loss[i])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "forecast-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("scaling.forecast", forecast)

# %% [markdown]
# ## 6 · The split
#
# Once the law is known, the best split of a budget of C FLOPs follows from it. At the optimum, N grows as
# C^(β/(α+β)) and D as C^(α/(α+β)).
#
# **Predict.** The two exponents are equal, and at 10²¹ FLOPs the best run has 20 tokens per parameter. How many does the best
# run of 10²⁴ FLOPs have?

# %%
gpulab.predict("scaling.ratio", ...)

# %% jupyter={"source_hidden": true}
CHINCHILLA = {
    "Hoffmann et al., as printed": (1.69, 406.4, 0.34, 410.7, 0.28),
    "Besiroglu et al.": (1.8172, 482.01, 0.3478, 2085.43, 0.3658),
}
c = np.geomspace(1e18, 1e26, 60)
ax = plot.axes(6.6, 3.2)
for (name, (e, fa, a, fb, b)), colour in zip(CHINCHILLA.items(), (plot.ALARM, plot.DEEP), strict=True):
    n = (a * fa / (b * fb)) ** (1 / (a + b)) * (c / 6) ** (b / (a + b))
    ax.plot(c, c / 6 / n**2, color=colour)
    ax.annotate(
        name,
        (c[-1], (c / 6 / n**2)[-1]),
        color=colour,
        va="center",
        ha="right",
        xytext=(0, 10 if "printed" in name else -12),
        textcoords="offset points",
    )
ax.axhline(20, color=plot.INK, linestyle=":", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="FLOPs of training", ylabel="tokens per parameter", ylim=(12, 220))
ax.minorticks_off()
ax.set_yticks([20, 50, 100, 200], ["20", "50", "100", "200"])
plot.picture(
    ax,
    "Two fits of the same runs: at one's optimum there are about 20 tokens per parameter (dotted), and the"
    " other's climbs past 100.",
)

# %% [markdown]
# The two curves show **how a fit can mislead**. By two of their three methods, Hoffmann et al. found that
# parameters and tokens should grow at the same rate, but the exponents that they printed for the third method
# contradict this. T. Besiroglu et al. (2024) read the runs off the published figures and fitted them again.
# They found that the original optimization had stopped too early, that the printed numbers were rounded too
# much, and that the stated confidence was far too high. Nor can a fit reveal errors that all its runs share.
# A learning rate schedule that does not match the length of the runs bends the law, and so does leaving out
# the parameters of the embedding.
#
# The cost of a model does not end with its training: each token that it serves takes 2 · N FLOPs. If one
# budget pays for both, the best model is smaller and is trained on more tokens (N. Sardana et al., 2024).
#
# **Do.** Write `split(law, flops, served)`, which returns the best number of parameters.
#
# - Input: `law` is `[E, A, alpha, B, beta]`. `flops` pays for training *and* for `served` tokens: 6·N·D + 2·N·served.
# - Output: the N, a float, with the lowest loss, when all FLOPs that serving leaves are spent on the D
#   training tokens.
# - Counted: the regret, at most 0.0001 nats. A search over many values of N is accurate enough.
# - Length: about 5 lines.


# %% nbgrader={"grade": false, "grade_id": "split", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split(law, flops, served):
    ### BEGIN SOLUTION
    _, of_size, alpha, of_tokens, beta = law
    n = np.geomspace(1e5, flops / (2 * served) if served else 1e15, 20_000)[:-1]
    loss = of_size * n**-alpha + of_tokens * ((flops - 2 * n * served) / (6 * n)) ** -beta
    return float(n[loss.argmin()])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "split-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("scaling.split", split)

# %%
law = CHINCHILLA["Besiroglu et al."]
for served in (0, 1e11, 1e12, 1e13):
    n = split(law, 1e23, served)
    d = (1e23 - 2 * n * served) / (6 * n)
    print(f"{served:6.0e} tokens served: {n / 1e9:6.2f} billion parameters, {d / n:7.0f} tokens for each")

# %% [markdown]
# ## Beyond · Cheaper Newton–Schulz
#
# This task is open-ended and ungraded. The **figure of merit** is the matrix FLOPs of `polar` for 256 × 4,096, with a
# result within 0.002 of the reference. Naive, from the long side: 7.7 · 10¹¹ FLOPs. Reference: 5 · (4·m²·n +
# 2·m³) = 5.5 · 10⁹. Bound for any method that reads X and makes one new matrix from it: 4·m²·n = 1.1 · 10⁹. All
# five steps can be done on m × m matrices alone, because X Xᵀ of the next step follows from that of this one.

# %%
# Your attempt, in place of polar: gpulab.check("scaling.polar", …)

# %% [markdown]
# ## Recap
#
# <details><summary>1. What does Newton–Schulz do to a singular value?</summary>
#
# It applies a s + b s³ + c s⁵ five times, which brings all but the smallest to between 0.7 and 1.2.
# </details>
#
# <details><summary>2. Why is a tall matrix transposed first?</summary>
#
# X Xᵀ then has the short side's size, and all square products are small.
# </details>
#
# <details><summary>3. Why can Muon's work not be cut like AdamW's?</summary>
#
# A singular vector belongs to the whole matrix, so a slice of the gradient does not suffice.
# </details>
#
# <details><summary>4. Why does a straight line in logarithms forecast badly?</summary>
#
# It has no floor E, so it forecasts a loss that tends to zero as compute grows.
# </details>
#
# <details><summary>5. How does serving change the best model?</summary>
#
# It makes each parameter more expensive, so the best model is smaller and sees more tokens.
# </details>

# %%
gpulab.recap("27")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | FLOPs of a Newton–Schulz step | 4·m²·n + 2·m³, m the shorter side |
# | overhead for square layers | 5 · width / tokens in a step |
# | what stays with AdamW? | embedding, head, norms, biases |
# | FLOPs of training, of serving | 6·N·D; 2·N for each token |
# | the best N for a budget of C FLOPs | grows as C^(β/(α+β)) |
# | fitting the law | a grid over both exponents, least squares for E, A, B |
#
# ### Claims you will meet, and what is right
#
# - *Twenty tokens per parameter is optimal.* It was for one data set and one way of training, without serving.
# - *Muon makes the update orthogonal.* Roughly: singular values end between 0.7 and 1.2, and the smallest stay small.
# - *A scaling law tells what a model can do.* It forecasts a loss on text of the same kind.
#
# ### References
#
# 1. K. Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024. https://kellerjordan.github.io/posts/muon/
# 2. Moonshot AI, "Muon is Scalable for LLM Training", 2025. https://arxiv.org/abs/2502.16982
# 3. J. Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022. https://arxiv.org/abs/2203.15556
# 4. T. Besiroglu et al., "Chinchilla Scaling: A replication attempt", 2024. https://arxiv.org/abs/2404.10102
# 5. N. Sardana et al., "Beyond Chinchilla-Optimal: Accounting for Inference in Language Model Scaling Laws", 2024.
#    https://arxiv.org/abs/2401.00448
# 6. R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM Journal on Applied Mathematics 17, 1969.
