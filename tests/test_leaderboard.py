"""The leaderboard: what checks counted becomes an entry, entries travel as files, and places are deterministic."""

from __future__ import annotations

import json

import pytest

from gpulab.app import cli, leaderboard
from gpulab.checks import progress
from gpulab.checks.budgets import case_of
from gpulab.checks.parts import Part
from gpulab.checks.verdict import Verdict
from gpulab.foundation.display import Table


def counts(part: float) -> dict[str, float]:
    """Of the forward kernel: so far from the budget, 0, to naive, 1."""
    found = {}
    for budget in leaderboard.find("attention")[0].budgets:
        sizes = case_of(leaderboard.find("attention")[0], budget).sizes
        naive, limit = budget.naive_for(sizes), budget.limit_for(sizes)
        found[budget.label] = limit if naive is None else limit ** (1 - part) * naive**part
    return found


def checked(name: str, right: bool, measured: dict[str, float]) -> None:
    """As if a check had been run."""
    first = Part("right", "pass" if right else "fail", 20.0 * right, 20, "")
    parts = [Part(label, "pass", 1, 1, "", measured=value) for label, value in measured.items()]
    with progress.change() as data:
        progress.of_exercise(data, name)["last"] = Verdict(name, (first, *parts)).to_dict()


FORWARD = "attention_project.forward"


def test_what_was_counted_last_is_entered_and_the_same_name_replaces_it(tmp_path):
    checked(FORWARD, True, counts(0.5))
    leaderboard.enter("attention", "one")
    checked(FORWARD, True, counts(0.2))
    leaderboard.enter("attention", "two")
    checked(FORWARD, True, counts(0.1))
    leaderboard.enter("attention", "one")
    kept = json.loads((tmp_path / "leaderboard.json").read_text())["entries"]
    assert [e["attempt"] for e in kept] == ["one", "two"]
    assert kept[0]["counts"][FORWARD] == counts(0.1)


def test_better_counts_stand_higher_between_naive_reference_and_bound():
    for name, part in (("slow", 0.8), ("fast", 0.3)):
        checked(FORWARD, True, counts(part))
        board = leaderboard.enter("attention", name)
    assert [e.attempt for e in board.ranking()] == ["bound", "reference", "fast", "slow", "naive"]
    assert leaderboard.merit_of(board.ranking()[0]) == 100
    assert leaderboard.merit_of(board.ranking()[-1]) == 0


def test_a_wrong_result_has_neither_points_nor_merit():
    checked(FORWARD, False, {})
    board = leaderboard.enter("attention", "wrong")
    assert leaderboard.points_of(board.entries[0]) == leaderboard.merit_of(board.entries[0]) == 0


def test_points_are_those_of_the_check():
    checked(FORWARD, True, counts(0))
    entry = leaderboard.enter("attention", "whole").entries[0]
    assert leaderboard.points_of(entry) == leaderboard.find("attention")[0].points


def test_without_a_check_there_is_nothing_to_enter():
    with pytest.raises(leaderboard.NothingToEnter, match="run its checks first"):
        leaderboard.enter("attention", "early")
    with pytest.raises(leaderboard.UnknownProject, match="attention"):
        leaderboard.board("atention")


def test_entries_travel_as_files_and_others_are_told_apart(tmp_path, monkeypatch, capsys):
    checked(FORWARD, True, counts(0.4))
    leaderboard.enter("attention", "mine")
    assert cli.main(["leaderboard", "--export", str(tmp_path / "ada.json"), "--as", "Ada"]) == 0
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "elsewhere.json"))
    (tmp_path / "leaderboard.json").rename(tmp_path / "old.json")
    assert cli.main(["leaderboard", "--import", str(tmp_path / "ada.json")]) == 0
    assert cli.main(["leaderboard", "--import", str(tmp_path / "ada.json")]) == 0  # twice is once
    capsys.readouterr()
    assert cli.main(["leaderboard", "attention"]) == 0
    said = capsys.readouterr().out
    assert said.count("Ada") == 1 and "nobody has checked them here" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "leaderboard"),
        ('{"format": 2, "entries": []}', "format"),
        ('{"format": 1}', "`entries` is missing"),
        ('{"format": 1, "entries": [{"project": "attention", "who": "x", "attempt": "y"}]}', "`counts`"),
        ("[" * 100_000, "no leaderboard"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, text, why, capsys):
    (tmp_path / "bad.json").write_text(text)
    assert cli.main(["leaderboard", "--import", str(tmp_path / "bad.json")]) == 1
    said = capsys.readouterr().err
    assert why in said and len(said.splitlines()) == 1
    assert not leaderboard.place().exists()


