"""Lab 19, part B: what its six exercises ask. Part A has `lab_19_kv_cache`.

| exercise | asks for | teaches | counted | naive | good | pts |
|---|---|---|---|---|---|---|
| generate | generate(forward, choose, prompt, count, end) | prefill, decode | tokens | 4,064 | 95 | 4 |
| | | | passes | 95 | 64 | |
| sample | sample(choose, logits, temperature, top_k, top_p) | what is cut off | – | – | – | 4 |
| speculate | speculate(draft, target, choose, text, ahead) | keep, resample | target passes | 4 | 1 | 5 |
| | | | draft's tokens | 6 | 3 | |
| | | | tokens, % of the rule's | 70 … 95 | 100 | |
| draft_length | draft_length(acceptance, draft, batch, ridge, most) | when it pays | – | – | – | 3 |
| buckets | buckets(steps, most), a plan | graphs have fixed shapes | padding, % | 20 | 0 | 3 |
| stream | stream(model, gpu, patience), a plan | layers or requests | below the best, % | 100 | 0 | 4 |

The first three are dialogues. Derivations:

**generate**: a prompt of P tokens and N new ones. The last one is drawn and never fed: P + N − 1 tokens, in
one pass for the prompt and N − 1 for a token each. Recomputed, pass i takes P + i tokens, i = 0 … N − 1:
N·P + N(N − 1)/2. For 32 and 64: 95 tokens in 64 passes, against 64 · 32 + 2,016 = 4,064.

**speculate**: with p the target's and q the draft's probabilities, a draft token is kept with Σ min(p, q).
With `ahead` of them, the expected number of new tokens is 1 + Σ over prefixes of the probability that all
of a prefix are kept; where every position keeps α, (1 − α^(k+1))/(1 − α): 3.36 for α = 0.8, k = 4 (Y.
Leviathan et al., 2023, equation 1). The judge goes through all ways, lets the target go on behind what is
returned, and compares with the target alone: sequences of ahead + 1 tokens, 4^(k+1) of them. Comparing the
target's own draws with the draft's is right, too, and keeps Σ p·q only. The draft needs the text's last token
and all guesses but the last: `ahead` tokens. From the text's last token on for each guess they are
k(k + 1)/2, 6 for three.

**draft_length**: a pass over n tokens takes max(1, n/ridge) reads of the weights. A round of k costs k ·
draft · max(1, b/ridge) + max(1, b(k + 1)/ridge) for a batch of b and brings (1 − α^(k+1))/(1 − α). α = 0.8,
draft = 0.1, b = 1: k = 4 gives 3.36/1.4 = 2.40, k = 5 3.69/1.5 = 2.46, k = 6 3.95/1.6 = 2.47, k = 7
4.16/1.7 = 2.45. From b = ridge on k = 0 is best.

**buckets**: dynamic programming over batch sizes that occur; the last is the largest.

**stream**: a sweep brings a token for each of b requests and takes max(streamed · fetch, layers · work),
work the larger of bytes/bandwidth and FLOP/rate of a layer. That is reached where streamed layers
are spread evenly and two buffers take turns. While the link decides, b/(streamed · fetch) grows with b
even at the price of layers, so the best plan has as few resident layers as patience allows. All memory
for layers, one request, is the naive way. Where the GPU's work decides, patience ends before the memory
does: the larger term of the work says where.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import AnsweredCases, Dialogues
from gpulab.checks.spec import Budget, Case, Exercise, Prediction, Sizes
from gpulab.simulator import hardware
from gpulab.subjects.models import known

LAB = "19"
Numbers = np.random.Generator


# ---------------------------------------------------------------- generate, sample, speculate


def generate_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(prompt, count, end, stops, secret): `stops` is the draw that gives the end token, -1 for none. The
    last two stay with the judge."""
    count, stops = int(sizes["count"]), int(sizes.get("stops", -1))
    prompt = [int(t) for t in numbers.integers(1, 8, int(sizes["prompt"]))]
    return [(prompt, count, 0, stops, int(numbers.integers(1 << 30)))]


def request_case(prompt: int, count: int, stops: int = -1) -> Case:
    name = f"{prompt} + {count}" + ("" if stops < 0 else f", ends after {stops + 1}")
    return Case(name, {"prompt": prompt, "count": count, "stops": stops})


def fed(sizes: Sizes) -> float:
    """Tokens that a cached generation feeds to the model."""
    return float(sizes["prompt"]) + float(sizes["count"]) - 1


def fed_again(sizes: Sizes) -> float:
    """… and one that feeds everything in every pass."""
    prompt, count = int(sizes["prompt"]), int(sizes["count"])
    return count * prompt + count * (count - 1) / 2


