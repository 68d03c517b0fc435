"""The instructor's package: release the labs, judge submissions by data alone, fill nbgrader's gradebook.

`gpulab` never imports it, and no learner's code ever runs in a process that has it loaded.
"""
