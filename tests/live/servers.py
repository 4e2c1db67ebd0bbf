# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of Debian that tests start, and requests to them."""

import glob
import pathlib
import shutil
import socket

import pytest

from support import TIMEOUT_SECONDS, unavailable

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@pytest.fixture
def directory(public_directory):
    """One that is another user's."""
    shutil.chown(public_directory, 65534, 65534)
    return public_directory


@pytest.fixture
def cluster(run, directory):
    """PostgreSQL's programs, its server, and a directory of data. The server is a copy: nobody else runs it."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        unavailable("PostgreSQL is not installed: scripts/setup --test")
    programs = pathlib.Path(found[-1]).parent
    run([*NOBODY, found[-1], "-D", directory / "data", "-A", "trust", "-U", "test", "--no-sync", "--no-instructions",
         "--locale=C"], expect=0, cwd="/")
    return programs, shutil.copy(programs / "postgres", directory / "postgres"), directory / "data"


NGINX = """
daemon off;
user nobody nogroup;
worker_processes 2;
pid {0}/pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
	access_log off;
	client_body_temp_path {0}/body;
	proxy_temp_path {0}/proxy;
	fastcgi_temp_path {0}/fastcgi;
	uwsgi_temp_path {0}/uwsgi;
	scgi_temp_path {0}/scgi;
	limit_req_zone $request_uri zone=requests:256k rate=1000000r/s;
	server {{
		listen unix:{0}/socket;
		root {0};
		limit_req zone=requests burst=1000000 nodelay;
		location /hello {{ return 200 hello; }}
	}}
}}
"""


def ask(path, request):
    """What comes back until the other side closes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        connection.connect(str(path))
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer
