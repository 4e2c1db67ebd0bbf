# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one target under one tool, and takes its time."""

import datetime
import os
import platform
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import tools

RUN_SECONDS = 300
MOST_LOAD = 0.5


def say(text):
    print(text, file=sys.stderr, flush=True)


def describe_machine(load):
    with open("/proc/cpuinfo") as file:
        processor = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    with open("/proc/meminfo") as file:
        memory_kib = int(re.search(r"^MemTotal:\s+(\d+)", file.read())[1])
    return {
        "date": datetime.date.today().isoformat(),
        "kernel": platform.release(),
        "processor": processor[1] if processor else platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gib": memory_kib / 2**20,
        "libc": " ".join(platform.libc_ver()),
        "load": load,
    }


def wait_for(process):
    """Popen.wait() with a timeout would look only every 50 ms."""
    pidfd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(RUN_SECONDS * 1000):
            raise tools.Failure(f"not done after {RUN_SECONDS} s")
    finally:
        os.close(pidfd)


class Run:
    """One target under one tool, once."""

    def __init__(self, tool, target, size, directory):
        self.directory = directory
        argv = tool.argv(target.argvs[size], directory)
        environment = {**os.environ, **target.environment}
        with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
            start_ns = time.monotonic_ns()
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout,
                                       stderr=stderr, env=environment, start_new_session=True)
            try:
                wait_for(process)
                self.wall_ns = time.monotonic_ns() - start_ns
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                status = process.wait()
            stdout.seek(0)
            stderr.seek(0)
            self.stdout, self.stderr = stdout.read(), stderr.read()
        if status:
            last = (self.stderr.strip().splitlines() or ["no message"])[-1]
            raise tools.Failure(f"exit status {status}: {last}")

    def numbers(self):
        inside = re.search(r"^depth: calls \d+ ns (\d+)$", self.stdout, re.M)
        sizes = [path.stat().st_size for path in self.directory.iterdir()]
        return {"wall_ns": self.wall_ns, "inside_ns": int(inside[1]) if inside else None,
                "file_bytes": sum(sizes) if sizes else None}
