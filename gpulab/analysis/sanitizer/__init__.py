"""The sanitizer: runs a kernel in several orders, looks at every access, and says what is wrong and
why."""

from .findings import Finding, Findings
from .sanitize import NotALaunch, sanitize
from .tools import Tools

__all__ = ["Finding", "Findings", "NotALaunch", "Tools", "sanitize"]
