"""A small GPT: nobody sees ahead, padding changes nothing, a cache changes nothing, sizes are the published ones."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.nn import functional as F  # noqa: E402

from gpulab.subjects.models import gpt, known, text  # noqa: E402
from gpulab.subjects.models.config import Config  # noqa: E402

LLAMA = {"positions": "rotary", "norm": "rms", "gated": True, "bias": False, "tied": False}
FORMS = {
    "GPT-2": Config(23, context=16, width=16, layers=2, heads=4),
    "Llama": Config(23, context=16, width=16, layers=2, heads=4, kv_heads=2, hidden=24, **LLAMA),
}


@pytest.fixture(params=FORMS)
def model(request):
    torch.manual_seed(3)
    made = gpt.GPT(FORMS[request.param])
    for parameter in made.parameters():  # the small ones of a fresh model would hide mistakes
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def tokens(rows: int, length: int) -> torch.Tensor:
    return torch.randint(0, 23, (rows, length), generator=torch.Generator().manual_seed(4))


def test_a_later_token_changes_no_earlier_logits(model):
    before = tokens(2, 9)
    after = before.clone()
    after[:, 5] = (after[:, 5] + 1) % 23
    changed = (model(before) != model(after)).any(-1)
    assert not changed[:, :5].any() and changed[:, 5:].all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_no_logits_and_gives_no_nan(model, side):
    row = tokens(1, 6)
    pad = torch.zeros(1, 4, dtype=torch.long)
    there = torch.ones(1, 6, dtype=torch.bool)
    order = (lambda a, b: [b, a]) if side == "left" else (lambda a, b: [a, b])
    logits = model(torch.cat(order(row, pad), 1), torch.cat(order(there, pad.bool()), 1))
    assert not logits.isnan().any()
    part = logits[:, 4:] if side == "left" else logits[:, :6]
    torch.testing.assert_close(part, model(row))


def test_one_token_at_a_time_with_a_cache_is_the_whole_at_once(model):
    row = tokens(3, 10)
    cache = gpt.Cache()
    pieces = [model(piece, cache=cache) for piece in (row[:, :4], row[:, 4:5], row[:, 5:])]
    assert cache.length == 10
    torch.testing.assert_close(torch.cat(pieces, 1), model(row))


def test_generating_takes_the_likeliest_token_or_draws_from_a_generator(model):
    start = tokens(2, 3)
    row = start
    for _ in range(5):
        row = torch.cat((row, model(row)[:, -1:].argmax(-1)), 1)
    assert gpt.generate(model, start, 5).equal(row)
    draws = [gpt.generate(model, start, 9, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert draws[0].equal(draws[1]) and not draws[0].equal(draws[2])


def test_another_attention_can_stand_in(model):
    def by_hand(queries, keys, values, allowed):
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.shape[-1])
        return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ values

    other = gpt.GPT(model.config, attend=by_hand)
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(tokens(2, 7)), model(tokens(2, 7)))


def test_too_many_tokens_are_refused(model):
    with pytest.raises(ValueError, match="17 tokens do not fit into a context of 16"):
        model(tokens(1, 17))


def test_rotary_scores_depend_on_distance_only():
    q, k = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    at = lambda x, place: gpt.rotate(x, torch.tensor([[place]]))  # noqa: E731
    score = (at(q, 7) * at(k, 3)).sum()
    torch.testing.assert_close((at(q, 12) * at(k, 8)).sum(), score)
    assert not torch.isclose((at(q, 12) * at(k, 9)).sum(), score)


def test_labels_are_the_next_tokens_and_leave_padding_out():
    row = torch.tensor([[5, 6, 7, 0, 0], [0, 0, 5, 6, 7], [1, 2, 3, 4, 5]])
    present = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]).bool()
    no = gpt.IGNORE
    expected = [[6, 7, no, no, no], [no, no, 6, 7, no], [2, 3, 4, 5, no]]
    assert gpt.next_token_labels(row, present).tolist() == expected
    assert gpt.next_token_labels(row).tolist() == [[6, 7, 0, 0, no], [0, 5, 6, 7, no], [2, 3, 4, 5, no]]


def test_the_loss_is_the_mean_over_the_labels_that_count(model):
    row, present = tokens(2, 6), torch.ones(2, 6, dtype=torch.bool)
    present[1, 4:] = False
    logits, labels = model(row, present), gpt.next_token_labels(row, present)
    each = [
        -logits[r, i].log_softmax(0)[labels[r, i]].item()
        for r in range(2)
        for i in range(6)
        if labels[r, i] != gpt.IGNORE
    ]
    assert len(each) == 5 + 3
    assert gpt.loss(model, row, present).item() == pytest.approx(sum(each) / 8, rel=1e-5)


@given(
    heads=st.sampled_from([1, 2, 4]),
    sharing=st.sampled_from([1, 2]),
    layers=st.integers(0, 3),
    tied=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_every_form_runs_and_learns_with_all_its_parameters(heads, sharing, layers, tied):
    config = Config(11, 8, 8 * heads * sharing, layers, heads * sharing, heads, tied=tied, positions="rotary")
    made = gpt.GPT(config)
    row = torch.randint(0, 11, (2, 8))
    logits = made(row)
    assert logits.shape == (2, 8, 11)
    gpt.loss(made, row).backward()
    assert all(p.grad is not None for p in made.parameters())
    assert (made.head.weight is made.embed.weight) == tied


@pytest.mark.parametrize("sizes", [{"width": 10}, {"kv_heads": 3}, {"width": 12, "positions": "rotary"}])
def test_sizes_that_do_not_divide_are_refused(sizes):
    with pytest.raises(ValueError, match=r"divide|pairs"):
        Config(**{"vocabulary": 9, "heads": 4, "width": 16} | sizes)


@pytest.mark.parametrize("model", [m for m in known.MODELS if m.experts == 1], ids=lambda m: m.name)
def test_published_sizes_give_the_stated_number_of_parameters(model):
    with torch.device("meta"):
        count = gpt.parameters(gpt.GPT(model.config))
    assert count == pytest.approx(model.stated, rel=0.04)
    exact = {"GPT-2": 124_439_808, "Llama 2 7B": 6_738_415_616, "Llama 3 8B": 8_030_261_248}
    assert count == exact.get(model.name, count)


def test_an_unknown_model_is_named_with_those_that_there_are():
    assert known.find("GPT-3").config.layers == 96
    with pytest.raises(LookupError, match="Llama 3 405B"):
        known.find("GPT-5")


def test_a_small_model_learns_stories_and_stays_above_their_entropy():
    torch.manual_seed(0)
    rows, present = (torch.from_numpy(array) for array in text.Stories(1).padded(400))
    model = gpt.GPT(Config(text.VOCABULARY, context=80, width=32, layers=1, heads=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(40):
        part = slice(16 * (step % 25), 16 * (step % 25) + 16)
        optimizer.zero_grad()
        gpt.loss(model, rows[part], present[part]).backward()
        optimizer.step()
    fresh, there = (torch.from_numpy(array) for array in text.Stories(2).padded(100))
    floor = text.STORY_NATS * 100 / int((gpt.next_token_labels(fresh, there) != gpt.IGNORE).sum())
    uniform = math.log(text.VOCABULARY)
    assert floor < gpt.loss(model, fresh, there).item() < 0.6 * uniform
    assert F.cross_entropy(torch.zeros(1, text.VOCABULARY), torch.tensor([0])).item() == pytest.approx(
        uniform
    )
