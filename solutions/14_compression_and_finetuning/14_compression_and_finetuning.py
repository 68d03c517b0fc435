# ---
# jupyter:
#   gpulab:
#     lab: "14"
#     hours: 4
#     topics: [C14.5, C14.6, C14.7, C14.8, C14.9, C14.10]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · Compression and fine-tuning
#
# **3 to 4.5 hours.** You need lab 01 (a GPT and its training), lab 05 for the one kernel (shared memory, barriers,
# shuffles), lab 08 for launches and FLOPs of PyTorch code, and lab 13 for quantisation, which builds on lab 09.
#
# A trained model is larger than its task needs, and its task changes. So people leave out weights, let a smaller
# model learn from a large one, and adapt millions of old weights with a few new ones. Each of these methods can save
# bytes, time or memory. Each can also save nothing at all and look as if it did.
#
# By the end of this lab, you can
#
# 1. prune a network to a sparsity that you chose, and say which sparsity it really has;
# 2. distinguish masks from smaller matrices, and pack a matrix in the 2:4 pattern that tensor cores support;
# 3. write a distillation loss whose parts have the same weight at every temperature;
# 4. add low-rank adapters, serve many of them at once, and merge them;
# 5. work out what fine-tuning costs in memory and FLOPs before you rent a GPU.

# %%
import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import gpulab
from gpulab import cuda, plot

torch.set_num_threads(1)  # with tensors as small as these, threads would wait for each other
gpulab.start("14")

# %% [markdown]
# ## 1 · A model and its yardstick
#
# `pretrained.trained()` gives a small GPT that has learnt to write little stories. The first call trains it, and
# later calls read it from your cache. A story picks five words at random and repeats four of them. So the least
# possible **loss per story** is known: it is the entropy of the picks. We measure in nats per story, on stories that
# the model has not seen.

# %%
from gpulab.models import gpt, pretrained, text, training

model = pretrained.trained()
anew = pretrained.fresh(60)


def nats(model, stories=anew):
    """Loss per story in nats, by default on 60 stories drawn anew."""
    return pretrained.story_nats(model, *stories)


def layers(model):
    """The linear layers of all blocks; the embedding, which is the output layer too, is left alone."""
    return [layer for layer in model.blocks.modules() if isinstance(layer, nn.Linear)]


weights = sum(layer.weight.numel() for layer in layers(model))
print(next(text.Stories(7)), end="")
print(f"{gpt.parameters(model):,} parameters, {weights:,} of them weights of linear layers")
print(f"loss {nats(model):.2f} nats per story, the least possible is {text.STORY_NATS:.2f}")

# %% [markdown]
# ## 2 · Which weights, and how many at once
#
# **Pruning** sets weights to zero and keeps them there. A **mask** of ones and zeros, with the shape of the weight,
# says which weights stay. **Sparsity** is the share of zeros. **Magnitude pruning** removes the weights that are
# closest to zero, because they change a layer's output least, provided the inputs are all of about one size.
#
# **Predict.** The smallest weights are removed, all at once and without further training. At which sparsity does the
# loss per story rise by 1 nat?

# %%
gpulab.predict("compress.free", ...)


# %%
def smallest(model, sparsity, score=torch.abs):
    """A mask for each linear layer; of each layer the same share goes, the lowest scores first."""
    masks = []
    for layer in layers(model):
        scores = score(layer.weight.detach())
        order = scores.flatten().argsort()
        mask = torch.ones(scores.numel())
        mask[order[: round(sparsity * scores.numel())]] = 0
        masks.append(mask.view_as(scores))
    return masks


def masked(model, masks):
    """A copy of the model with its weights times the masks."""
    pruned = copy.deepcopy(model)
    with torch.no_grad():
        for layer, mask in zip(layers(pruned), masks, strict=True):
            layer.weight.mul_(mask)
    return pruned


def rows(weight):
    """The score of a whole row, at each of its weights."""
    return weight.norm(dim=1, keepdim=True) + 0 * weight


def by_chance(weight):
    return torch.rand(weight.shape, generator=torch.Generator().manual_seed(0))


steps = [0.1 * k for k in range(1, 10)]
curves = {
    name: [(100 * s, nats(masked(model, smallest(model, s, score)))) for s in steps]
    for name, score in (("magnitude", torch.abs), ("whole rows", rows), ("by chance", by_chance))
}
start = nats(model)
rises = next(s for s in range(40, 100) if nats(masked(model, smallest(model, s / 100))) > start + 1)
squares = torch.cat([layer.weight.detach().flatten() for layer in layers(model)]).square().sort().values
for share in (0.5, 0.8):
    part = float(squares[: round(share * len(squares))].sum() / squares.sum())
    print(f"the smallest {share:.0%} of the weights have {part:.0%} of the sum of all squares")
gpulab.predict("compress.free", measured=rises)

# %% jupyter={"source_hidden": true}
plot.lines(
    curves,
    "sparsity, %",
    "loss per story, nats",
    "The smaller half of the weights can go at no cost that shows here; a fifth of the rows cannot, nor a fifth "
    "of all weights at random.",
    limits={"trained model": start},
    log_y=True,
)

# %% [markdown]
# **Why.** What a weight adds to the variance of an output is proportional to its square, and the smaller half of the
# weights has only a few percent of all squares. So it matters more which weights go than how many.
#
# What was lost can be learnt again. After pruning, train on with the mask in force (**fine-tuning**), and more
# weights can go. **Iterative pruning** does this in several rounds. A common schedule prunes much at first and little
# at the end (Zhu and Gupta, 2017): after round k of n the sparsity is final · (1 − (1 − k/n)³). The next cell spends
# the same 48 training steps in both ways.


# %%
def train(model, stories, count, rate, masks=None):
    """Train on `count` batches of 12 fresh stories; masked weights stay zero. Returns the losses per story."""
    learning = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learning, rate)
    losses = []
    for _ in training.steps(count):
        tokens, present = map(torch.from_numpy, stories.padded(12))
        loss = gpt.loss(model, tokens, present)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        labels = int((gpt.next_token_labels(tokens, present) != gpt.IGNORE).sum())
        losses.append(loss.item() * labels / 12)
        if masks:
            with torch.no_grad():
                for layer, mask in zip(layers(model), masks, strict=True):
                    layer.weight.mul_(mask)
    return losses


