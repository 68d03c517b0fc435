"""`gpulab check FILE::EXERCISE` and `gpulab profile FILE::KERNEL`: what is needed is run, the rest is not."""

from __future__ import annotations

import ast
import json
import linecache
from pathlib import Path

import pytest

from gpulab.app import cli, from_file
from gpulab.app.from_file import Failed, NotInFile
from gpulab.foundation.global_names import needed_before, used_in_functions

SCRIPT = """
import numpy as np
import gpulab
from gpulab import cuda

print("loud")
HALF = 2

@cuda.jit
def mine(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = HALF * a[i]

def unrelated():
    raise SystemExit

a = np.ones(1000, np.float32)
out = np.zeros_like(a)
mine[4, 256](a, out)
gpulab.check("start.double", mine)
unrelated()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "work.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """The same as cells, with a magic, another language, and text between them."""
    cells = [
        {"cell_type": "code", "source": cell.splitlines(keepends=True)}
        for cell in ("%matplotlib inline\n!ls", "%%bash\nls |", *SCRIPT.split("\n\n"))
    ]
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# text"}, *cells]}))
    return path


def test_an_exercise_of_a_script_is_checked_without_the_rest(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", f"{script}::start.double"]) == 0
    said = capsys.readouterr().out
    assert "start.double" in said and "loud" not in said


def test_an_exercise_of_a_notebook_is_checked_and_a_failed_one_is_no_error(
    notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", f"{notebook}::start.double"]) == 0
    notebook.write_text(notebook.read_text().replace("HALF * a[i]", "3 * a[i]"))
    capsys.readouterr()
    assert cli.main(["check", f"{notebook}::start.double"]) == 1
    assert "should be" in capsys.readouterr().out


def test_a_cell_that_is_there_to_fail_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup, launch = SCRIPT.partition("def unrelated")[0], "a = np.ones(64, np.float32)\nmine[1, 64](a, a)"
    sources = (setup, "a = np.ones(2, np.float32)\nmine[1, 1](a)", launch)
    path = tmp_path / "lab.ipynb"
    for tags, code in (["raises-exception"], 0), ([], 1):
        cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
        cells[1]["metadata"] = {"tags": tags}
        path.write_text(json.dumps({"cells": cells}))
        assert cli.main(["profile", f"{path}::mine"]) == code
        assert ("256 B read" in capsys.readouterr().out) is (code == 0)


LAB = (
    "import numpy as np\nfrom gpulab import cuda",
    "a = np.ones(7, np.float32)\nfor kernel in (print,):\n    kernel('a table of something else')",
    "@cuda.jit\ndef mine(a, out):\n    i = cuda.grid(1)\n    if i < a.size:\n        out[i] = HALF * a[i]",
    "HALF = 2\nprint('by the way')",
    "a = np.ones(1000, np.float32)\nout = a.copy()\nmine[4, 256](a, out)\nprint('launched')",
    "a = mine.to_be_written()",
)


def as_notebook(path: Path, *sources: str) -> Path:
    cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in sources]
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_cells_whose_values_are_bound_anew_before_the_launch_are_not_run_and_the_others_are_mute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_notebook(tmp_path / "lab.ipynb", *LAB)
    chosen, launching = from_file.launches_of(path, "mine")
    assert [LAB.index("".join(linecache.getlines(unit.file)).rstrip()) for unit in chosen] == [0, 2, 3, 4]
    assert launching == chosen[-1:]
    assert cli.main(["profile", f"{path}::mine"]) == 0
    said = capsys.readouterr().out
    assert "4,000 B" in said and "launched" in said
    assert "a table" not in said and "by the way" not in said


def test_what_a_cell_before_the_launch_raises_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_notebook(tmp_path / "lab.ipynb", *LAB[:3], "print('before')\nHALF = 1 / 0", *LAB[4:])
    assert cli.main(["profile", f"{path}::mine"]) == 1
    shown = capsys.readouterr()
    assert "ZeroDivisionError" in shown.err and "before" not in shown.out


@pytest.mark.parametrize(
    ("between", "needed"),
    [
        ("a = 2", False),
        ("a = a + 1", True),
        ("a += 1", True),
        ("del a", True),
        ("a[0] = 2", True),
        ("if odd:\n    a = 2", True),
        ("if odd:\n    a = 2\nelse:\n    a = 3", False),
        ("for a in some:\n    pass", True),
        ("for i in some:\n    a = i", True),
        ("for i in some:\n    break\nelse:\n    a = 3", True),
        ("while odd:\n    a = 2", True),
        ("with odd as a:\n    pass", False),
        ("with odd:\n    a = 2", False),
        ("try:\n    a = 2\nexcept ValueError:\n    pass", True),
        ("match odd:\n    case 1:\n        a = 2", True),
        ("def a():\n    return 2", False),
        ("def b():\n    a = 2", True),
        ("b = [a for a in some]", True),
        ("import a", False),
        ("for a in some:\n    b = a\na = 2", False),
    ],
)
def test_an_earlier_binding_is_needed_only_where_the_last_may_not_happen(between: str, needed: bool) -> None:
    assert ("a" in needed_before(ast.parse(between).body, {"a"})) is needed


def test_what_a_function_has_of_the_one_around_it_is_not_global() -> None:
    source = (
        "a = 1\ndef outer(b):\n    def inner():\n        return b + c\n    return inner\nd = [a for b in d]"
    )
    assert used_in_functions(source) == {"c"}


def test_a_cell_that_is_there_to_fail_may_not_have_bound_anything(tmp_path: Path) -> None:
    sources = ("a = 1", "fails()\na = 2", "a[4, 1]()")
    path = as_notebook(tmp_path / "lab.ipynb", *sources)
    cells = json.loads(path.read_text())
    assert len(from_file.launches_of(path, "a")[0]) == 2
    cells["cells"][1]["metadata"] = {"tags": ["raises-exception"]}
    path.write_text(json.dumps(cells))
    assert len(from_file.launches_of(path, "a")[0]) == 3


def test_a_kernel_is_profiled_at_the_launch_of_the_file(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["profile", f"{script}::mine"]) == 0
    said = capsys.readouterr().out
    assert "(4,) blocks of (256,)" in said or "4 blocks" in said or "(4, 1, 1)" in said, said
    assert "4,000 B" in said


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["check", "{}::start.doubel"], "did you mean start.double"),
        (["check", "{}::memory.transpose"], "it checks start.double"),
        (["check", "{}::"], "write FILE::NAME"),
        (["profile", "{}"], "write FILE::NAME"),
        (["check", "{}", "{}::start.double"], "there is no file"),
        (["check", "nowhere.py::start.double"], "there is no file nowhere.py"),
        (["profile", "{}::min"], "did you mean mine?"),
        (["profile", "{}::unrelated"], "launches no `unrelated`"),
    ],
)
def test_a_place_that_is_not_there_gets_a_line_that_helps(
    script: Path, typed: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([word.format(script) for word in typed]) == 2
    assert hint in capsys.readouterr().err


def test_a_file_that_is_no_python_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("a = 1\nb = (\n")
    with pytest.raises(NotInFile, match="line 2"):
        from_file.units(path)
    for text in ("{}", "[1", '{"cells": 3}'):
        other = tmp_path / "broken.ipynb"
        other.write_text(text)
        with pytest.raises(NotInFile, match="cannot be read"):
            from_file.units(other)


def test_what_the_file_raises_is_shown_with_its_line_and_none_of_ours(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT.replace("HALF = 2", "HALF = 1 / 0"))
    assert cli.main(["check", f"{script}::start.double"]) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said and "line 7" in said and "from_file.py" not in said
    with pytest.raises(Failed):
        from_file.function(script, "start.double")


def test_the_other_commands_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hint", "start.double"]) == 0
    assert "hint 1 of 3" in capsys.readouterr().out
    assert cli.main(["progress", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labs"]
    assert cli.main(["glossary", "bank", "conflict"]) == 0
    assert "wavefronts" in capsys.readouterr().out
    assert cli.main(["completion", "bash"]) == 0
    assert "glossary" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["hint", "start.doubel"], "did you mean start.double"),
        (["progress", "77"], "there is no lab '77'"),
        (["glossary", "warpp"], "did you mean warp"),
        (["completion", "fish"], "bash"),
    ],
)
def test_wrong_words_get_a_line_that_helps(
    typed: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(typed) == 2
    assert hint in capsys.readouterr().err
