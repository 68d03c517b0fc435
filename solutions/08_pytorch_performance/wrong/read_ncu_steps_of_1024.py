# exercise: pytorch.read_ncu  fails: right  says: first wrong: other units
import csv


def read_ncu(report):
    scales = {
        "ns": 1e-9,
        "us": 1e-6,
        "ms": 1e-3,
        "s": 1,
        "byte": 1,
        "Kbyte": 2**10,
        "Mbyte": 2**20,
        "Gbyte": 2**30,
    }
    lines = [line for line in report.splitlines() if line and not line.startswith("==")]
    names, units, *rows = csv.reader(lines)
    found = []
    for row in rows:
        of = {
            name: float(text.replace(",", "")) * scales.get(unit, 1)
            for name, text, unit in zip(names, row, units, strict=True)
            if name in names and "__" in name
        }
        requests = of["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
        sectors = of["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
        rate = of["dram__bytes.sum"] / of["gpu__time_duration.sum"] / 1e9
        found.append([row[names.index("Kernel Name")], rate, sectors / requests if requests else 0])
    return found
