"""Compilers that are Python packages of their own: whether they are here, and built as we know them."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from gpulab.foundation.errors import Message


class MissingCompiler(Message, ImportError):
    """A kernel language whose package is absent, or built otherwise than those that were tested."""


@dataclass(frozen=True)
class Internals:
    """A package that we reach into: `used` are the places, ``module:name.name``.

    `extra` is ours that installs it, `tested` its versions that our tests passed with.
    """

    name: str
    distribution: str
    tested: tuple[str, ...]
    extra: str
    used: tuple[str, ...]

    @property
    def version(self) -> str:
        """The installed version; empty where there is none."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return ""

    def check_presence(self) -> None:
        """Raise MissingCompiler, in one line, unless the package is here."""
        if not self.version or find_spec(re.split("[.:]", self.used[0])[0]) is None:
            raise MissingCompiler(
                f"{self.name} is not installed here. Install it with: pip install 'gpulab[{self.extra}]'"
            )

    def check(self) -> None:
        """Raise MissingCompiler, in one line, unless the package is here and has all that is used."""
        self.check_presence()
        for place in self.used:
            if not _exists(place):
                raise MissingCompiler(
                    f"{self.distribution} {self.version} has no {place.replace(':', '.')}, which gpulab "
                    f"needs to run its kernels. Tested versions: {', '.join(self.tested)}. "
                    f"Install one with: pip install {self.distribution}=={self.tested[-1]}"
                )


def _exists(place: str) -> bool:
    module, _, path = place.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError:
        return False
    for name in filter(None, path.split(".")):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True
