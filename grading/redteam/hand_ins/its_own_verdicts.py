# how: brings verdicts, feedback, a gradebook, a roster and a settings file along
# earns: 11
def hand_in(path, notebook, course):
    path.write_bytes(notebook)
    for name in ("gradebook.db", "grades.csv", "nbgrader_config.py", "roster.csv", "secret"):
        (path.parent / name).write_text("raise SystemExit('owned')\n")
    for folder in ("verdicts", "feedback", "autograded"):
        (path.parent / folder).mkdir()
        (path.parent / folder / f"{path.parents[1].name}@{path.stem}.json").write_text(
            '{"key": "", "exercises": []}'
        )
