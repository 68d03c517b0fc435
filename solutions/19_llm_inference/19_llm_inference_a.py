# ---
# jupyter:
#   gpulab:
#     lab: "19"
#     hours: 5
#     topics: [C13.1, C13.2, C13.3, C13.4, C13.5, C13.6, C13.10, C23.5]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 A · LLM inference: the cache
#
# **4 to 7 hours.** You need lab 12 (attention, grouped heads, merging the results of parts)
# and lab 11 (Triton). No GPU is needed.
#
# A language model writes one token after another. The keys and values of every token that it has read or
# written stay in a cache. That cache decides how fast a model answers, how many users one GPU can serve, and
# which kernels the model needs. In this part you build the cache: first as tensors, then in eight bits and in
# pages, together with the two kernels that read it.
#
# By the end, you can
#
# 1. say for any model, GPU and batch how long a token takes at least, and why;
# 2. write a cached step of attention that copies nothing, and tell whether a cache is right;
# 3. say where a GPU's memory goes when a model answers, and how many users fit;
# 4. split one query's work over a whole GPU, and merge the parts;
# 5. allocate a cache in blocks that sequences share, and read it from a kernel.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 6 | 2 to 3.5 | the cache as tensors: its cost, its steps, a smaller cache, and a query that is split |
# | 2 | 7 and 8, detective, recap | 2 to 3.5 | the cache in pages, and the kernels that read it |

# %%
import math

import numpy as np
import torch
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensorMode

import gpulab
from gpulab import cuda, hardware, plot, triton
from gpulab.models import gpt, known
from gpulab.models.config import Config

rng = np.random.default_rng(19)
gpulab.start("19")

# %% [markdown]
# ## 1 · One token after another
#
# ![An answer has two phases. Prefill reads the whole prompt in one pass and is bound by arithmetic. Decoding makes a token in each pass, reads all weights for it, and is bound by memory.](drawings/two_phases.svg)
#
# A language model gives the probability of the next token, given all tokens before it. The probability of a
# whole text is the product of these probabilities:
#
# > P(x₁ … xₙ) = P(x₁) · P(x₂ | x₁) · … · P(xₙ | x₁ … xₙ₋₁)
#
# In training all tokens are known, so one pass computes all factors (lab 01). When a model writes, it draws
# token n + 1 from factor n + 1, and that factor depends on token n. So every token needs a pass of its own,
# and the passes must run one after the other. This is **autoregressive decoding**.
#
# In a causal model nothing that comes later changes what an old token sees. Every pass would therefore
# compute the same keys and values for the old tokens again. Instead they are kept in the **KV cache**, and a
# pass receives only the new token. The next cell uses the ledger to count the work both ways; its tensors
# have shapes but no contents.


