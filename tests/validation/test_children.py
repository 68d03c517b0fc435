"""Commands end with who waits for them: all of their processes, also when time runs out."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from validation import children

PRINT = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"]
# A process that starts another one, says its number, and waits for it; both ignore the request to end.
TWO = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
other = subprocess.Popen([sys.executable, "-c", inner])
print(other.pid, flush=True)
other.wait()
"""


def test_output_and_errors_are_one_text_and_the_code_is_told():
    ended = children.run(PRINT, 60)
    assert ended.code == 3
    assert set(ended.output.split()) == {"out", "err"}
    assert ended.last in ("out", "err")


def test_out_of_time_all_processes_are_ended(monkeypatch):
    monkeypatch.setattr(children, "GRACE", 0.5)
    ended = children.run([sys.executable, "-c", TWO], 3)
    assert ended.code is None
    assert not _alive(int(ended.output.split()[0]))


def test_several_run_at_the_same_time():
    sleep = [
        sys.executable,
        "-c",
        "import time; start = time.time(); time.sleep(2); print(start, time.time())",
    ]
    spans = [tuple(map(float, ended.output.split())) for ended in children.run_all([sleep] * 3, 60)]
    assert max(start for start, _ in spans) < min(end for _, end in spans)


def test_where_one_cannot_start_the_others_are_ended(tmp_path):
    mark = tmp_path / "mark"
    slow = [sys.executable, "-c", f"import time; time.sleep(5); open({str(mark)!r}, 'w')"]
    quick = [sys.executable, "-c", "pass"]
    with pytest.raises(FileNotFoundError):
        children.run_all([quick, slow, ["no-such-program-anywhere"]], 60)
    time.sleep(6)
    assert not mark.exists()


def _alive(pid: int) -> bool:
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.1)
    return True
