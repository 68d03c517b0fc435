# how: ids of cells that lead out of folders, or are HTML
def edit(notebook):
    for i, cell in enumerate(notebook["cells"]):
        cell["id"] = ["../../etc/passwd", "<img src=x onerror=alert(1)>", "", "x" * 100_000, None][i % 5]
