"""Brings a learner's folder of labs up to date. All that will change is copied before anything is written."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulab.messages import Message
from gpulab.profile.display import Card, Heading, Note, Piece, Row, Shown, Span

from .merge import merge

KEPT = ".before-update"  # in the labs' folder: copies, a folder an update
MINE = {"progress.json", "leaderboard.json"}  # in the labs' folder, and the learner's alone


class CannotUpdate(Message):
    """The update did not happen, and nothing has changed; the message says why and what to do."""


@dataclass(frozen=True, repr=False)
class Update(Shown):
    """What an update did. Paths are seen from the labs' folder; `conflicts` are by path."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    conflicts: dict[str, tuple[str, ...]]
    copies: Path | None

    def card(self) -> Card:
        if not self.changed and not self.added:
            return Card((Note("The labs are up to date."),))
        right = f"{len(self.changed)} changed, {len(self.added)} new"
        pieces: list[Piece] = [Heading(Span("The labs are up to date", "strong"), right)]
        for path in self.changed:
            pieces.append(Row(path, "your work is in it", "", "part" if path in self.conflicts else "pass"))
            pieces += [Note(line, inset=True) for line in self.conflicts.get(path, ())]
        pieces += [Row(path, "new", "", "pass") for path in self.added]
        if self.copies:
            pieces.append(Note(f"As they were before: {self.copies}"))
        return Card(tuple(pieces))


def update(labs: Path, source: Path | None = None) -> Update:
    """Bring `labs` up to what `source` has: a folder with the course or its labs, or a zip of one.

    Without a source, `labs` is in a clone of the course, and its upstream branch is the source; the clone is
    then brought up to it. Raises CannotUpdate.
    """
    if source is None:
        return _from_upstream(labs)
    with _opened(source) as fresh:
        return _apply(labs, _files(fresh), {})


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


def _apply(labs: Path, fresh: dict[str, bytes], before: dict[str, bytes], own: Sequence[str] = ()) -> Update:
    """Merge every file, copy what will change and what else is the learner's `own`, then write."""
    writes: dict[str, bytes] = {}
    changed, added, conflicts = [], [], {}
    for name, content in fresh.items():
        path = labs / name
        if not path.exists():
            writes[name] = content
            added.append(name)
            continue
        mine = path.read_bytes()
        merged, said = _merged(mine, content, before.get(name))
        if merged != mine:
            writes[name] = merged
            changed.append(name)
            if said:
                conflicts[name] = said
    at_risk = sorted({*changed, *own})
    copies = _copied(labs, at_risk) if at_risk else None
    for name, content in writes.items():
        _write(labs / name, content)
    return Update(tuple(changed), tuple(added), conflicts, copies)


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


def _copied(labs: Path, names: Sequence[str]) -> Path:
    """Copies of these files, in a folder of their own."""
    folder = labs / KEPT / time.strftime("%Y-%m-%d_%H-%M-%S")
    number = 1
    while folder.exists():
        number += 1
        folder = folder.with_name(f"{folder.name.partition('~')[0]}~{number}")
    try:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(labs / name, folder / name)
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
    """Fetch, merge the labs, move the clone to its upstream, and put the merged labs into it."""
    root = labs.parent
    if not (root / ".git").exists():
        raise CannotUpdate(
            f"{root} is no clone of the course, so it cannot say where a new version is. Download the course"
            " and name the folder or zip: gpulab update FOLDER"
        )
    _git(root, "fetch", "--quiet")
    upstream = _git(root, "rev-parse", "--abbrev-ref", "@{upstream}").strip()
    if _git(root, "rev-parse", "HEAD") == _git(root, "rev-parse", upstream):
        return Update((), (), {}, None)
    if _git(root, "rev-list", f"{upstream}..HEAD").strip():
        raise CannotUpdate(
            f"this clone has commits of its own that {upstream} has not; merge them with git first."
            " Nothing has changed."
        )
    dirty = [line[3:] for line in _git(root, "status", "--porcelain", "--untracked-files=no").splitlines()]
    if outside := [path for path in dirty if not path.strip('"').startswith("labs/")]:
        raise CannotUpdate(
            f"outside of labs/ these files of the course have been changed: {', '.join(outside[:5])}. Put"
            " them back (git checkout FILE) or keep copies elsewhere first. Nothing has changed."
        )
    before, fresh = _tree(root, "HEAD"), _tree(root, upstream)
    mine = _files(labs)
    # For a moment git puts its own files in the place of the learner's: copies outlive whatever happens then.
    own = [name for name, content in mine.items() if name in before | fresh and content != before.get(name)]
    done = _apply(labs, fresh, before, own)
    merged = _files(labs)
    try:  # git moves over a clean folder only; then the merged files come back
        _git(root, "checkout", "--quiet", "HEAD", "--", "labs")
        for name in fresh.keys() - before.keys():
            (labs / name).unlink(missing_ok=True)
        _git(root, "merge", "--quiet", "--ff-only", upstream)
    except BaseException:
        for name, content in mine.items():
            _write(labs / name, content)
        raise
    for name, content in merged.items():
        dropped = name not in fresh and content == before.get(name)
        if not dropped and (not (labs / name).exists() or (labs / name).read_bytes() != content):
            _write(labs / name, content)
    return done


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
        raise CannotUpdate(f"git {arguments[0]}: {said[0]}. Your labs are as they were.")
    return ran.stdout
