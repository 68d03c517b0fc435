"""The pages on what can be imported: what each public package has, from its docstrings."""

from __future__ import annotations

MODULES = {
    "gpulab": "what a notebook calls",
    "gpulab.checks": "exercises and their checks",
    "gpulab.analysis.profile": "counts, metrics, reports",
    "gpulab.analysis.machine": "machine instructions and modelled times",
    "gpulab.analysis.sanitizer": "what is wrong with a kernel",
    "gpulab.analysis.tracer": "a kernel step by step",
    "gpulab.simulator.hardware": "data sheets, occupancy, the roofline",
    "gpulab.simulator.device": "the device in use and its launches",
    "gpulab.simulator.compile": "from source to PTX and machine code",
    "gpulab.simulator.observe": "counters and race checks",
    "gpulab.simulator.simt": "running PTX",
    "gpulab.simulator.ptx": "reading PTX",
    "gpulab.subjects.numerics": "number formats",
    "gpulab.subjects.bench": "measuring a CPU",
    "gpulab.subjects.serving": "an inference engine",
    "gpulab.subjects.distributed": "programs of several ranks",
}

PAGE = """# {module}: {what}

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :imported-members:
```
"""


def pages() -> dict[str, str]:
    """The text of each page, by its path on the site."""
    made = {f"api/{module}.md": PAGE.format(module=module, what=what) for module, what in MODULES.items()}
    listed = "\n".join(MODULES)
    made["api/index.md"] = f"# What can be imported\n\n```{{toctree}}\n{listed}\n```\n"
    return made
