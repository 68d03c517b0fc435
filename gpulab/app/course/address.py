"""The course's public address, if it has one, and links that open its notebooks elsewhere."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

FILE = Path(__file__).with_name("address.toml")


@dataclass(frozen=True)
class Address:
    """A repository on GitHub, ``https://github.com/OWNER/NAME``, and a branch of it. False if there is none.

    Paths are those of files in the repository: ``labs/00_start_here/00_start_here.ipynb``.
    Raises ValueError for what is no such repository: Colab, Kaggle and Binder take others in other ways.
    """

    repository: str
    branch: str = "main"

    def __post_init__(self) -> None:
        if self.repository and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", self.repository):
            raise ValueError(
                f"'{self.repository}' is no repository on GitHub; write https://github.com/OWNER/NAME,"
                " or leave it empty"
            )

    def __bool__(self) -> bool:
        return bool(self.repository)

    @property
    def _name(self) -> str:
        """OWNER/NAME."""
        return self.repository.removeprefix("https://github.com/")

    @property
    def package(self) -> str:
        """What pip installs gpulab from."""
        return f"git+{self.repository}@{self.branch}"

    @property
    def codespaces(self) -> str:
        """A dev container of the course in a browser."""
        return f"https://codespaces.new/{self._name}?ref={quote(self.branch)}"

    def colab(self, path: str) -> str:
        return (
            f"https://colab.research.google.com/github/{self._name}/blob/{quote(self.branch)}/{quote(path)}"
        )

    def kaggle(self, path: str) -> str:
        return f"https://kaggle.com/kernels/welcome?src={self.repository}/blob/{quote(self.branch)}/{quote(path)}"

    def binder(self, path: str) -> str:
        """Binder has no PyTorch: see `binder/requirements.txt`."""
        branch, path = quote(self.branch, safe=""), quote(path, safe="")
        return f"https://mybinder.org/v2/gh/{self._name}/{branch}?labpath={path}"


def read(path: Path) -> Address:
    """The address in a file such as `address.toml`. Raises ValueError that names the file of a wrong one."""
    try:
        row = tomllib.loads(path.read_text(encoding="utf-8"))
        return Address(row["repository"], row["branch"])
    except KeyError as error:
        raise ValueError(f"{path}: there is no line {error.args[0]} = …") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@cache
def address() -> Address:
    """The course's address, from `address.toml`."""
    return read(FILE)
