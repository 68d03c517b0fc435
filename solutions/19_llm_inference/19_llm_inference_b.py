# ---
# jupyter:
#   gpulab:
#     lab: "19"
#     hours: 3.5
#     topics: [C13.7, C13.8, C13.9, C13.11, C13.12, C13.13, C13.14]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 B · LLM inference: decoding
#
# **3 to 4.5 hours.** You know lab 01 (logits and softmax), lab 02 (roofline) and lab 08 (launches, CUDA
# graphs). Part A builds the key-value cache, and what this part needs of it is repeated here. No GPU is needed.
#
# A language model outputs probabilities. **Decoding** turns them into text: you choose a token, feed it back to the
# model, and ask for the next one. Each token costs one pass over all weights, and during most of that pass a GPU
# waits for memory. This part is about making fewer passes, making each pass cheaper, and letting many requests share
# a pass.
#
# By the end, you can
#
# 1. generate text so that the model computes each token once, and count what that saves;
# 2. explain what temperature, top-k and top-p do to a distribution, and in which order they are applied;
# 3. write speculative decoding, and explain why its text has exactly the target's distribution;
# 4. decide from the acceptance rate, the cost of the draft and the batch size how far ahead to guess, and when not to
#    guess at all;
# 5. plan graphs, resident layers and batches for given hardware, and interpret what an engine promises.

# %%
import random
import time
from collections import Counter, defaultdict
from math import ceil, exp

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import gpulab
from gpulab import hardware, plot
from gpulab.exercises.branches import distribution
from gpulab.models import gpt, known, pretrained, text

gpulab.start("19")

# %% [markdown]
# ## 1 · Generate
#
# A causal model turns each token into a row of **logits**, the scores of the tokens that may follow it. For its
# attention it also computes a key and a value for each token. Both depend only on that token and the tokens before
# it, so later tokens do not change them. They can therefore be kept in a **key-value cache**, and each pass needs to
# compute only the new tokens.
#
# ![Generating: the model gives a probability for each word, one is chosen and appended, and the model is asked again, until the end token comes.](drawings/generate.svg)
#
# The first pass takes the whole prompt and is called **prefill**. Each later pass takes one token and is called
# **decode**. An engine reserves a sequence's places in the cache once, and each pass then says at which place it
# writes. The interface in this lab works the same way:
#
# - `forward(tokens, start)` puts a list of tokens at places `start`, `start + 1`, … of the cache. For each of them it
#   returns a row of probabilities: what may follow this token, given it and all tokens before it. All places before
#   `start` must already be filled. Whatever the cache held from `start` onwards is forgotten.
# - `choose(probabilities)` draws a token with these probabilities and returns its number.
#
# **Predict.** Suppose that there is no cache, so every pass takes all tokens so far. For a prompt of 32 tokens and 64
# new ones, how many tokens does the model compute in total?

# %%
gpulab.predict("decode.again", ...)

# %% [markdown]
# **Do.** Write `generate(forward, choose, prompt, count, end)`, which continues a prompt and computes no token twice.
# About 9 lines.
#
# - Input: `forward` and `choose` as above, with an empty cache; `prompt`, a list of at least one token; `count`, the
#   largest number of new tokens, which can be 0; `end`, the token that ends a text.
# - Output: the list of new tokens, at most `count`. If `end` is drawn, it is the last one.
# - Pass each row that you need to `choose` unchanged.
# - **Budget:** for a prompt of 32 tokens and 64 new ones, 95 token-forwards in 64 passes. (A token-forward is one
#   token in one pass.) Full marks need both numbers.


# %% nbgrader={"grade": false, "grade_id": "generate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def generate(forward, choose, prompt, count, end):
    ### BEGIN SOLUTION
    new = []
    tokens, place = prompt, 0
    while len(new) < count:
        rows = forward(tokens, place)
        place += len(tokens)
        new.append(choose(rows[-1]))
        if new[-1] == end:
            break
        tokens = new[-1:]
    return new
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "generate-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.generate", generate)

# %% [markdown]
# The check plays the model: it answers your calls to `forward` and `choose` itself, and counts them. In grading,
# your code and the model are separated: your code asks, and a model that it cannot see answers. The 95 is therefore
# what your function asked for, whatever it claims.
#
# **See.** Now run a real model. It is small and was trained on stories of a fixed form. Its tokens are characters.
# The class `Served` gives it the interface above.


# %%
class Served:
    """A GPT with a cache that is written by place; counts its passes and tokens."""

    def __init__(self, model):
        self.model, self.cache = model, gpt.Cache()
        self.passes, self.tokens, self.seconds = 0, 0, []

    @torch.inference_mode()
    def forward(self, tokens, start):
        for layer, (keys, values) in self.cache.layers.items():
            self.cache.layers[layer] = keys[:, :, :start], values[:, :, :start]
        began = time.perf_counter()
        logits = self.model(torch.tensor([tokens]), cache=self.cache)[0]
        self.seconds.append(time.perf_counter() - began)
        self.passes += 1
        self.tokens += len(tokens)
        return logits.double().softmax(-1).tolist()


def dice(seed):
    """A `choose` with real chance."""
    numbers = random.Random(seed)
    return lambda probabilities: numbers.choices(range(len(probabilities)), probabilities)[0]


torch.set_num_threads(1)
model = pretrained.trained()
END = text.encode("\n")[0]
MOST = 70  # characters: no story is longer

gpulab.need(generate)
choose = dice(1)
for _ in range(3):
    served = Served(model)
    story = text.decode(generate(served.forward, choose, [END], MOST, END))
    print(f"{served.tokens} token-forwards in {served.passes} passes: {story.strip()}")

# %%
gpulab.need(generate)


def fed(again):
    """Tokens fed so far after each new one, for a prompt of 12 characters."""
    prompt, counts, served = text.encode("\nana lost a "), [], Served(model)

    def forward(tokens, start):
        if again:  # what a model without a cache computes
            rows = served.forward(sofar + tokens, 0) if start else served.forward(tokens, 0)
            sofar.extend(tokens)
        else:
            rows = served.forward(tokens, start)
        counts.append((len(counts) + 1, served.tokens))
        return rows

    sofar = []
    generate(forward, dice(2), prompt, 50, END)
    return counts


plot.lines(
    {"no cache": fed(True), "cache": fed(False)},
    "new characters",
    "token-forwards",
    "Without a cache the tokens computed grow with the square of the text; with one, by one for each.",
)

