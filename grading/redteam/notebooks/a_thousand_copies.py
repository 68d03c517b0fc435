# how: every solution cell a thousand times over, all alike
# says: times; the last one that you changed
def edit(notebook):
    copies = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("solution")]
    notebook["cells"] += copies * 1000