# %%
def plain(q, k, v, allowed):
    """Attention in operations whose FLOPs the ledger counts."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~allowed, -math.inf), -1) @ v


llama_like = {"positions": "rotary", "norm": "rms", "gated": True, "bias": False, "tied": False}
small = Config(512, 1024, 128, 4, 8, 2, 384, **llama_like)
lengths = [16, 64, 128, 256, 384, 512]
again, cached = [], []
with FakeTensorMode(), torch.no_grad():
    model = gpt.GPT(small, plain)
    for n in lengths:
        again.append(gpulab.profile(model, torch.zeros(1, n + 1, dtype=torch.long))["matrix_flops"])
        cache = gpt.Cache()
        model(torch.zeros(1, n, dtype=torch.long), cache=cache)
        one = torch.zeros(1, 1, dtype=torch.long)
        cached.append(gpulab.profile(model, one, None, cache)["matrix_flops"])
plot.lines(
    {
        "all tokens again": [(n, f / 1e6) for n, f in zip(lengths, again, strict=True)],
        "with a cache": [(n, f / 1e6) for n, f in zip(lengths, cached, strict=True)],
    },
    "tokens so far",
    "MFLOP for one more token",
    "Without a cache a token costs as much as all before it together; with one it grows slowly.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** With a cache, a new token costs 2 FLOP for each weight, whatever came before, plus O(n · width) in
# each layer for attention to n cached tokens, which grows slowly. Over a text of n tokens, the weight
# matrices process n tokens instead of 1 + 2 + … + n = n·(n + 1)/2.

# %%
print(f"one more token after {lengths[0]}: {cached[0]:,} FLOP; after {lengths[-1]}: {cached[-1]:,}")

# %% [markdown]
# ## 2 · Prefill and decode
#
# A request has two phases. **Prefill** passes the whole prompt through the model at once and fills the cache;
# its last logits give the first token of the answer. **Decode** then makes one pass for each further token.
# Both are the same kind of pass, over `new` tokens that follow `there` cached ones. For a prompt of n tokens,
# (`new`, `there`) is (n, 0) in prefill and (1, n) in the first decode step. A chunk of a long prompt has
# `new` > 1 and `there` > 0.
#
# A pass reads all weights, whether for one token or for a thousand. Decode passes only one token of each
# sequence, so it is bound by **bandwidth** (lab 02):
#
# > time of a pass ≥ max(FLOP / peak, bytes / bandwidth)
#
# **Predict.** An H100 runs a model with 16-bit weights (2 FLOP each for each token). Leave the cache aside.
# How many tokens must a pass hold before computing takes longer than reading the weights? The cell prints its
# peak (FLOP/s) and its bandwidth (B/s).

# %%
from gpulab.exercises.lab_19_kv_cache import data_sheet, shape_of

h100 = data_sheet("H100")
print(h100)

# %%
gpulab.predict("kv.ridge", ...)

# %% [markdown]
# **Do.** Write `count(model, gpu, batch, new, there)` for one pass over `new` tokens of each of `batch`
# sequences, each with `there` tokens in the cache. Return `[FLOP, bytes, least seconds]`. `model` is a
# dictionary like this one:

# %%
llama = shape_of("Llama 3 8B")
print(llama)

# %% [markdown]
# - Each layer has matrices for queries (width × heads · head_dim), keys and values (width × kv_heads ·
#   head_dim each) and the output (heads · head_dim × width), and three of width × hidden. A number in them
#   costs 2 FLOP a token.
# - The output layer, vocabulary × width, is needed only for the last token of each sequence.
# - In each layer and head, a query costs 4 · head_dim FLOP for each token that it sees: itself and all
#   before.
# - Bytes: these matrices are read once, at `weight_bytes` a number. The cache of the `there` tokens is read
#   and that of the `new` tokens is written, at `cache_bytes` a number. Nothing else counts.
# - `gpu` is a dictionary with `peak` and `bandwidth`.
#
# The check compares all three numbers. About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "count", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count(model, gpu, batch, new, there):
    ### BEGIN SOLUTION
    heads, kv, d, layers = (model[name] for name in ("heads", "kv_heads", "head_dim", "layers"))
    layer = 2 * model["width"] * d * (heads + kv) + 3 * model["width"] * model["hidden"]
    head = model["vocabulary"] * model["width"]
    pairs = new * there + new * (new + 1) // 2
    flops = batch * (2 * (layers * layer * new + head) + 4 * layers * heads * d * pairs)
    cache = 2 * layers * kv * d * model["cache_bytes"] * batch * (there + new)
    moved = model["weight_bytes"] * (layers * layer + head) + cache
    return [flops, moved, max(flops / gpu["peak"], moved / gpu["bandwidth"])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "count-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.count", count)

# %% [markdown]
# **See.** The least time of a decode step, Llama 3 8B, by batch size:

# %%
gpulab.need(count)
batches = [2**i for i in range(11)]
curves = {}
for there in (0, 1000, 8000):
    curves[f"{there:,} tokens cached"] = [(b, 1e3 * count(llama, h100, b, 1, there)[2]) for b in batches]
for name, gpu in (("A100", data_sheet("A100")), ("H100", h100)):
    flops, moved, seconds = count(llama, gpu, 1, 1, 1000)
    first = count(llama, gpu, 1, 1000, 0)
    print(
        f"{name}: 1,000 tokens of prefill {1e3 * first[2]:5.1f} ms ({first[0] / first[1]:5.0f} FLOP/B), "
        f"then {1e3 * seconds:.1f} ms a token ({flops / moved:.1f} FLOP/B)"
    )
plot.lines(
    curves,
    "sequences in the batch",
    "least ms for a step, H100",
    "Flat: weights are read. Without a cache it rises where products take longer; long caches make it rise much sooner.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** A single sequence uses about a three-hundredth of the FLOPs that the GPU could compute in the time
# of the step. A larger batch reads the same weights for more tokens, which is why servers batch requests
# (part B, lab 20). But each sequence brings its own cache, and no batch makes reading that cheaper.
#
# Three common claims are wrong (S is the number of tokens, H the model's width):
#
# - *"A token costs O(S²·H)."* That is the cost of a whole prefill of S tokens. One token costs O(S·H) for
#   attention and O(H²) for the matrices, in each layer.
# - *"Decode is dominated by latency."* With one GPU and a large model, bandwidth is the limit. But small
#   models do run into latencies, and so do many GPUs that wait for each other in every layer.
# - *"Prefill is compute-bound."* It is so only when the pass holds enough tokens.
#
# The next cell computes the least time of a token for a 70B model in 16 bits:

# %%
for gpus in (1, 8):
    seconds = 70e9 * 2 / (gpus * h100["bandwidth"])
    print(f"70e9 weights of 2 B over {gpus} × H100: at least {1e3 * seconds:.1f} ms a token")

# %% [markdown]
# (One H100 of 80 GB could not even hold these weights.)
#
# ## 3 · The cache
#
# The cache stores a key and a value for each token, in each layer and for each head *of keys* (**key head**).
#
# ![With a cache, a new token computes its own key and value only, writes them after those of earlier tokens, and its query looks at all of them.](drawings/cache.svg)
#
# > bytes = 2 · layers · kv_heads · head_dim · tokens · sequences · bytes of a number
#
# Guides often write *heads* in place of kv_heads and forget the last factor. As an example, Llama 2 7B, which
# has 32 key heads, needs 2.0 GiB for one sequence of 4,096 tokens.
#
# **Predict.** Llama 3 8B has 32 layers and 8 key heads, with 128 numbers in each key and in each value, at 16
# bits a number. How many bytes does one token take in the cache?

# %%
gpulab.predict("kv.token", ...)

# %% [markdown]
# ![The order in a step: compute the new token's key and value, write them into the cache after the others, and only then let the query look at all that is there, itself included.](drawings/write_then_read.svg)
#
# Seven points decide whether a cache is right and fast:
#
# - **Order.** A new token's key and value are written before the cache is read, because the token sees
#   itself.
# - **Positions.** With **rotary positions**, queries and keys are turned by an angle that grows with the
#   position (`turn`, below), so that their product depends only on the distance between them. What counts is
#   the position in the text. In this section the cache holds keys that are already *turned*.
# - **Masks.** Query i of the `new` ones is at position there + i. A mask that forgets `there` is right only
#   for prefill.
# - **Room.** `torch.cat` makes a new cache for each token and copies the old one into it. If the room is
#   reserved once and written in place, only the new token moves.
# - **Heads.** A key head serves heads / kv_heads query heads. Repeating its keys for each of them undoes the
#   saving, and a product that broadcasts over these heads repeats the keys, too.
# - **Layout.** In (heads, tokens, d), everything that a head reads is contiguous. In (tokens, heads, d), it
#   is scattered in pieces of d numbers.
# - **Window.** With a **sliding window**, a token sees itself and the window − 1 tokens before it, and needs
#   no others. Without a window, `window` is 1,000,000, which leaves out no token.


# %%
def turn(x, positions):
    """Rotary positions: x (…, tokens, d), positions (tokens,). The pair (i, i + d/2) turns by position · 10,000^(−2i/d)."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10_000.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)


a, b = torch.randn(2, 1, 64)
apart = [float((turn(a, torch.tensor([p])) * turn(b, torch.tensor([p - 7]))).sum()) for p in (7, 100, 1000)]
print("the product of two turned rows, 7 apart, at 7, 100 and 1,000:", [round(x, 3) for x in apart])

# %% [markdown]
# **Do.** Write `step(q, k, v, keys, values, there, window)`: one layer's attention for `new` tokens, whose
# keys and values it also writes into the cache.
#
# - **Input:** `q` (heads, new, d), `k` and `v` (kv_heads, new, d), all float32. Queries and keys are not
#   turned yet.
# - **Cache:** `keys` and `values` (kv_heads, room, d). Their first `there` rows are filled, and the keys in them are
#   turned. The rows after these hold rubbish. Write the new rows in place, starting at row `there`.
# - **Output:** return the attention output (heads, new, d). Query head h uses key head h // (heads /
#   kv_heads). Divide the scores by √d.
# - **Allowed:** `torch.softmax`, but not `scaled_dot_product_attention`.
# - **Budget:** twice the bytes of the keys and values that are seen. (The naive solution is a cache grown
#   with `torch.cat`.)
#
# About 12 lines.


# %% nbgrader={"grade": false, "grade_id": "step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step(q, k, v, keys, values, there, window):
    ### BEGIN SOLUTION
    heads, new, d = q.shape
    end, first, group = there + new, max(0, there + 1 - window), heads // len(k)
    at = torch.arange(there, end)
    keys[:, there:end] = turn(k, at)
    values[:, there:end] = v
    queries = turn(q, at).reshape(len(k), group * new, d) / math.sqrt(d)
    scores = queries @ keys[:, first:end].transpose(1, 2)
    behind = at.repeat(group)[:, None] - torch.arange(first, end)
    scores = scores.masked_fill((behind < 0) | (behind >= window), -math.inf)
    return (torch.softmax(scores, -1) @ values[:, first:end]).reshape(heads, new, d)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "step-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.step", step)

# %% [markdown]
# ![Every layer of the model has keys and values of its own: a cache is as many pairs of arrays as the model has layers, and all grow by one token in each step.](drawings/layers_of_cache.svg)
#
# A model has many layers, and each needs its own part of the cache. In `gpt.Cache` each layer calls
# `extend(layer, keys, values)` with its new rows and gets back all rows of that layer; `length` says how many
# tokens the cache holds. One published cache keeps a single counter for all layers. Its `extend` writes the
# new rows at the counter and then advances it.
#
# **Predict.** Six tokens pass, one by one, through a model of two layers. What does the counter say at the
# end?

