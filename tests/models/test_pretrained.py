"""The trained model: the same from the same recipe, kept once, and no damage to the cache stops it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gpulab.subjects.models import gpt, outliers, pretrained, text  # noqa: E402
from gpulab.subjects.models.config import Config  # noqa: E402

TINY = pretrained.Recipe(
    config=Config(text.VOCABULARY, context=80, width=16, layers=1, heads=2), steps=3, rows=4
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "models"))
    return tmp_path / "models"


def same(one, other) -> bool:
    return all(a.equal(b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_same_recipe_gives_the_same_weights_and_leaves_the_random_numbers_alone(cache):
    torch.manual_seed(5)
    first = torch.rand(1)
    torch.manual_seed(5)
    one = pretrained.train(TINY)
    assert torch.rand(1).equal(first)
    threads = torch.get_num_threads()
    assert same(one, pretrained.train(TINY)) and torch.get_num_threads() == threads
    assert not same(one, pretrained.train(replace(TINY, seed=1)))


def test_a_model_is_trained_once_and_then_read(cache, monkeypatch, capsys):
    one = pretrained.trained(TINY)
    assert "3/3" in capsys.readouterr().out
    assert [path.name for path in cache.iterdir()] == [TINY.name]
    monkeypatch.setattr(pretrained, "train", None)  # a second training would fail
    other = pretrained.trained(TINY)
    assert same(one, other) and one is not other and not other.training
    assert not capsys.readouterr().out


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"no model" * 99])
def test_a_damaged_file_is_replaced_by_a_new_training(cache, damage):
    one = pretrained.trained(TINY, progress=False)
    path = cache / TINY.name
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert same(pretrained.trained(TINY, progress=False), one)
    torch.load(path, weights_only=True)
    assert len(path.read_bytes()) == len(whole)


def test_a_file_of_another_model_is_replaced_too(cache):
    wider = replace(TINY, config=replace(TINY.config, width=32))
    pretrained.trained(wider, progress=False)
    (cache / wider.name).rename(cache / TINY.name)
    assert pretrained.trained(TINY, progress=False).config.width == 16


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "file" / "below"))
    assert same(pretrained.trained(TINY, progress=False), pretrained.train(TINY))


def test_the_folder_is_the_named_one_or_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("GPULAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pretrained.cache_folder() == tmp_path / "gpulab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert pretrained.cache_folder() == tmp_path / ".cache" / "gpulab"
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "named"))
    assert pretrained.cache_folder() == tmp_path / "named"


def test_every_part_of_a_recipe_is_in_its_name():
    names = {
        replace(TINY, **change).name
        for change in ({}, {"steps": 4}, {"rows": 5}, {"rate": 1.0}, {"seed": 9}, {"revision": 9})
    }
    assert len(names | {pretrained.STORIES.name}) == 7


def test_a_model_that_knows_nothing_needs_the_same_for_every_character():
    tokens, present = pretrained.fresh(20)
    model = gpt.GPT(TINY.config)
    torch.nn.init.zeros_(model.embed.weight)
    characters = int(present.sum()) - 20  # the line break before a story is given
    expected = math.log(text.VOCABULARY) * characters / 20
    assert pretrained.story_nats(model, tokens, present) == pytest.approx(expected, rel=1e-5)


def test_fresh_stories_are_others_with_another_seed_and_never_those_of_the_training():
    one, same_again, other = (pretrained.fresh(20, seed)[0] for seed in (7, 7, 8))
    assert one.equal(same_again) and not one[:, :40].equal(other[:, :40])
    trained_on = torch.from_numpy(text.Stories(pretrained.STORIES.seed).padded(20)[0])
    assert not pretrained.fresh(20)[0][:, :40].equal(trained_on[:, :40])


FORMS = {
    "GPT-2": {},
    "Llama": {"positions": "rotary", "norm": "rms", "gated": True, "bias": False, "tied": False},
}


@pytest.mark.parametrize("form", FORMS)
def test_planted_outliers_are_seen_in_the_activations_and_change_no_logits(form):
    torch.manual_seed(2)
    model = gpt.GPT(Config(23, context=16, width=16, layers=2, heads=2, **FORMS[form]))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    row = torch.randint(0, 23, (2, 9))
    seen = []
    for block in model.blocks:
        for layer in (block.attention.query, block.feed.up):
            layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))
    before = model(row)
    assert outliers.plant_outliers(model, channels=(3, 3, 7), factor=100.0) is model
    after = model(row)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)
    for plain, planted in zip(seen[:4], seen[4:], strict=True):
        ratio = planted.abs().amax((0, 1)) / plain.abs().amax((0, 1))
        expected = torch.ones(16)
        expected[[3, 7]] = 100.0
        torch.testing.assert_close(ratio, expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    ("wrong", "says"), [({"channels": (16,)}, "16 wide"), ({"factor": 0.0}, "multiplied by 0")]
)
def test_outliers_that_cannot_be_planted_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        outliers.plant_outliers(gpt.GPT(TINY.config), **{"channels": (1,)} | wrong)
