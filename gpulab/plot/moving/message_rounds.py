"""Messages between ranks to step through, round after round: rings, trees, all to all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .figure import Figured, Moving
from .frames import Drawing, Frame, Frames

Sent = tuple[int, int, float]  # from, to, size
RANKS = 32


@dataclass(frozen=True)
class MessageRounds(Figured):
    """`rounds` lists the messages (from, to, size) of each round, `unit` names the sizes. A frame is a round;
    the numbers beside the ranks are what each has sent so far.

    Raises ValueError without a message, for a rank that is not there and for more than 32 ranks.
    """

    rounds: Sequence[Sequence[Sent]]
    ranks: int
    unit: str = ""

    def __post_init__(self) -> None:
        if not any(self.rounds):
            raise ValueError("there is nothing to step through: no message is sent")
        if not 1 < self.ranks <= RANKS:
            raise ValueError(f"2 to {RANKS} ranks fit on a circle; there are {self.ranks}")
        strange = {r for sent in self.rounds for a, b, _ in sent for r in (a, b)} - set(range(self.ranks))
        if strange:
            raise ValueError(f"rank {min(strange)} sends or receives, and ranks are 0 to {self.ranks - 1}")

    def figure(self) -> Moving:
        drawing = Drawing(480)
        centre, radius, dot = 240.0, 128.0, 17.0 if self.ranks <= 16 else 11.0
        angles = [2 * math.pi * r / self.ranks - math.pi / 2 for r in range(self.ranks)]
        places = [(centre + radius * math.cos(a), 172 + radius * math.sin(a)) for a in angles]
        arrows: dict[tuple[int, int], tuple[int, int]] = {}
        for sent in self.rounds:
            for a, b, _ in sent:
                if (a, b) not in arrows:
                    (x1, y1), (x2, y2) = places[a], places[b]
                    length = math.hypot(x2 - x1, y2 - y1)
                    dx, dy = (x2 - x1) / length, (y2 - y1) / length
                    both = any((x, y) == (b, a) for r in self.rounds for x, y, _ in r)
                    side = 4 if both else 0
                    inset = dot + 4
                    arrows[a, b] = drawing.arrow(
                        x1 + inset * dx - side * dy, y1 + inset * dy + side * dx,
                        x2 - inset * dx - side * dy, y2 - inset * dy + side * dx, "hidden",
                    )  # fmt: skip
        dots, totals = [], []
        for rank, (x, y) in enumerate(places):
            dots.append(drawing.dot(x, y, dot, "rank", f"rank {rank}"))
            drawing.text(x, y + 4.5, str(rank), "small strong middle")
            out = (x + (dot + 20) * math.cos(angles[rank]), y + (dot + 16) * math.sin(angles[rank]) + 4)
            totals.append(drawing.text(*out, "", "tiny soft middle"))
        drawing.text(centre, 352, "", "")
        frames, sent_by = [], [0.0] * self.ranks
        for number, sent in enumerate(self.rounds, 1):
            kinds: dict[int, str] = {}
            for a, b, size in sent:
                sent_by[a] += size
                line, head = arrows[a, b]
                kinds[line], kinds[head] = "moves", "movehead"
                kinds[dots[b]] = "rank gets"
            frames.append(
                Frame(
                    self._said(number, sent, sent_by),
                    kinds,
                    {totals[r]: f"{n:g}" for r, n in enumerate(sent_by) if n},
                )
            )
        legend = [("path moves", "message of this round"), ("dot rank gets", "rank that receives")]
        name = f"{self.ranks} ranks, {len(self.rounds)} rounds of messages"
        return Frames(drawing, frames, name, "round", 0, legend).figure()

    def _said(self, number: int, sent: Sequence[Sent], sent_by: Sequence[float]) -> str:
        few = ", ".join(f"{a} → {b}" for a, b, _ in sent[:4]) + (" …" if len(sent) > 4 else "")
        messages = f"{len(sent)} message{'' if len(sent) == 1 else 's'}"
        unit = f", in {self.unit}" if self.unit else ""
        total = f"Most that one rank has sent so far{unit}: {max(sent_by):g}."
        return f"Round {number}: {messages}{f' ({few})' if sent else ''}. {total}"
