"""Reads a manifest for Kubernetes, holds it to the published schema, and says in a sentence what is wrong.

The schemas are those that Kubernetes publishes with its API, as the package kubernetes-validate brings them
(extra ``serving``). They know fields and types, and not what a GPU needs: `gpulab.checks.references` asks
for that, with what is here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from gpulab.foundation.errors import Message

VERSION = "1.34"  # of Kubernetes, whose schema is asked
KINDS = {"Deployment": "apps/v1", "Job": "batch/v1"}
LONGEST = 20_000  # characters
DEEPEST = 30  # levels

Place = tuple[str | int, ...]


class BadManifest(Message, ValueError):
    """A manifest that cannot be read, or that the schema refuses; the message names line and field."""


class SchemasMissing(Message, ImportError):
    """The extra ``serving`` is not installed: nothing can be said about any manifest."""

    def __init__(self) -> None:
        super().__init__(
            "Kubernetes' schemas are not installed here. `pip install 'gpulab[serving]'` brings them."
        )


@dataclass(frozen=True)
class Manifest:
    """One object of Kubernetes' API, and on which line of the text each of its fields stands."""

    fields: dict[str, Any]
    lines: dict[Place, int]

    def at(self, *place: str | int) -> Any:
        """The value of a field, None if it is not there or null."""
        value: Any = self.fields
        for key in place:
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def where(self, *place: str | int) -> str:
        """```spec.replicas` (line 7)``: a field, with the line of what is there of it.

        A text of one line, as JSON often is, has no lines to tell apart.
        """
        there = place
        while there and there not in self.lines:
            there = there[:-1]
        line = f" (line {self.lines[there]})" if there and max(self.lines.values()) > 1 else ""
        return f"`{written(place)}`{line}"


def written(place: Place) -> str:
    """``spec.containers[0].image``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
    return text.removeprefix(".") or "the manifest"


def read(text: str) -> Manifest:
    """The one object in a YAML text.

    Raises BadManifest (no text, no YAML, several objects, a key twice) and SchemasMissing, whose extra brings
    the reader of YAML, too.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise SchemasMissing from None

    if not isinstance(text, str):
        raise BadManifest(f"a manifest is text, and this is {type(text).__name__}")
    if len(text) > LONGEST:
        raise BadManifest(f"it has {len(text):,} characters; {LONGEST:,} are enough for any manifest here")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise BadManifest(
                    f"line {event.start_mark.line + 1} refers to an anchor with `*`; write the fields out"
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise BadManifest(
                    f"line {event.start_mark.line + 1} is nested more than {DEEPEST} levels deep"
                )
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        if len(roots) != 1:
            raise BadManifest(f"it holds {len(roots)} objects between `---`; one is asked for")
        lines: dict[Place, int] = {}
        _note_lines(roots[0], (), lines)
        fields = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise BadManifest(f"that is not YAML; {line}{getattr(error, 'problem', None) or error}") from None
    if not isinstance(fields, dict):
        raise BadManifest("a manifest starts with fields such as `apiVersion:` and `kind:`")
    return Manifest(fields, lines)


def _note_lines(node: Any, place: Place, lines: dict[Place, int]) -> None:
    """Where each field stands, counted from 1. Raises BadManifest for a key that stands twice."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*place, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                raise BadManifest(f"`{written(here)}` stands twice, in lines {lines[here]} and {line}")
            lines[here] = line
            _note_lines(value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*place, index)] = value.start_mark.line + 1
            _note_lines(value, (*place, index), lines)


def hold_to_schema(manifest: Manifest, kind: str) -> None:
    """Raises BadManifest where it is no such object, or where Kubernetes' strict schema refuses a field.

    Raises SchemasMissing where the schemas are not installed.
    """
    version = KINDS[kind]
    for field, wanted in (("kind", kind), ("apiVersion", version)):
        if manifest.at(field) != wanted:
            raise BadManifest(f"{manifest.where(field)} is {manifest.at(field)!r}; it must be {wanted}")
    try:
        import kubernetes_validate
    except ModuleNotFoundError:
        raise SchemasMissing from None
    try:
        kubernetes_validate.validate(manifest.fields, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        raise BadManifest(_said(manifest, error)) from None


def _said(manifest: Manifest, error: Any) -> str:
    """An error of the schema as a sentence."""
    place = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        field = next(name for name in error.instance if name not in known)
        close = get_close_matches(str(field), known, 1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        return f"{manifest.where(*place, str(field))} is no field of Kubernetes {VERSION}{hint}"
    if error.validator == "required":
        field = next(name for name in error.validator_value if name not in error.instance)
        return f"{manifest.where(*place)} lacks the field `{field}`, which the schema requires"
    if error.validator == "type":
        kinds = error.validator_value
        asked = " or ".join(k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null")
        return f"{manifest.where(*place)} is {_short(error.instance)}; the schema asks for {_kind(asked)}"
    return f"{manifest.where(*place)}: {_short(error.message)}"


def _kind(name: str) -> str:
    """``an integer``, ``a string``; several kinds as they are."""
    if " " in name:
        return name
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and len(value) > 30 else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


SUFFIXES = {
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(("", "k", "M", "G", "T", "P"))},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
}


_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?)([A-Za-z]*)")


def quantity(value: Any) -> Fraction:
    """What Kubernetes reads in ``2``, ``500m``, ``16Gi`` or ``1e3``. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no quantity")
    text = str(value).strip()
    found = _QUANTITY.fullmatch(text)
    if not found or found[2] not in SUFFIXES:
        raise ValueError(f"{value!r} is no quantity")
    return Fraction(found[1]) * SUFFIXES[found[2]]
