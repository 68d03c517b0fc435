# how: a folder named like the notebook, with the notebook in it
# says: not a regular file
def hand_in(path, notebook, course):
    path.mkdir()
    (path / path.name).write_bytes(notebook)
