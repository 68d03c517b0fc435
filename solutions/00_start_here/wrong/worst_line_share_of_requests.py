# exercise: start.worst_line  fails: right  says: should be
def worst_line(lines):
    line, requests, sectors, asked = max(lines, key=lambda row: row[2])
    return [line, sectors / requests, 100 * asked / (128 * requests)]
