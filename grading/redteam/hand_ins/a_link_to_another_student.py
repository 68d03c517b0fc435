# how: a symbolic link to the notebook of somebody who is good
# says: link
def hand_in(path, notebook, course):
    path.symlink_to(path.parents[2] / "good" / path.parent.name / path.name)