# %%
gpulab.predict("kv.counter", ...)


# %%
class OneCounter(gpt.Cache):
    """Room reserved once, and one counter that every layer counts up."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def extend(self, layer, keys, values):
        if layer not in self.layers:
            self.layers[layer] = tuple(torch.zeros(1, keys.shape[1], 64, keys.shape[3]) for _ in range(2))
        start, self.count = self.count, self.count + keys.shape[2]
        for room, new in zip(self.layers[layer], (keys, values), strict=True):
            room[:, :, start : self.count] = new
        return tuple(room[:, :, : self.count] for room in self.layers[layer])

    @property
    def length(self):
        return self.count


def sees_all(q, k, v, allowed):
    """One new token sees all that the cache gives back."""
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


torch.manual_seed(3)
tokens = torch.randint(0, 512, (1, 6))
for layers in (1, 2):
    config = Config(512, 64, 128, layers, 8, 2, 384, **llama_like)
    whole, stepped = gpt.GPT(config), gpt.GPT(config, sees_all)
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.mul_(5)  # a fresh model says the same whatever it reads
        stepped.load_state_dict(whole.state_dict())
        right = whole(tokens)
        for kind in (gpt.Cache, OneCounter):
            cache = kind()
            rows = [stepped(tokens[:, i : i + 1], cache=cache) for i in range(6)]
            off = float((torch.cat(rows, 1) - right).abs().max())
            print(
                f"{layers} layer{'s' * (layers > 1)}, {kind.__name__:10} says {cache.length:2} tokens, off by {off:.1g}"
            )

# %% [markdown]
# **Why.** With one layer the counter is right, so every test with one layer passes. With two layers it
# advances twice for each token. Each layer therefore writes only every second row and gets back rows of zeros
# in between, and the softmax gives these rows weight. Test a cache on at least two layers, in a prefill, a
# chunk and a decode step, against full recomputation.
#
# Two similar mistakes are as easy to miss. When sequences of different lengths share a batch, the shorter
# ones are padded, and the padded rows must be masked, because a zero key has score 0, not −∞. And a chunk
# must see the cache as well as itself.
#
# ## 4 · Where the memory goes
#
# While a model answers, three things fill the GPU's memory: the **weights** (parameters × bytes of each), the
# **cache**, as above, and the **activations** of the tokens in the pass, which are discarded after each
# layer. There are no gradients and no optimizer states (lab 16).
#
# ![The bytes of a cache: 2, for keys and values, × layers × key heads × head size × bytes a number, for every token of every user.](drawings/cache_bytes.svg)
#
# **Predict.** The weights of Llama 3 8B take 16.1 GB in 16 bits. At how many tokens does the cache of one
# sequence outgrow them?

# %%
gpulab.predict("kv.outgrow", ...)

# %%
config = known.find("Llama 3 8B").config
with torch.device("meta"):
    weights = 2 * gpt.parameters(gpt.GPT(config))  # bytes, 16 bits
per_token = 2 * config.layers * config.kv_heads * config.head_width * 2


def memory(users, context, in_flight):
    """GB of weights, cache and activations. Activations are modelled: for each token in flight two rows of hidden
    and two of width in 16 bits, the widest place of a layer, and a user's logits in float32."""
    activations = in_flight * 2 * (2 * config.hidden + 2 * config.width) + users * 4 * config.vocabulary
    parts = {"weights": weights, "cache": users * context * per_token, "activations": activations}
    return {name: size / 1e9 for name, size in parts.items()}


plot.stacked(
    {
        "1 user, 1,000 tokens": memory(1, 1000, 1),
        "1 user, prefill of 8,000": memory(1, 8000, 8000),
        "16 users, 8,000 each": memory(16, 8000, 16),
        "64 users, 8,000 each": memory(64, 8000, 64),
        "128 users, 2,000 each": memory(128, 2000, 128),
    },
    "GB, Llama 3 8B in 16 bits",
    "One user's memory is weights; with many users it is cache. Activations matter in a long prefill only (modelled).",
    limits={name: float(hardware.find(name).dram_bytes) / 1e9 for name in ("L4", "A100")},
)

# %% [markdown]
# ![A GPU of 80 GB with weights of 16 GB: what is left, less a reserve, is shared by the caches of all users.](drawings/left_over.svg)
#
# **Why.** The memory that the weights leave free limits users × tokens. A long prompt is cut into chunks so
# that its activations stay small. A server also needs memory that serves none of these three: the unused ends
# of blocks and pools (section 7), and the buffers of libraries. So an engine takes only a share of the
# memory, such as 90 %. The next cell divides what remains of that share, after the weights, among users:

# %%
for name in ("L4", "A100", "H200"):
    room = 0.9 * float(hardware.find(name).dram_bytes) - weights
    print(
        f"{name:5} {room / 1e9:6.1f} GB for the cache: {int(room / per_token / 8192):3} users with 8,192 tokens each"
    )

# %% [markdown]
# ## 5 · A smaller cache
#
# A cache can be made smaller in several ways, and each has its price:
#
# | way | what it makes smaller | what it costs |
# |---|---|---|
# | grouped heads (lab 12) | kv_heads | must be chosen in training |
# | sliding window | tokens | tokens further back are lost |
# | eviction (H2O), kept first tokens (StreamingLLM) | tokens | tokens judged unimportant are gone |
# | pruned heads or layers (lab 14) | kv_heads, layers | needs fine-tuning afterwards |
# | low rank (DeepSeek's MLA) | numbers a token: one short vector for all heads | must be chosen in training |
# | fewer bits | bytes of a number | rounding |
#
# How much do the ways that are chosen in training save? In **multi-head attention** (MHA) every query head has keys
# and values of its own. In **grouped-query attention** (GQA) several query heads share them, and in **multi-query
# attention** (MQA) all of them do. **Multi-head latent attention** (MLA) stores one vector for all heads, the
# **latent**, and one short key that carries the position. The latent serves as key and as value (lab 26 B computes
# with it).
#
# **Predict.** A model has 32 layers. Its latent has 512 numbers and its key with the position 64, in 16 bits. How many
# bytes does a token take in the cache?

# %%
gpulab.predict("kv.latent", ...)

# %% [markdown]
# Large models run on several GPUs, which divide the query heads among them (**tensor parallelism**, lab 17). Each GPU
# must hold the keys and values that its query heads need. Heads of keys can be divided as well, as long as there are
# enough of them. A GPU that would get less than one head holds a copy of a whole one. A latent has no heads to divide,
# so every GPU holds all of it. (vLLM computes it this way, in `get_num_kv_heads` of `vllm/config/model.py`.)
#
# **Do.** Write `per_gpu(model, ranks)`, the bytes that a token's cache takes on each of `ranks` GPUs.
#
# - **Input:** `model` is a dictionary with `layers` and `bytes` (of one number). It also has either `kv_heads` and
#   `head_dim`, or `latent` and `place`, which are the numbers in the latent and in the key with the position.
# - **Divisions:** `kv_heads` is a multiple of `ranks`, or `ranks` is a multiple of `kv_heads`.
# - **Output:** a number. Full marks need every answer right.
#
# About 6 lines.