for final in (0.8, 0.95):
    masks = smallest(model, final)
    at_once = masked(model, masks)
    train(at_once, text.Stories(5), 48, 2e-3, masks)
    in_rounds, stories = copy.deepcopy(model), text.Stories(5)
    for k in range(1, 7):
        masks = smallest(in_rounds, final * (1 - (1 - k / 6) ** 3))
        in_rounds = masked(in_rounds, masks)
        train(in_rounds, stories, 8, 2e-3, masks)
    print(f"{final:.0%} sparse: {nats(masked(model, smallest(model, final))):5.1f} nats without training, "
          f"{nats(at_once):5.1f} pruned at once and trained, {nats(in_rounds):5.1f} in six rounds")  # fmt: skip

# %% [markdown]
# At 80 % both ways come close to the trained model, and rounds gain nothing. At 95 % rounds win, because a weight
# that looked useless can become useful before the next round decides. The way in which the steps are divided matters
# as much, so compare methods at equal steps.
#
# **Lottery tickets.** Frankle and Carbin (2019) asked whether a sparse network could have been trained from the
# start. They took the mask from a trained network and the values from its **initialisation**. Such a *winning ticket*
# often trained as well as the dense network. With other initial values, the same mask did not.
#
# **Do.** Write `ticket(initial, trained, sparsity)`. About 6 lines.
#
# - Input: two lists of layers, each a list of numbers, with the same lengths, and a sparsity from 0 to 1.
# - Over all layers *together*, the round(sparsity · number of weights) weights with the smallest trained magnitudes
#   go.
# - Output: a list of layers, with 0.0 where a weight goes, and its *initial* value where it stays.
# - Full marks need every number right.


# %% nbgrader={"grade": false, "grade_id": "ticket", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ticket(initial, trained, sparsity):
    ### BEGIN SOLUTION
    places = sorted((abs(w), layer, i) for layer, row in enumerate(trained) for i, w in enumerate(row))
    found = [list(layer) for layer in initial]
    for _, layer, i in places[: round(sparsity * len(places))]:
        found[layer][i] = 0.0
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "ticket-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.ticket", ticket)

# %% [markdown]
# **See.** A smaller GPT with one layer, trained for 100 steps. Beside it are its ticket at 80 % and two controls,
# trained equally long.

# %%
gpulab.need(ticket)


def small(seed):
    torch.manual_seed(seed)
    return gpt.GPT(gpt.Config(text.VOCABULARY, context=80, width=48, layers=1, heads=4))


dense = small(0)
train(dense, text.Stories(0), 100, 6e-3)
flat = [[layer.weight.flatten().tolist() for layer in layers(m)] for m in (small(0), dense)]
won = [
    (torch.tensor(kept) != 0).float().view_as(layer.weight)
    for kept, layer in zip(ticket(*flat, 0.8), layers(dense), strict=True)
]
shuffled = [mask.flatten()[torch.randperm(mask.numel())].view_as(mask) for mask in won]
found = {"dense": nats(dense)}
for name, start_from, masks in (
    ("ticket", small(0), won),
    ("its mask, other values", small(1), won),
    ("its values, mask shuffled", small(0), shuffled),
):
    sparse = masked(start_from, masks)
    train(sparse, text.Stories(0), 100, 6e-3, masks)
    found[name] = nats(sparse)
plot.bars(
    {name: round(loss, 1) for name, loss in found.items()},
    "loss per story after 100 steps, nats",
    caption="With its own values and in its own places, the sparse network learns fastest of the three.",
)

# %% [markdown]
# These are single runs, and other seeds move the bars by some nats. Here the ticket is the best of the three sparse
# networks, but it is not as good as the dense one. In large networks the values must come from slightly *after* the
# start (Frankle et al., 2020).
#
# ## 3 · Whole neurons, whole heads
#
# **Predict.** A mask sets three quarters of a feed-forward layer's neurons to zero. What percentage of the layer's
# matrix FLOPs remains?

# %%
gpulab.predict("compress.masked_flops", ...)

# %% [markdown]
# **Structured pruning** removes whole rows or columns, so that smaller matrices are left. A neuron of a feed-forward
# layer is a row of `up`, a number of `up_bias` and a column of `down`. Here the score of a neuron is the length of
# its row times the length of its column.
#
# **Do.** Write `shrink(x, up, up_bias, down, down_bias, count)`, the output of a layer that keeps only the `count`
# neurons with the highest scores. About 4 lines.
#
# - Input: `x` (rows, width), `up` (hidden, width), `up_bias` (hidden,), `down` (width, hidden), `down_bias` (width,):
#   float32 tensors.
# - Output: F.gelu(x upᵀ + up_bias) downᵀ + down_bias, with the neurons that stay: a tensor of shape (rows, width).
# - `topk(count).indices` gives places, and a tensor of places can be an index: `up[places]`. A mask of True and False
#   cannot, because the size of `up[mask]` depends on its values.
# - **Budget:** the matrix FLOPs of `count` neurons, 4 · rows · width · count. Full marks need it at every size.


# %% nbgrader={"grade": false, "grade_id": "shrink", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shrink(x, up, up_bias, down, down_bias, count):
    ### BEGIN SOLUTION
    stay = (up.norm(dim=1) * down.norm(dim=0)).topk(count).indices
    inner = F.gelu(x @ up[stay].T + up_bias[stay])
    return inner @ down[:, stay].T + down_bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "shrink-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.shrink", shrink)

# %% [markdown]
# In a model this is done once, and the small matrices are kept. **Heads** can be removed in the same way: a head is
# some rows of the query, key and value matrices, and as many columns of the output matrix.
#
# **See.** The next cell removes each head alone. The rise of the loss shows what the head was worth.

# %%
without = {}
for number, block in enumerate(model.blocks):
    for head in range(model.config.heads):
        pruned = copy.deepcopy(model)
        here = slice(head * model.config.head_width, (head + 1) * model.config.head_width)
        with torch.no_grad():
            pruned.blocks[number].attention.out.weight[:, here] = 0
        without[f"layer {number}, head {head}"] = nats(pruned) - start
plot.bars(
    {name: round(more, 2) for name, more in without.items()},
    "nats per story more without this head",
    caption="Heads of one model differ much in what they are worth.",
)

