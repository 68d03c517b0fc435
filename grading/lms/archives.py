"""Unpacking what a learning management system or a person zipped: nothing lands elsewhere, nothing explodes.

Notebooks, time stamps and zips are unpacked, each into a regular file of limited size. Of all other files the
name is kept, so that a student can be told what was found: an empty file stands for each.
"""

from __future__ import annotations

import contextlib
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from grading.core.errors import GradingError
from grading.core.notebooks import LARGEST_NOTEBOOK

MOST_MEMBERS = 100_000
LARGEST_ARCHIVE = 4_000_000_000  # bytes, unpacked
OF_A_STUDENT = (1_000, 100_000_000)  # the same for what one student zipped
LARGEST_ZIP = 100_000_000  # bytes of a zip in a zip
LONGEST_NAME, DEEPEST = 200, 12
BLOCK = 1 << 20
IGNORED = ("__MACOSX", ".ipynb_checkpoints")


@contextlib.contextmanager
def opened(delivery: Path) -> Iterator[Path]:
    """The folder of a delivery: itself, or what a zip holds, for as long as the context lasts."""
    if delivery.is_dir() or not delivery.exists():
        yield delivery
        return
    if not zipfile.is_zipfile(delivery):
        raise GradingError(f"{delivery} is neither a folder nor a zip file")
    with tempfile.TemporaryDirectory(prefix="gpulab-delivery-") as folder:
        unpack(delivery, Path(folder))
        yield Path(folder)


def unpack(archive: Path, folder: Path, *, of_a_student: bool = False) -> None:
    """Unpack an archive, within the limits for a whole class or for one student.

    A member that is too large is cut off one byte later, so that its reader says so, and one that is damaged
    is left as an empty file: both are one student's trouble. Raises GradingError for an archive that is no
    class's.
    """
    most, largest = OF_A_STUDENT if of_a_student else (MOST_MEMBERS, LARGEST_ARCHIVE)
    left = largest
    try:
        with zipfile.ZipFile(archive) as file:
            members = file.infolist()
            if len(members) > most:
                raise GradingError(f"{archive} holds {len(members):,} files; at most {most:,} are unpacked")
            for member in members:
                if (place := _place(member)) is None:
                    continue
                target = folder / place
                with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    left -= _write(file, member, target)
                if left < 0:
                    raise GradingError(
                        f"{archive} unpacks to more than {largest:,} bytes of notebooks: "
                        "is it the right file?"
                    )
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, struct.error) as error:
        raise GradingError(f"{archive} is a damaged zip file: {error}; download it again") from error


def _place(member: zipfile.ZipInfo) -> PurePosixPath | None:
    """Where a member goes; None for what is no regular file, nobody's work, or would land elsewhere."""
    parts = member.filename.replace("\\", "/").split("/")
    mode = member.external_attr >> 16
    if member.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
        return None
    if len(parts) > DEEPEST or any(
        p in ("", ".", "..") or len(p.encode()) > LONGEST_NAME or not p.isprintable() for p in parts
    ):
        return None
    if any(p in IGNORED for p in parts) or parts[-1].startswith("._"):
        return None
    return PurePosixPath(*parts)


def _limit(target: Path) -> int:
    """The bytes of a file that are unpacked."""
    if target.suffix.lower() == ".zip":
        return LARGEST_ZIP
    return LARGEST_NOTEBOOK if target.suffix == ".ipynb" or target.name == "timestamp.txt" else -1


def _write(file: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> int:
    """The bytes written. What a member says of its size is not believed."""
    size, limit = 0, _limit(target)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        limit = -1  # others, which no LMS writes, can take memory without end
    with target.open("xb") as out:
        try:
            with file.open(member) as content:
                while size <= limit and (block := content.read(BLOCK)):
                    out.write(block[: limit + 1 - size])
                    size += len(block)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            out.truncate(0)  # damaged, encrypted, or packed in a way that nobody unpacks
    return size
