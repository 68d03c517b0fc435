# how: a named pipe in the place of the notebook, at which a reader waits for ever
# says: not a regular file
def hand_in(path, notebook, course):
    import os

    os.mkfifo(path)
