"""What a service is asked for: requests of so many tokens, and when they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request to a language model.

    `arrival` is in seconds from the start of the trace. `prompt` and `output` are tokens; how long the output
    gets is known to the engine only. A policy sees `most`, the limit that the client sets (``max_tokens``);
    0 stands for one that is equal to `output`. A larger `priority` is more urgent. `cached` tokens of the
    prompt need no work because their keys and values come along: from a prefix cache or another machine.
    Raises ValueError for sizes that make no sense.
    """

    number: int
    arrival: float
    prompt: int
    output: int
    most: int = 0
    priority: int = 0
    cached: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", self.most or self.output)
        if self.prompt < 1 or self.output < 1:
            raise ValueError(f"request {self.number} needs at least one token of prompt and one of output")
        if self.most < self.output:
            raise ValueError(
                f"request {self.number} would produce {self.output} tokens and may at most {self.most}"
            )
        if not 0 <= self.cached <= self.prompt:
            raise ValueError(
                f"request {self.number} cannot have {self.cached} cached tokens of a prompt of {self.prompt}"
            )

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and the longest output: what has to fit in any case."""
        return self.prompt + self.most


def to_data(requests: Iterable[Request]) -> list[dict[str, Any]]:
    """Requests as JSON's types."""
    return [asdict(request) for request in requests]


def from_data(data: Sequence[Mapping[str, Any]]) -> list[Request]:
    """The requests that `to_data` made data of. Raises TypeError and ValueError for what are none."""
    known = {field.name for field in fields(Request)}
    return [Request(**{str(k): v for k, v in each.items() if k in known}) for each in data]
