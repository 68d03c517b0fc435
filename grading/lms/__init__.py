"""A class: what students handed in, nbgrader's gradebook, feedback, late penalties, exports, similarity."""
