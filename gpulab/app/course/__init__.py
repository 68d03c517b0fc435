"""The course as a whole: its labs and paths, a quiz that places a learner, the glossary, what has been done.

`catalogue` holds them as data; `progress()`, `quiz()` and `glossary()` show themselves, in a terminal and in
a notebook; `home()` and `lab_map()` are the front page.
"""

from .glossary import UnknownTerm, glossary
from .home import home
from .lab_map import lab_map
from .progress import progress
from .quiz import quiz

__all__ = ["UnknownTerm", "glossary", "home", "lab_map", "progress", "quiz"]
