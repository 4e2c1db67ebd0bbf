# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of any suite of the archive that this machine has its own from, by lists that are kept apart from the machine's."""

import platform
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def options(suite, directory, architecture=None):
    """
    Options by which apt uses the lists of @suite, which it reads into @directory, for @architecture or the machine's own.
    LookupError says why it cannot.
    """
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)", "Created-By: Packages"],
                             check=True, capture_output=True, text=True).stdout.splitlines()
    own = platform.freedesktop_os_release().get("VERSION_CODENAME")
    archive = next((line.split()[0] for line in targets if line.split()[1:] == [own, "Debian"]), None)
    if not archive:
        raise LookupError(f"apt's sources do not say where {own} comes from")
    for name in ("lists/partial", "archives/partial"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    of = f" arch={architecture}" if architecture else ""
    (directory / "sources.list").write_text(f"deb [signed-by={KEYRING}{of}] {archive} {suite} main\n")
    words = [f"-oDir::State::Lists={directory}/lists", f"-oDir::Cache={directory}",
             f"-oDir::Cache::archives={directory}/archives", f"-oDir::Etc::sourcelist={directory}/sources.list",
             "-oDir::Etc::sourceparts=-"]
    if architecture:
        words += [f"-oAPT::Architecture={architecture}", f"-oAPT::Architectures={architecture}"]
    updated = subprocess.run(["apt-get", "-q", *words, "update"], capture_output=True, text=True, check=False)
    if updated.returncode:
        raise LookupError(f"apt cannot read the lists of {suite}: {updated.stderr.strip()}")
    return words
