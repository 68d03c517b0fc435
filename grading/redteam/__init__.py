"""Submissions that try to get points which they have not earned, and honest ones that look odd.

`attacks/` and `honest/` hold one small file each: a head that says what it is about, and the cell that takes
the place of an exercise's solution cell. `plays.py` judges them as a class is judged: recorded in the
sandbox, replayed in a limited child, at the judge's own cases.
"""
