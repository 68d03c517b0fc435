"""What a word means."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from gpulab.foundation.display import Card, Row, Shown, Span
from gpulab.foundation.errors import Message

from . import catalogue
from .catalogue import Term


class UnknownTerm(Message, LookupError):
    """The glossary has no such word; the message names the closest."""


@dataclass(frozen=True, repr=False)
class Glossary(Shown):
    """Some of the terms."""

    terms: tuple[Term, ...]

    def card(self) -> Card:
        return Card(tuple(Row(Span(t.name, "strong"), t.means, f"lab {t.lab}") for t in self.terms))


def glossary(term: str = "") -> Glossary:
    """A word, and those that it is part of; all words if none is given. Raises UnknownTerm."""
    known = catalogue.terms()
    wanted = " ".join(term.lower().replace("-", " ").split())
    if not wanted:
        return Glossary(tuple(known.values()))
    plain = {" ".join(name.lower().replace("-", " ").split()): found for name, found in known.items()}
    singular = wanted.removesuffix("s") if wanted not in plain else wanted
    exact = [plain[name] for name in (wanted, singular) if name in plain][:1]
    within = [found for name, found in plain.items() if singular in name and found not in exact]
    if exact or within:
        return Glossary((*exact, *within))
    close = [plain[name].name for name in get_close_matches(wanted, plain, n=3)]
    hint = f"did you mean {' or '.join(close)}?" if close else "gpulab.course.glossary() lists all words"
    raise UnknownTerm(f"the glossary has no '{term}'; {hint}")
