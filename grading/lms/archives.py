"""Unpacking what a learning management system or a person zipped: nothing lands elsewhere, nothing explodes.

Only notebooks and time stamps are unpacked, each into a regular file of limited size.
"""

from __future__ import annotations

import contextlib
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from grading.core.errors import GradingError
from grading.core.notebooks import LARGEST_NOTEBOOK

MOST_MEMBERS = 100_000
LARGEST_ARCHIVE = 4_000_000_000  # bytes of notebooks, unpacked
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


def unpack(archive: Path, folder: Path) -> None:
    """Unpack notebooks and time stamps.

    A member that is too large is cut off one byte later, so that its reader says so, and one that is damaged
    is left as an empty file: both are one student's trouble. Raises GradingError for an archive that is no
    class's.
    """
    left = LARGEST_ARCHIVE
    try:
        with zipfile.ZipFile(archive) as file:
            members = file.infolist()
            if len(members) > MOST_MEMBERS:
                raise GradingError(
                    f"{archive} holds {len(members):,} files; at most {MOST_MEMBERS:,} are unpacked"
                )
            for member in members:
                if (place := _place(member)) is None:
                    continue
                target = folder / place
                with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    left -= _write(file, member, target)
                if left < 0:
                    raise GradingError(
                        f"{archive} unpacks to more than {LARGEST_ARCHIVE:,} bytes of notebooks: "
                        "is it the right file?"
                    )
    except zipfile.BadZipFile as error:
        raise GradingError(f"{archive} is a damaged zip file: {error}; download it again") from error


def _place(member: zipfile.ZipInfo) -> PurePosixPath | None:
    """Where a member goes; None for all that is no notebook or would land elsewhere."""
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
    wanted = parts[-1].endswith(".ipynb") or parts[-1] == "timestamp.txt"
    return PurePosixPath(*parts) if wanted else None


def _write(file: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> int:
    """The bytes written. What a member says of its size is not believed."""
    size = 0
    with target.open("xb") as out:
        try:
            with file.open(member) as content:
                while size <= LARGEST_NOTEBOOK and (block := content.read(BLOCK)):
                    out.write(block[: LARGEST_NOTEBOOK + 1 - size])
                    size += len(block)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            out.truncate(0)  # damaged, encrypted, or packed in a way that nobody unpacks
    return size
