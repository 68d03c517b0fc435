# how: negative and huge places, tokens that are texts, and lists as long as the wire takes
# exercise: decode.generate
# earns: 0
# slow: yes
# says: it calls `forward(
def generate(forward, choose, prompt, count, end):
    for tokens, place in ((["x"] * 5000, -1), ([0], 10**18), ([True], 0)):
        forward(tokens, place)
    return []
