# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives headless Chromium and Firefox by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/), so that tests use
pages as people do: with a pointer and a keyboard. Firefox speaks it by itself, Chromium by its chromedriver."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import websocket

TIMEOUT_SECONDS = 180  # pages of a million stacks on a busy machine
BROWSERS = {"chromium": ["chromium", "chromedriver"], "firefox": ["firefox-esr"]}
# Keys by their names, as WebDriver has them.
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Backspace": "\ue003", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015", "Home": "\ue011", "End": "\ue010", "Shift": "\ue008", "Space": " ",
        "PageUp": "\ue00e", "PageDown": "\ue00f"}
FIREFOX_PREFERENCES = {
    "layout.css.prefers-color-scheme.content-override": None,  # 0: dark, 1: light
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}


def missing(name):
    """What is not installed of what the browser needs, or None."""
    for program in BROWSERS[name]:
        if not shutil.which(program):
            return program
    return None


def descendants(pid):
    children = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    pending, found = [pid], []
    while pending:
        found.append(pending.pop())
        pending += children.get(found[-1], [])
    return found


def is_of_page(pid):
    """Whether the process is one that has pages: Firefox's end with "tab"."""
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        return "--type=renderer" in words or words.endswith("tab\0")
    return False


def processor_seconds(pid):
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0


