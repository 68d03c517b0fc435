# how: turns the notebook around, so that tests come before what they test
def edit(notebook):
    notebook["cells"].reverse()
