# how: attachments, outputs and error names that a browser would run
def edit(notebook):
    html = "<script>fetch('/formgrader/api/status')</script>"
    for cell in notebook["cells"]:
        cell["attachments"] = {"a.svg": {"image/svg+xml": html}}
        cell["outputs"] = [
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/html": html, "application/javascript": html},
            },
            {"output_type": "error", "ename": html, "evalue": html, "traceback": [html]},
        ]
