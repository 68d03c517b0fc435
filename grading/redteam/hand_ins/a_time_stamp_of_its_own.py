# how: a file that says when it was handed in: before the course began, in words nobody can read
# says: nbgrader refused
def hand_in(path, notebook, course):
    path.write_bytes(notebook)
    (path.parent / "timestamp.txt").write_bytes(b"\xff\xfe 0000-99-99 <script> " + b"x" * 100_000)
