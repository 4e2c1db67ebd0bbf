# SPDX-License-Identifier: GPL-3.0-or-later
"""record --reachable of servers that answer requests meanwhile: these lose nothing, so whatever is called lost is in use."""

import contextlib
import threading

import pytest

from measured import Measured
from servers import Nginx, Node, Postgresql, Redis
from support import TIMEOUT_SECONDS, Recording, wait_until

# Requests of the load between two looks, and looks before the recording's end.
REQUESTS = 40
LOOKS = 4


class Load(contextlib.AbstractContextManager):
    """Asks the server from a thread until the block ends."""

    def __init__(self, server):
        self.server, self.n, self.ends, self.error = server, 0, False, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ends:
                self.server.ask(self.n)
                self.n += 1
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def await_more(self):
        until = self.n + REQUESTS
        wait_until(lambda: self.error or self.n >= until, "the server answers")
        assert not self.error, self.error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join(TIMEOUT_SECONDS)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("server", [Nginx, Node, Postgresql, Redis])
def test_nothing_is_lost(request, runner, run, allocprof, directory, tmp_path, engine, server):
    served = server(runner, directory, request.getfixturevalue("cluster") if server is Postgresql else None)
    data, dumps = tmp_path / "data", [tmp_path / f"dump{number}" for number in range(LOOKS)]
    with Load(served) as load:
        load.await_more()
        recording = Measured(runner, allocprof, served.pid, data, "record", "-q", "--reachable", engine=engine)
        for dump in dumps:
            served.keep()
            load.await_more()
            run([allocprof, "ctl", "-p", recording.process.pid, "dump", "-o", dump], expect=0)
        recording.finish()
        # The server goes on.
        load.await_more()
    served.end()
    for path in [*dumps, data]:
        recording = Recording(path)
        (lost, possibly, reachable), = recording.sql(
            "SELECT sum(lost + indirectly_lost), sum(possibly_lost), sum(reachable) FROM reach")
        assert possibly + reachable > 0 and lost == 0, (path, lost, possibly, reachable)
        assert "reach_unread" not in recording.gaps, recording.gaps
