"""Python that never ends does not hold a notebook for ever: a check stops it and names the line."""

from __future__ import annotations

import signal
import sys

import pytest

import gpulab
from gpulab.checks import patience

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer of this kind")


def endless(parameters, ranks, stage):
    done = 0
    while done < parameters:
        pass
    return done


def test_a_check_stops_an_endless_loop_and_names_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.2)
    said = " ".join(str(gpulab.check("shard.memory", endless)).split())
    assert "it had not ended after 0.2 s of computing and was stopped in line" in said
    assert "while done < parameters:" in said or "pass" in said
    assert "Is this inside a loop? Then does each round change what the loop's condition looks at?" in said


def test_what_ends_in_time_is_left_alone_and_no_timer_stays_behind() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with patience.limited(5.0):
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGVTALRM) is before


def test_a_bare_except_inside_the_loop_does_not_keep_it_going() -> None:
    def stubborn():
        rounds = 0
        while rounds < 1:
            try:
                while True:
                    pass
            except Exception:
                rounds += 1
        return rounds

    with patience.limited(0.1):
        assert stubborn() == 1
