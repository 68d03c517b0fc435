# how: an error whose text would run in a browser, repaint a terminal and start a spreadsheet's formula
# exercise: memory.sectors
# earns: 0
# says: <script>alert(1)</script>…[2J
def sectors(addresses, size):
    raise ValueError("=cmd()\x1b[2J\x1b]0;full marks\x07\u202e\x00<script>alert(1)</script>[2J\r\n\n3 of 3")
