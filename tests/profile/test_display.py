"""One description, two layouts: the same words, every string escaped, lines that keep their width."""

from __future__ import annotations

import html
import re

import pytest

from gpulab.foundation.display import (
    Block,
    Card,
    Code,
    Heading,
    Note,
    Row,
    Shown,
    Span,
    Table,
    number,
    points,
    together,
)

LONG = "Which index should run fastest in `out`? One line is not enough for all of these words, so it breaks."

CARD = Card(
    (
        Heading(Span("memory.transpose", "strong"), "1.6 of 5 points"),
        Row("right", "6 of 6 sizes", "2.0", "pass"),
        Row("store sectors", "32.0 per request   budget 4", "0", "fail"),
        Code(9, "out[x, y] = a[y, x] if a < b else '&'"),
        Note(LONG, True),
        Block("a │ b\n  c │ <d>"),
        Table(("line", "sectors"), (("9", "12,288"), ("10", "4"))),
        Note(Span("attempt 2", "dim")),
    )
)


def without_tags(page: str) -> str:
    inline = re.sub(r"</?(span|code)[^>]*>", "", page)
    return html.unescape(re.sub(r"<[^>]+>", " ", inline)).replace("\xa0", " ")


def test_text_and_html_say_the_same_words_in_the_same_order() -> None:
    assert CARD.text().replace("`", "").split() == without_tags(CARD.html()).split()


def test_words_that_belong_together_share_a_line() -> None:
    body = f"32.0 per request   budget 4.0   {together('naive 32.0 B')}"
    for width in range(30, 70):
        lines = Card((Row("sectors", body, "0.8"),)).text(width).splitlines()
        assert sum("naive 32.0 B" in line for line in lines) == 1, width
    assert "\xa0" not in Card((Row("sectors", body),)).text()


def test_sentences_of_a_block_may_be_wrapped_and_source_lines_may_not() -> None:
    page = Card((Block("A sentence.\n   9 │ x = 1"),)).html()
    source, sentence = page.index("   9 │"), page.index("A sentence.")
    assert page[:source].endswith('white-space:pre;overflow-wrap:normal">')
    assert page[:sentence].endswith("<div>")


def test_text_is_laid_out_in_columns() -> None:
    assert (
        CARD.text(64)
        == """\
memory.transpose                                 1.6 of 5 points
✔ right          6 of 6 sizes                                2.0
✘ store sectors  32.0 per request   budget 4                   0
  line 9   out[x, y] = a[y, x] if a < b else '&'
  Which index should run fastest in `out`? One line is not
  enough for all of these words, so it breaks.
  a │ b
    c │ <d>
line  sectors
9      12,288
10          4
attempt 2"""
    )


@pytest.mark.parametrize("width", [40, 64, 88, 120])
def test_no_line_of_prose_is_wider_than_asked_for(width: int) -> None:
    card = Card(
        (Heading("a title", "right"), Row("label", "word " * 60, "9.0", "pass"), Note("word " * 60, True))
    )
    assert max(map(len, card.text(width).splitlines())) <= width


def test_every_string_is_escaped() -> None:
    evil = "<script>alert('x')</script>"
    card = Card(
        (
            Heading(evil, evil),
            Row(evil, (Span(evil, "bad"), evil), evil),
            Code(1, evil),
            Note(evil),
            Block(evil),
            Table((evil,), ((evil,),)),
        )
    )
    assert "<script" not in card.html()
    assert card.html().count("&lt;script&gt;") == 11


def test_code_in_ticks_is_marked_in_html_and_keeps_its_ticks_in_text() -> None:
    card = Card((Note("see `a<b`"),))
    assert card.text() == "see `a<b`"
    assert ">a&lt;b</code>" in card.html()


def test_html_takes_its_colours_from_the_notebook() -> None:
    assert "var(--jp-" in CARD.html()
    assert "background:#" not in CARD.html()
    assert "color:inherit" in CARD.html()


def test_what_is_shown_has_both_forms_for_a_notebook() -> None:
    class Thing(Shown):
        def card(self) -> Card:
            return Card((Note("hello"),))

    assert Thing()._repr_mimebundle_() == {"text/plain": "hello", "text/html": Thing()._repr_html_()}
    assert repr(Thing()) == str(Thing()) == "hello"


def test_rich_prints_the_same_text() -> None:
    import io

    from rich.console import Console

    class Thing(Shown):
        def card(self) -> Card:
            return CARD

    console = Console(file=io.StringIO(), width=64, color_system=None)
    console.print(Thing())
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.rstrip() for line in printed.rstrip().splitlines()] == CARD.text(64).splitlines()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (49152, "49,152"),
        (4.0, "4.0"),
        (16.5, "16.5"),
        (0.125, "0.125"),
        (1.37, "1.37"),
        (123.4, "123.4"),
        (0, "0"),
        (0.0, "0.0"),
        (None, "–"),
        (2.5e-07, "2.50e-07"),
        (12288.0, "12,288"),
        (1.234567, "1.23"),
    ],
)
def test_numbers_are_written_as_people_read_them(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(("value", "text"), [(2.0, "2.0"), (0.0, "0"), (1.25, "1.25"), (1.4, "1.4")])
def test_points_have_the_decimals_that_they_need(value: float, text: str) -> None:
    assert points(value) == text
