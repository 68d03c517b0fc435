"""Stories: the same from the same seed, readable as tokens, and as unforeseeable as is said."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects.models import text


@given(st.integers(0, 2**31), st.integers(0, 500))
def test_a_text_is_as_long_as_asked_and_comes_back_from_its_tokens(seed, length):
    written = text.Stories(seed).text(length)
    assert len(written) == length
    tokens = text.encode(written)
    assert all(0 <= token < text.VOCABULARY for token in tokens)
    assert text.decode(np.array(tokens)) == written
    assert written == text.Stories(seed).text(length)


def test_a_strange_character_is_named():
    with pytest.raises(ValueError, match="'X'"):
        text.encode("aXb")


def test_every_story_can_be_read_back_to_its_picks():
    seen = set()
    for story, _ in zip(text.Stories(7), range(300), strict=False):
        who, deed, _, colour, thing, _, _, place = story.split(".")[0].split()
        assert story == text.TEMPLATE.format(who, deed, colour, thing, place)
        seen |= {who, deed, colour, thing, place}
    assert seen == {word for words in text.PICKS for word in words}


def test_no_word_stands_in_two_places_or_twice():
    assert all(len(set(words)) == len(words) for words in text.PICKS)


def test_the_entropy_is_what_counting_stories_finds():
    stories = [next(s) for s in [text.Stories(3)] for _ in range(4000)]
    per_pick = []
    for place in (0, 1, 3, 4, 7):
        counts = Counter(story.split(".")[0].split()[place] for story in stories)
        per_pick.append(-sum(n / 4000 * math.log(n / 4000) for n in counts.values()))
    assert sum(per_pick) == pytest.approx(text.STORY_NATS, rel=0.01)
    assert text.entropy() == pytest.approx(sum(per_pick) / np.mean([len(s) for s in stories]), rel=0.01)


def test_padded_rows_hold_one_story_each_and_say_which_tokens_are_there():
    tokens, present = text.Stories(5).padded(20)
    assert tokens.shape == present.shape and tokens.dtype == np.int64 and present.dtype == bool
    same = text.Stories(5)
    for row, there in zip(tokens, present, strict=True):
        assert text.decode(row[there]) == "\n" + next(same)
        assert not row[~there].any() and (np.diff(there.astype(int)) <= 0).all()
    assert text.Stories(5).padded(0)[0].shape == (0, 0)


def test_windows_start_at_the_start_of_a_story():
    rows = text.Stories(5).windows(3, 90)
    assert rows.shape == (3, 90)
    assert all(text.decode(row).split()[0] in text.NAMES for row in rows)
