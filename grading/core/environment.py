"""What a verdict depends on besides the submission: our code, the packages, the course's secret."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from grading.core.course import ROOT, Course

PACKAGES = (
    "numpy",
    "numba",
    "numba-cuda",
    "llvmlite",
    "nvidia-nvvm",
    "nvidia-nvjitlink",
    "nvidia-cuda-nvrtc",
    "torch",
)
WITHOUT_SAY = ("plot/", "app/", "__main__.py")  # parts of gpulab that no verdict depends on


def secret(course: Course) -> bytes:
    """The course's secret, made at first use, for its owner's eyes: nobody can foresee the contents."""
    with contextlib.suppress(FileExistsError):
        course.home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(course.secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    return course.secret.read_bytes().strip()


def digest(course: Course, extra: Iterable[str] = ()) -> str:
    """A hash of everything but the submission that a verdict of this course is worked out from."""
    found = hashlib.sha256(secret(course))
    found.update(code().encode())
    for text in extra:
        found.update(text.encode() + b"\0")
    return found.hexdigest()


@cache
def code() -> str:
    """A hash of our code and of the packages that count, as this process found them."""
    found = hashlib.sha256(sys.version.encode())
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.update(f"{package} {metadata.version(package)}\0".encode())
    for path in _code():
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _code() -> list[Path]:
    gpulab = ROOT / "gpulab"
    files = [p for p in gpulab.rglob("*.py") if not p.relative_to(gpulab).as_posix().startswith(WITHOUT_SAY)]
    grading = ROOT / "grading"
    judges = [p for p in grading.rglob("*.py") if not p.is_relative_to(grading / "redteam")]
    return sorted([*files, *judges])


def seed(secret: bytes, submission: str, exercise: str, case: str) -> int:
    """The seed of a case's contents: nobody without the secret knows it, and it repeats."""
    text = b"\0".join([secret, submission.encode(), exercise.encode(), case.encode()])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
