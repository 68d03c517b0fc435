"""The judge's own cases for lab 28, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from functools import partial

from gpulab.checks.cases import of_kinds
from gpulab.checks.spec import Case
from gpulab.content.lab_28_experts_and_disaggregation.fleet import tree_case

_kinds = partial(of_kinds, suffix=", others")

CASES: dict[str, tuple[Case, ...]] = {
    "fleet.pools": _kinds(
        "any", "just fitting", "long prompts", "short prompts", "a slow link", "a little traffic"
    ),
    "fleet.route": _kinds("a popular start", "all new", "conversations", "both"),
    "fleet.verify": (
        tree_case("a chain", "the same"),
        tree_case("one guess", "alike"),
        tree_case("three guesses", "alike"),
        tree_case("two guesses", "alike"),
        tree_case("two, and one behind each", "alike"),
    ),
    "fleet.rollouts": _kinds(
        "any", "in turn", "dear sync", "a sync longer than training", "one behind", "slow training"
    ),
    "fleet.mend": _kinds(
        "a high bit",
        "no flip",
        "in the corner",
        "a sign",
        "in the sums of columns",
        "in the sums of rows",
    ),
    "fleet.reads": _kinds("two axes", "one rank", "rows to columns", "fewer ranks", "the same layout"),
}
