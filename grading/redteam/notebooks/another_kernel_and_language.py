# how: a kernel specification that starts another program, and another language
def edit(notebook):
    notebook["metadata"]["kernelspec"] = {
        "name": "evil",
        "display_name": "x",
        "argv": ["/bin/sh", "-c", "id"],
    }
    notebook["metadata"]["language_info"] = {"name": "bash", "file_extension": "/../../x", "mimetype": "x"}
    notebook["nbformat_minor"] = 99
