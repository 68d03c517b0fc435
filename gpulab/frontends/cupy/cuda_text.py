"""Reads the signatures of kernels in CUDA C++, so that messages can say what a kernel expects.

Only what is written out is found: a kernel or a type made by a macro is not, and then nothing is checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .tables import words

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
KERNEL = re.compile(r"\b__global__\b")
# What may stand between __global__ and the name besides the type of the result.
DECORATION = re.compile(r"\b(?:__launch_bounds__|__maxnreg__|__cluster_dims__|__attribute__)\s*\(")
TEMPLATE = re.compile(r"\btemplate\s*<")
QUALIFIERS = frozenset(words("const volatile __restrict__ __restrict restrict __grid_constant__ struct"))


@dataclass(frozen=True)
class Parameter:
    """One parameter: its text as messages show it, its type without qualifiers, its name."""

    text: str
    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")

    @property
    def pointee(self) -> str:
        """What a pointer points to; empty for something else."""
        return self.type[:-1].strip() if self.is_pointer else ""


@dataclass(frozen=True)
class Signature:
    """A kernel as it is declared. `template` are the names of its template parameters."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(p.text for p in self.parameters)})"

    def instance(self, name: str) -> Signature:
        """The signature under a C++ name such as ``scale<float, 4>``."""
        found = re.search(r"<(.*)>\s*$", name, re.DOTALL)
        if not found or not self.template:
            return self
        given = dict(zip(self.template, split(found[1]), strict=False))

        def put(text: str) -> str:
            return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: given.get(m[0], m[0]).strip(), text)

        parameters = tuple(Parameter(put(p.text), put(p.type), p.name) for p in self.parameters)
        return Signature(self.name, parameters)


@lru_cache(maxsize=256)
def signatures(source: str) -> dict[str, Signature]:
    """The kernels of a text by name, in order. Of several with one name it is the first."""
    text = COMMENT.sub(" ", source.replace("\\\n", " "))
    found: dict[str, Signature] = {}
    for match in KERNEL.finditer(text):
        at = match.end()
        while decoration := DECORATION.search(text, at, _next(text, at, "({;")):
            at = _closing(text, decoration.end() - 1) + 1
        while (opening := _next(text, at, "({;")) < len(text) and text[opening] == "(":
            name = re.search(r"([A-Za-z_]\w*)\s*$", text[at:opening])
            if name and not DECORATION.match(text, at + name.start()):
                break
            at = _closing(text, opening) + 1
        else:
            continue
        end = _closing(text, opening)
        assert name
        parameters = tuple(
            _parameter(p) for p in split(text[opening + 1 : end]) if p.strip() not in ("", "void")
        )
        found.setdefault(name[1], Signature(name[1], parameters, _template_before(text, match.start())))
    return found


def split(text: str) -> list[str]:
    """A list at its commas, those inside brackets left alone."""
    pieces, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    return [*pieces, text[start:]]


def _parameter(text: str) -> Parameter:
    text = " ".join(text.partition("=")[0].split())
    array = re.search(r"\[[^\]]*\]$", text)  # float x[] is a pointer
    plain = text[: array.start()].strip() if array else text
    found = re.search(r"(?<=[\s*&>])([A-Za-z_]\w*)$", plain)
    name = found[1] if found else ""
    type_ = plain[: found.start()].strip() if found else plain
    words = [word for word in re.findall(r"[\w:]+|<[^*&]*>|[*&]", type_) if word not in QUALIFIERS]
    canonical = re.sub(r"\s*([<>*&:])\s*", r"\1", " ".join(words)) + ("*" if array else "")
    shown = re.sub(r"\s*\b(?:__restrict__|__restrict)\b", "", text)
    return Parameter(shown, canonical, name)


def _template_before(text: str, at: int) -> tuple[str, ...]:
    """The template parameters of the declaration that begins before `at`."""
    start = max(text.rfind(end, 0, at) for end in ";}") + 1
    found = list(TEMPLATE.finditer(text, start, at))
    if not found:
        return ()
    opening = found[-1].end() - 1
    depth = 0
    for i in range(opening, at):
        depth += (text[i] == "<") - (text[i] == ">")
        if depth == 0:
            parameters = split(text[opening + 1 : i])
            names = (re.search(r"([A-Za-z_]\w*)\s*$", p.partition("=")[0]) for p in parameters)
            return tuple(name[1] for name in names if name)
    return ()


def _next(text: str, at: int, characters: str) -> int:
    return min((i for c in characters if (i := text.find(c, at)) >= 0), default=len(text))


def _closing(text: str, opening: int) -> int:
    """Where the bracket at `opening` is closed."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text) - 1
