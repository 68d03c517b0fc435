# how: asks the judge's model for ever
# exercise: decode.generate
# earns: 0
# slow: yes
# says: generate
def generate(forward, choose, prompt, count, end):
    while True:
        forward(prompt, 0)