def pss_bytes(pid):
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss: +(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        return int(found[1]) * 1024 if found else 0
    return 0


class Browser:
    """One page of one browser. To be closed."""

    def __init__(self, name, dark=False, width=1280, height=900):
        self.name = name
        self.directory = tempfile.TemporaryDirectory(prefix="allocprof-browser-")
        self.events = []
        self.addresses = set()
        self.numbers = itertools.count(1)
        # Both write more than a pipe holds.
        self.log = open(os.path.join(self.directory.name, "log"), "w+")
        try:
            getattr(self, f"start_{name}")(dark)
            # The window that Firefox begins with never has the focus where there is no screen, and its buttons hear no
            # keys; a tab that is made does.
            self.context = self.call("browsingContext.create", type="tab")["context"]
            self.call("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
            self.call("browsingContext.activate", context=self.context)
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def start(self, words):
        # Its children are of its group and end with it.
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
                                        start_new_session=True, env={**os.environ, "HOME": self.directory.name,
                                                                     "MOZ_REMOTE_SETTINGS_DEVTOOLS": "1"})

    def wait_for_log(self, pattern):
        end = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < end:
            found = re.search(pattern, pathlib.Path(self.log.name).read_text(errors="replace"))
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start: {pathlib.Path(self.log.name).read_text(errors='replace')}")

    def start_firefox(self, dark):
        preferences = dict(FIREFOX_PREFERENCES)
        preferences["layout.css.prefers-color-scheme.content-override"] = 0 if dark else 1
        profile = os.path.join(self.directory.name, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w") as file:
            for name, value in preferences.items():
                file.write(f'user_pref("{name}", {json.dumps(value)});\n')
        self.start(["firefox-esr", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0",
                    "about:blank"])
        self.connect(self.wait_for_log(r"WebDriver BiDi listening on (ws://\S+)") + "/session")
        self.call("session.new", capabilities={})

    def start_chromium(self, dark):
        self.start(["chromedriver", "--port=0"])
        port = self.wait_for_log(r"started successfully on port (\d+)")
        words = ["--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-dev-shm-usage",
                 f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
        wanted = {"capabilities": {"alwaysMatch": {
            "webSocketUrl": True, "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": words}}}}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/session", json.dumps(wanted).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            session = json.load(answer)["value"]
        self.connect(session["capabilities"]["webSocketUrl"])

    def connect(self, address):
        self.socket = websocket.create_connection(address, timeout=TIMEOUT_SECONDS, suppress_origin=True)

    def close(self):
        if hasattr(self, "socket"):
            self.socket.close()
        if hasattr(self, "process"):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.log.close()
        for _ in range(50):
            try:
                self.directory.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def call(self, method, **params):
        """The result of a command of the protocol."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{self.name}: {method}: {answer['message']}")
                return answer["result"]
            if answer.get("type") == "event":
                self.events.append(answer)

    def resize(self, width, height):
        self.call("browsingContext.setViewport", context=self.context,
                  viewport={"width": width, "height": height})

    def open(self, path, fragment=""):
        """Loads the file, with a fragment in its address, and waits for its script to set data-ready at the root element. Returns the seconds that
        this took."""
        self.events.clear()
        address = pathlib.Path(path).resolve().as_uri()
        self.addresses = {"about:blank", address, address + fragment}
        since = time.monotonic()
        if fragment:
            # From the same file to a fragment of it nothing would be loaded.
            self.call("browsingContext.navigate", context=self.context, url="about:blank", wait="complete")
        self.call("browsingContext.navigate", context=self.context, url=address + fragment, wait="complete")
        self.wait_until("'ready' in document.documentElement.dataset")
        return time.monotonic() - since

    def show(self, path):
        """Loads a file without a script."""
        address = pathlib.Path(path).resolve().as_uri()
        self.addresses.add(address)
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, expression):
        """The value of an expression, which may be a promise; what JSON can hold."""
        answer = self.call("script.evaluate", target={"context": self.context}, awaitPromise=True,
                           expression=f"(async () => JSON.stringify(await ({expression})))()")
        if answer["type"] != "success":
            raise RuntimeError(f"{self.name}: {expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"].get("value") or "null")

    def wait_until(self, expression):
        end = time.monotonic() + TIMEOUT_SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: never true: {expression}; errors: {self.errors()}")
            time.sleep(0.01)

    def settle(self):
        """Waits until what was done last is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def page_bytes(self):
        """The memory of the process that has the page, and of nothing else but what the browser itself needs there: its
        share of each page of memory."""
        return max(map(pss_bytes, self.page_processes()))

    def page_seconds(self):
        """The time of the processor that the process has used that has the page."""
        return max(map(processor_seconds, self.page_processes()))

    def page_processes(self):
        return [pid for pid in descendants(self.process.pid) if is_of_page(pid)]

    def text(self, selector):
        """What the element shows."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)")

    def area(self, selector):
        """Where the element is in the viewport, into which it is scrolled: x, y, width, height."""
        return self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: "nearest" }});
            const {{ x, y, width, height }} = element.getBoundingClientRect();
            return [x, y, width, height];
        }})()""")

    def perform(self, kind, actions, **more):
        self.call("input.performActions", context=self.context, actions=[
            {"type": kind, "id": kind, "actions": actions, **more}])

    def point(self, x, y):
        self.perform("pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)}])

    def click_at(self, x, y):
        self.perform("pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)},
                                 {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])

    def drag(self, x, y, to_x, to_y):
        self.perform("pointer", [{"type": "pointerMove", "x": round(x), "y": round(y)},
                                 {"type": "pointerDown", "button": 0},
                                 {"type": "pointerMove", "x": round((x + to_x) / 2), "y": round((y + to_y) / 2)},
                                 {"type": "pointerMove", "x": round(to_x), "y": round(to_y)},
                                 {"type": "pointerUp", "button": 0}])

    def click(self, selector):
        """At the middle of the element."""
        x, y, width, height = self.area(selector)
        self.click_at(x + width / 2, y + height / 2)

    def keys(self, *names):
        """Presses keys one after the other: those of KEYS, "Shift+Right", or characters."""
        for name in names:
            *held, key = name.split("+") if len(name) > 1 else [name]
            values = [KEYS.get(one, one) for one in [*held, key]]
            self.perform("key", [{"type": "keyDown", "value": value} for value in values] +
                         [{"type": "keyUp", "value": value} for value in reversed(values)])

    def type(self, text):
        self.perform("key", [{"type": kind, "value": c} for c in text for kind in ("keyDown", "keyUp")])

    def choose(self, selector, value):
        """Of a <select>, by the value of its option, as a person's choice."""
        self.evaluate(f"""(() => {{
            const list = document.querySelector({json.dumps(selector)});
            if (![...list.options].some((option) => option.value === {json.dumps(value)}))
                throw new Error("no option " + {json.dumps(value)});
            list.value = {json.dumps(value)};
            list.dispatchEvent(new Event("input", {{ bubbles: true }}));
            list.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()""")

    def give_file(self, selector, path):
        """To an <input type=file>, as if a person had chosen it."""
        element = self.call("script.evaluate", target={"context": self.context}, awaitPromise=False,
                            expression=f"document.querySelector({json.dumps(selector)})")["result"]
        self.call("input.setFiles", context=self.context, element={"sharedId": element["sharedId"]},
                  files=[str(pathlib.Path(path).resolve())])

    def screenshot(self, path):
        """Of the viewport, as PNG."""
        data = self.call("browsingContext.captureScreenshot", context=self.context)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def print(self, path):
        """What would be printed, as PDF."""
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("browsingContext.print", context=self.context)["data"]))

    def drain(self):
        """Reads the events that are there already."""
        self.evaluate("new Promise((done) => setTimeout(done, 50))")
        while self.socket.sock.pending() if hasattr(self.socket.sock, "pending") else \
                select.select([self.socket.sock], [], [], 0)[0]:
            answer = json.loads(self.socket.recv())
            if answer.get("type") == "event":
                self.events.append(answer)

    def requests(self):
        """The addresses that the page asked for, beside its own. What is in a data: address comes from nowhere."""
        self.drain()
        asked = [event["params"]["request"]["url"] for event in self.events
                 if event["method"] == "network.beforeRequestSent" and event["params"].get("context") == self.context]
        return [address for address in asked if address not in self.addresses and not address.startswith("data:")]

    def errors(self):
        """What went wrong in the page: exceptions and what the policy forbade."""
        self.drain()
        return [event["params"]["text"] for event in self.events
                if event["method"] == "log.entryAdded" and event["params"]["level"] in ("error", "warn")]
