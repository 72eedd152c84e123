"""No Docker engine is at hand, so the files in docker/ are held against what they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from slice_os.cli.main import main

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE = ["compose.yaml", "compose.gpu.yaml"]


@pytest.mark.parametrize("file", COMPOSE)
def test_the_indexers_command_is_one_that_the_command_line_takes(file):
    arguments = yaml.safe_load((DOCKER / file).read_text())["services"]["indexer"]["command"]
    verb = main.get_command(None, arguments[0])
    context = verb.make_context(arguments[0], [*arguments[1:], "--index", "http://h:9200/x"])
    for path in context.params["paths"]:
        assert (ROOT / "examples" / Path(path).relative_to("/corpus")).is_dir()


def test_the_servers_command_is_one_that_the_command_line_takes():
    server = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["server"]
    verb, *arguments = server["command"]
    context = main.get_command(None, verb).make_context(verb, [*arguments, "--index", "x.slice"])
    assert context.params["host"] == "0.0.0.0"
    (volume,) = server["volumes"]
    assert volume.partition(":")[2] == context.params["workspace"]
    assert context.params["workspace"] in (DOCKER / "Dockerfile").read_text()
    assert server["ports"] == [f"127.0.0.1:{context.params['port']}:{context.params['port']}"]


def test_the_paths_exist():
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["indexer"]
    assert (DOCKER / compose["build"]["context"] / compose["build"]["dockerfile"]).is_file()
    for volume in compose["volumes"]:
        assert (DOCKER / volume.split(":")[0]).is_dir()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DOCKER / "Dockerfile").read_text(), re.M)
    sent = (DOCKER / "Dockerfile.dockerignore").read_text().split()
    for name in shlex.split(" ".join(copied)):
        assert (ROOT / name).exists()
        assert f"!{name}" in sent


def test_the_extras_exist():
    pyproject = (ROOT / "pyproject.toml").read_text()
    gpu = yaml.safe_load((DOCKER / "compose.gpu.yaml").read_text())
    default = re.search(r"^ARG EXTRA=(\w+)", (DOCKER / "Dockerfile").read_text(), re.M)[1]
    server = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["server"]
    served = server["build"]["args"]["EXTRA"].split(",")
    of_gpu = gpu["services"]["indexer"]["build"]["args"]["EXTRA"]
    for extra in (default, of_gpu, "documents", *served):
        assert re.search(rf"^{extra} = ", pyproject, re.M)
