# SPDX-License-Identifier: GPL-3.0-or-later
"""What allocprof check writes for reviewers, and the examples for GitHub and GitLab, whose scripts are run."""

import html
import json
import os
import pathlib
import re
import shutil

import jsonschema
import pytest
import yaml

from support import SOURCE, unavailable

CI = SOURCE / "examples" / "ci"
SERVICE = SOURCE / "examples" / "check"
pytestmark = pytest.mark.engines("preload")


@pytest.fixture
def service(run, tmp_path):
    """The example's service, with and without the regression."""
    made = tmp_path / "service"
    made.mkdir()
    for name in ("Makefile", "service.cpp", "budget.json"):
        shutil.copy(SERVICE / name, made)
    for name, flags in ("before", ""), ("after", "-DREGRESSION"):
        run(["make", "-C", made, f"CXXFLAGS={flags}"], expect=0)
        (made / "service").rename(made / name)
    return made


def rows_of(markdown):
    """The cells of the table's rows, as they are shown."""
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert all(line.endswith(" |") for line in rows)
    return [[html.unescape(cell.strip()) for cell in row[1:-1].split("|")] for row in rows[1:]]


def check(run, allocprof, service, *words, expect, **tests):
    budget = service / "written.json"
    budget.write_text(json.dumps({"tests": tests}))
    return run([allocprof, "check", "--budget", budget, "--markdown", service / "out.md", "--benchmark-json",
                service / "out.json", *words], expect=expect, cwd=service)


@pytest.mark.fast("preload")
def test_markdown(run, allocprof, service):
    """A table of figures, and the stacks folded away, in which nothing is Markdown or HTML by chance."""
    odd = "a|b `c` *d* <script>_e_"
    check(run, allocprof, service, "--against", ".", expect=2, **{
        odd: {"command": ["./before", "10"], "total_allocations": {"max": 25, "min": 25, "growth": "1%"},
              "remaining_allocations": {"max": 5}, "through": {"respond": {"total_allocations": {"max": 1}}}},
        "fails": {"command": ["sh", "-c", "exit 3"], "total_allocations": {"max": 1}}})
    text = (service / "out.md").read_text()
    assert text.startswith("### Allocations: 2 of 2 tests are not within limits\n\n| | test | figure | value | base | change | allowed |\n")
    assert rows_of(text) == [
        ["within", odd, "total_allocations", "25", "25", "0", "at least 25, at most 25, a growth of 1 %"],
        ["within", odd, "remaining_allocations", "5", "", "", "at most 5"],
        ["**over**", odd, "total_allocations through respond", "10", "", "", "at most 1"],
        ["**failed**", "fails", "the base's command ended with status 3", "", "", "", ""]]
    assert "<script>" not in text and "&lt;script&gt;_e_: which stacks</summary>" in text
    details, = re.findall(r"<pre>\n(.*?)</pre>", text, re.S)
    assert "No recording of a run that passed to compare with" in html.unescape(details)


def test_benchmark(run, allocprof, service):
    tests = {"t": {"command": ["./before", "10"], "total_allocations": {"max": 25}, "peak_bytes": {"max": 10**6},
                   "through": {"respond": {"total_allocations": {"max": 10}}}}}
    check(run, allocprof, service, expect=0, **tests)
    figures = json.loads((service / "out.json").read_text())
    assert figures == [
        {"name": "t: total_allocations", "unit": "allocations", "value": 25},
        {"name": "t: peak_bytes", "unit": "bytes", "value": figures[1]["value"]},
        {"name": "t: total_allocations through respond", "unit": "allocations", "value": 10}]
    assert figures[1]["value"] >= 4 * 64 + 256
    assert (service / "out.md").read_text().startswith("### Allocations: 1 test is within limits\n")
    refused = check(run, allocprof, service, "--markdown", service / "written.json", expect=125, **tests)
    assert b"--markdown" in refused.stderr and json.loads((service / "written.json").read_text()) == {"tests": tests}


def test_against_in_markdown(run, allocprof, service):
    result = run([allocprof, "check", "--against", "./before 1000", "--markdown", "out.md", "--", "./after", "1000"], expect=1,
                 cwd=service)
    text = (service / "out.md").read_text()
    assert rows_of(text) == [["**over**", "after", "total_allocations", "3,005", "2,005", "+1,000 (+49.9 %)", "no growth"]]
    details, = re.findall(r"<pre>\n(.*?)</pre>", text, re.S)
    assert "log_request (service.cpp:" in html.unescape(details)
    assert html.unescape(details) in result.stderr.decode()


