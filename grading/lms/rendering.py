"""What learners wrote, as HTML for formgrader and feedback: it runs nothing, loads nothing, cannot take long.

nbconvert makes both pages. `course.nbgrader_config` gives it the filters below, so both show a learner's cell
in the same way. nbconvert's own parser formats it in a limited child: HTML is shown as text, the only links
lead to the web and to mail, and the only pictures are those that came with the answer. Then bleach removes
any tag or attribute that is not expected. A cell that takes too long is shown as it was typed. Released cells
and graders' comments are left to nbconvert.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from bleach.css_sanitizer import CSSSanitizer
from bleach.sanitizer import Cleaner
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from grading.core import texts
from grading.core.limited import Ended, Kept

FILTERS = {
    "markdown2html": "grading.lms.rendering.markdown",
    "highlight_code": "grading.lms.rendering.code",
    "strip_files_prefix": "grading.lms.rendering.unchanged",
}
SECONDS = 2.0  # of processor time for one cell; an answer of a page takes a hundredth of it
LONGEST = 1_000_000  # characters of HTML, pictures aside: nbgrader reads them once more
CELLS = 1024  # whose colours are remembered; most cells are the released notebook's
ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\\<>\"'`\x00-\x20\x7f-\x9f]{1,2000}", re.IGNORECASE)
PICTURE = "attachment:"
READY = "ready"  # the tag of a cell of ours that is HTML already; no learner's cell keeps a tag
# MathJax's commands that make links, styles, classes or attributes, or load a file. Its Safe extension, which
# the pages ask for, restricts some of them; here no answer depends on it.
UNSAFE_TEX = re.compile(
    r"\\(?:href|url|class|cssId|style|unicode|mmlToken|require|bbox|includegraphics|csname|data|html\w*)",
    re.IGNORECASE,
)
CLASS = re.compile(r"highlight|language-[\w.+#-]{1,40}|[a-z]{1,3}\d?")  # those that Pygments gives
TAGS = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "hr", "br", "div", "span"),
    *("em", "strong", "del", "code", "a", "img", "ul", "ol", "li", "dl", "dt", "dd"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}

STYLE = CSSSanitizer(allowed_css_properties=["text-align"])

_child = Kept(SECONDS)


@pass_context
def markdown(context: Context, source: str) -> str:
    """The filter `markdown2html`: an answer is made safe, all else is rendered as nbconvert does."""
    cell = context.get("cell", {})
    if READY in cell.get("metadata", {}).get("tags", ()):
        return source
    attachments = cell.get("attachments", {})
    if is_answer(cell.get("metadata")) and source == cell.get("source"):
        return answer(source, attachments)
    return MarkdownWithMath(IPythonRenderer(escape=False, attachments=attachments)).render(source)


def code(source: str, language: str | None = None, metadata: Mapping[str, Any] | None = None) -> str:
    """The filter `highlight_code`: colours for a cell of code."""
    magic = str((metadata or {}).get("magics_language", ""))
    if not is_answer(metadata):
        return coloured(source, language, magic)
    page, why = _in_child(colour, source, language, magic)
    return as_typed(source, why) if why else page


def unchanged(text: str) -> str:
    """The filter `strip_files_prefix`: nothing begins with files/ any more, and looking for it takes long."""
    return text


def is_answer(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a learner wrote the cell."""
    return bool((metadata or {}).get("nbgrader", {}).get("solution"))


def answer(source: str, attachments: Mapping[str, Mapping[str, str]]) -> str:
    """A written answer with its pictures, as HTML. Never raises for what is in it."""
    mark = f"p{secrets.token_hex(8)}"  # like the scheme of an address, which begins with a letter
    refused = {name: bundle.get("text/plain", "") for name, bundle in attachments.items()}
    page, why = _in_child(formatted, source, refused, mark)
    if why:
        return as_typed(source, why)
    for number, bundle in enumerate(attachments.values()):
        for kind in ("image/png", "image/jpeg"):
            if re.fullmatch(r"[A-Za-z0-9+/=]+", bundle.get(kind, "")):
                page = page.replace(f"{mark}:{number}", f"data:{kind};base64,{bundle[kind]}")
    return page


