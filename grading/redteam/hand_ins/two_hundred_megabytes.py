# how: a file of zeros, large and without a size on the disk
# says: at most
def hand_in(path, notebook, course):
    with path.open("wb") as file:
        file.truncate(200 << 20)
