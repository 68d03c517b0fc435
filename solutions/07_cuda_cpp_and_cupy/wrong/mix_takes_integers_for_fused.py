# exercise: cpp.mix  fails: right  says: first wrong: plain
def mix(ptx):
    found = {"loads": 0, "bytes": 0, "fused": 0}
    for line in ptx.splitlines():
        words = line.split()
        parts = words[0].split(".") if words else [""]
        if parts[0] == "ld" and parts[1] == "global":
            found["loads"] += 1
            width = {"v2": 2, "v4": 4}.get(parts[-2], 1)
            found["bytes"] += width * int(parts[-1][1:]) // 8
        found["fused"] += parts[0] in ("fma", "mad")
    return found
