"""The judge's own cases for lab 22's project B. Budgets on timetables name their cases: names are public."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_22_capstones.training import TABLES, plan_case, table_case, train_case

CASES: dict[str, tuple[Case, ...]] = {
    "training_project.plan": (
        plan_case("Llama 3 8B", 2, 80),
        plan_case("GPT-3", 8, 80),
        Case("three other clusters", {"clusters": "others"}),
    ),
    "training_project.timetable": (
        table_case("one device", 1, 2, (2, 1, 1), 1, 1),
        table_case("two devices, room for one", 3, 4, (1, 1, 2), 0.5, 1),
        *TABLES[3:],
    ),
    "training_project.train": (
        train_case(1, 4, 4, 6, 1, 3),
        train_case(2, 8, 8, 9, 4, 2),
        train_case(4, 12, 112, 40, 6, 2),
    ),
}
