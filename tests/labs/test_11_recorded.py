"""Lab 11: what it shows of JAX is the recording of the cells that it shows, and says that it is one."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from gpulab.content.lab_11_triton_and_fusion import recorded
from gpulab.foundation.errors import Message
from tests.labs import notebooks

ROOT = Path(__file__).parents[2]
LAB = "11_triton_and_fusion"
ENTRIES = json.loads(recorded.FILE.read_text(encoding="utf-8"))


def maker():
    spec = importlib.util.spec_from_file_location("make_recorded", ROOT / "docs" / "make_recorded.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)  # importing it fails


def given(name):
    """A function of the notebook that is no exercise."""
    for cell in notebooks.cells(LAB, "code"):
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                names = {"np": np}
                exec(ast.unparse(node), names)
                return names[name]
    raise LookupError(name)


def test_the_recordings_are_those_of_the_current_cells():
    found = {name: recorded.fingerprint(source) for name, _, source in maker().functions()}
    assert found == {name: entry["code"] for name, entry in ENTRIES.items()}
    assert len(found) == 2


def test_without_jax_the_recording_is_shown_and_called_one(without_jax, capsys, monkeypatch):
    def softmax_in_pallas():
        raise AssertionError("it ran")

    entry = {"code": recorded.fingerprint("def f(): ..."), "with": "jax 1", "output": "seen\n", "result": 1}
    monkeypatch.setattr(recorded.json, "loads", lambda text: {"softmax_in_pallas": entry})
    monkeypatch.setattr(recorded.inspect, "getsource", lambda fn: '@recorded("jax")\ndef f():\n    ...')
    assert recorded.recorded("jax")(softmax_in_pallas)() == 1
    said = capsys.readouterr().out
    assert said.startswith("RECORDED with jax 1, because jax is not installed here.")
    assert "`%pip install jax==1`" in said, "another version may print something else"
    assert said.endswith("\n\nseen\n")


def test_code_that_was_not_recorded_shows_nothing_without_jax(without_jax, capsys):
    def softmax_in_pallas():
        return 8

    with pytest.raises(Message, match="%pip install jax=="):
        recorded.recorded("jax")(softmax_in_pallas)()
    assert capsys.readouterr().out == ""


def test_xla_on_a_cpu_makes_four_pieces_that_move_five_elements_where_hlo_moves_twelve():
    hlo, moved = ENTRIES["softmax_in_xla"]["result"], given("elements_moved")
    rows, elements = 64, 64 * 781
    assert sum(" fusion(" in line for line in hlo["compiled"]) == 4
    # difference and exponential: 2, sum: 1 and a row, reciprocal: 2 rows, product: 2 and a row
    assert moved(hlo["compiled"]) == 5 * elements + 4 * rows
    assert round(moved(hlo["written"]) / elements) == 12


def test_the_extra_and_its_pins_are_of_the_release_that_was_recorded():
    (release,) = {entry["with"] for entry in ENTRIES.values()}
    version = release.removeprefix("jax ").removesuffix(" on a CPU")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = extra["optional-dependencies"]["jax"]
    assert Requirement(asked).specifier.contains(version)
    following = ".".join([*version.split(".")[:1], str(int(version.split(".")[1]) + 1), "0"])
    assert not Requirement(asked).specifier.contains(following), "the next release may print something else"
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert {f"jax=={version}", f"jaxlib=={version}"} <= set(pins)


def test_with_jax_the_cells_return_what_was_recorded():
    jax = pytest.importorskip("jax")
    if f"jax {jax.__version__} on a CPU" != ENTRIES["softmax_in_xla"]["with"]:
        pytest.skip("another version of JAX, whose passes may differ")
    for name, package, source in maker().functions():
        assert maker().record(name, package, source) == ENTRIES[name]
