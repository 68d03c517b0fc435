"""The command `gpulab`."""

from __future__ import annotations


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    raise SystemExit("gpulab: no command yet")
