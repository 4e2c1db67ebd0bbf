#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bash, zsh and fish complete, each asked at a prompt of its own as the user asks.

completions.py ALLOCPROF COMPLETIONS_DIR SHELL
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

TIMEOUT_SECONDS = 60
PROMPT = "ready> "
COSTS = {"allocations", "bytes", "live", "live-bytes", "temporary", "peak", "resident", "unique", "lost"}
COMMANDS = {"stat", "record", "report", "graph", "html", "folded", "export", "query", "diff", "check", "ctl", "symbolize", "archive",
            "doctor", "help"}
FUNCTIONS = {"malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign",
             "valloc", "pvalloc", "free"}
# A line, what has to be offered, and what must not be. None: all that is offered is the set before.
CASES = [
    ("allocprof sym", {"symbolize"}, None),
    ("allocprof report --sort=", COSTS | {"oldest"}, None),
    ("allocprof folded --cost=live", {"live", "live-bytes"}, None),
    ("allocprof export --format=p", {"pprof"}, None),
    ("allocprof folded --cost te", {"temporary"}, None),
    ("allocprof report --demangle=", {"simple", "full", "none"}, None),
    ("allocprof stat --engine=", {"auto", "uprobe", "preload", "inside"}, None),
    ("allocprof report --by=thr", {"thread"}, None),
    ("allocprof ctl st", {"start", "stop", "status"}, None),
    ("allocprof report --not-", {"--not-through", "--not-stack"}, None),
    ("allocprof query --sch", {"--schema"}, None),
    ("allocprof graph -o x.svg --min-s", {"--min-size"}, None),
    ("allocprof stat -e reallo", {"realloc", "reallocarray"}, None),
    ("allocprof stat --event=malloc,reallo", {"malloc,realloc", "malloc,reallocarray"}, None),
    ("allocprof report rec", {"recording.data", "recording.data.old"}, None),
    ("allocprof report -i rec", {"recording.data", "recording.data.old"}, None),
    ("allocprof folded --input=rec", {"recording.data", "recording.data.old"}, None),
    ("allocprof diff recording.data recording.data.o", {"recording.data.old"}, None),
    ("allocprof symbolize --debug-dir=di", {"directory"}, {"different"}),
    ("allocprof record -p ", {str(os.getpid())}, {"recording.data"}),
    # The command that is measured completes as it does by itself.
    ("allocprof record --live allocprof-test-pro", {"allocprof-test-program"}, None),
    ("allocprof record -o out.data allocprof-test-program --wo", {"--word", "--world"}, None),
    ("allocprof stat --event=free -- allocprof-test-program --wo", {"--word", "--world"}, None),
    ("allocprof doctor allocprof-test-pro", {"allocprof-test-program"}, None),
]


class Terminal:
    """A shell at a pseudo-terminal."""

    def __init__(self, words, cwd, environment):
        self.read = ""
        self.process, self.fd = pty.fork()
        if not self.process:
            os.chdir(cwd)
            os.execvpe(words[0], words, environment)

    def read_until(self, text):
        """What comes up to @text, without it."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while text not in self.read:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"expected {text!r} within {TIMEOUT_SECONDS} s, got {self.read!r}")
            self.read += os.read(self.fd, 65536).decode(errors="replace")
        before, _, self.read = self.read.partition(text)
        return before

    def tell(self, text):
        """Types a line, and waits for the prompt that follows it."""
        os.write(self.fd, text.encode() + b"; printf '%s' '<to''ld>'\n")
        self.read_until("<told>")
        self.read_until(PROMPT)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.process, 0)


def ask_at_prompt(terminal, line, key):
    """All that @key inserts behind @line, which is then printed instead of run."""
    os.write(terminal.fd, line.encode() + key)
    os.write(terminal.fd, b"\x01printf '<%s>' BEG''IN \x05 E''ND\n")
    terminal.read_until("<BEGIN>")
    words = re.findall(r"<([^>]*)>", terminal.read_until("<END>"))
    terminal.read_until(PROMPT)
    before = line.rsplit(" ", 1)[0].split()
    # What was offered stands in place of the last word; only the first has what is before '='.
    return {word.split("=", 1)[1] if re.match(r"--[a-z-]+=.", word) else word.rstrip("=/")
            for word in words[len(before):]}


def bash(directory, cwd, environment):
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], cwd, environment)
    terminal.tell(f"PS1='{PROMPT}'; . /usr/share/bash-completion/bash_completion; "
                  f". {directory}/allocprof.bash; complete -W '--word --world' allocprof-test-program; "
                  "bind '\"\\C-xa\": insert-completions'; bind 'set enable-bracketed-paste off'")
    return terminal, lambda line: ask_at_prompt(terminal, line, b"\x18a")


def zsh(directory, cwd, environment):
    terminal = Terminal(["zsh", "-f", "-i"], cwd, environment)
    terminal.tell(f"PS1='{PROMPT}'; unsetopt zle_bracketed_paste prompt_cr prompt_sp; bindkey -e; "
                  f"fpath=({directory} $fpath); autoload -Uz compinit; compinit -D -u; "
                  "_test() { compadd -- --word --world }; compdef _test allocprof-test-program; "
                  "zle -C all-matches complete-word _generic; bindkey '^Xa' all-matches; "
                  "zstyle ':completion:all-matches:*' completer _all_matches _complete; "
                  "zstyle ':completion:all-matches:*' insert true")
    return terminal, lambda line: ask_at_prompt(terminal, line, b"\x18a")


def fish(directory, cwd, environment):
    def ask(line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {directory}/allocprof.fish; "
             "complete -c allocprof-test-program -f -l word; complete -c allocprof-test-program -l world; "
             "complete -C $argv[1]", line], cwd=cwd, env=environment, capture_output=True, text=True,
            check=True, timeout=TIMEOUT_SECONDS)
        words = {word.split("\t")[0] for word in done.stdout.splitlines()}
        return {re.sub(r"^--[a-z-]+=(?=.)", "", word).rstrip("=/") for word in words}
    return None, ask


def main():
    allocprof, directory = map(os.path.abspath, sys.argv[1:3])
    shell = sys.argv[3]
    if not shutil.which(shell):
        print(f"{shell} is not installed")
        sys.exit(77)
    failures = []
    with tempfile.TemporaryDirectory() as cwd:
        for name in ("recording.data", "recording.data.old", "different"):
            open(os.path.join(cwd, name), "w").close()
        os.mkdir(os.path.join(cwd, "directory"))
        os.mkdir(os.path.join(cwd, "bin"))
        os.symlink("/bin/true", os.path.join(cwd, "bin", "allocprof-test-program"))
        path = f"{cwd}/bin:{os.path.dirname(allocprof)}:/usr/bin:/bin"
        terminal, ask = globals()[shell](directory, cwd, {
            "PATH": path, "HOME": cwd, "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "200"})
        for line, wanted, unwanted in CASES:
            got = ask(line)
            if not wanted <= got or (got != wanted if unwanted is None else got & unwanted):
                failures.append(f"{line!r}: expected {sorted(wanted)}, got {sorted(got)}")
        if terminal:
            terminal.close()
    for value in sorted(COSTS | {"oldest"}):
        done = subprocess.run([allocprof, "report", "--sort=" + value, "/nowhere"], capture_output=True,
                              text=True, check=False)
        if "no such file" not in done.stderr:
            failures.append(f"--sort={value} is completed and not taken: {done.stderr}")
    if failures:
        print("\n".join(failures), "\nrun it alone:", " ".join(sys.argv))
        sys.exit(1)


main()