# %% [markdown]
# **Why.** Heads learn different jobs, and a few are worth little. Michel et al. (2019) found the same in translation
# models. Such a test does not tell what each head does. For the same number of weights, structured pruning costs more
# accuracy than pruning single weights. But everything that it saves is real, on any hardware.
#
# ## 4 · Two of four
#
# Setting half of the weights to zero at random places saves no time on a GPU. For each FP16 weight that stays, a
# 16-bit index costs as much as the removed weights save, and tensor cores multiply full tiles. So there is a pattern
# between random and structured: **2:4**. In every four neighbours along a row *at most two* are not zero (one of the
# patterns called **N:M**). Tensor cores since Ampere multiply such matrices at twice the dense rate (Mishra et al.,
# 2021).
#
# In memory a 2:4 matrix consists of two arrays. The **values** are two for each group of four. The **metadata** are
# two **indices** of 2 bits each, which say where in the group the values belong.
#
# **Predict.** The values are FP16. How large is the packed matrix, as a percentage of the dense one?

# %%
gpulab.predict("compress.bytes24", ...)

# %% [markdown]
# **Do.** Write `pack24(weights)`. About 10 lines.
#
# - Input: a list of rows of floats. Their length is a multiple of 8.
# - Output: `[values, metadata]`, each a list of rows.
# - Values: for every group of four, its two weights of largest magnitude, in the order of the row.
# - Metadata: a group has four bits, first index + 4 · second index, with first < second. A byte has an even group in
#   its lower four bits, and the next group in its upper four. (Groups count from 0.)
# - **Budget:** the most magnitude that 2:4 can keep. Full marks need it for every matrix.


# %% nbgrader={"grade": false, "grade_id": "pack24", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack24(weights):
    ### BEGIN SOLUTION
    values, metadata = [], []
    for row in weights:
        kept, bits = [], []
        for g in range(0, len(row), 4):
            first, second = sorted(sorted(range(4), key=lambda i: -abs(row[g + i]))[:2])
            kept += [row[g + first], row[g + second]]
            bits.append(first | second << 2)
        values.append(kept)
        metadata.append([even | odd << 4 for even, odd in zip(bits[::2], bits[1::2], strict=True)])
    return [values, metadata]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pack24-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.pack24", pack24)

# %% [markdown]
# **See.** Four **patterns** with half of the weights at zero, without further training.


# %%
def two_of_four(weight):
    """The best of the six masks in each group: the two largest of four stay."""
    groups = weight.abs().reshape(-1, 4)
    return torch.zeros_like(groups).scatter(1, groups.topk(2).indices, 1.0).view_as(weight)