# %% nbgrader={"grade": false, "grade_id": "per-gpu", "locked": false, "schema_version": 3, "solution": true, "task": false}
def per_gpu(model, ranks):
    ### BEGIN SOLUTION
    if "latent" in model:
        numbers = model["latent"] + model["place"]
    else:
        numbers = 2 * max(1, model["kv_heads"] // ranks) * model["head_dim"]
    return model["layers"] * numbers * model["bytes"]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "per-gpu-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.per_gpu", per_gpu)

# %%
gpulab.need(per_gpu)
one_size = {"layers": 32, "bytes": 2}
cached = {
    name: one_size | {"kv_heads": heads, "head_dim": 128}
    for name, heads in (("MHA, 32 heads", 32), ("GQA, 8 heads", 8), ("MQA, 1 head", 1))
}
cached["MLA, 512 + 64"] = one_size | {"latent": 512, "place": 64}
gpulab.predict("kv.latent", measured=per_gpu(cached["MLA, 512 + 64"], 1))
plot.panels(
    {
        f"KiB a token, {f'each of {ranks} GPUs' if ranks > 1 else 'one GPU'}": {
            name: per_gpu(shape, ranks) / 1024 for name, shape in cached.items()
        }
        for ranks in (1, 4, 8)
    },
    "On one GPU MLA holds less than GQA. On eight GPUs it holds more, because a latent is copied and not divided.",
)

# %% [markdown]
# **Why.** On one GPU, MLA needs 36 KiB for a token where eight heads need 128 KiB. On eight GPUs each holds one head,
# which is 16 KiB, but still the whole latent. So engines do not cut MLA's attention by heads. Every GPU attends for
# requests of its own, while the rest of the layer is cut as before (**data-parallel attention**; Ray's guide "Data
# parallel attention").
#
# ### Fewer bits
#
# Numbers in eight bits need a **scale** (lab 13): code = round(x / scale), a whole number from −127 to 127.
# Which numbers should share a scale? The next cell generates the keys and values of one head and plots them.
# Rows are tokens, and columns are **channels**. The keys imitate what KIVI (2024) reports of real models.

# %%
from gpulab.exercises.lab_19_kv_cache import quantise_questions

sizes = {"tokens": 64, "d": 32, "kind": ""}
some_k, some_v = (np.array(x) for x in quantise_questions(sizes, np.random.default_rng(5))[0])
plot.heat_maps(
    {"K": some_k, "V": some_v},
    "token",
    "channel",
    "A scale must reach the largest of the numbers that share it.",
)

# %% [markdown]
# **Do.** Write `quantise(k, v)`, which turns the keys and values of one head into codes and scales.
#
# - **Input:** `k` and `v`, lists of m rows (tokens) of d numbers. A row or a column may be all zeros.
# - **Output:** four lists of lists, `[codes of K, scales of K, codes of V, scales of V]`. Codes are m × d
#   whole numbers from −127 to 127. Scales have the shape 1 × 1, 1 × d, m × 1 or m × d. What is read back is
#   codes × scales.
# - **Allowed:** NumPy, with `.tolist()` at the end.
# - **Budget:** error and bytes. For the error, the check computes attention outputs for 64 queries of its
#   own, once with only your K quantised and once with only your V. Each error may be at most 110 % of ours. A
#   code takes one byte and a scale two, so that one scale for each row or column is enough.
#
# About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "quantise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantise(k, v):
    ### BEGIN SOLUTION
    found = []
    for x, axis in ((np.array(k), 0), (np.array(v), 1)):
        largest = np.abs(x).max(axis=axis, keepdims=True)
        scales = np.where(largest > 0, largest, 1) / 127
        found += [np.round(x / scales).astype(int).tolist(), scales.tolist()]
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "quantise-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.quantise", quantise)


# %%
def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


queries = 2 * np.random.default_rng(6).standard_normal((64, 32)) / math.sqrt(32)
exact = softmax(queries @ some_k.T) @ some_v


def error(k, v):
    """The outputs' mean relative error, in percent."""
    off = softmax(queries @ k.T) @ v - exact
    return 100 * float(np.mean(np.linalg.norm(off, axis=1) / np.linalg.norm(exact, axis=1)))


