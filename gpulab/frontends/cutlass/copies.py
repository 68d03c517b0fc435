"""``cute.copy`` of matrices with one question more: the compiler ends the process for registers that were not
retiled."""

from __future__ import annotations

from typing import Any

from .unseen import unseen

MATRICES = ("LdMatrix", "StMatrix")  # how the names of its operations begin


def divided_alike(source: Any, target: Any) -> bool:
    """The first mode, which one atom copies after another, has as many modes in both shapes."""
    if not (isinstance(source, tuple) and isinstance(target, tuple)):
        return True
    first, second = source[0], target[0]
    return not (isinstance(first, tuple) and isinstance(second, tuple)) or len(first) == len(second)


def install() -> None:
    """Make ``cute.copy`` refuse with a sentence what its compiler aborts for."""
    from cutlass import cute
    from cutlass.cutlass_dsl import dsl_user_op

    copied = cute.copy

    @dsl_user_op
    @unseen
    def copy(atom: Any, src: Any, dst: Any, *, loc: Any = None, ip: Any = None, **options: Any) -> None:
        shapes = [getattr(each, "shape", None) for each in (src, dst)]
        if type(getattr(atom, "op", None)).__name__.startswith(MATRICES) and not divided_alike(*shapes):
            raise ValueError(
                f"cute.copy: the source has the shape {shapes[0]} and the destination {shapes[1]}. Their "
                "first modes, the values that a thread copies at once, are divided differently. Registers of "
                "an MMA take the shape of a tiled copy by `retile`: copy.get_slice(t).retile(registers)."
            )
        copied(atom, src, dst, loc=loc, ip=ip, **options)

    copy.__doc__ = copied.__doc__
    cute.copy = copy