# %% [markdown]
# **Why.** Without a cache, pass i = 0, 1, … computes prompt + i tokens, in total 32 + 33 + … + 95 = 4,064. With a
# cache each token is computed once, and the last one never, because nobody asks what follows it: 32 + 64 − 1 = 95.
# But 63 of the 64 passes are for one token each, and every one of them reads all weights. The rest of this part is
# about reducing the cost of these 63 passes.
#
# ## 2 · Choose
#
# Softmax turns the logits z into probabilities. Before a token is drawn, three steps can change these probabilities,
# in this order:
#
# | step | what it does |
# |---|---|
# | 1. **temperature** T | takes the softmax of z/T; likely tokens gain if T is below 1 and lose if it is above 1 |
# | … with T = 0 | stands for **greedy** decoding, which takes the largest logit and draws nothing |
# | 2. **top-k** | keeps only the k tokens with the largest logits; k = 0 keeps all tokens |
# | … with equal logits | keeps the one with the smaller token number |
# | 3. **top-p**, or nucleus | normalises what is left; keeps the smallest set of the likeliest whose sum reaches p |
# | … at the border | keeps the token that reaches p |
#
# What remains is normalised again, and the token is drawn from it. Engines differ in the order (llama.cpp applies the
# temperature last by default), so "top-p 0.9" need not mean the same in two of them. Some also have **min-p**, which
# removes tokens whose probability is below a given share of the likeliest one's (M. Nguyen et al., 2024).
#
# **Predict.** Two tokens have the logits 2 and 0. What is the first token's probability at temperature 2, in percent?

# %%
gpulab.predict("decode.half", ...)

# %% [markdown]
# **Do.** Write `sample(choose, logits, temperature, top_k, top_p)`, which applies the three steps and draws one
# token. About 13 lines.
#
# - Input: `logits`, one number for each token, some of them near 1,000 or −1,000; `temperature`, `top_k` and `top_p`
#   as above.
# - Output: the number of the token drawn.
# - `choose` takes a list of probabilities and returns the index of one of them. All randomness must come from it.
# - Among equal logits the smaller token number comes first, at temperature 0 too.
# - Full marks need the right distribution in every case.