def _in_child(make: Callable[..., str], *arguments: Any) -> tuple[str, str]:
    """What a function makes under limits, or why it does not."""
    try:
        page = _child.call(make, *arguments)
    except Ended as ended:
        return "", str(ended)
    return (page, "") if len(page) <= LONGEST else ("", texts.TOO_LONG.format(most=LONGEST))


def as_typed(source: str, why: str) -> str:
    """A cell without any formatting, with the reason above it."""
    head = html.escape(texts.AS_TYPED.format(why=why))
    return f"<p><em>{head}</em></p>\n<pre>{html.escape(source)}</pre>\n"


def formatted(source: str, refused: Mapping[str, str], mark: str) -> str:
    """The HTML of an answer, in which ``mark:number`` is the address of its picture of that number.

    `refused` says by name of each attachment why it is not shown; an empty text means that it is.
    """
    page = MarkdownWithMath(_Answer(refused, mark)).render(source)
    if len(page) > LONGEST:
        return page
    page = _cleaner(mark).clean(page)
    if macro := UNSAFE_TEX.search(html.unescape(page)):
        why = html.escape(texts.FORMULAS_AS_TYPED.format(macro=macro[0]))
        page = f'<div class="tex2jax_ignore"><p><em>{why}</em></p>\n{page}</div>'
    return page


class _Answer(IPythonRenderer):
    """Markdown of a learner: no HTML, no ids, no links and pictures but harmless ones."""

    def __init__(self, refused: Mapping[str, str], mark: str):
        super().__init__(escape=True, exclude_anchor_links=True)
        self.refused, self.mark = refused, mark
        self.numbers = {name: number for number, name in enumerate(refused)}
        self.shown: set[str] = set()

    def text(self, text: str) -> str:
        return html.escape(html.unescape(text), quote=False)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if not ADDRESS.fullmatch(url):
            return f"{text} <em>{_said(texts.LINK_LEFT_OUT, url=unquote(url))}</em>"
        return f'<a href="{html.escape(url)}" rel="noopener noreferrer" target="_blank">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        name = url.removeprefix(PICTURE)
        name = name if name in self.refused else unquote(name)
        if not url.startswith(PICTURE):
            why = texts.PICTURE_ELSEWHERE
        elif name not in self.refused:
            why = texts.PICTURE_ABSENT
        elif name in self.shown:
            why = texts.PICTURE_AGAIN
        elif not (why := self.refused[name]):
            self.shown.add(name)
            alt = html.escape(html.unescape(re.sub(r"<[^>]*>", "", text)))
            return f'<img alt="{alt}" src="{self.mark}:{self.numbers[name]}">'
        return f"<em>{_said(texts.PICTURE_LEFT_OUT, name=name, why=why)}</em>"

    def block_mermaidjs(self, code: str) -> str:
        return self.block_code(code)

    def task_list_item(self, text: str, checked: bool = False) -> str:
        box = "☑ " if checked else "☐ "
        return f"<li>{text.replace('<p>', '<p>' + box, 1) if text.startswith('<p>') else box + text}</li>\n"


def _said(text: str, url: str = "", name: str = "", why: str = "") -> str:
    return html.escape(text.format(url=texts.clean(url, 100), name=texts.clean(name, 100), why=why))


def _cleaner(mark: str) -> Cleaner:
    """bleach with all that the parser makes of Markdown, and no more."""

    def allowed(tag: str, name: str, value: str) -> bool:
        match tag, name:
            case "a", "href":
                return bool(ADDRESS.fullmatch(value))
            case "a", "rel" | "target":
                return True
            case "img", "src":
                return value.startswith(f"{mark}:")
            case "img", "alt":
                return True
            case "ol", "start":
                return value.isdecimal()
            case "th" | "td", "style":
                return True
            case "code" | "div" | "span", "class":
                return bool(CLASS.fullmatch(value))
        return False

    return Cleaner(
        tags=TAGS, attributes=allowed, protocols=["http", "https", "mailto", mark], css_sanitizer=STYLE
    )


def colour(source: str, language: str | None, magic: str) -> str:
    """Code with a tag around each word, escaped."""
    return str(Highlight2HTML("ipython3")(source, language, {"magics_language": magic} if magic else None))


coloured = lru_cache(CELLS)(colour)