def json_of(path):
    """Its tests, by name, of a document that the schema describes, with no key that it does not know."""
    report = json.loads(path.read_text())
    schema = json.loads((SOURCE / "data" / "check-1.schema.json").read_text())
    for part in (schema, schema["$defs"]["figure"], schema["$defs"]["test"]):
        part["unevaluatedProperties"] = False
    jsonschema.Draft202012Validator(schema).validate(report)
    return {test["name"]: test for test in report["tests"]}, report["status"]


STATUSES = {"within": 0, "improved": 0, "stale": 3, "over": 1, "missing": 5, "failed": 2, "not run": 127}


def test_json(run, allocprof, service):
    """Each kind of result has a status of its own, and the worst is that of all."""
    exact = {"total_allocations": {"max": 25, "min": 25}}
    kinds = {"within": {"command": ["./before", "10"], **exact, "through": {"respond": {"total_allocations": {"max": 10}}}},
             "stale": {"command": ["./before", "9"], **exact},
             "over": {"command": ["./after", "10"], **exact, "peak_bytes": {"max": 10**6}},
             "missing": {"command": ["./before", "10"]},
             "failed": {"command": ["false"], **exact},
             "not run": {"command": ["./gone"], **exact}}
    for name, test in kinds.items():
        check(run, allocprof, service, "--strict-limits", "--json", "results.json", expect=STATUSES[name], **{name: test})
    check(run, allocprof, service, "--json", "results.json", expect=0, improved=kinds["stale"])
    tests, status = json_of(service / "results.json")
    assert (tests["improved"]["result"], tests["improved"]["status"], status) == ("improved", 0, 0)
    check(run, allocprof, service, "--strict-limits", "--json", "results.json", "-r", "1", expect=127, **kinds)
    tests, status = json_of(service / "results.json")
    assert {name: (test["result"], test["status"]) for name, test in tests.items()} == {name: (name, STATUSES[name]) for name in kinds}
    assert status == 127
    assert tests["within"]["figures"] == [
        {"figure": "total_allocations", "unit": "allocations", "verdict": "within", "value": 25, "least": 25, "greatest": 25, "min": 25,
         "max": 25, "base": None},
        {"figure": "total_allocations", "through": "respond", "unit": "allocations", "verdict": "within", "value": 10, "least": 10,
         "greatest": 10, "min": None, "max": 10, "base": None}]
    assert [(figure["verdict"], figure["unit"]) for figure in tests["over"]["figures"]] == [("over", "allocations"), ("within", "bytes")]
    assert tests["over"]["figures"][0]["value"] == 35 and "No recording of a run that passed" in tests["over"]["details"]
    assert tests["stale"]["figures"][0]["verdict"] == "improved"
    assert tests["missing"]["why"].startswith("it has no limits") and not tests["missing"]["figures"]
    assert tests["failed"]["why"] == "its command ended with status 1"


def test_json_against(run, allocprof, service):
    check(run, allocprof, service, "--against", "./before 10", "--fail-over=20", "--json", "results.json", "--", "./after", "10", expect=0,
          t={"remaining_allocations": {"growth": "0.5%"}, "total_allocations": {"growth": 20}})
    figures = json_of(service / "results.json")[0]["t"]["figures"]
    assert [figure["base"] for figure in figures] == [
        {"value": 25, "least": 25, "greatest": 25, "growth": 20}, {"value": 5, "least": 5, "greatest": 5, "growth_percent": 0.5}]
    assert [figure["value"] for figure in figures] == [35, 5]