# %% nbgrader={"grade": false, "grade_id": "sample", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sample(choose, logits, temperature, top_k, top_p):
    ### BEGIN SOLUTION
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    if top_k:
        order = order[:top_k]
    weights = [exp((logits[token] - logits[order[0]]) / temperature) for token in order]
    reached, kept = 0.0, 0
    while kept < len(order) and reached < top_p * sum(weights):
        reached += weights[kept]
        kept += 1
    return order[choose([weight / reached for weight in weights[:kept]])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sample-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.sample", sample)

# %% [markdown]
# The check draws nothing at random. Wherever your function calls `choose`, the check follows **every** outcome in
# turn and multiplies the probabilities along the way. It therefore knows your distribution up to rounding, and a bias
# of one in a million shows. You can do the same: `distribution(play)` calls `play(choose)` once for each way in which
# the draws can come out.
#
# **See.** The panels show the first letter of a colour after "ana lost a ", as the model gives it and after four
# treatments of its logits. Two of the five colours begin with b.

# %%
gpulab.need(sample)
with torch.inference_mode():
    logits = model(torch.tensor([text.encode("\nana lost a ")]))[0, -1].tolist()
treatments = {
    "as it is": (1.0, 0, 1.0),
    "temperature 2": (2.0, 0, 1.0),
    "temperature 0.5": (0.5, 0, 1.0),
    "top-k 2": (1.0, 2, 1.0),
    "top-p 0.7": (1.0, 0, 0.7),
}
shown = sorted(range(len(logits)), key=lambda token: -logits[token])[:4]
found = {
    name: distribution(lambda choose, how=how: sample(choose, logits, *how))
    for name, how in treatments.items()
}
plot.panels(
    {
        f"% {text.CHARACTERS[token]!r}": {name: 100 * each.get(token, 0.0) for name, each in found.items()}
        for token in shown
    },
    most=100,
    caption="A low temperature gives to the likeliest letter, a high one takes from it; top-k and top-p cut others off.",
)

# %% [markdown]
# **Why.** A model with 100,000 tokens gives each wrong one a little probability, and over a long text some are drawn.
# Top-p cuts that tail where it begins, which is later in a flat distribution than in a sharp one. Top-k always cuts
# at the same place (A. Holtzman et al., 2020). Both change the model's distribution, so report the settings with
# every result.
#
# ## 3 · Guess ahead
#
# As long as reading the weights takes most of the time, a pass over five tokens costs hardly more than a pass over
# one. **Speculative decoding** exploits this. A cheap **draft** model guesses k tokens, one after the other, and the
# **target** model then judges all of them in one pass.
#
# ![A draft guesses four tokens one after the other. The target checks all four in one pass, keeps those up to the first that it would not have chosen, and puts its own token there.](drawings/guess_ahead.svg)
#
# For a guess x, let q(x) be the draft's probability and p(x) the target's.
#
# | case | what the round does |
# |---|---|
# | each guess x in turn | keep x with probability min(1, p(x)/q(x)) |
# | the first guess that is not kept | draw a token from max(0, p − q), normalised, in its place, and end the round |
# | all guesses are kept | draw one more token from the target's last row |
#
# Why is the result right? A token is guessed and kept with probability q · min(1, p/q) = min(p, q). A guess is
# therefore not kept in a share 1 − Σ min(p, q) of rounds, which equals Σ max(0, p − q) because p and q both sum to 1.
# The replacement is drawn in exactly that share, so it adds max(0, p − q) for each token. Together that is p, so the
# result has exactly the target's distribution, not an approximation of it (Y. Leviathan et al., 2023).
#
# **Predict.** The target gives three tokens the probabilities 0.5, 0.3 and 0.2, and the draft gives them 0.2, 0.3 and
# 0.5. In what percentage of rounds is the draft's token kept?

# %%
gpulab.predict("decode.kept", ...)

# %% [markdown]
# **Do.** Write `speculate(draft, target, choose, text, ahead)`, which plays one round with `ahead` guesses. About 14
# lines.
#
# - Input: `draft(tokens, start)` and `target(tokens, start)` work like `forward` in section 1. Each has its own
#   cache, which already holds all tokens of the list `text` except the last. `ahead` can be 0.
# - `choose` draws from any list of probabilities. Use it also to decide whether a guess is kept.
# - Output: the list of new tokens, 1 to `ahead` + 1 of them.
# - What the caches hold afterwards is the caller's business: the caller forgets what was not kept and feeds what is
#   missing.
# - **Budget:** one pass of the target, `ahead` tokens fed to the draft, and as many new tokens on average as the rule
#   allows. Full marks need all three.


# %% nbgrader={"grade": false, "grade_id": "speculate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def speculate(draft, target, choose, text, ahead):
    ### BEGIN SOLUTION
    place, guesses, q = len(text) - 1, [], []
    token = text[-1]
    for i in range(ahead):
        q.append(draft([token], place + i)[0])
        token = choose(q[-1])
        guesses.append(token)
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        keep = min(1.0, p[i][token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0.0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            return [*guesses[:i], choose([r / sum(rest) for r in rest])]
    return [*guesses, choose(p[-1])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "speculate-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.speculate", speculate)

# %% [markdown]
# The check follows all outcomes of all draws, lets the target continue after the tokens that you return, and compares
# the probabilities of all sequences of `ahead` + 1 tokens. With three guesses and four possible tokens, these are
# 4⁴ = 256 sequences. In the example that you predicted, kept guesses contribute 0.2, 0.3 and 0.2. The other 0.3 all
# goes to the first token, the only one for which p exceeds q, and the sums are the target's 0.5, 0.3 and 0.2.
#
# **See.** The next cell builds a draft for the stories. It is not a network but a table of which character follows
# which four. Engines call that an **n-gram** draft. Instead of a table, engines also use a small model of the same
# family, or extra heads on the target.


# %%
corpus, ORDER = text.Stories(5).text(20_000), 4
follows = defaultdict(Counter)
for place in range(1, len(corpus)):
    for n in range(ORDER + 1):
        follows[corpus[max(0, place - n) : place]][corpus[place]] += 1


class Table:
    """A draft with the same interface; `seen` is what its cache would hold."""

    def __init__(self):
        self.seen = ""

    def forward(self, tokens, start):
        self.seen = self.seen[:start]
        rows = []
        for token in tokens:
            self.seen += text.CHARACTERS[token]
            known_ends = (self.seen[len(self.seen) - n :] for n in range(min(ORDER, len(self.seen)), 0, -1))
            counts = follows[next((end for end in known_ends if end in follows), "")]
            rows.append([counts[character] / counts.total() for character in text.CHARACTERS])
        return rows


def tell(draft, target, choose, ahead):
    """A story by speculation, and how many tokens each round brought."""
    tokens, rounds = [END], []
    while len(tokens) == 1 or (len(tokens) <= MOST and tokens[-1] != END):
        missing = tokens[len(draft.seen) : -1]  # kept, and not in the draft's cache
        if missing:
            draft.forward(missing, len(draft.seen))
        room = model.config.context - len(tokens)
        new = speculate(draft.forward, target.forward, choose, tokens, min(ahead, room))
        new = new[: new.index(END) + 1] if END in new else new
        tokens += new
        rounds.append(len(new))
    return tokens[1:], rounds


# %%
gpulab.need(speculate)
choose = dice(3)
for ahead in (0, 1, 2, 4, 8):
    made, passes = 0, 0
    for _ in range(20):
        target = Served(model)
        story, _ = tell(Table(), target, choose, ahead)
        made, passes = made + len(story), passes + target.passes
    print(
        f"{ahead} ahead: {made / passes:4.2f} characters a pass of the target   {text.decode(story).strip()}"
    )

# %%
story = "\n" + next(text.Stories(10**6))
tokens = text.encode(story)
with torch.inference_mode():
    p = model(torch.tensor([tokens]))[0].double().softmax(-1).tolist()
q = Table().forward(tokens, 0)
kept = [sum(map(min, a, b)) for a, b in zip(p, q, strict=True)]
plot.letters(
    story[1:],
    kept[:-1],
    "How likely the draft's guess is kept, at each character (full bar: 100 %, hatched: below 50 %). Fixed words "
    "are safe; words that repeat the story's own choices are not: four characters cannot remember them.",
)

# %% [markdown]
# **Why.** Σ min(p, q) is 1 wherever draft and target agree, even if neither knows what comes next. At the first
# letter of a name, both are unsure in the same way, so the guess is kept. The sum is low where the target knows
# something that the draft cannot know. A text's easy parts therefore go fast and its hard parts take one pass for
# each token, but none of this changes the text's distribution.
#
# ## 4 · How far ahead?
#
# If each guess is kept with probability α, guess i counts with probability αⁱ, because all before it must be kept
# too. With the target's own token, a round of k guesses yields 1 + α + … + αᵏ tokens on average, which is
# (1 − αᵏ⁺¹)/(1 − α) if α < 1. It costs k passes of the draft and one of the target.
#
# Time is counted in reads of the target's weights. A pass of the target over n tokens takes max(1, n/ridge), because
# bandwidth decides up to the **ridge** and arithmetic beyond it (lab 02). For b requests with k guesses each, the
# target's pass has b·(k + 1) tokens. A pass of the draft has b tokens and takes `draft` times as long as the target
# would, because the draft has `draft` times the target's weights.
#
# The speed-up compares a round with plain decoding, where a pass over b tokens yields one token for each request.
#
# **Predict.** For α = 0.8 and four guesses, how many tokens does a round yield on average?

# %%
gpulab.predict("decode.tokens", ...)

# %% [markdown]
# **Do.** Write `draft_length(acceptance, draft, batch, ridge, most)`, which finds the best number of guesses. About 9
# lines.
#
# - Input: `acceptance`, which is α and can be 0 or 1; `draft` as above, which can be 0; `batch`, which is b; `ridge`,
#   in tokens; `most`, the largest k to try.
# - Output: `[k, speed-up]` for the best k from 0 to `most`. If several are equally good, return the smallest.
# - Nothing is counted. Full marks need the right answer in every case.


# %% nbgrader={"grade": false, "grade_id": "draft_length", "locked": false, "schema_version": 3, "solution": true, "task": false}
def draft_length(acceptance, draft, batch, ridge, most):
    ### BEGIN SOLUTION
    def reads(tokens):
        return max(1, tokens / ridge)

    best = [0, 0.0]
    for k in range(most + 1):
        tokens = sum(acceptance**i for i in range(k + 1))
        time = k * draft * reads(batch) + reads(batch * (k + 1))
        if tokens * reads(batch) / time > best[1]:
            best = [k, tokens * reads(batch) / time]
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "draft_length-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.draft_length", draft_length)

# %% jupyter={"source_hidden": true}
gpulab.need(draft_length)
ridge = hardware.roofline("H100", "bfloat16").ridge
batches = [2**i for i in range(10)]
plot.lines(
    {
        f"{acceptance:.0%} kept": [(b, draft_length(acceptance, 0.05, b, ridge, 16)[1]) for b in batches]
        for acceptance in (0.9, 0.8, 0.6)
    },
    "requests in the batch",
    "times as fast",
    f"On an H100 (ridge {ridge:.0f} FLOP/B, a draft of 5 %), modelled: speculation pays for few requests, and "
    "not at all for a full batch.",
    log_x=True,
    names_at="start",
)

# %% [markdown]
# **Why.** With 2-byte weights, a token costs 2 FLOP for every 2 bytes read. That is 1 FLOP a byte, so about "ridge"
# tokens of a pass are free. Guesses use that room, but a large batch has already used it, for tokens that are certain
# to count. The "2 to 3 times as fast" of many guides therefore holds for one user. In a mixture of experts (lab 17 B)
# it holds less, because each guess may need experts that nobody else reads.
#
# ## 5 · Launches
#
# A decode pass consists of many small kernels. Each must be **launched** by the host, and eager PyTorch launches one
# or more for each operation. A **CUDA graph** records the launches once and replays them with one call (lab 08). It
# stores addresses and shapes, so everything that a step touches must keep its address and size. That takes a cache
# allocated whole and written by place, and a fixed batch size.
#
# A layer of the small GPT applies two norms, multiplies by six matrices, appends keys and values to the cache,
# computes attention, applies an activation and adds twice. Embeddings, positions and the mask are computed before the
# layers, a norm and the output after them.
#
# **Predict.** The small GPT has two layers. How many launches does eager PyTorch ask for in one decode step?

# %%
gpulab.predict("decode.launches", ...)


# %%
def launches(model, batch=1):
    """Launches of one eager decode step, behind 16 tokens."""
    cache = gpt.Cache()
    with torch.inference_mode():
        model(torch.zeros(batch, 16, dtype=torch.long), cache=cache)
        return gpulab.profile(model, torch.zeros(batch, 1, dtype=torch.long), None, cache)["launches"]


gpulab.predict("decode.launches", measured=launches(model))
print("small GPT:", {f"batch {batch}": launches(model, batch) for batch in (1, 4, 16)})
eight = known.find("Llama 3 8B")
with FakeTensorMode():
    asked = launches(gpt.GPT(eight.config))
read = 2 * eight.stated / float(hardware.find("H100").dram_bandwidth)
one = torch.zeros(1)
began = time.perf_counter()
for _ in range(2000):
    one + 1
host = (time.perf_counter() - began) / 2000
print(f"{eight.name}: {asked:,} launches a step; an H100 reads its weights in {1e3 * read:.1f} ms")
print(f"that leaves {1e6 * read / asked:.1f} µs for each launch. To add 1 to one number, without a launch,")
print(f"PyTorch takes {1e6 * host:.1f} µs on this CPU. Replayed as a graph the step is one call.")

# %% [markdown]
# **Why.** A small batch makes no launch cheaper, so at batch 1 the host can be the slowest part. (Our GPT is written
# to be read. Most of Llama's launches come from norms and rotations computed step by step, where a fused kernel needs
# one launch.)
#
# The number of running requests changes from step to step, but a graph has one batch size. Engines therefore capture
# **several** sizes, and each step runs in the smallest that holds its requests. The rows left over are **padding**.
# vLLM calls the list `cudagraph_capture_sizes`, and TensorRT-LLM calls it `batch_sizes`, in its `CudaGraphConfig`.
# Each graph costs memory and time at start, so engines keep few.
#
# **Do.** Write `buckets(steps, most)`, which chooses the batch sizes to capture. About 12 lines.
#
# - Input: `steps`, a list in which `steps[n]` is the number of steps that had n requests (`steps[0]` is 0); `most`,
#   the number of graphs allowed.
# - Output: a list of at most `most` batch sizes. The largest must hold every step.
# - **Budget:** no other choice computes fewer rows over all steps, padding included.


# %% nbgrader={"grade": false, "grade_id": "buckets", "locked": false, "schema_version": 3, "solution": true, "task": false}
def buckets(steps, most):
    ### BEGIN SOLUTION
    last = max(n for n, count in enumerate(steps) if count)
    upto = np.cumsum(steps).tolist()
    best = {0: (0, [])}  # by the largest size: rows, sizes
    found = []
    for _ in range(most):
        best = {
            n: min(
                (rows + n * (upto[n] - upto[j]), [*sizes, n]) for j, (rows, sizes) in best.items() if j < n
            )
            for n in range(1, last + 1)
            if any(j < n for j in best)
        }
        found += [best[last]] if last in best else []
    return min(found)[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "buckets-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.buckets", buckets)

# %%
gpulab.need(buckets)
numbers = np.random.default_rng(7)
draws = np.concatenate([numbers.normal(7, 2, 3000), numbers.normal(42, 4, 2000), [64]])
day = np.bincount(np.clip(draws.round().astype(int), 1, 64), minlength=65).tolist()


def rows(sizes):
    return sum(count * min(size for size in sizes if size >= n) for n, count in enumerate(day) if count)


choices = {
    "one graph": [64],
    "powers: [4, 8, 16, 32, 64]": [4, 8, 16, 32, 64],
    "equal: [13, 26, 39, 52, 64]": [13, 26, 39, 52, 64],
    f"yours: {buckets(day, 5)}": buckets(day, 5),
    "a graph for each size": list(range(1, 65)),
}
plot.bars(
    {name: rows(sizes) / sum(day) for name, sizes in choices.items()},
    "rows computed a step, on average",
    caption="Nights with about 7 requests, days with about 42: sizes that fit them compute least of any five graphs.",
)

# %% [markdown]
# ## 6 · Larger than the memory
#
# A model that does not fit into a GPU's memory can still run on it. Its layers wait in the host's memory and are
# **streamed** over PCIe, each into one of two **buffers**, while the GPU works on the layer in the other buffer. Some
# layers can stay on the GPU, and these are called **resident**. A pass over all layers is a **sweep**, and it yields
# one token for each request.
#
# ![Weights that do not fit are fetched layer by layer. While layer 1 computes, layer 2 travels; the link decides how long a step takes.](drawings/streamed_layers.svg)
#
# **Predict.** A model of 140 GB is streamed over PCIe 4.0 ×16. How many seconds does one sweep take?

# %%
gpulab.predict("decode.streamed", ...)

# %% [markdown]
# A plan says how many requests b run together and how many layers r, out of L, are resident. Its time and its memory
# follow from these rules:
#
# - Fetching: each of the L − r streamed layers takes `layer_bytes / link` seconds.
# - Work: each of the L layers takes the larger of (`layer_bytes` + b · `cache_bytes`/L) / `bandwidth` and
#   b · `layer_flop` / `rate` seconds.
# - A sweep takes max(all fetches, all work), provided that the streamed layers are spread evenly.
# - Memory holds r + 2 layers, of which two are the buffers, and b caches. If r = L, there are no buffers.
#   `cache_bytes` is the cache of one request for all layers.
#
# **Do.** Write `stream(model, gpu, patience)`, which finds the plan with the most tokens per second. About 14 lines.
#
# - Input: `model`, a dict with "layers", "layer_bytes", "layer_flop" (for one token) and "cache_bytes"; `gpu`, a dict
#   with "memory" in bytes, "bandwidth" and "link" in B/s and "rate" in FLOP/s; `patience`, in seconds.
# - Output: `[r, b]`. The plan must fit into the memory, its sweep may take at most `patience` seconds, and b is at
#   least 1. Some plan always meets these conditions.
# - **Budget:** no other plan is faster.


# %% nbgrader={"grade": false, "grade_id": "stream", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stream(model, gpu, patience):
    ### BEGIN SOLUTION
    layers, layer, cache = model["layers"], model["layer_bytes"], model["cache_bytes"]
    best = (0.0, None)
    for requests in range(1, int(gpu["memory"] // cache) + 1):
        room = int((gpu["memory"] - requests * cache) // layer)
        resident = layers if room >= layers else room - 2
        if resident < 0:
            break
        fetch = (layers - resident) * layer / gpu["link"]
        moved = layers * layer + requests * cache
        work = max(moved / gpu["bandwidth"], requests * layers * model["layer_flop"] / gpu["rate"])
        if max(fetch, work) <= patience:
            best = max(best, (requests / max(fetch, work), [resident, requests]))
    return best[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stream-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("decode.stream", stream)

# %%
gpulab.need(stream)


def shape_of(name, context):
    config = known.find(name).config
    numbers = 2 * config.width * (config.width + config.kv_heads * config.head_width)
    numbers += (3 if config.gated else 2) * config.width * config.hidden
    cache = 2 * 2 * config.layers * config.kv_heads * config.head_width * context
    return {
        "layers": config.layers,
        "layer_bytes": 2 * numbers,
        "layer_flop": 2 * numbers,
        "cache_bytes": cache,
    }


sheet = hardware.find("RTX 4090")
card = {
    "memory": 0.9 * float(sheet.dram_bytes),
    "bandwidth": float(sheet.dram_bandwidth),
    "rate": float(hardware.roofline(sheet, "bfloat16").peak),
    "link": float(hardware.link("PCIe 4.0 ×16").per_direction),
}
seventy = shape_of("Llama 3 70B", 1024)
sweep = seventy["layers"] * seventy["layer_bytes"] / card["link"]
curve = []
for share in (1, 0.98, 0.96, 0.94, 0.92, 0.9, 0.89, 0.88):
    resident, requests = stream(seventy, card, share * sweep)
    time_of = (seventy["layers"] - resident) * seventy["layer_bytes"] / card["link"]
    curve.append((time_of, requests / time_of))
    print(
        f"patience {share * sweep:.2f} s: {resident:2} layers stay, {requests:2} requests, "
        f"{requests / time_of:5.2f} tokens/s, {1e-9 * time_of * card['link'] / requests:6.2f} GB moved a token"
    )
plot.lines(
    {"best plans": curve[::-1]},
    "seconds that a user waits for a token",
    "tokens per second, all users",
    "Llama 3 70B on one RTX 4090, modelled: a little less waiting costs most of the rate.",
)

# %% [markdown]
# **Why.** Llama 3 70B has 80 layers, so one more resident layer saves one fetch in eighty. The same memory holds the
# caches of several more requests, and each of these yields a token in every sweep. That is the idea of
# ZeRO-Inference: stream *all* weights and give the memory to the batch. It is meant for throughput, not for a person
# who waits.
#
# Enough work can hide a fetch. A layer of GPT-3 with width h needs 24·s·h² + 4·s²·h FLOP for a prompt of s = 2,048
# tokens, which is 7.6 TFLOP of *work* (computed below). The work of several such prompts takes long enough for a
# fetch to hide behind. Decode has no such work. With G GPUs, each GPU fetches 1/G of a layer over its own PCIe link,
# and they gather the rest over NVLink, so G PCIe links replace one.

# %%
s, h = 2048, known.find("GPT-3").config.width
work = 24 * s * h**2 + 4 * s**2 * h
for name in ("A100", "H100"):
    rate = float(hardware.roofline(name, "bfloat16").peak)
    link = float(hardware.link(hardware.find(name).host_link).per_direction)
    fetch = 24 * h**2 / link
    print(
        f"{name}: {work / 1e12:.1f} TFLOP in {1e3 * work / rate:.0f} ms at least, the layer's "
        f"{24 * h**2 / 1e9:.1f} GB in {1e3 * fetch:.0f} ms over {hardware.find(name).host_link}: "
        f"hidden from {ceil(fetch * rate / work)} prompts on"
    )

# %% [markdown]
# ## 7 · Many requests, and what to measure
#
# ![Continuous batching: when a sequence ends, the next request takes its place at once. In a fixed batch, the place stays empty until the longest sequence has ended.](drawings/continuous.svg)
#
# One pass over the weights serves a whole batch, so requests should run together. How they are combined is the
# **scheduler**'s choice:
#
# - **static**: a batch starts together and ends with its longest request;
# - **dynamic**: a static batch that waits for more requests before it starts, but not longer than a limit;
# - **continuous**, or in-flight: after every step finished requests leave and waiting ones enter;
# - by **tokens**: prompts are cut into pieces so that each step has about a given number of tokens;
# - by **priority**: more urgent requests go first.
#
# **Predict.** Eight requests of alternately 4 and 20 tokens run in static batches on four slots. How many steps does
# that take?

# %%
gpulab.predict("decode.static", ...)


# %%
def static(lengths, slots):
    return sum(max(lengths[i : i + slots]) for i in range(0, len(lengths), slots))


def continuous(lengths, slots):
    waiting, running, steps = list(lengths), [], 0
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        running = [left - 1 for left in running if left > 1]
        steps += 1
    return steps


lengths = [4, 20] * 4
print(
    f"static {static(lengths, 4)}, continuous {continuous(lengths, 4)}, at best {sum(lengths) / 4:.0f} steps"
)

# %% [markdown]
# Lab 20 builds the scheduler. A service is measured by these quantities:
#
# | name | meaning |
# |---|---|
# | **TTFT** | time to the first token: waiting time + prefill |
# | **TPOT** | time per output token after the first; for a request its mean, in the cell below all steps pooled |
# | throughput | tokens or requests per second, over all users |
# | **goodput** | requests per second that stay within all their limits |
# | percentiles | p50 and p99: the values that half of the requests, and all but 1 in 100, do not exceed |
# | cost | GPU-seconds × price ÷ tokens, and memory in use ÷ memory available |
#
# A mean hides the slow requests, so percentiles are measured as well. The cell below runs 40 real requests on this
# CPU and measures the two times in the drawing.
#
# ![What a user notices: the time to the first token, then the time from token to token. The whole answer takes both.](drawings/measures.svg)

# %%
gpulab.need(generate)
first, later, tokens_made, began = [], [], 0, time.perf_counter()
for seed in range(40):
    served = Served(model)
    tokens_made += len(generate(served.forward, dice(seed), text.encode("\nana lost a "), MOST - 12, END))
    first.append(1e3 * served.seconds[0])
    later += [1e3 * each for each in served.seconds[1:]]
taken = time.perf_counter() - began
for name, times in (("TTFT", first), ("TPOT", later)):
    p50, p99 = np.percentile(times, [50, 99])
    print(f"{name}: mean {np.mean(times):.2f} ms, p50 {p50:.2f}, p99 {p99:.2f}, worst {max(times):.2f}")
print(
    f"throughput: {tokens_made / taken:.0f} tokens/s, {40 / taken:.1f} requests/s; no two runs give the same"
)

# %% [markdown]
# ## 8 · Engines, and Blackwell
#
# The table shows what engines implement as of 2026, according to their own documentation:
#
# | | vLLM | SGLang | TensorRT-LLM | TGI | llama.cpp, Ollama |
# |---|---|---|---|---|---|
# | made by | UC Berkeley, community | LMSYS, community | NVIDIA | Hugging Face | G. Gerganov; Ollama Inc. |
# | runs on | GPUs of several makers, CPUs | GPUs of several makers, CPUs | NVIDIA GPUs | chips of several makers | CPUs, Apple, most GPUs |
# | paged cache, prefix reuse | yes | yes, with a tree of prefixes | yes | yes | cache in slots, prefix reuse |
# | continuous batching | yes | yes | yes ("in-flight") | yes | yes (llama-server) |
# | speculation | n-gram, draft, EAGLE, MTP | n-gram, draft, EAGLE, MTP | n-gram, draft, EAGLE, MTP | n-gram, Medusa | draft, lookup |
# | CUDA graphs | yes | yes | yes | yes | yes, in the CUDA backend |
# | formats | fp8, int8, int4, NVFP4 | fp8, int8, int4, NVFP4 | fp8, NVFP4, int8, int4 | GPTQ, AWQ, fp8 | GGUF, 2 to 8 bits |
# | status | V1 engine; V0 was removed | active | now built on PyTorch | **maintenance mode** since 2025 | active |
#
# **EAGLE** and **Medusa** draft with small heads on the target's own hidden states. **MTP** heads (multi-token
# prediction) were trained together with the model. TGI's makers point to vLLM and SGLang for new work. TGI serves one
# base model, with several adapters.
#
# The rows look alike, but the same setting can mean different things. Each engine has a fraction that says how much
# memory it may take (from the engines' documentation, November 2026):
#
# | engine | setting | a fraction of |
# |---|---|---|
# | vLLM | `gpu_memory_utilization` | the GPU's memory, for weights, activations and cache together |
# | SGLang | `mem_fraction_static` | the GPU's memory, for weights and cache; activations use the rest |
# | TensorRT-LLM | `free_gpu_memory_fraction` | the memory that is *free* once the model is loaded, for the cache |
# | TGI | `cuda-memory-fraction` | the GPU's memory, for all together |
#
# **Predict.** A GPU has 80 GB, and the weights take 70 GB. Leave activations aside. All engines get a fraction of 0.9.
# vLLM has 0.9 · 80 − 70 = 2 GB for the cache. How many GB does TensorRT-LLM take?

# %%
gpulab.predict("decode.fraction", ...)


# %%
def left_for_cache(engine, memory, weights, activations, fraction):
    """Bytes of cache, by the table above."""
    if engine == "TensorRT-LLM":
        return fraction * (memory - weights - activations)
    if engine == "SGLang":
        return min(fraction * memory, memory - activations) - weights
    return fraction * memory - weights - activations


gpulab.predict("decode.fraction", measured=left_for_cache("TensorRT-LLM", 80, 70, 0, 0.9))
engines = ("vLLM", "TGI", "SGLang", "TensorRT-LLM")
memory = float(hardware.find("H100").dram_bytes)
fits = {}
for name, bytes_each in (("Llama 3 8B", 2), ("Llama 3 70B", 1)):
    weights = bytes_each * known.find(name).stated
    fits[f"{name}, {8 * bytes_each} bits: GB of cache"] = {
        engine: max(0.0, left_for_cache(engine, memory, weights, 2e9, 0.9)) / 1e9 for engine in engines
    }
plot.panels(
    fits,
    "The same 0.9 on an H100, with 2 GB of activations assumed: with large weights it decides whether anything fits.",
)

# %% [markdown]
# **Why.** A tenth of the GPU is 8 GB, which is little beside the cache of a small model and everything beside weights
# of 70 GB. When you compare engines, compare the tokens of cache that they report when they start, and never their
# fractions.
#
# ### TensorRT: an engine that is built
#
# **TensorRT** is older than TensorRT-LLM and serves any network, for example one exported to ONNX (lab 21). Its
# **builder** takes a network, times the candidate kernels (**tactics**) of each layer on the GPU, and writes the
# fastest ones into a file, the **engine** or plan. An **optimization profile** names the least, the usual and the
# largest shape, and the builder optimises for the usual one. The price is that an engine belongs to one kind of GPU
# and to one version of TensorRT, unless it is built to be compatible, which can make it slower. A **timing cache**
# shortens the next build, but it belongs to a device and a version, too. (NVIDIA, "Optimizing Builder Performance",
# "Engine Compatibility" and "FAQs", TensorRT 11.) It is auto-tuning (lab 11) for a whole network. Early TensorRT-LLM
# built such engines. Today it runs on PyTorch, and nothing needs to be built first.
#
# ### On your own machine
#
# **Ollama** wraps local models: it downloads, runs and serves them. On your own machine two things decide: whether
# the weights fit, and bandwidth ÷ bytes of weights, the most tokens per second that one user can get.

# %%
most = {}
for name in ("Llama 3 8B", "Llama 3 70B"):
    size = known.find(name).stated
    for bits in (16, 8, 4.5):
        held = size * bits / 8
        cards = [
            c
            for c in ("RTX 4090", "RTX 5090", "H100", "B200")
            if held < 0.9 * float(hardware.find(c).dram_bytes)
        ]
        rates = {c: float(hardware.find(c).dram_bandwidth) / held for c in cards}
        said = ", ".join(f"{c} {rate:,.0f}" for c, rate in rates.items())
        print(
            f"{name}, {bits:4} bits: {held / 1e9:5.1f} GB, tokens/s at most for one user: {said or 'fits none'}"
        )
        if bits == 4.5:
            most |= {f"{name} on {c}": rate for c, rate in rates.items()}
plot.bars(
    most,
    "tokens/s at most for one user",
    more_is_better=True,
    caption="In 4.5 bits the small model fits every card, and bandwidth decides how fast it can answer.",
)

# %% [markdown]
# Above, 4.5 bits are 4-bit weights with a scale for each group (lab 13). What does **Blackwell** add for language
# models?

# %%
old, new = hardware.find("H100"), hardware.find("B200")
print(f"{'':26}{old.name:>10}{new.name:>10}   times")
for words, value in (
    ("bfloat16, PFLOP/s dense", lambda g: float(g.tensor_dense["bfloat16"]) / 1e15),
    ("fp8, PFLOP/s dense", lambda g: float(g.tensor_dense["float8"]) / 1e15),
    ("fp4, PFLOP/s dense", lambda g: float(g.tensor_dense.get("float4", 0)) / 1e15),
    ("memory, GB", lambda g: float(g.dram_bytes) / 1e9),
    ("memory, TB/s", lambda g: float(g.dram_bandwidth) / 1e12),
    ("NVLink, one way, GB/s", lambda g: float(hardware.link(g.gpu_link).per_direction) / 1e9),
    ("power, W", lambda g: float(g.tdp)),
    ("memory, GB/s per W", lambda g: float(g.dram_bandwidth) / 1e9 / float(g.tdp)),
):
    a, b = value(old), value(new)
    print(f"{words:26}{a:10,.3g}{b:10,.4g}   {f'{b / a:.2f}' if a else 'new'}")

# %% [markdown]
# **Why.** The new hardware is FP4 and FP6 on tensor cores whose operands carry a scale for each block (NVIDIA's
# second **transformer engine** uses them), tensor memory, a link of 10 TB/s between two dies, a decompression engine,
# and NVLink 5. Decode gains what bandwidth gains. 4-bit weights help decode on any GPU that unpacks them, whereas FP4
# tensor cores help where arithmetic decides, in prefill and large batches. Batching, cache management and speculation
# are *software*.
#
# ## Detective · The weak draft
#
# A colleague has built the same decoder with a draft that counts its own places. "It is correct: I followed all
# outcomes, and the distribution is the target's. But the draft is weak. With four guesses I get less than 3
# characters a pass, although the paper promised more. I will train a larger draft."


# %%
def colleague(target, choose, ahead):
    """A story, the tokens of each round, and the draft."""
    draft, tokens, rounds = Table(), [END], []

    def next_free(given, start):
        # One token at a time, after everything that the draft has already seen.
        return draft.forward(given[-1:], len(draft.seen)) * len(given)

    while len(tokens) == 1 or (len(tokens) <= MOST and tokens[-1] != END):
        room = model.config.context - len(tokens)
        held, most = len(draft.seen), min(ahead, room)
        new = speculate(next_free, target.forward, choose, tokens, most)
        new = new[: new.index(END) + 1] if END in new else new
        tokens += new
        rounds.append(len(new))
        draft.seen = draft.seen[: held + min(len(new), most)]  # forget what was not kept
    return tokens[1:], rounds, draft


gpulab.need(speculate)
choose, made, passes = dice(4), 0, 0
for _ in range(40):
    target = Served(model)
    story, rounds, draft = colleague(target, choose, 4)
    made, passes = made + len(story), passes + target.passes
print(f"{made / passes:.2f} characters a pass; the last story: {text.decode(story).strip()}")

# %% [markdown]
# **Do.** Is the draft weak? `rounds` and `draft` are those of the last story. `tell`, from section 3, writes a story
# with a table of the same kind and its own bookkeeping. Use the next cell for experiments.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what is wrong, in which rounds does it happen, why is the text still right, and which of
# your counts shows it? A person reads this: 1 point for the cause, 1 point for a count that you made.

# %% [markdown] nbgrader={"grade": true, "grade_id": "weak-draft-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** When all four guesses are kept, the draft has never been fed the fourth one. Its cache is therefore
# one token short, and the next token is written in the missing token's place. So the draft reads a text with a
# character missing, and it guesses badly until four further characters hide the gap. In `rounds` most 5s are followed
# by a 1. The text is right because the target judges every guess, wherever it comes from, so a broken draft costs
# speed only. With `tell`, which feeds what is missing, the same draft brings about 4 characters a pass where the
# colleague has less than 3.
#
# **1 point** (cause without a count): After a round in which all guesses are kept, the draft's cache lacks the last
# guess.
#
# **0 points:** The draft is too small. Or: rejected tokens are still in its cache.

# %% [markdown]
# ## Beyond · Guess better
#
# This task is open-ended and ungraded: write any draft that looks at the text so far and the corpus, guessing at most
# sixteen ahead. The figure of merit is characters per pass of the target, over 40 stories.
#
# | draft | characters a pass |
# |---|---|
# | the table, 16 ahead | printed by the cell below |
# | ours: the table, except that after "who " it copies the words of the first sentence | 11.6 |
# | upper bound: all 16 guesses are always kept | 17 |
#
# A story has 57 to 67 characters, so the last round is cut short and even the bound is not reached.

# %%
gpulab.need(speculate)
choose, made, passes = dice(5), 0, 0
for _ in range(40):
    target = Served(model)
    story, _ = tell(Table(), target, choose, 16)
    made, passes = made + len(story), passes + target.passes
print(f"{made / passes:.2f} characters a pass")

# %%
# Your draft: a class with `seen` and `forward(tokens, start)`.

# %% [markdown]
# ## Recap
#
# <details><summary>1. A prompt has 100 tokens, and 50 are generated. How many are fed, in how many passes?</summary>
#
# 149 tokens in 50 passes. The first pass takes the 100 tokens of the prompt, each of the other 49 takes one token,
# and the last token drawn is never fed.
# </details>
#
# <details><summary>2. Logits 3, 2, 1, 0, with top-k 2 and then top-p 0.7. Which tokens can be drawn?</summary>
#
# Only the first. Top-k keeps the first two. Normalised, the first of these has 1/(1 + e⁻¹) = 0.73, which reaches 0.7,
# so top-p keeps that one alone.
# </details>
#
# <details><summary>3. A guess is not kept. Why not draw from the target's probabilities instead?</summary>
#
# Guesses that were kept have already supplied min(p, q) of each token. What is missing is max(0, p − q). If you drew
# from p itself, the tokens that the draft likes would be supplied twice.
# </details>
#
# <details><summary>4. For α = 0.5, a draft of 5 % and one user, are eight guesses better than two?</summary>
#
# No, two are better. Eight guesses yield 1.996 tokens in a time of 1 + 8 · 0.05 = 1.4, a speed-up of 1.43. Two yield
# 1.75 tokens in a time of 1.1, a speed-up of 1.59.
# </details>
#
# <details><summary>5. Why do engines pad batches?</summary>
#
# A CUDA graph has fixed shapes, and only some batch sizes are captured. A batch of another size is padded to the next
# captured size.
# </details>

# %%
gpulab.recap("19")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | tokens fed for n new ones | with a cache prompt + n − 1; without one n·prompt + n(n − 1)/2 |
# | order of sampling | temperature → top-k → top-p (keep the token that reaches p) → normalise → draw |
# | probability of keeping a guess | min(1, p/q) |
# | a guess is not kept | draw from max(0, p − q), normalised; end of the round |
# | all guesses are kept | draw one more token from the target's last row |
# | what is kept, on average | a share Σ min(p, q) of guesses; a round yields (1 − αᵏ⁺¹)/(1 − α) tokens |
# | when not to speculate | when batch · (k + 1) is beyond the ridge |
# | CUDA graph | replays a step with one call; needs fixed shapes, fixed addresses and a cache allocated whole |
# | streaming | a sweep takes max(streamed · fetch, layers · work); memory goes to requests first |
#
# ### Claims you will meet, and what is right
#
# - *Accept the longest prefix that matches what the target would say.* That is the special case of greedy decoding.
#   The general rule keeps a guess with probability min(1, p/q), draws from max(0, p − q) after a rejection, and adds
#   one more token at the end if nothing was rejected.
# - *Speculative decoding makes inference 2 to 3 times as fast.* That holds for small batches.
# - *A layer requires 7 TFLOPS.* The unit is TFLOP, because it is work, not a rate.
# - *Decoding is bound by latency.* In eager code it can be bound by the latency of launches (section 5). Without them
#   it is bound by bandwidth, and a step takes bytes of weights and cache ÷ bytes per second.
# - *TGI serves many models in production.* It serves one base model in each instance, and it is in maintenance mode.
# - *Blackwell has hardware for dynamic batching, KV caches and speculation.* All of that is software. And the claimed
#   "2.25 times the bandwidth per watt" is in fact 1.67 times.
#
# ### References
#
# 1. Y. Leviathan, M. Kalman, Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML, 2023.
#    https://arxiv.org/abs/2211.17192
# 2. C. Chen et al., "Accelerating Large Language Model Decoding with Speculative Sampling", 2023.
#    https://arxiv.org/abs/2302.01318
# 3. A. Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR, 2020. https://arxiv.org/abs/1904.09751
# 4. M. Nguyen et al., "Turning Up the Heat: Min-p Sampling", 2024. https://arxiv.org/abs/2407.01082
# 5. W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP, 2023.
#    https://arxiv.org/abs/2309.06180
# 6. G. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI, 2022.
# 7. R. Aminabadi et al., "DeepSpeed Inference", SC, 2022 (ZeRO-Inference). https://arxiv.org/abs/2207.00032
# 8. NVIDIA, "TensorRT LLM: Overview". https://nvidia.github.io/TensorRT-LLM/overview.html
# 9. vLLM, "V1 guide". https://docs.vllm.ai/en/stable/usage/v1_guide/
# 10. SGLang, "Speculative decoding". https://docs.sglang.io/docs/advanced_features/speculative_decoding
# 11. Hugging Face, "Text Generation Inference". https://github.com/huggingface/text-generation-inference
# 12. llama.cpp. https://github.com/ggml-org/llama.cpp
# 13. NVIDIA, "How to Change KV Cache Behavior" (`free_gpu_memory_fraction`).
#     https://nvidia.github.io/TensorRT-LLM/examples/kvcacheconfig.html
# 14. Hugging Face, "Text-generation-launcher arguments" (`cuda-memory-fraction`), in the documentation of TGI
# 15. SGLang, "Hyperparameter Tuning" and "Server Arguments" (`mem-fraction-static`). https://docs.sglang.io
# 16. NVIDIA, TensorRT documentation: "Optimizing Builder Performance", "Engine Compatibility", "FAQs".
#     https://docs.nvidia.com/deeplearning/tensorrt