def through_bits(x, axis, bits):
    scales = np.abs(x).max(axis=axis, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.round(x / scales) * scales


shared_by = {"all": None, "a token": 1, "a channel": 0}
plot.panels(
    {
        f"{what}, {bits} bits: error, %": {
            f"a scale for {who}": error(
                *(
                    (through_bits(some_k, axis, bits), some_v)
                    if what == "K"
                    else (some_k, through_bits(some_v, axis, bits))
                )
            )
            for who, axis in shared_by.items()
        }
        for what, bits in (("K", 8), ("V", 8), ("K", 4))
    },
    "K wants a scale for each channel, V one for each token; four bits need the right one all the more.",
)

# %% [markdown]
# **Why.** A loud channel, one with large values, spoils only itself if it has a scale of its own. In V, an
# error counts as much as its token's attention weight, and with a scale for each token a loud token spoils
# only itself. V's scales can be computed as each token arrives. K's scales, however, are known only when many
# tokens are there, so KIVI quantises K in groups of tokens and keeps the newest ones in 16 bits.
#
# On a GPU, the kernel turns the codes into numbers in registers, because a float copy of the cache in memory
# would cost more than the codes save.
#
# ## 6 · One query, many keys
#
# In decode each head has one query. Lab 12's kernel gives each block a tile of queries, so here it launches
# only one block for each key head.
#
# **Predict.** One sequence is decoded, with 8 key heads and a block for each. What percentage of an A100's
# SMs has work?

# %%
gpulab.predict("kv.busy", ...)

# %% [markdown]
# So the *keys* are cut into parts, with a block for each part of each key head (**split-KV**, used by
# Flash-Decoding). Each block stores the output of its part and the part's log-sum-exp. A second kernel merges
# the parts, and each counts with the weight exp(lse), as in lab 12.
#
# **Do.** Write `split(q, k, v, outs, lses, out)` with two Triton kernels: one computes the parts, one merges
# them.
#
# - **Input** (float16): `q` (16 · kv, 64), `k` and `v` (kv, m, 64). `q` is already scaled. Do not scale it
#   again.
# - **Heads:** 16 consecutive query heads share a key head, so `tl.dot` has 16 rows.
# - **Parts:** there are parts = `outs.shape[1]` parts. Part p starts at key p · ⌈m / parts⌉ and ends where
#   the next part starts, or at m. An empty part stores 0 in `outs` and −∞ in `lses`.
# - **Output** (float32): `outs` (16 · kv, parts, 64), `lses` (16 · kv, parts) and `out` (16 · kv, 64).
# - **Budget:** the bytes that all blocks load, and those that one block loads. Load keys and values once.
#   Launch a block for each key head and part, and one for each row of the merge, so that none loads much more
#   than one part.
# - **Useful:** `triton.cdiv(a, b)` is ⌈a / b⌉; `triton.next_power_of_2(n)` rounds n up to a power of two.
#
# About 35 lines.


# %% nbgrader={"grade": false, "grade_id": "split", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def parts_kernel(
    q, k, v, outs, lses, m, parts, each, D: tl.constexpr, GROUP: tl.constexpr, COLUMNS: tl.constexpr
):
    ### BEGIN SOLUTION
    head, part = tl.program_id(0), tl.program_id(1)
    rows = head * GROUP + tl.arange(0, GROUP)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((GROUP,), -float("inf"), tl.float32)
    s = tl.zeros((GROUP,), tl.float32)
    total = tl.zeros((GROUP, D), tl.float32)
    end = tl.minimum(m, (part + 1) * each)
    for first in range(part * each, end, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        inside = columns < end
        where = (head * m + columns)[:, None] * D + across
        keys = tl.load(k + where, mask=inside[:, None], other=0.0)
        values = tl.load(v + where, mask=inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    to = rows * parts + part
    tl.store(outs + to[:, None] * D + across, total / tl.maximum(s, 1.0)[:, None])
    tl.store(lses + to, largest + tl.log(s))
    ### END SOLUTION


@triton.jit
def merge_kernel(outs, lses, out, parts, D: tl.constexpr, MOST: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    each = tl.arange(0, MOST)
    across = tl.arange(0, D)
    lse = tl.load(lses + row * parts + each, mask=each < parts, other=-float("inf"))
    weights = tl.exp(lse - tl.max(lse, 0))
    there = (each < parts)[:, None]
    some = tl.load(outs + (row * parts + each)[:, None] * D + across, mask=there, other=0.0)
    tl.store(out + row * D + across, tl.sum(weights[:, None] * some, 0) / tl.sum(weights, 0))
    ### END SOLUTION


def split(q, k, v, outs, lses, out):
    ### BEGIN SOLUTION
    heads, m, d = k.shape
    parts = outs.shape[1]
    each = triton.cdiv(m, parts)
    parts_kernel[(heads, parts)](q, k, v, outs, lses, m, parts, each, D=d, GROUP=16, COLUMNS=32)
    merge_kernel[(q.shape[0],)](outs, lses, out, parts, D=d, MOST=triton.next_power_of_2(parts))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "split-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.split", split)

# %% [markdown]
# **See.** One key head with 1,024 keys, cut into more and more parts:

# %%
gpulab.need(split)
q = (rng.standard_normal((16, 64)) / 8).astype(np.float16)
k, v = (rng.standard_normal((1, 1024, 64)).astype(np.float16) for _ in range(2))
reports = {}
for parts in (1, 4, 16, 64):
    made = [np.zeros(shape, np.float32) for shape in ((16, parts, 64), (16, parts), (16, 64))]
    arrays = [cuda.to_device(x) for x in (q, k, v, *made)]
    reports[f"{parts} part{'s' * (parts > 1)}"] = gpulab.profile(split, *arrays)
plot.panels(
    {
        "blocks, both kernels": {name: r["blocks"] for name, r in reports.items()},
        "KB that a block loads, one in each kernel": {
            name: r["block_load_bytes"] / 1e3 for name, r in reports.items()
        },
        "KB loaded and stored": {name: r["global_bytes"] / 1e3 for name, r in reports.items()},
    },
    "A block loads less in more parts, until the merge loads more than they save: each part leaves 16 outputs to read again.",
)

# %% [markdown]
# **Why.** A part of 64 keys reads 2 · 64 · 64 · 2 B = 16 KB of keys and values. It leaves 16 · 64 · 4 B =
# 4 KB of outputs, which the merge reads once more. So use as many parts as fill the GPU, and no more. Llama 3
# 8B has 8 key heads, so the 108 SMs of an A100 need ⌈108 / 8⌉ = 14 parts. A batch of 14 sequences fills them
# without any splitting.

# %% [markdown]
# ## End of sitting 1
#
# You have a cache that copies nothing, a version of it in eight bits, and a way to spread one query over a whole
# GPU. Every user's cache is still one long piece of memory, and much of what is reserved stays empty. In the second
# sitting you cut it into pages that sequences can share, and write the kernels that find their way through them.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("19")

# %% [markdown]
# ## 7 · Pages
#
# How long will an answer be? Nobody knows in advance. So if the cache of a sequence is one contiguous piece,
# it must be reserved for the longest answer possible.
#
# **Predict.** Each request reserves room for 2,048 tokens, but requests have 1 to 512 tokens, all lengths
# equally likely. What percentage of the reserved room is unused?

# %%
gpulab.predict("kv.reserved", ...)

# %% [markdown]
# **PagedAttention** (vLLM; W. Kwon et al., 2023) cuts the cache into **blocks** of, say, 16 tokens, which
# form one pool. Each sequence has a **block table**. It says which block of the pool holds the sequence's
# tokens 0 … 15, which one holds 16 … 31, and so on. A sequence takes one block at a time, from anywhere in
# the pool, so only the end of its last block is unused.
#
# Two sequences can also name the same block, for example two answers to one prompt, or all users of one
# system prompt. A **fork** copies the table only. The blocks stay shared until a sequence writes into one.
# The writer then gets a copy of that block (**copy on write**), unless no other sequence holds the block any
# more.
#
# **Do.** Write `allocate(operations, size, blocks)`. The pool has the blocks 0 … blocks − 1, and each holds
# `size` tokens. These are the operations:
#
# | operation | what happens |
# |---|---|
# | `["start", name, tokens]` | a new sequence begins, and its tokens are written |
# | `["append", name]` | one more token of the sequence is written |
# | `["fork", name, child]` | `child` is a new sequence with the tokens of `name`; the check copies the table |
# | `["free", name]` | the sequence ends; the check gives its blocks back |
#
# Return a list with one item for each operation:
#
# - A list of actions (it may be empty) on the table of the named sequence (in a fork, of the child). The
#   check carries them out before the tokens are written.
# - Or `"full"`, if too few blocks are free. The operation is then refused and changes nothing. A sequence
#   whose start is refused does not come up again.
#
# | action | what it does |
# |---|---|
# | `["take", block]` | puts a free block at the end of the table |
# | `["copy", index, block]` | copies the block at `index` of the table into a free block, which takes its place |
#
# **Budget:** as few blocks held at once, and as few blocks copied, as possible. About 30 lines.


# %% nbgrader={"grade": false, "grade_id": "allocate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def allocate(operations, size, blocks):
    ### BEGIN SOLUTION
    holders = [0] * blocks
    tables, lengths, plan = {}, {}, []
    for kind, name, *more in operations:
        actions = []
        if kind == "fork":
            tables[more[0]], lengths[more[0]] = list(tables[name]), lengths[name]
            for block in tables[name]:
                holders[block] += 1
        elif kind == "free":
            for block in tables.pop(name):
                holders[block] -= 1
            del lengths[name]
        else:
            table, length = tables.get(name, []), lengths.get(name, 0)
            end = length + (more[0] if kind == "start" else 1)
            last = length // size
            shared = last < len(table) and holders[table[last]] > 1
            missing = -(-end // size) - len(table)
            free = [block for block in range(blocks) if not holders[block]]
            if missing + shared > len(free):
                plan.append("full")
                continue
            if shared:
                block = free.pop(0)
                holders[table[last]] -= 1
                holders[block], table[last] = 1, block
                actions.append(["copy", last, block])
            for block in free[:missing]:
                holders[block] = 1
                table.append(block)
                actions.append(["take", block])
            tables[name], lengths[name] = table, end
        plan.append(actions)
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "allocate-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.allocate", allocate)

# %% [markdown]
# **See.** First, three answers to a prompt of 40 tokens, after 10 more tokens each. Then a day's requests,
# with room reserved and with blocks.


# %%
def run(operations, size, blocks):
    """Tables and lengths after the operations, with your plan; refused operations change nothing."""
    tables, lengths = {}, {}
    for (kind, name, *more), actions in zip(operations, allocate(operations, size, blocks), strict=True):
        if actions == "full":
            continue
        if kind == "fork":
            tables[more[0]], lengths[more[0]] = list(tables[name]), lengths[name]
        if kind == "free":
            del tables[name], lengths[name]
        if kind in ("start", "append"):
            lengths[name] = lengths.get(name, 0) + (more[0] if kind == "start" else 1)
        for action in actions:
            table = tables.setdefault(name if kind != "fork" else more[0], [])
            if action[0] == "take":
                table.append(action[1])
            else:
                table[action[1]] = action[2]
    return tables, lengths


# %%
gpulab.need(allocate)
answers = [["start", "a", 40], ["fork", "a", "b"], ["fork", "a", "c"]]
answers += [["append", name] for _ in range(10) for name in "abc"]
plot.block_tables(*run(answers, 16, 20), 16)

# %%
gpulab.need(allocate)
wanted = np.random.default_rng(7).integers(1, 513, 200)
used = int(wanted.sum())
unused = {
    "2,048 reserved": 100 * (1 - used / (2048 * len(wanted))),
    "512 reserved": 100 * (1 - used / (512 * len(wanted))),
}
for size in (64, 16, 1):
    starts = [["start", f"r{i}", int(n)] for i, n in enumerate(wanted)]
    tables, _ = run(starts, size, 102_400 // size)
    held = size * len({block for table in tables.values() for block in table})
    unused[f"blocks of {size}"] = 100 * (1 - used / held)
plot.bars(
    unused,
    "% of the reserved cache that holds no token",
    caption="200 requests of 1 to 512 tokens: in blocks of 16 hardly anything is unused.",
)

# %% [markdown]
# **Why.** On average half a block is unused in each sequence (**internal fragmentation**). All blocks have
# the same size, so no hole is too small to use (there is no **external fragmentation**). Blocks of one token
# waste nothing, but then the kernel must load a table entry for each token, and it reads the cache in short
# runs. Kwon et al. measured that earlier servers used only 20 to 38 % of their cache.
#
# ## 8 · A kernel behind a table
#
# The keys of a sequence are no longer one array. So the kernel loads a block number from the table (`tl.load`
# of one address gives one number), and then loads the 16 keys of that block. It does not gather the keys into
# one array first, because that would move the cache three times: read, write, and read again.
#
# ![A kernel behind a table: the positions of a sequence are cut into blocks of 16, and a table says where in the pool each block lies. Neighbouring positions may lie far apart.](drawings/page_table.svg)
#
# **Do.** Write `paged(q, k, v, tables, lengths, out)` with one Triton kernel.
#
# - **Input** (float16): `q` (sequences, 16, 64), already scaled. `k` and `v` are the pool, (blocks, 16, 64),
#   with one key head for all 16 query heads.
# - **Tables** (int32): row i of `tables` (sequences, width) names the blocks of sequence i in order. What
#   follows its last block is not a block number.
# - **Lengths** (int32): `lengths` (sequences,) says how many tokens each sequence has, at least 1.
# - **Output** (float32): `out` (sequences, 16, 64).
# - **Budget:** loaded bytes. Load each sequence's tokens once, and no others.
#
# About 25 lines, most of them from `split`.


# %% nbgrader={"grade": false, "grade_id": "paged", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def paged_kernel(
    q, k, v, tables, lengths, out, width, D: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    sequence = tl.program_id(0)
    rows = sequence * GROUP + tl.arange(0, GROUP)
    across = tl.arange(0, D)
    slots = tl.arange(0, SIZE)
    length = tl.load(lengths + sequence)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((GROUP,), -float("inf"), tl.float32)
    s = tl.zeros((GROUP,), tl.float32)
    total = tl.zeros((GROUP, D), tl.float32)
    for first in range(0, length, SIZE):
        block = tl.load(tables + sequence * width + first // SIZE)
        inside = first + slots < length
        where = (block * SIZE + slots)[:, None] * D + across
        keys = tl.load(k + where, mask=inside[:, None], other=0.0)
        values = tl.load(v + where, mask=inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])
    ### END SOLUTION


def paged(q, k, v, tables, lengths, out):
    ### BEGIN SOLUTION
    sequences, width = tables.shape
    paged_kernel[(sequences,)](
        q, k, v, tables, lengths, out, width, D=q.shape[2], GROUP=q.shape[1], SIZE=k.shape[1]
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "paged-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.paged", paged)

# %% [markdown]
# **See.** Five answers to one prompt. Your kernel reads all five tables:

# %%
gpulab.need(allocate, paged)
five = [["start", "a0", 100], *(["fork", "a0", f"a{i}"] for i in range(1, 5))]
five += [["append", f"a{i}"] for _ in range(17) for i in range(5)]
tables, held = run(five, 16, 99)
width = max(map(len, tables.values()))
table = np.array([row + [0] * (width - len(row)) for row in tables.values()], np.int32)
pool = len({block for row in tables.values() for block in row})
q = (rng.standard_normal((5, 16, 64)) / 8).astype(np.float16)
k, v = (rng.standard_normal((table.max() + 1, 16, 64)).astype(np.float16) for _ in range(2))
arrays = [
    cuda.to_device(x)
    for x in (q, k, v, table, np.array(list(held.values()), np.int32), np.zeros((5, 16, 64), np.float32))
]
report = gpulab.profile(paged, *arrays)
print(f"{sum(held.values())} tokens in {pool} blocks")
plot.bars(
    {"the cache holds": pool * 16 * 64 * 4 / 1e3, "the kernel loads": report["global_load_bytes"] / 1e3},
    "KB",
    caption="What is shared is held once and loaded five times.",
)

# %% [markdown]
# **Why.** Sharing saves memory. It saves traffic only if the shared blocks stay in the L2 cache, or if one
# kernel handles the queries of all five sequences together ("Beyond").
#
# ### In which order? NHD and HND
#
# Your pool has one key head. With several, each block holds tokens × heads × numbers, and these three can be stored
# in different orders. FlashInfer, a library of attention kernels that engines call, names the two orders by their
# axes. N are the tokens, H the heads, and D the numbers of a head:
#
# | layout | shape of the pool | next to each other |
# |---|---|---|
# | **NHD** | (blocks, tokens, heads, numbers) | all heads of a token, as the layer's product writes them |
# | **HND** | (blocks, heads, tokens, numbers) | all tokens of a head, as attention reads them |
#
# MLA has no heads in its cache, so there the two are the same (FlashInfer, "KV-Cache Layout in FlashInfer").
#
# **Predict.** A kernel reads the keys of one head, 64 numbers each in 16 bits, from blocks with 8 heads. How many
# times as many sectors does it read in NHD as in HND?

# %%
gpulab.predict("kv.layout", ...)

# %% [markdown]
# **Do.** Write `runs(layout, table, size, heads, d, tokens, head)`: where in the pool are the keys of one head?
#
# - **Input:** `layout` is `"NHD"` or `"HND"`. `table` lists the blocks of the sequence in order. A block has `size`
#   tokens of `heads` heads of `d` numbers, and the sequence has `tokens` tokens. `head` is the head asked for.
# - **Output:** a list of stretches `[first, count]`, in the order of the tokens. `first` is the place of the first
#   number, counted in numbers from the start of the pool, and `count` says how many numbers follow each other.
# - **As few as possible:** where one stretch ends at the place at which the next one begins, they are one.
# - **Example:** `runs("HND", [2], 4, 3, 10, 4, 1)` is `[[280, 40]]`. Seven stretches of 4 · 10 numbers come first: three
#   heads each of blocks 0 and 1, and head 0 of block 2.
#
# Full marks need every answer right. About 12 lines.


# %% nbgrader={"grade": false, "grade_id": "runs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def runs(layout, table, size, heads, d, tokens, head):
    ### BEGIN SOLUTION
    found = []
    for token in range(tokens):
        block, slot = table[token // size], token % size
        if layout == "NHD":
            vector = (block * size + slot) * heads + head
        else:
            vector = (block * heads + head) * size + slot
        if found and sum(found[-1]) == vector * d:
            found[-1][1] += d
        else:
            found.append([vector * d, d])
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "runs-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.runs", runs)

# %%
gpulab.need(runs)


@triton.jit
def read_head(k, table, out, head, block_step, token_step, head_step, SIZE: tl.constexpr, D: tl.constexpr):
    """One block of one head; the steps are the layout."""
    block = tl.load(table + tl.program_id(0))
    where = block * block_step + head * head_step + tl.arange(0, SIZE)[:, None] * token_step
    tl.store(out + tl.program_id(0), tl.sum(tl.load(k + where + tl.arange(0, D)).to(tl.float32)))


there = [5, 0, 3, 7]
pool = cuda.to_device(rng.standard_normal((8, 16 * 8 * 64)).astype(np.float16))
steps = {"NHD": (8 * 64, 64), "HND": (64, 16 * 64)}  # from token to token, from head to head
read, pieces, written = {}, {}, {}
for layout, (token_step, head_step) in steps.items():
    table, sums = (cuda.to_device(x) for x in (np.array(there, np.int32), np.zeros(4, np.float32)))
    seen = gpulab.profile(
        read_head[(4,)], pool, table, sums, 2, 16 * 8 * 64, token_step, head_step, SIZE=16, D=64
    )
    read[layout] = seen["global_load_sectors"]
    pieces[layout] = len(runs(layout, there, 16, 8, 64, 64, 2))
    newest = [runs(layout, there, 16, 8, 64, 64, head)[-1] for head in range(8)]
    ends = sorted(first + count - 64 for first, count in newest)  # where the last token's keys are
    written[layout] = 1 + int((np.diff(ends) != 64).sum())
gpulab.predict("kv.layout", measured=read["NHD"] / read["HND"])
plot.panels(
    {"sectors read": read, "stretches read": pieces, "stretches written for a token": written},
    "Both layouts read the same sectors. HND reads few long stretches, and NHD writes a token in one.",
)

# %% [markdown]
# **Why.** A key of 64 numbers in 16 bits is 128 bytes, four whole sectors, wherever it is. So the choice costs an
# ordinary kernel no traffic, and FlashInfer's makers see no significant difference at 16 bits. They find HND the
# friendlier layout for numbers of 8 bits. Long stretches also help code that copies the cache stretch by stretch,
# for instance one head's part of it to another GPU.
#
# ## Detective · The lost thread
#
# A cache for a window of `room` tokens needs no more than `room` slots. Token t goes into slot t mod room and
# overwrites the token that has left the window (a **rolling cache**). A colleague stores the keys as they
# come, not turned, and turns them when they are read.


# %%
def theirs(q, k, v, keys, values, there):
    """One token. q (heads, 1, d), k and v (kv_heads, 1, d); keys, not turned, and values (kv_heads, room, d)."""
    room, d = keys.shape[1], q.shape[-1]
    slot = there % room
    keys[:, slot : slot + 1], values[:, slot : slot + 1] = k, v
    held = min(there + 1, room)
    turned = turn(keys[:, :held], torch.arange(held))
    queries = turn(q, torch.tensor([slot])).reshape(len(k), -1, d) / math.sqrt(d)
    weights = torch.softmax(queries @ turned.transpose(1, 2), -1)
    return (weights @ values[:, :held]).reshape(q.shape)


def compare(tokens, room=64, fn=None):
    """Largest difference from attention over the window, for each token."""
    numbers = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(heads, tokens, 16, generator=numbers) for heads in (4, 2, 2))
    keys, values, off = torch.zeros(2, room, 16), torch.zeros(2, room, 16), []
    for t in range(tokens):
        got = (fn or theirs)(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1], keys, values, t)
        seen = slice(max(0, t + 1 - room), t + 1)
        at = torch.arange(seen.start, t + 1)
        turned = turn(k[:, seen], at).repeat_interleave(2, 0)
        weights = torch.softmax(turn(q[:, t : t + 1], at[-1:]) @ turned.transpose(1, 2) / 4, -1)
        off.append(float((got - weights @ v[:, seen].repeat_interleave(2, 0)).abs().max()))
    return off


print(f"48 tokens, a window of 64: off by at most {max(compare(48)):.0e}")

# %% [markdown]
# "All tests pass. In production, long answers begin well and then lose the thread. It must be the model."
#
# **Do.** Find out when `theirs` goes wrong, and why. `compare(n)` lists the differences for n tokens; the
# first cell below is free for your experiment. Then write `rolled(q, k, v, keys, values, there)`:
#
# - **Arguments and result:** those of `theirs`, with the same cache. Its keys are not turned, and slots that
#   were never written hold rubbish.
# - **Full marks:** right for any `there`. Nothing is counted.
#
# About 10 lines.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "rolled", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rolled(q, k, v, keys, values, there):
    ### BEGIN SOLUTION
    room, d = keys.shape[1], q.shape[-1]
    slot = there % room
    keys[:, slot : slot + 1], values[:, slot : slot + 1] = k, v
    held = min(there + 1, room)
    positions = there - (there - torch.arange(held)) % room
    turned = turn(keys[:, :held], positions)
    queries = turn(q, torch.tensor([there])).reshape(len(k), -1, d) / math.sqrt(d)
    weights = torch.softmax(queries @ turned.transpose(1, 2), -1)
    return (weights @ values[:, :held]).reshape(q.shape)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rolled-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("kv.rolled", rolled)

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what was wrong, from which token on, and why did the tests not see it? Which of
# your numbers shows it? Why does the order of the slots not harm the softmax itself? A person reads your
# answer and gives 1 point for the cause and 1 point for a number that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "rolled-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The code takes the slot for the position. The two are the same up to token 63. Token 64 goes
# into slot 0, so its query and key are turned as if it were the first token, and its distance to the token
# before it becomes −63 instead of 1. `compare(80)` is below 1e-6 up to token 63 and between 0.2 and 1.2 from
# token 64 on. The tests had 48 tokens and a window of 64, so the cache never wrapped. The sum in a softmax
# does not depend on the order of its terms; only the distances that the turning encodes are wrong.
#
# **1 point** (cause without a number): After the cache wraps, keys are turned by their slot and not by their
# position.
#
# **0 points:** Old tokens are lost. Or: rotary positions do not work beyond the trained length.

# %% jupyter={"source_hidden": true}
gpulab.need(rolled)
plot.lines(
    {
        "theirs": list(enumerate(compare(96))),
        "rolled": list(enumerate(compare(96, fn=rolled))),
    },
    "token",
    "largest difference from full attention",
    "Theirs is right until the cache wraps, at token 64, and wrong from there on.",
)

# %% [markdown]
# ## Beyond · A prefix read once
#
# Open-ended and ungraded. Eight sequences share a prefix of 256 tokens, and each has 16 tokens of its own.
# `paged` loads the prefix eight times. Write kernels that load it once: compute all 8 · 16 queries against
# the prefix, then each sequence's queries against its own tokens, and merge. The figure of merit is the
# number of bytes loaded.
#
# | way | bytes loaded |
# |---|---|
# | `paged` | printed below |
# | ours: 128 queries in one block on the prefix, 16 on each sequence's own tokens, merged | 327,680 |
# | bound: queries, prefix and own tokens once | 2 · 128 · 64 + 4 · 64 · (256 + 8 · 16) = 114,688 |
#
# (131,072 of ours are log-sum-exps, because in the merge all 128 threads of a block load the two that belong
# to their row.)

# %%
gpulab.need(paged)
own = np.array([[*range(16), 16 + i] for i in range(8)], np.int32)
q = (rng.standard_normal((8, 16, 64)) / 8).astype(np.float16)
k, v = (rng.standard_normal((24, 16, 64)).astype(np.float16) for _ in range(2))
arrays = [
    cuda.to_device(x) for x in (q, k, v, own, np.full(8, 272, np.int32), np.zeros((8, 16, 64), np.float32))
]


def shared_prefix(q, k, v, tables, lengths, out):
    paged(q, k, v, tables, lengths, out)  # yours


print(f"{gpulab.profile(shared_prefix, *arrays)['global_load_bytes']:,} B loaded")

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why is decode slow on a GPU that is fast in prefill?</summary>
#
# Every pass reads all weights, and in decode it reads them for only one token. With fewer than about 300
# tokens in a pass, an H100 spends more time reading than computing.
# </details>
#
# <details><summary>2. A cached model is right for prefill and wrong for chunks. Where do you look?</summary>
#
# At the mask and the positions. Both must start at `there`.
# </details>
#
# <details><summary>3. Twice the users: what grows?</summary>
#
# The cache grows, and each step takes longer by the time it takes to read the added cache. The weights do not
# grow.
# </details>
#
# <details><summary>4. When are parts of the keys worth a second kernel?</summary>
#
# When key heads × sequences give fewer blocks than the GPU has SMs.
# </details>
#
# <details><summary>5. Two sequences share a block that is half full, and one appends. Which one copies?</summary>
#
# The first sequence that appends. After that, the other one is the only holder of the old block, so it writes
# in place.
# </details>

# %%
gpulab.recap("19")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | FLOP of a token | 2 · weights + 4 · layers · heads · head_dim · tokens seen |
# | least time of a pass | max(FLOP / peak, (weights + cache) bytes / bandwidth) |
# | bytes of the cache | 2 · layers · kv_heads · head_dim · tokens · sequences · bytes of a number |
# | when is a cache right? | prefill, chunk and decode equal full recomputation, on two layers |
# | cache of a token on a GPU | at least one head of keys; a latent whole, once and not twice |
# | scales for eight bits | K: one for each channel; V: one for each token |
# | number of parts | ⌈SMs / (key heads · sequences)⌉ |
# | merging parts | each part has the weight exp(lse) |
# | blocks of a sequence | ⌈tokens / size⌉; half a block is unused on average |
# | order in a block | NHD: a token in one stretch; HND: a head in one stretch; equally many sectors |
# | writing into a block | held by one sequence: in place; shared: copy first |
# | rolling cache | slot = position mod room; turn by the position |
#
# ### Claims you will meet, and what is right
#
# - *The KV cache has 2 · layers · heads · head_dim · tokens …* The factor is key heads, not heads, and the
#   bytes of a number are missing.
# - *MLA has the smallest cache.* On one GPU it has less than eight key heads. On eight GPUs each holds one of
#   the heads, but the whole latent.
# - *Attention costs O(S²·H) for each token.* It costs O(S·H) for each token; S²·H is the whole prefill.
# - *Decode is dominated by latency.* On one GPU a large model is limited by bandwidth: the bytes of weights
#   and cache, divided by B/s. The latency of launches and all-reduces matters when the model is small or
#   spread over many GPUs.
# - *One length counter in the cache is enough, each layer adds to it.* The counter must advance once a pass,
#   not once a layer.
# - *Rows beyond a shorter sequence are zero, so they do no harm.* A score of 0 has weight, so these rows must
#   be masked.
# - *PagedAttention makes attention faster.* It makes room for more sequences. The kernel itself must read a
#   table as well.
#
# ### References
#
# 1. R. Pope et al., "Efficiently Scaling Transformer Inference", 2022. https://arxiv.org/abs/2211.05102
# 2. W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
#    SOSP 2023. https://arxiv.org/abs/2309.06180
# 3. Z. Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", ICML 2024.
#    https://arxiv.org/abs/2402.02750
# 4. T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference", 2023.
#    https://pytorch.org/blog/flash-decoding/
# 5. G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks", ICLR 2024.
#    https://arxiv.org/abs/2309.17453
# 6. Z. Zhang et al., "H2O: Heavy-Hitter Oracle", NeurIPS 2023. https://arxiv.org/abs/2306.14048
# 7. DeepSeek-AI, "DeepSeek-V2", 2024 (multi-head latent attention). https://arxiv.org/abs/2405.04434
# 8. J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
#    https://arxiv.org/abs/2104.09864
# 9. FlashInfer, "KV-Cache Layout in FlashInfer". https://docs.flashinfer.ai/tutorials/kv_layout.html
# 10. Ray, "Data parallel attention". https://docs.ray.io/en/latest/serve/llm/user-guides/data-parallel-attention.html
