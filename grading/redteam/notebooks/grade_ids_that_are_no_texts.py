# how: more cells, whose names are lists, numbers, other exercises' and other cells'
def edit(notebook):
    for name in ([], {}, 5, None, "copy-check", "../copy", "no-such-cell", "why\u0000"):
        mark = {"grade": True, "grade_id": name, "points": 50, "solution": False, "locked": True}
        notebook["cells"].append(
            {"cell_type": "code", "id": "x", "source": "50", "metadata": {"nbgrader": mark}}
        )
