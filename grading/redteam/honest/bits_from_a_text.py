# how: the code as a text of binary digits that is cut into three
# exercise: formats.fields
def fields(code, exponent, mantissa):
    text = format(code, f"0{1 + exponent + mantissa}b")
    sign, power, fraction = text[0], text[1 : 1 + exponent], text[1 + exponent :]
    return [int(sign), int(power, 2), int(fraction, 2) if fraction else 0]
