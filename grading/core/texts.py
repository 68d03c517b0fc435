"""Every sentence of a verdict as a template. Learners' strings are cleaned before they go in."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence, Sized

from gpulab.foundation.strict import clean as clean

# A file that is no notebook.
NO_JSON = "notebook is not JSON (line {line})"
NO_CELLS = "notebook has no list of cells"
TOO_LARGE = "notebook is {size:,} bytes; at most {limit:,} are read"
NOT_A_FILE = "{name} is not a regular file"
UNREADABLE = "{name} cannot be read: {why}"
NO_SOLUTION_CELL = "the file has no solution cell of {name}; is it a notebook of another lab?"
NO_LAB = "no notebook {expected} was handed in; found: {found}"
NOTHING_ELSE = "no file at all"
STRAY = "not a notebook, and its name is not the id of anybody on the roster"
PART_MISSING = "{name}.ipynb was not handed in, which counts as 0 points"
UNKNOWN_STUDENT = (
    "not on the roster ({roster}){near}; add the id there, or give the file the student's id, and grade again"
)
UNKNOWN_SENDER = (
    "nobody on the roster ({roster}) has the number {key} in the column '{lms}', and no single student has "
    "that name; add it there and grade again"
)
NO_ID = "the name is no student id (letters, digits and . _ @ -); rename it and grade again"
HANDED_IN_TWICE = "a second submission of {student}; the other one was graded, take one away"

# What the graft found.
CELL_MISSING = "the solution cell '{cell}' is missing from your notebook"
CELL_TWICE = "the solution cell '{cell}' is there {times} times; the last one that you changed was judged"

OWN_CELLS = "of your own code cells the judge read what your answer uses: cell {cells}"
OWN_CELL_UNREAD = (
    "your answer uses `{name}`, which your code cell {cell} makes in a way that the judge does not run: "
    "it reads definitions of such cells alone. Define it in the cell of the answer"
)
OWN_CELL_COVERED = (
    "your answer uses `{name}`. The lab defines this name, and your code cell {cell} defines it again; the "
    "judge uses the lab's definition. Choose another name, or define it in the cell of the answer"
)

# What is shown of a written answer.
NO_PICTURE = "it is neither a PNG nor a JPEG file that can be read"
PICTURE_PIXELS = "it has more than {pixels:,} pixels"
PICTURE_BYTES = (
    "the pictures of one answer may have at most {cell:,} bytes together, those of a notebook {notebook:,}"
)
PICTURE_ABSENT = "it is not in the notebook that was handed in"
PICTURE_ELSEWHERE = "only pictures that were pasted into the answer are shown"
PICTURE_AGAIN = "it is shown further up"
PICTURE_LEFT_OUT = "[The picture “{name}” is not shown: {why}.]"
PICTURES_NOTE = (
    "**Pictures not shown: {number} of {of}** ({why}). The notebook in `submitted/` has what was handed in."
)
LINK_LEFT_OUT = "[This led to “{url}”. Only links to the web (http, https) and to mail are kept.]"
FORMULAS_AS_TYPED = (
    "[The formulas of this answer are shown as they were typed, "
    "because {macro} could do more than set a formula.]"
)
AS_TYPED = "[This cell is shown as it was typed, because it could not be formatted: {why}.]"
SLOW = "it took more than {seconds:g} s of processor time"
TOO_LONG = "the result is longer than {most:,} characters"

# While recording.
NO_FUNCTION = "`{function}` is not defined; the judge looks for a function of that name"
NO_FUNCTION_AFTER = "`{function}` is not defined, because the cell '{cell}' failed: {error}"
NAME_OUTSIDE = (
    "{error}. Of the cells that you added, the judge reads only definitions (functions, classes, imports, "
    "assignments): define this name in the cell of the answer"
)
STUB = "not answered: the cell still says NotImplementedError"
STOPPED = "stopped after {seconds:.0f} s"
ENDED_ITSELF = "the process ended before its work was done"
DIED = "the process ended ({how})"
NOT_REACHED = "not reached: {why} in {where}"

# While replaying.
BAD_RECORD = "what was recorded cannot be replayed: {why}"
NO_RECORD = "nothing was recorded at {case}"
REPLAY_STOPPED = (
    "the replay was stopped after {seconds:.3g} s of processor time; does a kernel end at every size?"
)
REPLAY_DIED = "the replay ended without a verdict ({how})"
INSTEAD = "{label} {measured} instead of {limit}"

# Measured on a GPU.
SPEED = "speed"
SPEED_OF = "{middle:.2f} × the reference's ({low:.2f} to {high:.2f} from {pairs} turns of each, {device})"
SPEED_MISSED = "the lower end counts: {low:.2f}, where {ratio:g} is asked for"
SPEED_TOLD = "no points hang on it"
NOT_TIMED = "no speed"
NO_SPEED = "no verdict on the speed: {why}; a person will look at it"
WRONG_ON_GPU = "at {case}, on the GPU: {why}"
LOST = "at {case}: {why}"
REFERENCE_WRONG = "the reference failed at {case}, on the GPU: {why}"
NOISY = "the times vary too much: from {low:.2f} to {high:.2f} × the reference's speed after {pairs} turns"
TOO_FEW_TURNS = "only {pairs} turns at {case} in the time that there was"
IMPOSSIBLE = (
    "{who} took {seconds:.1f} µs at {case}, and the GPU's data sheet allows no less than {least:.1f} µs"
)
TOO_SHORT = "{seconds:.1f} µs at {case} is too short to be measured"
WORK_UNSEEN = "at {case} the device went on for {seconds:.0f} µs after what was timed"
SUBMISSION, REFERENCE = "the submission", "the reference"
OUTPUT_WRONG = "{array}[{index}] is {got} instead of {expected}"
INPUT_CHANGED = "the input `{array}` was changed"
COOPERATIVE = "`{kernel}` waits for all blocks of its grid, and such kernels are not timed"
TIMER_DIED = "the process that ran it ended ({how})"
TIMER_SLOW = "no result after {seconds:.0f} s"
TIMER_ODD = "the process that ran it said what cannot be"
UNKNOWN_GPU = (
    "there is no data sheet of {device} in gpulab/simulator/hardware, so nobody knows which times can be"
)
NO_GPU = "--gpu: no NVIDIA GPU with a working driver on this machine ({why})"
NOTHING_TIMED = "--gpu: no exercise of {lab} is timed; gpulab/checks/speeds.py lists those that are"
NO_SOLUTION = "--gpu: the lab's own solution cannot be timed: {why}"

# States of a grade that a person must settle, because nobody knows what being late costs.
LATE_UNKNOWN = "late, by how much is not known"
NEWER_UNREADABLE = "a newer file cannot be read"
TIME_UNREADABLE = "time of handing in cannot be read"

# The verdict on a screen.
UNGRADED = "ungraded: {reason}"
NO_VERDICT_HERE = "the judge has no verdict on this exercise"
NO_VERDICT = "no verdict yet: run `{command}`"
COUNTED_WITH = "counted on what {version} dispatches"
JUDGED = "judged with {compiler}, {device}, at {cases}"
JUDGED_AT = "judged at {cases}"

NO_SCHEDULER = "no scheduler answers at {address}: {why}"
SCHEDULER_GONE = (
    "the scheduler at {address} is gone. Verdicts so far are stored: the same command goes on where it was"
)
OTHER_VERSION = (
    "the worker on {host} has another version of gpulab, of grading or of a package than this machine: "
    "install the same there and grade again"
)
OTHER_SCHEDULER = (
    "the scheduler at {address} cannot read what it is sent: start it with this environment's Python, in the "
    "course's folder, and grade again"
)
NOT_RECORDED = "the sandbox was killed, or did not come up, twice ({how}); grade again"
WORKERS_DIED = "several workers died while they judged it, or were killed; grade again"

AGAIN = "Verdicts so far are stored. Fix this and run the same command again"
NOTHING_DELETED = "Nothing was deleted. Fix this and run the same command again"
STOPPED_BY_HAND = "stopped; nothing is lost: the same command goes on where it was"


def some(names: Sequence[str], most: int = 12) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def number(names: Sized, one: str, several: str) -> str:
    """``1 is``, or ``3 are``: how many there are, with the words for one or for several."""
    return f"{len(names)} {one if len(names) == 1 else several}"


def wrap(text: str, width: int = 70) -> list[str]:
    """A reason as lines of a verdict; line breaks of ours are kept, learner's strings in it are cleaned."""
    return [row for part in text.splitlines() for row in textwrap.wrap(clean(part, 2000), width) or [""]]
