"""What learners wrote is shown, and that is all that it does: no script, no request, no long computation."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from grading.core.limited import Kept
from grading.core.notebooks import LARGEST_CELL
from grading.lms import rendering
from grading.lms.rendering import CLASS, TAGS, answer, code, formatted
from tests.grading import pages
from tests.grading.conftest import Class, cell_of
from tests.grading.payloads import HOST, PAYLOADS, RUN, SVG

ATTRIBUTES = {
    *(("a", "href"), ("a", "rel"), ("a", "target"), ("img", "src"), ("img", "alt"), ("ol", "start")),
    *(("td", "style"), ("th", "style"), ("code", "class"), ("div", "class"), ("span", "class")),
}
ANSWER = {"nbgrader": {"solution": True}}
PLAIN = "The lanes of a warp read **one** bank, see [NVIDIA](https://docs.nvidia.com/cuda/?a=1&b=2)."


def harm(page: str) -> list[str]:
    """The tags and attributes of a page that an answer must not have."""
    found = []
    for tag in BeautifulSoup(page, "html.parser").find_all(True):
        found += [tag.name] * (tag.name not in TAGS)
        for name, value in tag.attrs.items():
            text = " ".join(value) if isinstance(value, list) else str(value)
            fine = (tag.name, name) in ATTRIBUTES
            match name:
                case "href":
                    fine &= re.match(r"(https?://|mailto:)", text, re.I) is not None
                case "src":
                    fine &= (
                        re.fullmatch(r"(p\w+:\d+|data:image/(png|jpeg);base64,[\w+/=]+)", text) is not None
                    )
                case "style":
                    fine &= re.fullmatch(r"text-align:\s?(left|right|center);", text) is not None
                case "class":
                    fine &= text == "tex2jax_ignore" or all(map(CLASS.fullmatch, text.split()))
            found += [f"{tag.name} {name}={text}"] * (not fine)
    return found


def test_there_are_many_payloads() -> None:
    assert len(PAYLOADS) >= 100


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_becomes_text(payload: str) -> None:
    page = answer(f"Before.\n\n{payload}\n\nAfter.", {})
    assert harm(page) == []
    assert "Before." in page
    if re.search(r"\\(href|style|class|bbox|mmlToken|require)", unescape(payload)):
        assert page.startswith('<div class="tex2jax_ignore">')


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [piece for text in PAYLOADS.values() for piece in re.split(r"(?<=[\s<>()\[\]\"'`])", text)]
            ),
            st.sampled_from(
                ["\n", "\n\n", "`", "$", "**", "|", "> ", "- ", "&", ";", "\\", "<", ">", '"', "'"]
            ),
            st.text(max_size=3),
        ),
        max_size=30,
    )
)
def test_pieces_of_payloads_in_any_order_become_text(pieces: list[str]) -> None:
    page = formatted("".join(pieces).encode("utf-8", "replace").decode(), {"x": ""}, "pmark")
    assert harm(page) == []


def test_an_honest_answer_is_formatted() -> None:
    text = (
        "# Banks\n\n" + PLAIN + "\n\n|a|b|\n|:-|-:|\n|`x<y`|$\\frac{a}{b}<c$|\n\n"
        "1. one\n2. two\n\n- [x] done\n\n> quoted\n\n```cuda\nif (i < n) out[i] = a[i];\n```\n\n"
        "~~no~~ <https://example.org/a>, me@example.org, [mail](mailto:me@example.org), 3 < 4 & vector<float>"
    )
    page = answer(text, {})
    assert harm(page) == []
    soup = BeautifulSoup(page, "html.parser")
    assert [a["href"] for a in soup.select("a")] == [
        "https://docs.nvidia.com/cuda/?a=1&b=2",
        "https://example.org/a",
        "mailto:me@example.org",
    ]
    assert {"h1", "strong", "table", "ol", "blockquote", "pre", "del", "span"} <= {
        t.name for t in soup.find_all(True)
    }
    assert "x<y" in soup.text and "$\\frac{a}{b}<c$" in soup.text and "vector<float>" in soup.text
    assert "☑ done" in soup.text and "tex2jax_ignore" not in page


def test_a_link_that_is_left_out_says_where_it_led() -> None:
    page = BeautifulSoup(answer("[the manual](javascript:alert(1))", {}), "html.parser").text
    assert "the manual" in page and "“javascript:alert(1)”" in page and "http, https" in page


def test_outputs_metadata_and_names_of_cells_reach_no_page(school: Class) -> None:
    said = {"text/html": SVG, "application/javascript": RUN, "image/svg+xml": SVG, "text/latex": RUN}
    said |= {"text/markdown": f"![x]({HOST}/a.png)", "application/vnd.jupyter.widget-view+json": {"x": RUN}}

    def fill(notebook: NotebookNode) -> None:
        notebook.metadata |= {"title": SVG, "widgets": {"x": RUN}, "kernelspec": {"name": SVG}}
        notebook.metadata["language_info"] = {"name": SVG, "pygments_lexer": "html"}
        for cell in notebook.cells:
            cell.id = '"><script>'
            cell.metadata |= {"tags": ['"><script>'], "name": SVG, "magics_language": "html"}
            if cell.cell_type == "code":
                cell.execution_count = SVG
                cell.outputs = [
                    {"output_type": "display_data", "metadata": {"isolated": True}, "data": said},
                    {"output_type": "stream", "name": "stdout", "text": SVG},
                    {"output_type": "error", "ename": SVG, "evalue": SVG, "traceback": [SVG]},
                ]
        notebook.cells.append(new_markdown_cell(SVG, metadata={"nbgrader": {"grade_id": SVG}}))
        cell_of(notebook, "why").metadata.nbgrader["points"] = SVG

    def plain(student: str) -> dict[str, str]:
        return {kind: page.replace(student, "") for kind, page in pages.pages(school, student).items()}

    school.hand_in("ann")
    school.hand_in("bob", edit=fill)
    pages.write(school, "ann", "bob")
    assert plain("ann") == plain("bob")


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time that a cell has, for tests that use it up."""
    monkeypatch.setattr(rendering, "_child", Kept(0.2))