@pytest.mark.parametrize("value", ["-1", "NaN", "Infinity", "true", '"7"', "1e999"])
def test_counts_are_finite_numbers_from_0_on(tmp_path, value):
    label = leaderboard.find("attention")[0].budgets[0].label
    row = f'{{"project": "attention", "who": "x", "attempt": "y", "counts": {{"{FORWARD}": {{"{label}": {value}}}}}}}'
    (tmp_path / "bad.json").write_text(f'{{"format": 1, "entries": [{row}]}}')
    with pytest.raises(leaderboard.NotALeaderboard):
        leaderboard.take(tmp_path / "bad.json")


def test_names_cannot_write_on_the_terminal(tmp_path):
    row = {"project": "attention", "who": "\x1b[31mEve\n", "attempt": "x" * 500, "counts": {FORWARD: None}}
    (tmp_path / "eve.json").write_text(json.dumps({"format": 1, "entries": [row]}))
    leaderboard.take(tmp_path / "eve.json")
    entry = leaderboard.board("attention").entries[0]
    assert entry.who == "[31mEve" and len(entry.attempt) == leaderboard.LONGEST_NAME


def test_somebody_elses_file_needs_a_name(tmp_path, capsys):
    checked(FORWARD, True, counts(0.4))
    leaderboard.enter("attention", "mine")
    assert cli.main(["leaderboard", "--export", str(tmp_path / "x.json")]) == 1
    assert "name" in capsys.readouterr().err
    with pytest.raises(leaderboard.NotALeaderboard, match="without a name"):
        leaderboard.take(tmp_path / "leaderboard.json")


def test_a_missing_file_or_project_is_a_wrong_command_line(tmp_path, capsys):
    assert cli.main(["leaderboard", "--import", str(tmp_path / "none.json")]) == 2
    assert cli.main(["leaderboard", "chess"]) == 2


def test_a_missing_file_is_named_in_words(tmp_path, capsys):
    assert cli.main(["leaderboard", "--import", str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr().err
    assert f"There is no file {tmp_path / 'none.json'}" in said and "Errno" not in said


def test_no_points_no_place_and_counts_have_units_and_the_reference_is_explained():
    checked(FORWARD, False, {})
    leaderboard.enter("attention", "wrong")
    checked(FORWARD, True, counts(0.5))
    board = leaderboard.enter("attention", "right")
    places = next(p for p in board.card().pieces if isinstance(p, Table)).rows
    assert {row[2]: row[0] for row in places}["right"] == "1"
    assert {row[2]: row[0] for row in places}["wrong"] == ""
    assert "the reference is the budget" in str(board) and " B" in str(board)
    assert "beyond" not in str(board)


def test_a_count_beyond_its_bound_is_pointed_out():
    budget = leaderboard.find("attention")[0].budgets[0]
    checked(FORWARD, True, counts(0) | {budget.label: 1.0})
    assert f"the bound in {budget.label}." in str(leaderboard.enter("attention", "magic"))
    checked(
        FORWARD,
        True,
        {
            b.label: b.bound_for(case_of(leaderboard.find("attention")[0], b).sizes)
            for b in leaderboard.find("attention")[0].budgets
        },
    )
    assert "beyond" not in str(leaderboard.enter("attention", "magic"))
