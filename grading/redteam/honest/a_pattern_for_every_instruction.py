# how: a regular expression finds the loads, and Counter counts
# exercise: cpp.mix
import re
from collections import Counter

LOAD = re.compile(r"^\s*(?:@!?%p\d+\s+)?ld((?:\.\w+(?:::\w+)?)*)\s", re.M)


def mix(ptx):
    counted = Counter(loads=0, bytes=0, fused=0)
    for found in LOAD.findall(ptx):
        parts = found.split(".")
        if "global" in parts:
            vector = 4 if "v4" in parts else 2 if "v2" in parts else 1
            counted["loads"] += 1
            counted["bytes"] += vector * int(re.sub(r"\D", "", parts[-1])) // 8
    counted["fused"] = len(re.findall(r"^\s*(?:@!?%p\d+\s+)?fma\.", ptx, re.M))
    return dict(counted)
