"""Lab 25: the results that are expected. Absent from the judge's sandbox."""
