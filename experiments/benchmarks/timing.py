"""Clocks and memory."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

Table = tuple[list[str], list[list[object]]]


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the median wall time of a call, the first one left out."""
    call()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return median(found)


def in_process(code: str) -> dict[str, Any]:
    """Run code in a new interpreter; return what it stores in ``result``, and its peak memory."""
    script = (
        "import json, re, time\nresult = {}\n"
        f"{code}\n"
        # Not getrusage: its peak includes that of the process that started this one.
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())\n"
        "result['peak_mb'] = int(peak[1]) / 1024\n"
        "print(json.dumps(result))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]
