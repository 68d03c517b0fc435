# how: prints, warnings, logging and a progress bar, on standard output and standard error
# exercise: memory.sectors
import logging
import sys
import warnings

logging.basicConfig(level=logging.DEBUG)


def sectors(addresses, size):
    warnings.warn("slow", RuntimeWarning)
    logging.warning("%s addresses", len(addresses))
    print(f"{size=}", file=sys.stderr, flush=True)
    found = set()
    for i, address in enumerate(addresses):
        print(f"\r{i}/{len(addresses)} \x1b[32m▏\x1b[0m", end="", file=sys.stderr)
        found.update(range(address // 32, (address + size - 1) // 32 + 1))
    return len(found)
