"""Brings a learner's folder of labs up to date. All that will change is copied before anything is written."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span
from gpulab.foundation.errors import Message

from .merge import merge

KEPT = ".before-update"  # in the labs' folder: copies, a folder an update
MINE = {"progress.json", "leaderboard.json"}  # in the labs' folder, and the learner's alone
UNCHANGED = "Your labs are as they were."
AGAIN = "put that right, then run gpulab update again."


class CannotUpdate(Message):
    """The update did not happen, or not all of it; the message says why and what to do."""


@dataclass(frozen=True, repr=False)
class Update(Shown):
    """What an update did. Paths are seen from the labs' folder; `conflicts` are by path."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    conflicts: dict[str, tuple[str, ...]]
    copies: Path | None
    older: Path | None = None  # the package beside the labs, if it is not the new version's

    def card(self) -> Card:
        if not self.changed and not self.added:
            return Card((Note("The labs are up to date."), *self._package()))
        right = f"{len(self.changed)} changed, {len(self.added)} new"
        pieces: list[Piece] = [Heading(Span("The labs are up to date", "strong"), right)]
        for path in self.changed:
            pieces.append(Row(path, "your work is in it", "", "part" if path in self.conflicts else "pass"))
            pieces += [Note(line, inset=True) for line in self.conflicts.get(path, ())]
        pieces += [Row(path, "new", "", "pass") for path in self.added]
        if self.copies:
            pieces.append(Note(f"As they were before: {self.copies}"))
        return Card((*pieces, *self._package()))

    def _package(self) -> tuple[Note, ...]:
        if self.older is None:
            return ()
        return (
            Note(
                f"The labs belong to another version of gpulab than {self.older}: put the new version's"
                " gpulab/, pyproject.toml and constraints*.txt in the place of yours, then `make setup`."
            ),
        )


def update(labs: Path, source: Path | None = None) -> Update:
    """Bring `labs` up to what `source` has: a folder with the course or its labs, or a zip of one.

    Without a source, `labs` is in a clone of the course, and its upstream branch is the source; the clone is
    then brought up to it. Raises CannotUpdate.
    """
    if source is None:
        return _from_upstream(labs)
    with _opened(source) as fresh:
        done = _apply(labs, _files(fresh), {})
        package, new = labs.parent / "gpulab", fresh.parent / "gpulab"
        differs = package.is_dir() and new.is_dir() and _modules(package) != _modules(new)
        return replace(done, older=package) if differs else done


# ---------------------------------------------------------------- files


