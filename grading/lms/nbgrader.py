"""What nbgrader must know of a course."""

from __future__ import annotations

from traitlets.config import Config

from grading.core.course import Course

IGNORED = [".ipynb_checkpoints", "__pycache__", "*.pyc", "*.py", "*.toml", "wrong"]  # in solutions/


def nbgrader_config(course: Course) -> Config:
    """nbgrader's settings for a course: its folders, and our two preprocessors in the place of `Execute`."""
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor  # slow to import

    from grading.lms.feedback import FeedbackExporter
    from grading.lms.marks import Grades
    from grading.lms.preprocessors import AUTOGRADE, RELEASE, SANITIZE
    from grading.lms.rendering import FILTERS
    from grading.lms.rubrics import HideRubric, ShowRubric

    config = Config()
    folders = config.CourseDirectory
    folders.root = str(course.root)
    folders.source_directory = course.relative(course.solutions)
    folders.release_directory = course.relative(course.labs)
    folders.submitted_directory = course.relative(course.submitted)
    folders.autograded_directory = course.relative(course.autograded)
    folders.feedback_directory = course.relative(course.feedback)
    folders.solution_directory = course.relative(course.home / "solution")
    folders.db_url = course.db_url
    folders.ignore = IGNORED
    config.GenerateAssignment.preprocessors = RELEASE
    config.Autograde.sanitize_preprocessors = SANITIZE
    config.Autograde.autograde_preprocessors = [*AUTOGRADE, ShowRubric]
    config.GenerateFeedback.preprocessors = [Grades, HideRubric, CSSHTMLHeaderPreprocessor]
    config.GenerateFeedback.exporter_class = FeedbackExporter
    config.HTMLExporter.filters = FILTERS  # formgrader's pages and the feedback's
    config.HTMLExporter.preprocessors = ["grading.lms.rubric_items.RubricItems"]  # formgrader's alone
    config.ShowRubric.solutions = config.RubricItems.solutions = str(course.solutions)
    config.RubricItems.db_url = course.db_url
    config.ExportPlugin.to = str(course.exported)
    config.Graft.labs = config.WriteVerdicts.labs = str(course.labs)
    config.WriteVerdicts.verdicts = str(course.verdicts)
    config.OverwriteCells.add_missing_cells = True
    return config
