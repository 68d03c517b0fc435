# how: attachments that are scripts, far too large, or not there, which once left a student without feedback
# earns: 11
def hand_in(path, notebook, course):
    import json

    edited = json.loads(notebook)
    script = "<svg onload='document.title=`owned`'/>"
    for cell in edited["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "why":
            cell["source"] = "".join(f"![x](attachment:{name})" for name in ("a", "b", "c", "d"))
            cell["attachments"] = {
                "a": {"image/svg+xml": script, "text/html": script},
                "b": {"image/png": "A" * 8_000_000},
                "c": {},
            }
    path.write_text(json.dumps(edited))