def _files(folder: Path) -> dict[str, bytes]:
    """The course's files in a folder of labs, by path; what is hidden or the learner's is not among them."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name not in MINE
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
    }


def _modules(package: Path) -> dict[str, bytes]:
    return {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}


def _apply(labs: Path, fresh: dict[str, bytes], before: dict[str, bytes]) -> Update:
    """Merge every file, copy what will change, then write."""
    writes: dict[str, tuple[bytes | None, bytes]] = {}  # what a file holds, and what it shall hold
    changed, added, conflicts = [], [], {}
    for name, content in fresh.items():
        mine = _read(labs / name)
        if mine is None:
            writes[name] = None, content
            added.append(name)
            continue
        merged, said = _merged(mine, content, before.get(name))
        if merged != mine:
            writes[name] = mine, merged
            changed.append(name)
            if said:
                conflicts[name] = said
    copies = _copied(labs, {name: mine for name, (mine, _) in writes.items() if mine is not None})
    for name, (mine, merged) in writes.items():
        try:
            if _read(labs / name) != mine:
                raise CannotUpdate(f"{name} was saved meanwhile; close it.")
            _write(labs / name, merged)
        except (CannotUpdate, OSError) as error:
            kept = f" Copies from before are in {copies}." if copies else ""
            raise CannotUpdate(f"{_sentence(error)} Nothing of yours is lost; {AGAIN}{kept}") from None
    return Update(tuple(changed), tuple(added), conflicts, copies)


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _sentence(error: Exception) -> str:
    return f"{error}".rstrip(".") + "."


def _merged(mine: bytes, theirs: bytes, base: bytes | None) -> tuple[bytes, tuple[str, ...]]:
    """What a file shall hold, and what both sides had changed."""
    if mine == theirs or (base is not None and theirs == base):
        return mine, ()
    notebooks = [_notebook(text) for text in (mine, theirs)]
    if None in notebooks or (base is not None and mine == base):
        said = () if base is not None and mine == base else ("yours is among the copies",)
        return theirs, said
    found = merge(notebooks[0], notebooks[1], _notebook(base) if base else None)  # type: ignore[arg-type]
    if found.notebook == notebooks[0]:
        return mine, ()
    return (json.dumps(found.notebook, indent=1, ensure_ascii=False) + "\n").encode(), found.conflicts


def _notebook(content: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(content)
        return data if isinstance(data["cells"], list) else None
    except (ValueError, KeyError, TypeError):
        return None


def _copied(labs: Path, files: dict[str, bytes]) -> Path | None:
    """The folder of its own in which these files are kept; None if there are none."""
    if not files:
        return None
    folder = labs / KEPT / time.strftime("%Y-%m-%d_%H-%M-%S")
    number = 1
    while folder.exists():
        number += 1
        folder = folder.with_name(f"{folder.name.partition('~')[0]}~{number}")
    try:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise CannotUpdate(
            f"no copy of your labs could be made in {folder}: {error}. Nothing has changed."
        ) from None
    return folder


def _write(path: Path, content: bytes) -> None:
    """Beside the file, then in its place: never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(beside, path.stat().st_mode if path.exists() else 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


# ---------------------------------------------------------------- where the new version comes from


@contextmanager
def _opened(source: Path) -> Iterator[Path]:
    """The folder of labs in a folder or a zip."""
    with tempfile.TemporaryDirectory(prefix="gpulab-update-") as scratch:
        if source.is_file():
            try:
                zipfile.ZipFile(source).extractall(scratch)
            except (zipfile.BadZipFile, OSError) as error:
                raise CannotUpdate(f"{source} cannot be unpacked: {error}. Nothing has changed.") from None
            source = Path(scratch)
        for folder in (source / "labs", source, *source.glob("*/labs")):
            if (folder / "00_start_here").is_dir():
                yield folder
                return
        raise CannotUpdate(
            f"there are no labs in {source}: name a folder with the course, or a zip of it, as downloaded."
            " Nothing has changed."
        )


def _from_upstream(labs: Path) -> Update:
    """Fetch, merge the labs, and move the rest of the clone to its upstream.

    Git never touches a file in labs/: at every moment each one is the learner's or the merged one. After an
    update that was stopped anywhere, the next one goes on.
    """
    root = labs.parent
    if not (root / ".git").exists():
        raise CannotUpdate(
            f"{root} is no clone of the course, so it cannot say where a new version is. Download the course"
            " and name the folder or zip: gpulab update FOLDER"
        )
    _git(root, "fetch", "--quiet")
    try:
        upstream = _git(root, "rev-parse", "--abbrev-ref", "@{upstream}").strip()
    except CannotUpdate:  # the learner's own branch, or none
        raise CannotUpdate(
            f"what is checked out in {root} follows no branch of another clone, so it cannot say where a new"
            " version is. Go to the one that does (git checkout main); or download the course and name the"
            f" folder or zip: gpulab update FOLDER. {UNCHANGED}"
        ) from None
    if _git(root, "rev-parse", "HEAD") == _git(root, "rev-parse", upstream):
        return Update((), (), {}, None)
    if _git(root, "rev-list", f"{upstream}..HEAD").strip():
        raise CannotUpdate(
            f"this clone has commits of its own that {upstream} has not. Merge them with git; or download"
            " the new version and name its folder or zip, and its labs come in cell by cell:"
            " gpulab update FOLDER. Nothing has changed."
        )
    coming, going = _outside_labs(root, upstream)
    before, fresh = _tree(root, "HEAD"), _tree(root, upstream)
    done = _apply(labs, fresh, before)
    try:
        if coming:
            _git(root, "checkout", "--quiet", upstream, "--", *coming)
        for path in going:
            (root / path).unlink(missing_ok=True)
        for name in before.keys() - fresh.keys():
            if (labs / name).is_file() and (labs / name).read_bytes() == before[name]:
                (labs / name).unlink()
        _git(root, "reset", "--quiet", upstream)
    except (CannotUpdate, OSError) as error:
        said = _sentence(error).removesuffix(f" {UNCHANGED}")
        raise CannotUpdate(f"{said} The labs are up to date, the rest is not: {AGAIN}") from None
    return done


def _outside_labs(root: Path, upstream: str) -> tuple[list[str], list[str]]:
    """Files outside of labs/ that come or change with the new version, and those that go.

    Raises CannotUpdate where one of the course's files is neither as it was nor as it will be.
    """
    others = ("--", ".", ":(exclude)labs")
    dirty = set(_names(root, "diff", "--name-only", "HEAD", *others))
    coming = _names(root, "diff", "--name-only", "--no-renames", "--diff-filter=d", "HEAD", upstream, *others)
    going = _names(root, "diff", "--name-only", "--no-renames", "--diff-filter=D", "HEAD", upstream, *others)
    new = _names(root, "diff", "--name-only", "--no-renames", "--diff-filter=A", "HEAD", upstream, *others)
    at_stake = dirty | {path for path in new if (root / path).exists()}
    same = set(coming) - set(_names(root, "diff", "--name-only", upstream, *others))  # an update was stopped
    gone = {path for path in going if not (root / path).exists()}
    if changed := sorted(at_stake - same - gone):
        raise CannotUpdate(
            f"outside of labs/ these files are not the course's: {', '.join(changed[:5])}. Keep copies"
            " of them elsewhere, then put the course's back (git checkout HEAD FILE) or, where it has none of"
            " that name, take yours away. Nothing has changed."
        )
    return coming, going


def _names(root: Path, *arguments: str) -> list[str]:
    """What a command of git's lists."""
    return [name for name in _git(root, arguments[0], "-z", *arguments[1:]).split("\0") if name]


def _tree(root: Path, revision: str) -> dict[str, bytes]:
    """The files of labs/ at a revision."""
    archive = _git_bytes(root, "archive", "--format=tar", revision, "labs")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {
            member.name.removeprefix("labs/"): file.read()
            for member in tar.getmembers()
            if member.isfile() and (file := tar.extractfile(member))
        }


def _git(root: Path, *arguments: str) -> str:
    return _git_bytes(root, *arguments).decode()


def _git_bytes(root: Path, *arguments: str) -> bytes:
    try:
        ran = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise CannotUpdate("git is not installed here; name a folder or zip: gpulab update FOLDER") from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["git failed"]
        raise CannotUpdate(f"git {arguments[0]}: {said[0]}. {UNCHANGED}")
    return ran.stdout
