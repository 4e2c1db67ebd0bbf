# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers under test: `allocprof serve`, and what it answers."""

import http.client
import json
import pathlib
import re
import signal
import urllib.request

from support import wait_until

OPEN = {"Accept": "application/openmetrics-text; version=1.0.0"}


class Serve:
    """A server of one process, which has told where it listens."""

    def __init__(self, runner, allocprof, directory, *options, listen="127.0.0.1:0", target=None, env=None, debuginfod=False):
        self.log = directory / "serve.log"
        self.kept = directory / "kept"
        self.process = runner.start([allocprof, "serve", *([] if debuginfod else ["--no-debuginfod"]), "--listen", listen, *(["-p", target] if target else []),
                                     *options], env=env, stderr=self.log.open("wb"))
        self.address = wait_until(self.listens, "serve listens")

    def listens(self):
        found = re.search(r"listening at (\S+)\n", self.said())
        assert found or self.process.poll() is None, self.said()
        return found and found[1]

    def said(self):
        return self.log.read_text()

    def get(self, path, headers=None):
        request = urllib.request.Request(self.address + path, headers=headers or {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def status(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def metrics(self):
        return metrics_of(self.get("/metrics", OPEN).decode())

    def children(self):
        """Process ids by name: the recorder is called like the server."""
        pids = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {pathlib.Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in pids}

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.said()

    def files(self):
        return sorted(self.kept.glob("serve-*.data"))


def metrics_of(text):
    """{name: {labels: value}}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? ([0-9.]+)', line).groups()
        assert labels not in found.setdefault(name, {}), line
        found[name][labels] = float(value)
    return found


def total(metrics, name):
    return sum(metrics[f"allocprof_{name}"].values())


def report(run, allocprof, path, *options):
    return json.loads(run([allocprof, "report", "--json", "--top=0", *options, "-i", path], expect=0).stdout)