# Found by repeating each of 80 pieces of Markdown and 60 of code up to the longest cell: these take the longest,
# from two seconds to minutes.
ENDLESS = {
    *(
        "\\begin{a}",
        "\\begin{a}$",
        "\\\\[",
        "\\\\(",
        "**a",
        "*a**b",
        "*_",
        "[*",
        "*[",
        "`a",
        "`*",
        "<",
        "<a>",
    ),
    *("<?", "> ", ">", "# a\n", "```\n", "=\n", "|a|b|\n|-|-|\n"),
}
ENDLESS_CODE = {".", "$", "`", "a\n%b\n"}


def longest(piece: str) -> str:
    return ("a" + piece * LARGEST_CELL)[:LARGEST_CELL]


@pytest.mark.parametrize("piece", sorted(ENDLESS), ids=repr)
def test_an_answer_that_takes_long_is_shown_as_it_was_typed(little_time: None, piece: str) -> None:
    before = time.process_time()
    page = BeautifulSoup(answer(longest(piece), {}), "html.parser")
    assert time.process_time() - before < 5  # of ours; some of these take a minute
    assert "shown as it was typed, because" in page.text
    assert page.select_one("pre").text.lstrip("\n") == longest(piece).lstrip("\n")


@pytest.mark.parametrize("piece", sorted(ENDLESS_CODE), ids=repr)
def test_code_that_takes_long_is_shown_as_it_was_typed(little_time: None, piece: str) -> None:
    before = time.process_time()
    page = code(longest(piece), metadata=ANSWER)
    assert time.process_time() - before < 5
    assert "shown as it was typed, because" in page


def test_neither_page_of_a_notebook_made_to_take_hours_takes_long(school: Class, little_time: None) -> None:
    nasty = {"why": longest("\\begin{a}"), "copy": longest("."), "sectors": longest("$")}
    school.hand_in("ann")
    school.hand_in("bob", nasty)
    pages.write(school, "ann")  # everything is imported, and templates are compiled
    before = time.process_time()
    pages.write(school, "bob")
    found = pages.pages(school, "bob")
    assert time.process_time() - before < 20  # two seconds on a slow day, and over a minute without limits
    for page in found.values():
        assert page.count("shown as it was typed, because") == 3


def test_what_one_learner_breaks_is_whole_for_the_next(little_time: None) -> None:
    for _ in range(2):
        assert "typed" in answer(longest("\\begin{a}"), {})
        assert "<strong>one</strong>" in answer(PLAIN, {})


def test_much_from_little_is_shown_as_it_was_typed() -> None:
    page = answer("[a]: https://a.invalid/" + "b" * 1900 + "\n\n" + "[a] " * 1000, {})
    assert "longer than 1,000,000 characters" in page and len(page) < 10_000
    page = answer("[a]: https://a.invalid/" + "b" * 2000 + "\n\n" + "[a] " * 1000, {})
    assert "This led to" in page and len(page) < 300_000


def test_cells_that_are_released_and_comments_of_graders_stay_nbconverts(school: Class) -> None:
    school.hand_in("ann", {"why": "<b>mine</b>"})
    pages.write(school, "ann")
    path = pages.autograded(school, "ann")
    path.write_text(path.read_text().replace("A constant that an answer uses", "<i>A</i> constant"))
    page = pages.pages(school, "ann")["formgrader"]
    assert "&lt;b&gt;mine&lt;/b&gt;" in page and "<i>A</i> constant" in page
