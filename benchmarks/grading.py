"""A class of submissions graded here, beside stock `nbgrader autograde` on the same notebooks in one run.

python benchmarks/grading.py [--students 200] [--stock 8] [--lab 04_memory_hierarchy] [--workers 2]

nbgrader runs `autograde`, and `generate_feedback` after it, as we make the pages, too. Both sides get the
same cores: here so many workers, there so many processes of nbgrader, each with its share of the class and
a gradebook of its own. Both parts are seconds of the processor for one submission, of all processes
together, so that other programs on the machine change little. Simulation is what passes within
`simt.launch`, measured on both sides by the same wrapper; overhead is all the rest: starting, importing,
compiling, running cells, gradebook and feedback. The class is graded at a quarter, half and all of its
size, each in a process of its own, for growth and memory (of the coordinator, at its peak).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from itertools import pairwise
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parents[1]
SOCKET = "GPULAB_BENCHMARK_SOCKET"
# Python runs a module of this name when it starts: in nbgrader's kernels and in the judge's children.
WRAPPER = textwrap.dedent(
    f"""
    import importlib.abc, importlib.machinery, os, socket, struct, sys, time
    PATH = os.environ.get({SOCKET!r})

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name != "gpulab.simulator.simt":
                return None
            sys.meta_path.remove(self)
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            run = spec.loader.exec_module
            def exec_module(module):
                run(module)
                launch = module.launch
                def timed(*args, **keywords):
                    began = time.thread_time()
                    try:
                        return launch(*args, **keywords)
                    finally:
                        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                            out.sendto(struct.pack("d", time.thread_time() - began), PATH)
                module.launch = timed
            spec.loader.exec_module = exec_module
            return spec

    if PATH:
        sys.meta_path.insert(0, Finder())
    """
)
HERE = textwrap.dedent(
    """
    import json, resource, sys, time
    from pathlib import Path
    from grading.lms import classroom
    from grading.core.course import Course

    def main():
        root, lab, folder, workers = sys.argv[1:]
        steps = {}
        def tell(step, done, total):
            steps.setdefault(step, time.monotonic())
        began = time.monotonic()
        course = Course(Path(root), Path(root) / "grading")
        result = classroom.grade(course, lab, Path(folder), workers=int(workers), tell=tell)
        ended = time.monotonic()
        verdicts = [t.verdict for tasks in result.tasks.values() for t in tasks]
        print(json.dumps({
            "seconds": ended - began,
            "gradebook": ended - steps["gradebook"],
            "record": sum(v.seconds["record"] for v in verdicts),
            "replay": sum(v.seconds["replay"] for v in verdicts),
            "points": sum(v.points for v in verdicts),
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }))

    if __name__ == "__main__":
        main()
    """
)
STOCK = textwrap.dedent(
    """
    c = get_config()
    d = c.CourseDirectory
    d.root = {root!r}
    d.source_directory, d.release_directory, d.submitted_directory = "solutions", "labs", "submitted"
    d.autograded_directory, d.feedback_directory = "autograded", "feedback"
    d.db_url = "sqlite:///{root}/gradebook.db"
    c.Execute.timeout = 600
    c.ExecutePreprocessor.timeout = 600
    """
)


class Launches:
    """Adds up the seconds that wrapped processes spend in the simulator."""

    def __init__(self, folder: Path):
        self.path = str(folder / "launches")
        self.seconds, self.count = 0.0, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(self.path)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            (seconds,) = struct.unpack("d", self.socket.recv(8))
            self.seconds += seconds
            self.count += 1

    def taken(self) -> float:
        """The seconds since the last call."""
        time.sleep(0.3)
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def adopt_orphans() -> None:
    """Processes whose parents ended become ours, so that what they used is counted."""
    subreaper = 36  # PR_SET_CHILD_SUBREAPER
    ctypes.CDLL(None, use_errno=True).prctl(subreaper, 1, 0, 0, 0)


def processor() -> float:
    """Seconds of the processor that our ended children took; waits for those that are about to end."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hand_in(lab: str, folder: Path, students: int) -> None:
    """Notebooks with the solutions, every third with a wrong answer, no two the same."""
    source = ROOT / "solutions" / lab
    wrong = [(path, path.read_text()) for path in sorted((source / "wrong").glob("*.py"))]
    for released in sorted((ROOT / "labs" / lab).glob("*.ipynb")):
        notebook = nbformat.read(released, 4)
        solved = jupytext.read(source / f"{released.stem}.py")
        answers = {
            c.metadata.nbgrader.grade_id: c.source
            for c in solved.cells
            if is_solution(c) and c.cell_type == "code"
        }
        names = {f"{name}_": name for name in answers}
        for number in range(students):
            chosen = dict(answers)
            path, text = wrong[number % len(wrong)]
            cell = next((name for start, name in names.items() if path.name.startswith(start)), None)
            if number % 3 == 0 and cell:
                chosen[cell] = text
            if chosen:
                first = next(iter(chosen))
                chosen[first] += f"\n# submission {number}"
            for notebook_cell in notebook.cells:
                name = notebook_cell.metadata.get("nbgrader", {}).get("grade_id")
                notebook_cell.source = chosen.get(name, notebook_cell.source)
            place = folder / f"s{number:04}" / lab
            place.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, place / released.name)


