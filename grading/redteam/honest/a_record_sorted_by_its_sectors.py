# how: the lines sorted by sectors, and the answer a tuple of unpacked fields
# exercise: start.worst_line
def worst_line(lines: list) -> tuple:
    """The line that moves most sectors, its sectors a request, and the share of bytes that is used."""
    ordered = sorted(lines, key=lambda row: -row[2])
    worst, *_ = ordered
    number, requests, sectors, asked = worst
    bytes_moved = sectors * 32
    return number, sectors / requests, asked / bytes_moved * 100
