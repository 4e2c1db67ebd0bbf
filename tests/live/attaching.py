# SPDX-License-Identifier: GPL-3.0-or-later
"""Attaches to processes of a user, by a tool whose file lends privileges (test_borrowed.py). As a program:

    attaching.py PLACE TRIES: in a PID namespace of its own, ends each process while the tool attaches to it and gives
                              its number to one of root's. Prints "TRIES tries" where none of those was measured.
"""

import json
import pathlib
import sys
import time

import support

USER = 65531
OUTPUT = pathlib.Path("out", "raced")


def as_user(user=USER):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def begin(runner, place, environment, pid):
    process = runner.start([*as_user(), place / "lent" / "allocprof", "stat", "--json", "-o", place / OUTPUT,
                            "--duration", "50ms", "-p", pid], environment, cwd=place / "out", stdout=-1, stderr=-1)
    return process, place / OUTPUT


def calls(process, output):
    """Of malloc, that it has measured; None where it refused."""
    stderr = process.communicate(timeout=support.TIMEOUT_SECONDS)[1]
    if process.returncode:
        assert process.returncode == 125 and stderr.startswith(b"allocprof: "), stderr
        return None
    made = json.loads(output.read_text())["functions"]["malloc"]["calls"]
    output.unlink()
    return made


def microseconds(runner, place, environment):
    """From the start of the tool to its end, with a process that stays what it is."""
    target = support.Obedient(runner, [*as_user(), place / "sleeper"])
    begun = time.monotonic()
    assert calls(*begin(runner, place, environment, target.pid)) == 0
    target.exit()
    return int((time.monotonic() - begun) * 1e6)


def use_again(runner, place, environment, tries):
    longest = microseconds(runner, place, environment)
    same = 0
    for number in range(tries):
        victim = runner.start([*as_user(), place / "gains", 1 << 40, "/nonexistent"])
        tool, output = begin(runner, place, environment, victim.pid)
        time.sleep(longest * number / tries / 1e6)
        victim.kill()
        victim.wait()
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(victim.pid - 1))
        successor = runner.start([place / "gains", "spend", 2 * longest // 1000])
        same += successor.pid == victim.pid
        made = calls(tool, output)
        successor.kill()
        successor.wait()
        runner.started.clear()
        assert not made, f"{made} calls of a process of root's ({victim.pid}, {successor.pid})"
    # A thread of the tool may have taken the number before.
    assert same > tries // 2, f"{same} of {tries} numbers were used again"


def main():
    place, tries = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    runner = support.Runner()
    environment = {"XDG_RUNTIME_DIR": str(place / "runtime"), "HOME": str(place / "out")}
    try:
        use_again(runner, place, environment, tries)
    finally:
        runner.end_all()
    print(f"{tries} tries")


if __name__ == "__main__":
    main()
