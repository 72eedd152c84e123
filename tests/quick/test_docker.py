"""No Docker engine is at hand, so the files in docker/ are held against what they name."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from slice_os.cli.main import main
from slice_os.ingest import Partition

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


def arguments_of_index(arguments):
    """Return what `slice-os index` understands by them."""
    verb, *rest = arguments
    assert verb == "index"
    params = main.get_command(None, verb).make_context(verb, rest).params
    Partition.of(params["partition"])
    assert params["location"].startswith("https://")
    assert params["paths"][0].startswith("s3://")
    return params


def test_the_job_of_kubernetes_fits_its_schema_and_the_command_line():
    job = yaml.safe_load((DOCKER / "index-job.yaml").read_text())
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    for index in range(spec["completions"]):
        arguments = [a.replace("$(JOB_COMPLETION_INDEX)", str(index)) for a in container["args"]]
        params = arguments_of_index(arguments)
        assert params["partition"] == f"{index}/{spec['completions']}"
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == container["name"]


def test_the_script_of_slurm_calls_the_command_line(tmp_path):
    (tmp_path / "slice-os").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "slice-os").chmod(0o755)
    script = DOCKER / "index-job.slurm"
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", script.read_text()).groups())
    task = {"ID": str(last), "COUNT": str(last - first + 1)}
    environment = {f"SLURM_ARRAY_TASK_{name}": value for name, value in task.items()}
    done = subprocess.run(
        ["bash", script], capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_CPUS_PER_TASK": "4", **environment},
    )  # fmt: skip
    params = arguments_of_index(done.stdout.splitlines())
    assert (params["partition"], params["threads"]) == ("7/8", 4)
