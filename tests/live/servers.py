# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of Debian that tests start, and requests to them."""

import socket

from support import TIMEOUT_SECONDS

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]

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
