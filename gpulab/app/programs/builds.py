"""Built programs, kept by the content of all that they were built from."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from gpulab.foundation.cache_folder import cache_folder

MOST = 100  # builds that are kept, those last used
FILES = "files"  # in each build's folder: the files that it was made from, with the hashes of their contents


def kept(recipe: Iterable[str], make: Callable[[Path], Iterable[Path]]) -> Path:
    """The folder with what `make` builds by `recipe`, built only if that was not done before.

    `recipe` is all that decides what is built, but for the contents of files. `make` is given an empty
    folder, and returns the files that it read; one that has changed since then is a reason to build again.
    Where nothing can be kept, the folder is a temporary one.
    """
    name = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:32]
    root = cache_folder() / "programs"
    folder = root / name
    if _is_fresh(folder):
        folder.touch()
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=root))
    except OSError:
        folder = new = Path(tempfile.mkdtemp(prefix="gpulab-run-"))
    try:
        read = {str(path.resolve()): _hash(path) for path in make(new)}
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    (new / FILES).write_text(json.dumps(read))
    if new != folder:
        shutil.rmtree(folder, ignore_errors=True)
        try:
            new.rename(folder)
        except OSError:  # another process was faster
            return new
        _forget_the_oldest(root)
    return folder


def _is_fresh(folder: Path) -> bool:
    try:
        read = json.loads((folder / FILES).read_text())
        return all(_hash(Path(path)) == known for path, known in read.items())
    except (OSError, ValueError):
        return False


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _forget_the_oldest(root: Path) -> None:
    def used(folder: Path) -> float:
        try:
            return folder.stat().st_mtime
        except OSError:  # another process forgot it
            return 0.0

    for folder in sorted(root.iterdir(), key=used, reverse=True)[MOST:]:
        shutil.rmtree(folder, ignore_errors=True)