def blocks(weight, size=8):
    """The score of a block of size × size weights, at each of them."""
    high, wide = (n // size for n in weight.shape)
    norms = weight.view(high, size, wide, size).norm(dim=(1, 3))
    return norms.repeat_interleave(size, 0).repeat_interleave(size, 1)


patterns = {
    "single weights": smallest(model, 0.5),
    "2:4": [two_of_four(layer.weight.detach()) for layer in layers(model)],
    "8 × 8 blocks": smallest(model, 0.5, blocks),
    "rows": smallest(model, 0.5, rows),
}
plot.patterns(
    {
        f"{name}: {nats(masked(model, masks)):.1f} nats": masks[0][:32, :32]
        for name, masks in patterns.items()
    },
    "A corner of a query matrix; filled weights stay. The freer the pattern, the smaller the loss per story.",
)

# %%
trained_on = masked(model, patterns["2:4"])
train(trained_on, text.Stories(6), 40, 2e-3, patterns["2:4"])
print(f"2:4 after 40 more training steps: {nats(trained_on):.1f} nats")

# %% [markdown]
# **Why.** 2:4 is between single weights and blocks, both in its loss and in its freedom, and further training
# recovers most of the loss. The packed matrix takes 56 % of the bytes, not 50 %, because the indices take an eighth
# of the bytes of the values: (4 + 0.5) / 8 bytes for each group. In INT8 the indices are a larger share: (2 · 8 + 4)
# / 32 bits = 62.5 %.
#
# In PyTorch, `torch.sparse.to_sparse_semi_structured(weight)` packs a weight that already *is* 2:4. Products then run
# on sparse tensor cores, on compute capability 8.0 and later. In FP16, rows must be a multiple of 32 and columns of
# 64 for its CUTLASS back end, or 16 and 16 for cuSPARSELt (`torch/sparse/semi_structured.py`, 2.13).

# %%
from gpulab import hardware

for name in ("A100", "H100"):
    gpu = hardware.find(name)
    dense_rate, sparse_rate = (
        float(gpu.peak("float16", tensor=True, sparse=s)) / 1e12 for s in (False, True)
    )
    print(f"{name}: FP16 tensor cores {dense_rate:.0f} TFLOP/s dense, {sparse_rate:.0f} with 2:4 weights")

# %% [markdown]
# Advertisements use the second figure. It counts multiplications by zero as work done.
#
# ## 5 · A kernel that reads half
#
# When a model writes one token at a time, each weight is read for a single product (lab 13). Then the bytes decide,
# so a packed matrix is faster even without sparse tensor cores.
#
# ![A 2:4 kernel reads half of the weights and, for each of them, two bits that say where it was. With these it picks the two of every four inputs that it needs.](drawings/compressed.svg)
#
# **Do.** Write the kernel `sparse24(values, meta, x, out)`, which computes out = W x. About 14 lines.
#
# - Input: W packed as above. `values` is float16 of shape (rows, columns / 2), `meta` is uint8 of shape (rows,
#   columns / 8), and `x` is float32 with at most 1,024 columns, a multiple of 8.
# - Output: `out`, float32, one number for each row.
# - Launch: blocks of 256 threads, so 8 warps, one for each row. The number of rows need not be a multiple of 8, so
#   the last block may have fewer rows than warps.
# - `np.float32(values[row, v])` converts a value.
# - **Budget:** 512 load sectors per block for 1,024 columns, plus 10 %. (The check counts two blocks. A dense FP16
#   matrix would cost 640.) Full marks need it, and the right result without a race.


# %% nbgrader={"grade": false, "grade_id": "sparse24", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def sparse24(values, meta, x, out):
    ### BEGIN SOLUTION
    near = cuda.shared.array(1024, np.float32)
    for c in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
        near[c] = x[c]
    cuda.syncthreads()
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    if row < out.size:
        total = np.float32(0)
        for v in range(lane, x.size // 2, 32):
            place = (meta[row, v // 4] >> (2 * (v % 4))) & 3
            total += np.float32(values[row, v]) * near[4 * (v // 2) + place]
        for d in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, d)
        if lane == 0:
            out[row] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sparse24-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.sparse24", sparse24)

# %%
gpulab.need(pack24, sparse24)
layer = model.blocks[0].feed.down.weight.detach()
values, metadata = pack24(layer.tolist())
packed = np.array(values, np.float16), np.array(metadata, np.uint8)
x = np.random.default_rng(1).standard_normal(layer.shape[1]).astype(np.float32)
out = cuda.to_device(np.zeros(layer.shape[0], np.float32))
report = gpulab.profile(sparse24[8, 256], *map(cuda.to_device, (*packed, x)), out)
expected = (layer * two_of_four(layer)).half().float().numpy() @ x
print(f"dense in FP16 {layer.numel() * 2:,} B, packed {sum(part.nbytes for part in packed):,} B")
print(f"largest difference from the masked product: {np.abs(out.copy_to_host() - expected).max():.1e}")
report

# %% [markdown]
# **Why.** The packed matrix has 56 % of the bytes, but the kernel asks for 80 % of the sectors. Of the 512, x takes
# 128, the values take 256 and the metadata take 128. One load of metadata by a warp uses 8 bytes of a sector's 32, so
# each sector is asked for four times, and a cache can answer three of them.
#
# x stays whole. Each row gathers half of it, at places that the metadata give. So the block stages x once for its
# eight rows, and warps without a row help. The gather meets bank conflicts, which the report counts. A conflict costs
# one more pass of shared memory. From DRAM, each gathered number of 4 bytes could cost a sector of 32.
#
# ## 6 · Learning from a teacher
#
# ![Distillation: teacher and student see the same text. The student learns from the teacher's probabilities for all words, not only from the word that came.](drawings/teacher.svg)
#
# In **distillation** a small **student** learns from the probabilities of a large **teacher**. These say more than a
# label, because they tell what else was likely. A **temperature** T divides the logits before the softmax, and a
# larger T shows more of what is unlikely. The loss (Hinton et al., 2015) is
#
# α · cross-entropy(labels, student) + (1 − α) · T² · KL(teacher at T ‖ student at T).
#
# α, from 0 to 1, is the weight of the labels. KL(p ‖ q) is the sum of p · (log p − log q) over the vocabulary. Both
# terms are means over the rows. The T² is easy to forget.
#
# **Predict.** How many times smaller is the gradient of KL at T = 8 than at T = 1?

# %%
gpulab.predict("compress.soft_gradient", ...)

# %%
numbers = torch.Generator().manual_seed(1)
student_logits, teacher_logits = (2 * torch.randn(64, 27, generator=numbers) for _ in range(2))
with_square, without_square = [], []
for temperature in (1, 2, 4, 8, 16):
    q, p = (F.softmax(each / temperature, -1) for each in (student_logits, teacher_logits))
    gradient = ((q - p) / temperature / len(q)).norm().item()  # of KL with respect to the student's logits
    without_square.append((temperature, gradient))
    with_square.append((temperature, temperature**2 * gradient))
gpulab.predict("compress.soft_gradient", measured=without_square[0][1] / without_square[3][1])

# %% jupyter={"source_hidden": true}
plot.lines(
    {"KL · T²": with_square, "KL": without_square},
    "temperature T",
    "norm of the gradient",
    "With T² the soft part weighs about the same at every temperature; without it, it fades away.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Do.** Write `distill(student, teacher, labels, temperature, alpha)`, the loss above. About 5 lines.
#
# - Input: `student` and `teacher` are logits, float32 of shape (rows, vocabulary), and may be in the hundreds.
#   `labels` are whole numbers, one for each row. The cross-entropy uses the student's logits without temperature.
# - Output: the loss, a tensor with one number.
# - `F.cross_entropy`, `F.log_softmax` and `F.kl_div` are allowed. Check what `F.kl_div` takes as its first argument,
#   and over what it averages by default.
# - Full marks need the right loss in every case.


# %% nbgrader={"grade": false, "grade_id": "distill", "locked": false, "schema_version": 3, "solution": true, "task": false}
def distill(student, teacher, labels, temperature, alpha):
    ### BEGIN SOLUTION
    hard = F.cross_entropy(student, labels)
    log_q = F.log_softmax(student / temperature, -1)
    log_p = F.log_softmax(teacher / temperature, -1)
    soft = F.kl_div(log_q, log_p, reduction="batchmean", log_target=True)
    return alpha * hard + (1 - alpha) * temperature**2 * soft
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "distill-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.distill", distill)

# %% [markdown]
# **See.** A student with a sixth of the parameters learns from 48 stories and no more.

# %%
gpulab.need(distill)
tokens, present = pretrained.fresh(48, seed=50)
labels = gpt.next_token_labels(tokens, present)
with torch.no_grad():
    teacher_says = model(tokens, present)


def learn(alpha, temperature, count=180):
    """Trains a student on the 48 stories; returns it and its loss on stories drawn anew, now and then."""
    torch.manual_seed(0)
    student = gpt.GPT(gpt.Config(text.VOCABULARY, context=80, width=32, layers=1, heads=4))
    optimizer, path = torch.optim.Adam(student.parameters(), 6e-3), []
    for step in range(1, count + 1):
        some = torch.randperm(48)[:24]
        told = labels[some] != gpt.IGNORE
        says = student(tokens[some], present[some])[told]
        loss = distill(says, teacher_says[some][told], labels[some][told], temperature, alpha)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            path.append((step, nats(student)))
    return student, path


students = {
    "labels": learn(1.0, 1.0),
    "teacher, T = 1": learn(0.0, 1.0),
    "teacher, T = 4": learn(0.0, 4.0),
}
for name, (student, path) in students.items():
    print(f"{name:16}{gpt.parameters(student):,} parameters, {nats(student, (tokens, present)):5.1f} nats on "
          f"the 48 stories, {path[-1][1]:5.1f} on others")  # fmt: skip
plot.lines(
    {name: path for name, (_, path) in students.items()},
    "training step",
    "loss per story drawn anew, nats",
    "From labels the student ends up learning 48 stories by heart; from the teacher it goes on learning what "
    "stories are like, at T = 4 more slowly at first.",
)

# %% [markdown]
# **Why.** At a place where any of eight names is possible, the label knows one of them, and the teacher knows all
# eight. At T = 4 much of the loss is about how unlikely the unlikely words are. We measure at T = 1, and this teacher
# is nearly perfect, so the higher temperature only slows learning down. Each curve is a single run. In general you
# must try out T and α.
#
# Other forms give the student more to match: **features** of inner layers (FitNets, Romero et al., 2015), **attention
# maps** (Zagoruyko and Komodakis, 2017), or a chain of smaller and smaller teachers (**progressive**).
#
# ## 7 · Low rank
#
# ![LoRA: the weight W is frozen. Two thin matrices, B and A of rank r, are learnt and their product is added. For 4096 × 4096 and r = 8 that is 65,536 numbers instead of 16.8 million.](drawings/lora.svg)
#
# Now the task changes to another kind of story, with the same words and the same entropy. **LoRA** (Hu et al., 2021)
# freezes a weight W of shape (out, in), and adds a product of two small matrices:
#
# W + (α / r) · B A, with A of shape (r, in), random, and B of shape (out, r), zero at the start.
#
# So the model starts unchanged. This α is not the one of section 6. You choose α / r, as you choose the learning
# rate, and it decides how strongly the product counts. In code it is one number, `scale`. The sum differs from W by a
# matrix of **rank** at most r, however long you train.
#
# **Predict.** W is 4,096 × 4,096 and r is 8. What percentage of W's parameters does the adapter have?

# %%
gpulab.predict("compress.lora_share", ...)


# %%
class News(text.Stories):
    """The same five picks, told in another form; the entropy of a story is the same."""

    def __next__(self):
        words = (choice[self._numbers.integers(len(choice))] for choice in text.PICKS)
        return "near the {4} {0} {1} a {3}. a {2} {3}? a {2} {3} near the {4}.\n".format(*words)


class Adapter(nn.Module):
    """A frozen linear layer with a low-rank addition; `scale` is α / r."""

    def __init__(self, layer, rank, scale=2.0):
        super().__init__()
        self.layer, self.scale = layer, scale
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.a.T) @ self.b.T


def adapt(model, rank, kind=Adapter):
    """A copy of the model with an adapter at every linear layer; nothing else learns."""
    adapted = copy.deepcopy(model).requires_grad_(False)
    for block in adapted.blocks:
        for part in (block.attention, block.feed):
            for name, layer in list(part.named_children()):
                setattr(part, name, kind(layer, rank))
    return adapted


news = tuple(map(torch.from_numpy, News(10**6).padded(100)))
print(next(News(7)), end="")
print(f"the model on such stories: {nats(model, news):.0f} nats, the least possible is {text.STORY_NATS:.2f}")

# %%
torch.manual_seed(0)
runs = {
    "all weights": (copy.deepcopy(model), 3e-3),
    "LoRA, r = 8": (adapt(model, 8), 1e-2),
    "LoRA, r = 1": (adapt(model, 1), 1e-2),
}
paths = {}
for name, (tuned, rate) in runs.items():
    path = train(tuned, News(3), 80, rate)
    smooth = np.convolve(path, np.ones(5) / 5, "valid")
    paths[name] = list(enumerate(smooth, 5))
    learning = sum(p.numel() for p in tuned.parameters() if p.requires_grad)
    print(
        f"{name}: {learning:7,} numbers learn; new stories {nats(tuned, news):6.1f} nats, old {nats(tuned):6.1f}"
    )

# %% jupyter={"source_hidden": true}
plot.lines(
    paths,
    "training step",
    "loss per new story, nats",
    "Adapters of rank 8 follow training all weights at some distance; of rank 1 they learn much more slowly.",
    limits={"least possible": text.STORY_NATS},
    log_y=True,
)

# %% [markdown]
# LoRA does not keep "full expressivity", because what it adds has rank r at most. It often learns less and forgets
# less than training everything does (Biderman et al., 2024). Here rank 1 learns least and forgets least, but it loses
# the old stories all the same. Rank 8 loses them as training all weights does. These are single runs. Other seeds
# move the loss on new stories by a nat or two (at rank 1 by some nats), but they keep this order.
#
# **DoRA** (Liu et al., 2024) gives each row of the sum a length of its own, `magnitude`, and lets A and B change the
# row's direction. For use, LoRA and DoRA are both **merged** into one matrix, which costs no extra work. (To save
# memory in training, the paper lets no gradient through the length that it divides by.)
#
# **Do.** Write `merge(weight, a, b, scale, magnitude)`. About 2 lines.
#
# - Input: `weight` (out, in), `a` (r, in), `b` (out, r), the number `scale` = α / r, and `magnitude` (out,).
# - Output: weight + scale · b a, of shape (out, in), with each row (one output) scaled to the length that `magnitude`
#   gives for it.
# - Full marks need every number right.


# %% nbgrader={"grade": false, "grade_id": "merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge(weight, a, b, scale, magnitude):
    ### BEGIN SOLUTION
    total = weight + scale * (b @ a)
    return magnitude[:, None] * total / total.norm(dim=1, keepdim=True)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "merge-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.merge", merge)


# %%
class Turned(Adapter):
    """DoRA, by your `merge`: it starts with the rows' own lengths, so the model starts unchanged."""

    def __init__(self, layer, rank):
        super().__init__(layer, rank)
        self.magnitude = nn.Parameter(layer.weight.detach().norm(dim=1))

    def forward(self, x):
        whole = merge(self.layer.weight, self.a, self.b, self.scale, self.magnitude)
        return F.linear(x, whole, self.layer.bias)


gpulab.need(merge)
torch.manual_seed(0)
tuned = adapt(model, 1, Turned)
train(tuned, News(3), 80, 1e-2)
learning = sum(p.numel() for p in tuned.parameters() if p.requires_grad)
print(
    f"DoRA, r = 1: {learning:,} numbers learn; new stories {nats(tuned, news):.1f} nats, old {nats(tuned):.1f}"
)

# %% [markdown]
# With one more number for each row, rank 1 becomes much better than LoRA of rank 1, but not nearly as good as rank 8.
# Three other seeds agree.
#
# **QLoRA** (Dettmers et al., 2023) keeps the frozen weights in 4 bits and the adapters in 16. The paper uses NF4 (lab
# 13). Here we use MXFP4 (lab 09), in which 32 numbers of 4 bits share a scale. What does this cost? And what does it
# cost if the adapter is merged, and the sum is rounded to four bits again?

# %%
from gpulab import numerics


def in_four_bits(model):
    """A copy whose linear layers have weights of MXFP4, unpacked."""
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for layer in layers(rounded):
            packed = numerics.encode_blocks(layer.weight.numpy(), "MXFP4")
            layer.weight.copy_(torch.from_numpy(packed.decode()).view_as(layer.weight))
    return rounded


torch.manual_seed(0)
four = in_four_bits(model)
tuned = adapt(four, 8)
train(tuned, News(3), 80, 1e-2)
merged = copy.deepcopy(four)
with torch.no_grad():
    adapters = [part for part in tuned.modules() if isinstance(part, Adapter)]
    for layer, adapter in zip(layers(merged), adapters, strict=True):
        layer.weight.add_(adapter.scale * adapter.b @ adapter.a)
print(f"old stories: {nats(model):.2f} nats in FP32, {nats(four):.2f} in four bits")
ends = {
    "adapter beside the four bits": nats(tuned, news),
    "merged": nats(merged, news),
    "merged, in four bits again": nats(in_four_bits(merged), news),
}
plot.bars(
    {name: round(loss, 2) for name, loss in ends.items()},
    "loss per new story, nats",
    caption="Merging changes nothing; rounding the merged weights to four bits again costs.",
)

# %% [markdown]
# Rounding again costs something, because the adapter has learnt to work with *these* rounded weights, and now they
# change. It costs one to two nats, also with three other seeds. A coarser format or a larger model can lose more or
# less. That the run with four bits ends below the LoRA run in FP32 is chance, because seeds move either result as
# much.
#
# A relative is **AdaLoRA** (Zhang et al., 2023), which moves rank to the matrices that need more.
#
# ## 8 · Many adapters, one model
#
# A hundred customers have a hundred adapters. Merged, these are a hundred models. Kept apart, they are one model and
# a hundred small pairs of matrices. Each row of a batch may need a different pair (S-LoRA, Sheng et al., 2023;
# Punica, Chen et al., 2023).
#
# ![Many adapters, one model: requests of three customers are in one batch. All go through the same frozen weights, and each adds its own pair of thin matrices.](drawings/many_adapters.svg)
#
# **Do.** Write `serve(x, weight, a, b, adapter, scale)`. About 4 lines.
#
# - Input: `x` (n, in), `weight` (out, in), `a` (adapters, r, in), `b` (adapters, out, r), the number `scale`, and
#   `adapter` (n,), whole numbers.
# - Output: a tensor of shape (n, out). Row i is weight · x_i + scale · b_k · (a_k · x_i), with k = adapter[i].
# - `torch.bmm` multiplies n matrices by n matrices. A vector is a matrix with one column.
# - A whole tensor can be an index, as in `a[adapter]`. A single value (`a[adapter[i]]`) or a mask cannot, because
#   code is recorded without values.
# - **Budget:** at most 9 launches for any n, and the FLOPs of the base and of one adapter per row, plus 10 %. Full
#   marks need both.


# %% nbgrader={"grade": false, "grade_id": "serve", "locked": false, "schema_version": 3, "solution": true, "task": false}
def serve(x, weight, a, b, adapter, scale):
    ### BEGIN SOLUTION
    down = torch.bmm(a[adapter], x[:, :, None])
    up = torch.bmm(b[adapter], down)[:, :, 0]
    return x @ weight.T + scale * up
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "serve-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.serve", serve)

# %%
gpulab.need(serve)
width, rank, count = 512, 8, 64
base, several_a, several_b = (
    torch.randn(width, width),
    torch.randn(count, rank, width),
    torch.randn(count, width, rank),
)
print("rows  launches   FLOPs of adapters / base   bytes of adapters / base")
for n in (1, 16, 256):
    args = torch.randn(n, width), base, several_a, several_b, torch.arange(n) % count, 2.0
    both, alone = gpulab.profile(serve, *args), gpulab.profile(F.linear, args[0], base)
    print(f"{n:4}{both.launches:10}{both.flops / alone.flops - 1:18.3f}{both.bytes / alone.bytes - 1:27.2f}")

# %% [markdown]
# **Why.** Adapters add a few percent of the FLOPs. Their bytes grow with the rows, because `a[adapter]` copies a pair
# of matrices for each row, and the products read the copy again. The base is read once for all rows. Kernels made for
# this job read each pair where it is.
#
# ## 9 · Fine-tuning as a workload
#
# For each token, a model with N parameters takes 2 N FLOPs in the forward pass, 2 N for the gradients of activations,
# and 2 N for those of weights. The FLOPs inside attention are left out (lab 01).
#
# **Predict.** What percentage of these FLOPs is left with adapters, if the adapters' own FLOPs are not counted?

# %%
gpulab.predict("compress.lora_flops", ...)

# %% [markdown]
# **Do.** Write `workload(layers, width, rank, way)`. About 6 lines.
#
# - A layer has four width × width matrices and two of width × 4 width. With adapters, each of the six has a pair of
#   matrices of this rank.
# - `way` is `"full"` (no adapters), `"LoRA"` or `"QLoRA"`.
# - Output: a list of three numbers: how many numbers learn, the bytes without activations, and the FLOPs per token.
# - A number that learns takes 16 bytes (weight and gradient in BF16, master copy and two moments in FP32) and 6 FLOPs
#   per token.
# - A frozen number takes 2 bytes and 4 FLOPs per token, because it has no gradient of its own. In `"QLoRA"` frozen
#   weights take 4 bits each, plus 1 byte of scale for every 64, plus 4 bytes of a scale of scales for every 64 · 256.
# - Full marks need all three numbers right for every way.


# %% nbgrader={"grade": false, "grade_id": "workload", "locked": false, "schema_version": 3, "solution": true, "task": false}
def workload(layers, width, rank, way):
    ### BEGIN SOLUTION
    model, adapters = 12 * width**2 * layers, 18 * width * rank * layers
    if way == "full":
        return [model, 16 * model, 6 * model]
    frozen = 2 if way == "LoRA" else 1 / 2 + 1 / 64 + 4 / (64 * 256)
    return [adapters, frozen * model + 16 * adapters, 4 * model + 6 * adapters]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "workload-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.workload", workload)

# %%
gpulab.need(workload)
room = float(hardware.find("A100").dram_bytes) / 1e9
sizes = {"6.4 billion": (32, 4096, 16), "64 billion": (80, 8192, 16)}
memory = {}
for name, shape in sizes.items():
    for way in ("full", "LoRA", "QLoRA"):
        learning, held, flops = workload(*shape, way)
        memory[f"{name}, {way}"] = round(held / 1e9, 1)
        print(
            f"{name:12}{way:6}{learning / 1e6:9,.0f} million learn{held / 1e9:9,.1f} GB{flops / 1e9:8,.0f} GFLOP/token"
        )
plot.bars(
    memory,
    "GB for weights, gradients and optimiser",
    budget=room,
    log=True,
    caption=f"The budget is the memory of one A100, {room:.0f} GB; crosses do not fit into it.",
)

# %% [markdown]
# **Activations** need memory in addition, and they grow with batch and length. Checkpoints (lab 08) make them small,
# for a third more FLOPs.
#
# ### Recipes that join sharding and adapters
#
# Several GPUs can share what training keeps (lab 16). What does that save if only adapters learn? There are three
# recipes. With **DDP** every GPU keeps everything. **ZeRO-2** divides gradients and optimiser states among the GPUs,
# but not weights. **FSDP** divides the weights as well, and gathers them layer by layer.
#
# **Predict.** Take the model of 64 billion parameters above with QLoRA: 33 GB of frozen weights and 0.19 billion
# numbers that learn. How many GB does ZeRO-2 keep on each of 8 GPUs, without activations?

# %%
gpulab.predict("compress.recipe", ...)

# %%
gpulab.need(workload)


def per_gpu(way, base, gpus):
    """Bytes on each GPU for the larger model: frozen weights, and what learns."""
    learning, held, _ = workload(*sizes["64 billion"], base)
    frozen = held - 16 * learning
    if way == "DDP":
        return frozen + 16 * learning
    if way == "ZeRO-2":  # of 16 bytes, 2 are the weight, which every GPU keeps
        return frozen + (2 + 14 / gpus) * learning
    return (frozen + 16 * learning) / gpus


gpulab.predict("compress.recipe", measured=per_gpu("ZeRO-2", "QLoRA", 8) / 1e9)
plot.bars(
    {
        f"{way} and {base}": round(per_gpu(way, base, 8) / 1e9, 1)
        for base in ("LoRA", "QLoRA")
        for way in ("DDP", "ZeRO-2", "FSDP")
    },
    "GB on each of 8 GPUs, without activations",
    budget=24,
    caption="The budget is a GPU of 24 GB. ZeRO-2 hardly differs from DDP; only FSDP divides the frozen weights.",
)

# %% [markdown]
# **Why.** What ZeRO-2 divides is small, because few numbers learn. A published recipe reads "ZeRO-2 and QLoRA", and it
# fits because of the 4 bits. Only FSDP brings this model to a small GPU. The figure leaves out the layer that FSDP has
# gathered, and activations.
#
# FSDP has one difficulty: it shards only tensors of floating-point types, and all tensors of a group must have the
# same type. Codes of 4 bits are not floats, so bitsandbytes stores them *as if* they were
# (`bnb_4bit_quant_storage=torch.bfloat16`; bitsandbytes documentation, "FSDP-QLoRA"). Does that harm them?

# %%
codes = torch.randint(0, 256, (1 << 16,), dtype=torch.uint8)  # two codes in each byte
stored = codes.view(torch.bfloat16)  # the same bytes under another type


def changed(tensor):
    """% of bytes that are no longer the codes, after sharding and gathering."""
    gathered = torch.cat(list(tensor.chunk(4)))
    return 100 * float((gathered.view(torch.uint8) != codes).float().mean())


plot.bars(
    {
        "sharded and gathered": changed(stored),
        "cast to float16 and back": changed(stored.to(torch.float16).to(torch.bfloat16)),
    },
    "% of the bytes changed",
    caption="Moving bytes harms no code. Converting numbers that are none destroys most of them.",
)

# %% [markdown]
# **Why.** A view changes no byte, and sharding only moves bytes. A cast, however, would round bytes that are not
# numbers at all. The bytes are cast if the other tensors of the group have another type, so the storage type must
# be the same as theirs. With it, 70 billion parameters fit on two GPUs with 24 GB (the same documentation), if
# activations are kept small.
#
# ![A sharded base with an adapter: the frozen weights are stored in four bits, a part on each rank, and are gathered layer by layer; the thin matrices are learnt in 16 bits, and only their gradients are exchanged.](drawings/sharded_base.svg)
#
# ### Settings
#
# - Precision: use BF16, with FP32 master copies of what learns. FP32 throughout is not needed (lab 10).
# - Learning rate: an adapter needs a larger one than all weights do (in section 7, 10⁻² against 3 · 10⁻³), with
#   warm-up.
# - Checkpoints: save only adapters and optimiser, because the base is on disk already. Keep the checkpoint that is
#   best on data of the new *and* of the old task.
#
# ## Detective · Half of the weights
#
# A colleague wants 50 % sparsity in ten rounds, with PyTorch's own tool, and says: "The sparsity that I print says
# that nothing is pruned at all, so I would prune more. But the loss is far off."

# %%
from torch.nn.utils import prune

theirs = copy.deepcopy(model)
for k in range(1, 11):
    for layer in layers(theirs):
        prune.l1_unstructured(layer, "weight", amount=0.5 * k / 10)
counted = [p for name, p in theirs.named_parameters() if "weight" in name]
zeros = sum(int((p == 0).sum()) for p in counted)
print(f"sparsity {zeros / sum(p.numel() for p in counted):.1%}, loss {nats(theirs):.0f} nats per story")

# %% [markdown]
# **Do.** Find out what `prune` leaves in a layer (`named_parameters`, `named_buffers`, `layer.weight`), which
# sparsity the model really has, and why. The first cell is free for this. Then write `amounts(sparsities)`, which
# returns the amounts that give the wanted sparsities. About 5 lines.
#
# - Input: the total sparsities that are wanted after each round, from 0 to 1 and never falling.
# - Output: a list with the `amount` to pass to `prune` in each round. If no weights are left before a round, its
#   amount is 0.
# - Full marks need every amount right.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "amounts", "locked": false, "schema_version": 3, "solution": true, "task": false}
def amounts(sparsities):
    ### BEGIN SOLUTION
    found, before = [], 0.0
    for now in sparsities:
        found.append((now - before) / (1 - before) if before < 1 else 0.0)
        before = now
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "amounts-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("compress.amounts", amounts)

# %%
gpulab.need(amounts)
mended = copy.deepcopy(model)
for amount in amounts([0.05 * k for k in range(1, 11)]):
    for layer in layers(mended):
        prune.l1_unstructured(layer, "weight", amount=amount)
for name, pruned in (("theirs", theirs), ("mended", mended)):
    kept = sum(float(layer.weight_mask.sum()) for layer in layers(pruned))
    print(f"{name}: {1 - kept / weights:.1%} sparse, {nats(pruned):.1f} nats per story")

# %% [markdown]
# `prune.remove(layer, "weight")` makes the zeros permanent: `weight` is a parameter again. The matrices keep their
# size.
#
# ### Your answer
#
# A colleague has pruned 75 % of a model's weights by masks, and announces a model that is four times smaller and
# faster. In three to five sentences: which of the two is true as it stands, why, and what would make it true? Name a
# number of FLOPs or bytes that you counted in this lab, and say what it shows. A person reads this: 1 point for the
# cause, 1 point for such a number.

# %% [markdown] nbgrader={"grade": true, "grade_id": "masks-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Neither is true. A mask leaves the matrices at their size, and a zero is stored and multiplied like
# any other number. My `shrink` needed 524,288 matrix FLOPs for 64 of 256 neurons, and the version with a mask
# 2,097,152, the same as unpruned. It becomes true when whole neurons or heads are cut out, so that the matrices are
# smaller. It becomes true in part with 2:4, which needs 4.5 of 8 bytes and sparse tensor cores. For zeros at random
# places there is no such hardware.
#
# **1 point** (cause without a number): The zeros are still stored and multiplied, so the shapes must shrink.
#
# **0 points:** It is smaller because zeros need no memory. Or: the loss rises too much.

# %% [markdown]
# ## Beyond · Which column beside which
#
# Open-ended and ungraded. In a 2:4 matrix, four neighbours compete for two places. You may reorder the columns of a
# matrix, and with them the rows of the matrix before it, so that the function stays the same. Then different weights
# become neighbours (Pool and Yu, 2021). The figure of merit is the **share of magnitude kept** in
# `blocks[0].feed.down`.
#
# | order of columns | kept |
# |---|---|
# | as it is | printed by the cell below |
# | ours: swap two columns at random, keep what helps, 40,000 tries | 77.7 % |
# | bound: the largest half of all weights, in no pattern | printed by the cell below |

# %%
down = model.blocks[0].feed.down.weight.detach()


def merit(order):
    """The share of the magnitude that 2:4 keeps with the columns in this order."""
    assert sorted(order) == list(range(down.shape[1]))
    shuffled = down[:, list(order)]
    return f"{float((shuffled * two_of_four(shuffled)).abs().sum() / down.abs().sum()):.2%}"


half = down.abs().flatten().sort(descending=True).values[: down.numel() // 2].sum() / down.abs().sum()
print("as it is:", merit(range(down.shape[1])), "  bound:", f"{float(half):.2%}")

# %%
# Your order, then merit(order).

# %% [markdown]
# ## Recap
#
# <details><summary>1. You call prune(amount=0.2) twice. Which sparsity do you get?</summary>
#
# 36 %, because the second round removes 20 % of the 80 % that are left.
# </details>
#
# <details><summary>2. Three quarters of a matrix are zero, at random places. What is saved?</summary>
#
# Nothing is saved as long as it is stored and multiplied as a dense matrix.
# </details>
#
# <details><summary>3. Why does 2:4 take 56 % of the bytes and not 50 %?</summary>
#
# Because there are two indices of 2 bits for every two FP16 values, which is 4.5 of 8 bytes.
# </details>
#
# <details><summary>4. Which shapes do A and B have, and which of them starts at zero?</summary>
#
# A is (r, in) and random. B is (out, r) and starts at zero, so that the model starts unchanged.
# </details>
#
# <details><summary>5. LoRA trains 0.4 % of the numbers. Is a step 250 times cheaper?</summary>
#
# No. The forward pass and the gradients of activations go through the whole model, so two thirds of the FLOPs remain.
# What falls is the memory of gradients and optimiser.
# </details>

# %%
gpulab.recap("14")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | sparsity of a model | zeros of `weight`, or of the masks, divided by all weights; not zeros of `weight_orig` |
# | amount of a round | (wanted − there) / (1 − there) |
# | 2:4 | at most two non-zeros of four; FP16 56.25 % of the bytes, twice the rate on sparse tensor cores |
# | what a mask saves | nothing; cut matrices or pack 2:4 |
# | distillation | α · CE + (1 − α) · T² · KL(teacher ‖ student), `batchmean` |
# | LoRA | W + (α / r) · B A; r · (in + out) numbers; rank of the change ≤ r |
# | DoRA | rows of that sum scaled to learnt lengths |
# | bytes per number | 16 if it learns; 2 if frozen; 0.516 in NF4 with double quantisation |
# | FLOPs per token and number | 6 if it learns, 4 if frozen |
#
# ### Claims you will meet, and what is right
#
# - *Sparsity is the zeros among the parameters.* `prune` keeps the unpruned weight as the parameter `weight_orig` and
#   the mask as a buffer, so such a count gives 0.
# - *`amount=0.5` in each of several rounds ends at 50 %.* Amounts are shares of what remains.
# - *Pruned heads and weights make a model faster.* They do not if they are only masked.
# - *2:4 means exactly two of four.* It means at most two non-zeros.
# - *Distillation: cross-entropy at temperature T.* It is KL(teacher ‖ student) of softened distributions, times T².
# - *LoRA is A Bᵀ with A (d × r) and B (r × d).* These shapes do not multiply. It is B A.
# - *LoRA keeps full expressivity.* The change has rank r at most.
# - *ZeRO-2 makes 70 billion parameters fit.* It does not shard weights. The 4 bits make them fit.
# - *Fine-tuning needs FP32.* BF16 with master copies in FP32 is enough.
#
# ### References
#
# 1. J. Frankle, M. Carbin, "The Lottery Ticket Hypothesis", ICLR 2019. https://arxiv.org/abs/1803.03635; J. Frankle
#    et al., "Linear Mode Connectivity and the Lottery Ticket Hypothesis", ICML 2020. https://arxiv.org/abs/1912.05671
# 2. M. Zhu, S. Gupta, "To prune, or not to prune", 2017. https://arxiv.org/abs/1710.01878
# 3. A. Mishra et al., "Accelerating Sparse Deep Neural Networks", 2021. https://arxiv.org/abs/2104.08378; J. Pool, C.
#    Yu, "Channel Permutations for N:M Sparsity", NeurIPS 2021.
# 4. P. Michel et al., "Are Sixteen Heads Really Better than One?", NeurIPS 2019. https://arxiv.org/abs/1905.10650
# 5. G. Hinton et al., "Distilling the Knowledge in a Neural Network", 2015. https://arxiv.org/abs/1503.02531
# 6. E. Hu et al., "LoRA", 2021. https://arxiv.org/abs/2106.09685; S. Liu et al., "DoRA", 2024.
#    https://arxiv.org/abs/2402.09353; D. Biderman et al., "LoRA Learns Less and Forgets Less", 2024.
#    https://arxiv.org/abs/2405.09673
# 7. T. Dettmers et al., "QLoRA", 2023. https://arxiv.org/abs/2305.14314
# 8. Y. Sheng et al., "S-LoRA", 2023. https://arxiv.org/abs/2311.03285; L. Chen et al., "Punica", 2023.
#    https://arxiv.org/abs/2310.18547