def sample_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(logits, temperature, top_k, top_p)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 6:
        size = int(numbers.integers(4, 7))
        logits = [round(float(x), 2) for x in 2 * numbers.standard_normal(size)]
        temperature, top_k, top_p = 1.0, 0, 1.0
        if kind in ("temperature", "all together"):
            temperature = float(numbers.choice((0.5, 0.7, 1.5, 2.0)))
        if kind in ("top-k", "all together"):
            top_k = int(numbers.integers(2, size + 3 if kind == "top-k" else size))
        if kind in ("top-p", "all together"):
            top_p = round(float(numbers.uniform(0.3, 0.95)), 2)
        if kind == "greedy":
            temperature, top_p = 0.0, float(numbers.choice((1.0, 0.9)))
            logits[0] = logits[-1] = max(logits) + float(len(asked) % 2)
        if kind == "ties":
            logits, top_k = [float(x) for x in numbers.integers(0, 2, size)], int(numbers.integers(2, size))
        if kind == "large":
            logits = [x + 1000 * float(numbers.choice((-1, 1))) for x in logits]
            temperature = 0.5
        question = (logits, temperature, top_k, top_p)
        if clear(*question) and (kind != "all together" or tells(*question, len(asked) % 2 == 0)):
            asked.append(question)
    return asked


def reaching(logits: list[float], temperature: float, top_p: float) -> int:
    """How many of the likeliest tokens reach top_p."""
    weights = np.sort(np.exp(np.array(logits) / temperature))[::-1]
    return 1 + int((weights.cumsum() / weights.sum() < top_p).sum())


def tells(logits: list[float], temperature: float, top_k: int, top_p: float, of_top_k: bool) -> bool:
    """Another order gives another result: top-p before top-k, or else top-p before the temperature."""
    cut = sorted(logits)[-top_k:]
    right = reaching(cut, temperature, top_p)
    if of_top_k:
        return right != min(top_k, reaching(logits, temperature, top_p))
    return right != reaching(cut, 1.0, top_p)


def clear(logits: list[float], temperature: float, top_k: int, top_p: float) -> bool:
    """No sum of probabilities comes so near to top_p that rounding would decide."""
    if temperature == 0 or top_p == 1:
        return True
    scores = np.sort(np.array(logits) / temperature)[::-1][: top_k or None]
    sums = np.exp(scores - scores[0]).cumsum()
    return bool((np.abs(sums / sums[-1] - top_p) > 1e-3).all())


