"""Build the course's site into build/site/html: `make site`, or `make site LABS="00 03"` for some labs."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from .pages import Site, notebooks
from .runs import ROOT, RunFailed

HERE = Path(__file__).parent
SITE = ROOT / "build" / "site"


def build(labs: list[str], folder: Path, runs: Path, keep_runs: bool = False) -> Path:
    """Write and build the site of some labs, or of all, in `folder`; the folder of its HTML.

    Raises ValueError for a lab that there is not, RunFailed for one that does not run, and RuntimeError
    where Sphinx warns of anything.
    """
    source, html = folder / "source", folder / "html"
    for old in (source, html):  # nothing stays of pages that are gone
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(HERE / "static", source / "_static")
    shutil.copy(HERE / "conf.py", source)
    Site(notebooks(labs), source, runs, keep_runs).write()
    if build_main(["-q", "-W", "--keep-going", "-d", str(folder / "doctrees"), str(source), str(html)]):
        raise RuntimeError("Sphinx was not content with a page; what it said stands above")
    return html


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labs", nargs="*", metavar="NN", help="numbers of labs (all)")
    parser.add_argument(
        "--keep-runs", action="store_true", help="take outputs from before, though gpulab changed"
    )
    parser.add_argument("--into", type=Path, default=SITE, metavar="FOLDER", help="build/site")
    options = parser.parse_args()
    try:
        html = build(options.labs, options.into, SITE / "runs", options.keep_runs)
    except (ValueError, RunFailed, RuntimeError) as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(f"site: {html / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