def scripts_of(document):
    """Each script of an action's steps, or a job's."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "run":
                yield value
            elif key == "script":
                yield "\n".join(value)
            else:
                yield from scripts_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from scripts_of(value)


@pytest.mark.parametrize("name", ["ci/action.yml", "ci/gitlab.yml", "check/ci.yaml"])
def test_files(run, tmp_path, name):
    """They are YAML, and their scripts are good ones."""
    document = yaml.safe_load((SOURCE / "examples" / name).read_text())
    scripts = list(scripts_of(document))
    assert scripts
    if not shutil.which("shellcheck"):
        unavailable("shellcheck is not installed")
    for script in scripts:
        (tmp_path / "script").write_text(script)
        run(["shellcheck", "--shell=bash", "--exclude=SC2154", tmp_path / "script"], expect=0)


class Repository:
    """The example in a repository: its base, and a head with or without the regression."""

    def __init__(self, run, allocprof, directory):
        self.run, self.directory = run, directory
        self.path = f"{pathlib.Path(allocprof).parent}:{os.environ['PATH']}"
        for name in ("Makefile", "service.cpp", "budget.json"):
            (directory / "tests").mkdir(exist_ok=True)
            shutil.copy(SERVICE / name, directory / "tests" / name)
        budget = json.loads((directory / "tests" / "budget.json").read_text())
        budget["tests"]["requests"]["directory"] = "."
        # So wide that only the comparison finds the regression.
        budget["tests"]["requests"]["total_allocations"] = {"max": 5000, "min": 0}
        (directory / "tests" / "budget.json").write_text(json.dumps(budget))
        self.git("init", "-q")
        self.git("add", "tests/Makefile", "tests/service.cpp", "tests/budget.json")
        self.commit("base")
        self.base = self.git("rev-parse", "HEAD").strip()

    def git(self, *words):
        return self.run(["git", "-C", self.directory, *words], expect=0).stdout.decode()

    def commit(self, message):
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", message)

    def change(self, is_worse):
        path = self.directory / "tests" / "service.cpp"
        path.write_text(("#define REGRESSION\n" if is_worse else "// The same.\n") + path.read_text())
        self.commit("head")

    def bash(self, script, expect, **variables):
        return self.run(["bash", "-e", "-c", script], env={"PATH": self.path, **variables}, cwd=self.directory, expect=expect)


@pytest.fixture
def repository(run, allocprof, tmp_path):
    (tmp_path / "repository").mkdir()
    return Repository(run, allocprof, tmp_path / "repository")


@pytest.mark.parametrize("is_worse", [False, True], ids=["same", "worse"])
def test_github(repository, tmp_path, is_worse):
    """The action's steps pass or fail as the change is, with a summary."""
    action = yaml.safe_load((CI / "action.yml").read_text())
    repository.change(is_worse)
    repository.bash("make -s -C tests", 0)
    (tmp_path / "temp").mkdir()
    given = {"github.event.pull_request.base.sha": repository.base, "inputs.build": "make -s -C tests",
             "inputs.budget": "tests/budget.json", "inputs.fail-over": action["inputs"]["fail-over"]["default"]}
    # As the remote of a checkout has the base.
    repository.git("remote", "add", "origin", repository.directory)
    for step in action["runs"]["steps"]:
        env = {name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: given[found[1]], value) for name, value in step["env"].items()}
        expect = 1 if is_worse and step["id"] == "check" else 0
        result = repository.bash(step["run"], expect, RUNNER_TEMP=str(tmp_path / "temp"), GITHUB_OUTPUT=str(tmp_path / "output"),
                                 GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"), **env)
    assert (tmp_path / "output").read_text() == f"status={int(is_worse)}\n"
    row = rows_of((tmp_path / "summary.md").read_text())[0]
    assert row[:6] == (["**over**", "requests", "total_allocations", "3,005", "2,005", "+1,000 (+49.9 %)"] if is_worse else
                       ["within", "requests", "total_allocations", "2,005", "2,005", "0"])
    assert (b"log_request (service.cpp:" in result.stderr) == is_worse
    assert json.loads((repository.directory / "allocations.json").read_text())[0]["value"] == (3005 if is_worse else 2005)


@pytest.mark.parametrize("is_worse", [False, True], ids=["same", "worse"])
def test_gitlab(repository, tmp_path, is_worse):
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".allocations"]
    repository.change(is_worse)
    variables = {**job["variables"], "BUDGET": "tests/budget.json", "BUILD": "make -s -C tests", "TMPDIR": str(tmp_path),
                 "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.base}
    repository.bash("\n".join(job["script"]), 1 if is_worse else 0, **variables)
    row = rows_of((repository.directory / "allocations.md").read_text())[0]
    assert row[0] == ("**over**" if is_worse else "within") and row[4] == "2,005"
    # Without a base it holds to the budget alone.
    del variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"]
    repository.bash("\n".join(job["script"]), 0, **variables)
    assert rows_of((repository.directory / "allocations.md").read_text())[0][4] == ""