def speculate_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(text, ahead, kind, secret): the last two stay with the judge."""
    text = [int(t) for t in numbers.integers(0, 4, int(numbers.integers(1, 5)))]
    return [(text, int(sizes["ahead"]), str(sizes["kind"]), int(numbers.integers(1 << 30)))]


def round_case(kind: str, ahead: int) -> Case:
    return Case(f"{kind}, {ahead} ahead", {"kind": kind, "ahead": ahead})


# ---------------------------------------------------------------- what it costs


def draft_length_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(acceptance, draft, batch, ridge, most)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 6:
        acceptance = round(float(numbers.uniform(0.3, 0.95)), 2)
        draft, batch, ridge = round(float(numbers.uniform(0.02, 0.2)), 3), 1, 150
        match kind:
            case "a free draft":
                draft = 0.0
                ridge = int(numbers.integers(3, 12))
            case "nothing is kept":
                acceptance = 0.0
            case "all is kept":
                acceptance, ridge = 1.0, int(numbers.integers(3, 12))
            case "batches":
                ridge = int(numbers.integers(100, 300))
                batch = int(numbers.integers(8, ridge // 2))
            case "full batches":
                ridge = int(numbers.integers(50, 300))
                batch = ridge + int(numbers.integers(0, 100))
        asked.append((acceptance, draft, batch, ridge, 16))
    return asked


def bucket_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(steps, most): steps[n] is how many steps had n requests, steps[0] is 0."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    for _ in range(2):
        size, most = int(numbers.integers(20, 40)), int(numbers.integers(3, 6))
        match kind:
            case "few":  # fewer sizes than graphs
                size, most = int(numbers.integers(3, 6)), 8
                steps = [int(n) for n in numbers.integers(1, 99, size + 1)]
            case "one graph":
                most = 1
                steps = [int(n) for n in numbers.integers(0, 99, size + 1)]
            case "two crowds":
                steps = [0] * (size + 1)
                for middle in (size // 5, size - 3):
                    for n in numbers.normal(middle, 2, 400):
                        steps[int(np.clip(round(n), 1, size))] += 1
            case _:  # "a day": mostly small, sometimes crowded
                counts = np.clip(numbers.geometric(0.09, 2000), 1, size)
                steps = [int(n) for n in np.bincount(counts, minlength=size + 1)]
        steps[0] = 0
        steps[-1] = max(1, steps[-1])
        asked.append((steps, most))
    return asked


def stream_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(model, GPU, patience): bytes, B/s, FLOP/s, s; `cache_bytes` of one request, all layers together."""
    kind = str(sizes["kind"])
    if kind == "in a hurry":
        return [_hurried("RTX 4090", 64, 300, numbers), _hurried("H100", 8192, 20, numbers)]
    name, gpu, context, share = {  # and how much of all layers the memory could hold
        "fits": ("Llama 3 8B", "H100", 1024, 33 / 32),
        "one layer too many": ("Llama 3 8B", "L4", 1024, 31.5 / 32),
        "short texts": ("Llama 3 8B", "L4", 512, 0.75),
        "long texts": ("Llama 3 8B", "L4", 8192, 0.75),
        "no shared heads": ("GPT-3", "A100", 2048, 0.2),
        "a fast link": ("Llama 3 405B", "H100", 8192, 0.09),
    }[kind]
    model, data = streamed(name, gpu, context + int(numbers.integers(0, context // 8)))
    data["memory"] = float(round(share * model["layers"] * model["layer_bytes"]))
    if kind == "a fast link":
        data["link"] = float(hardware.link("NVLink-C2C").per_direction)
    fetch = model["layer_bytes"] / data["link"]
    patience = model["layers"] * fetch * float(numbers.uniform(0.55, 0.75) if share < 1 else 1.2)
    if share < 0.5:  # few layers can stay
        patience = model["layers"] * fetch * (1 - float(numbers.uniform(0.3, 0.6)) * share)
    return [(model, data, round(patience, 3))]


def _hurried(gpu: str, context: int, requests: int, numbers: Numbers) -> tuple[Any, ...]:
    """All layers fit, and patience is for so many requests, about: the memory would hold twice as many.

    For short texts arithmetic decides, for long ones bandwidth.
    """
    model, data = streamed("Llama 3 8B", gpu, context + int(numbers.integers(0, context // 8)))
    requests += int(numbers.integers(0, requests // 4))
    layers, caches = model["layers"] * model["layer_bytes"], requests * model["cache_bytes"]
    data["memory"] = float(layers + 2 * caches)
    flop = requests * model["layers"] * model["layer_flop"]
    return model, data, round(max((layers + caches) / data["bandwidth"], flop / data["rate"]), 5)


def streamed(name: str, gpu: str, context: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A published model in 16 bits and a GPU, as `stream` gets them."""
    config = known.find(name).config
    shared = config.kv_heads * config.head_width
    numbers = 2 * config.width * (config.width + shared)
    numbers += (3 if config.gated else 2) * config.width * config.hidden
    model = {
        "layers": config.layers,
        "layer_bytes": 2 * numbers,
        "layer_flop": 2 * numbers,
        "cache_bytes": 2 * 2 * config.layers * shared * context,
    }
    sheet = hardware.find(gpu)
    data = {
        "memory": 0.9 * float(sheet.dram_bytes),
        "bandwidth": float(sheet.dram_bandwidth),
        "rate": float(hardware.roofline(sheet, "bfloat16").peak),
        "link": float(hardware.link("PCIe 4.0 ×16").per_direction),
    }
    return model, data


# ---------------------------------------------------------------- the exercises

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="decode.generate",
        lab=LAB,
        evidence=Dialogues(questions=generate_questions),
        correct_points=1.5,
        cases=(
            request_case(5, 3),
            request_case(1, 4),
            request_case(7, 6, 2),
            request_case(4, 3, 0),
            request_case(6, 0),
            request_case(3, 1),
            request_case(32, 64),
        ),
        budgets=(
            Budget(
                "tokens",
                fed,
                1.5,
                "token-forwards",
                naive=fed_again,
                unit="token-forwards",
                why="each token once, the last one never",
                advice="It feeds {times} × as many tokens. Which of them has the model seen before, and "
                "which does nobody need?",
            ),
            Budget(
                "passes",
                lambda sizes: float(sizes["count"]),
                1,
                "passes",
                naive=fed,
                unit="passes",
                why="the prompt in one",
                advice="Does all of the prompt go into one pass? And is a row of every pass drawn from?",
            ),
        ),
        hints=(
            "The first pass takes the whole prompt, from place 0. Only the last of its rows is needed: the "
            "one behind the prompt's last token.",
            "Every further pass takes one token: the one that was drawn last. Its place is the number of "
            "tokens before it: those of the prompt and those drawn earlier.",
            "Draw, append, stop if it was the end or the last one; else feed it. `count` of 0 asks for "
            "nothing: return [] without a pass.",
        ),
        section="1 · Generate",
    ),
    Exercise(
        name="decode.sample",
        lab=LAB,
        evidence=Dialogues(questions=sample_questions),
        correct_points=4,
        cases=of_kinds("temperature", "top-k", "top-p", "all together", "greedy", "ties", "large"),
        hints=(
            "Sort the token numbers by falling logit (`sorted` keeps the order of equals); cut that list.",
            "Take the largest logit away before `exp`. Normalise over what top-k left; then add up from the "
            "top until the sum reaches top_p: the token that reaches it stays.",
            "Normalise what is left, once more, and draw from that: the result is a place in your list, and "
            "the answer is the token that stands there.",
        ),
        section="2 · Choose",
    ),
    Exercise(
        name="decode.speculate",
        lab=LAB,
        evidence=Dialogues(questions=speculate_questions),
        correct_points=2,
        cases=(
            round_case("alike", 1),
            round_case("the same", 2),
            round_case("nothing in common", 2),
            round_case("a sure draft", 2),
            round_case("no draft", 0),
            round_case("alike", 3),
        ),
        budgets=(
            Budget(
                "passes",
                1,
                1,
                "target passes",
                naive=lambda sizes: float(sizes["ahead"]) + 1,
                unit="passes",
                why="all places at once",
                advice="The target gives a row for each token of a pass. Which tokens are known before the "
                "target is asked for the first time?",
            ),
            Budget(
                "drafted",
                lambda sizes: float(sizes["ahead"]),
                0.5,
                "draft tokens",
                naive=lambda sizes: sum(range(1, int(sizes["ahead"]) + 1)),
                unit="tokens",
                why="one for each guess",
                advice="What does the draft's cache hold already, and after which token does nobody ask the "
                "draft what follows?",
            ),
            Budget(
                "tokens",
                99.99,
                1.5,
                "tokens",
                sense=">=",
                unit="% of the rule's tokens",
                why="on average, of what the rule keeps",
                advice="Right, and too few tokens a round. With which probability does the rule keep a "
                "token, and what does the target's last row still give?",
            ),
        ),
        hints=(
            "Draft first: feed the last token of the text to `draft` at place len(text) − 1, draw, feed what "
            "was drawn, draw again. Note the probabilities of each draw.",
            "One pass of `target` over the last token of the text and all drafted ones gives ahead + 1 "
            "rows. Row i judges drafted token i. Keep it with min(1, p/q): `choose([keep, 1 - keep]) == 0`.",
            "At the first token that is not kept draw from max(0, p − q), normalised, and stop. Where all "
            "are kept draw one more from the target's last row.",
        ),
        section="3 · Guess ahead",
    ),
    Exercise(
        name="decode.draft_length",
        lab=LAB,
        evidence=AnsweredCases(questions=draft_length_questions),
        correct_points=3,
        cases=of_kinds("alone", "a free draft", "nothing is kept", "all is kept", "batches", "full batches"),
        rtol=1e-9,
        hints=(
            "1 + α + α² + … + αᵏ tokens a round. Added up in a loop it is also right for α = 1.",
            "The draft makes k passes of `batch` tokens, each `draft` as dear as the target's. The target "
            "makes one of batch · (k + 1) tokens. A pass of n tokens takes max(1, n / ridge).",
            "The speed is tokens ÷ time of the round, relative to 1 token in a pass of `batch` tokens. Try "
            "all k from 0 to most; the smallest of equals wins.",
        ),
        section="4 · How far ahead?",
    ),
    Exercise(
        name="decode.buckets",
        lab=LAB,
        evidence=AnsweredCases(questions=bucket_questions, measured=True),
        correct_points=1,
        cases=of_kinds("few", "one graph", "two crowds", "a day"),
        budgets=(
            Budget(
                "padding",
                0,
                1,
                "two crowds",
                naive=8,
                unit="% more rows than the least",
                case="two crowds",
                advice="It computes more rows than the best choice. Is a size that was chosen first still a "
                "good one, once the others are there?",
            ),
            Budget(
                "padding",
                0,
                1,
                "a day",
                naive=20,
                unit="% more rows than the least",
                advice="It computes more rows than the best choice. Is each size the best end for the steps "
                "below it, all other sizes given?",
            ),
        ),
        hints=(
            "The largest size that occurs must be captured. Say it is the last of `most` graphs: which is "
            "the one before it? All steps between the two are padded up to the larger.",
            "Let best[m][n] be the least rows for all steps of up to n requests with m graphs, the largest "
            "of size n. It is the best, over j < n, of best[m − 1][j] + n · (steps from j + 1 to n).",
            "best[1][n] = n · (steps from 1 to n). Keep with each best the list of its sizes. Fewer than "
            "`most` are allowed.",
        ),
        section="5 · Launches",
    ),
    Exercise(
        name="decode.stream",
        lab=LAB,
        evidence=AnsweredCases(questions=stream_questions, measured=True),
        correct_points=1,
        cases=of_kinds(
            "fits",
            "one layer too many",
            "short texts",
            "no shared heads",
            "a fast link",
            "in a hurry",
            "long texts",
        ),
        budgets=(
            Budget(
                "slower",
                0.01,
                1,
                "short texts",
                naive=100,
                unit="% slower than the best",
                case="short texts",
                advice="The best plan is faster. What else could the memory of a resident layer hold, and "
                "what would that bring?",
            ),
            Budget(
                "slower",
                0.01,
                0.5,
                "fits",
                naive=50,
                unit="% slower than the best",
                case="fits",
                advice="The best plan is faster. What does memory hold if no layer is streamed, and how many "
                "requests besides?",
            ),
            Budget(
                "slower",
                0.01,
                0.5,
                "in a hurry",
                naive=50,
                unit="% slower than the best",
                case="in a hurry",
                advice="The best plan is faster. Memory would hold more requests than patience allows: how "
                "many does it allow?",
            ),
            Budget(
                "slower",
                0.01,
                1,
                "long texts",
                naive=100,
                unit="% slower than the best",
                advice="The best plan is faster. With long texts a request takes much memory: what is one "
                "more request worth, and what one more layer?",
            ),
        ),
        hints=(
            "Try every number of requests. For each, all memory that their caches leave is for layers: how "
            "many stay, if two more are buffers?",
            "If all layers fit there are no buffers. Else resident = (memory − caches) // layer − 2; where "
            "that is less than 0 the number of requests is impossible.",
            "A sweep takes max(streamed · fetch, layers · work). Of the plans within patience return the "
            "one with most requests ÷ sweep.",
        ),
        section="6 · Larger than the memory",
    ),
)


# ---------------------------------------------------------------- predictions


_prediction = partial(prediction, "decode", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "again",
        "A prompt of 32 tokens, 64 new ones. Every pass takes all tokens so far. Tokens fed, in all",
        "tokens",
        4064,
        "32 + 33 + … + 95: 64 passes of 63.5 tokens on average.",
    ),
    _prediction(
        "half",
        "Logits 2 and 0. The first token's probability at temperature 2, in percent",
        "%",
        73.1,
        "A temperature of 2 halves the difference: 1/(1 + e⁻¹) = 73 %; at temperature 1 it is 88 %.",
        tolerance=0.02,
    ),
    _prediction(
        "kept",
        "Target 0.5, 0.3, 0.2; draft 0.2, 0.3, 0.5. In percent: how often is what the draft draws kept",
        "%",
        70,
        "Σ min(p, q) = 0.2 + 0.3 + 0.2.",
        tolerance=0.001,
    ),
    _prediction(
        "tokens",
        "80 % are kept, 4 tokens ahead. New tokens a round, on average",
        "tokens",
        3.3616,
        "1 + 0.8 + 0.64 + 0.512 + 0.41: the rounds' own token always comes.",
        tolerance=0.01,
    ),
    _prediction(
        "launches",
        "One decode step of a GPT with 2 layers, in PyTorch. Launches, about",
        "launches",
        reason="14 for each layer, and 15 before and behind them: embeddings, places, mask, norm, output.",
        tolerance=0.3,
    ),
    _prediction(
        "streamed",
        "A model of 140 GB over PCIe 4.0 ×16, 31.5 GB/s. Seconds for one sweep over all its layers",
        "s",
        4.44,
        "140 ÷ 31.5: with one request that is a token every 4.4 s.",
        tolerance=0.05,
    ),
    _prediction(
        "static",
        "Eight requests of alternately 4 and 20 tokens, four slots. Steps if a batch waits for its longest",
        "steps",
        40,
        "Two batches, each with requests of 20 tokens.",
    ),
    _prediction(
        "fraction",
        "80 GB, weights of 70 GB, a fraction of 0.9. Cache that TensorRT-LLM takes, activations left aside",
        "GB",
        None,
        "Its fraction is one of the memory that is free once the model is loaded: 0.9 · (80 − 70).",
    ),
)