def is_solution(cell: nbformat.NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def course(root: Path, lab: str) -> Path:
    shutil.copytree(ROOT / "solutions" / lab, root / "solutions" / lab)
    shutil.copytree(ROOT / "labs" / lab, root / "labs" / lab)
    return root


def environment(folder: Path, launches: Launches) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(WRAPPER)
    path = os.pathsep.join([str(folder), str(ROOT)])
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        SOCKET: launches.path,
        "PYTHONPATH": path,
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "GPULAB_SIMULATE": "1",
    }


def here(lab: str, students: int, workers: int, folder: Path, launches: Launches) -> dict[str, float]:
    """One class graded by `python -m grading`, in a fresh process."""
    root = course(folder / f"here{students}", lab)
    hand_in(lab, root / "handed_in", students)
    script = folder / "here.py"
    script.write_text(HERE)
    launches.taken()
    before = processor()
    command = [sys.executable, str(script), str(root), lab, str(root / "handed_in"), str(workers)]
    done = subprocess.run(
        command, env=environment(folder, launches), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    said = json.loads(done.stdout.splitlines()[-1])
    return {**said, "simulation": launches.taken(), "processor": processor() - before}


def stock(lab: str, students: int, processes: int, folder: Path, launches: Launches) -> dict[str, float]:
    """The same notebooks under nbgrader as it comes, in so many processes at once."""
    roots = []
    for part in range(processes):
        root = course(folder / f"stock{part}", lab)
        for source in (root / "solutions" / lab).glob("*.py"):
            jupytext.write(jupytext.read(source), source.with_suffix(".ipynb"))
            source.unlink()
        shutil.rmtree(root / "solutions" / lab / "wrong")
        (root / "nbgrader_config.py").write_text(STOCK.format(root=str(root)))
        roots.append(root)
    hand_in(lab, folder / "all", students)
    for number, path in enumerate(sorted((folder / "all").iterdir())):
        place = roots[number % processes] / "submitted"
        place.mkdir(exist_ok=True)
        path.rename(place / path.name)
    env = environment(folder, launches)
    for root in roots:  # as stock as can be: its own release of the lab, which fills its gradebook
        command = [sys.executable, "-m", "nbgrader", "generate_assignment", lab, "--force"]
        subprocess.run(command, cwd=root, env=env, capture_output=True, check=True)
    launches.taken()
    before = processor()
    began = time.monotonic()
    running = [
        subprocess.Popen([sys.executable, "-m", "nbgrader", "autograde", lab], cwd=root, env=env,
                         stdout=subprocess.DEVNULL, stderr=(root / "log").open("w"))
        for root in roots
    ]  # fmt: skip
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit((roots[0] / "log").read_text()[-3000:])
    graded, simulated = processor() - before, launches.taken()
    for process in [
        subprocess.Popen([sys.executable, "-m", "nbgrader", "generate_feedback", lab], cwd=root, env=env,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for root in roots
    ]:  # fmt: skip
        process.wait()
    seconds = time.monotonic() - began
    print(f"nbgrader autograde alone: {(graded - simulated) / students:.2f} s of overhead", flush=True)
    return {"seconds": seconds, "simulation": simulated, "processor": processor() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument(
        "--stock", type=int, default=8, help="submissions for nbgrader, which takes its time; 0 for none"
    )
    parser.add_argument("--lab", default="04_memory_hierarchy")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    sizes = sorted({max(1, options.students // part) for part in (4, 2, 1)})
    print(f"{options.lab}, {options.workers} workers")
    heads = f"{'':<16}{'students':>9}{'per minute':>12}{'simulation':>12}{'overhead':>10}{'MB':>7}"
    print(f"{heads}   record  replay  gradebook (seconds by the clock)")
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="gpulab-benchmark-") as name:
        folder = Path(name)
        launches = Launches(folder)
        ours: list[tuple[int, dict[str, float]]] = []
        for students in sizes:
            found = here(options.lab, students, options.workers, folder, launches)
            simulated, last = parts(found, students)
            row("here", found, students, simulated, last)
            ours.append((students, found))
        if options.stock:
            them = stock(options.lab, options.stock, options.workers, folder, launches)
            simulated, other = parts(them, options.stock)
            row("nbgrader", them, options.stock, simulated, other)
            print(f"overhead: nbgrader's is {other / last:.1f} times ours (goal: 4)")
    for (few, before), (many, after) in pairwise(ours):
        more = (after["processor"] - before["processor"]) / (many - few)
        print(f"from {few} to {many} students: {more:.2f} s of the processor for each one more")


def parts(found: dict[str, float], students: int) -> tuple[float, float]:
    """Seconds of the processor for one submission: in the simulator, and all the rest."""
    return found["simulation"] / students, (found["processor"] - found["simulation"]) / students


def row(name: str, found: dict[str, float], students: int, simulated: float, overhead: float) -> None:
    minute = 60 * students / found["seconds"]
    text = f"{name:<16}{students:>9}{minute:>12.1f}{simulated:>11.2f}s{overhead:>9.2f}s"
    if "memory" in found:
        text += f"{found['memory']:>7.0f}   "
        text += "  ".join(f"{found[step] / students:.2f}s" for step in ("record", "replay", "gradebook"))
    print(text, flush=True)


if __name__ == "__main__":
    main()
