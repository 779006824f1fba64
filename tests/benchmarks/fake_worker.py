"""Speaks the workers' protocol and does nothing: `python fake_worker.py WORKLOAD.json`.

The workload's `way` says how it behaves; a `flags` key tells our own worker from the others'.
"""

import json
import os
import sys
import time
from pathlib import Path


def say(**answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> int:
    path = Path(sys.argv[1])
    workload = json.loads(path.read_text())
    way = workload.get("way", "")
    sys.stderr.write("hello\n")
    if way == "cannot":
        say(error="no such way:\n try another")
        return 1
    if way == "dies early":
        sys.stderr.write("Traceback\nRuntimeError: out of luck\n")
        return 3
    if way == "babbles":
        sys.stdout.write("epoch 1/3\n")
        sys.stdout.flush()
    if way == "silent":
        time.sleep(60)
    if workload.get("suite") == "start":
        say(first_step=True, peak_rss_mb=10.0)
        return 0
    if way == "has a child":
        child = os.fork()
        if not child:
            time.sleep(60)
        Path(workload["scratch"], "child").write_text(str(child))
    say(ready=True, versions={"fake": "1.0"})
    runs = 0
    for line in sys.stdin:
        request = json.loads(line)
        if "quit" in request:
            break
        if "check" in request:
            ids = [[101, 7, 102]] * request["check"]
            say(ids=ids if way != "other ids" else [[101, 100, 102]] * len(ids), loss=0.9 if way == "other loss" else 0.7)
            continue
        runs += 1
        if way == "dies late" and runs == 2:
            os.abort()
        batch = workload.get("batch_size", 1)
        speed = {8: 1.0, 16: 4.0, 32: 2.0}.get(batch, 1.0) * (2.0 if "flags" in workload else 1.0)
        say(
            seconds=request["run"] / speed,
            examples=request["run"] * 10,
            loss=0.7 - 0.001 * runs,
            peak_rss_mb=100.0 + batch,
            gflops=100.0 if workload.get("precision") == "bfloat16" else 50.0,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
