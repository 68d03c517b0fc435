# how: code as text, text as code
def edit(notebook):
    for cell in notebook["cells"]:
        cell["cell_type"] = "markdown" if cell["cell_type"] == "code" else "code"
