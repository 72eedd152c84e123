"""What a cluster asks of the machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import slice_os

from . import java
from .java import ClusterError


@pytest.mark.parametrize("releases", [[], ["17.0.1"], ["1.8.0_402", "17.0.1"]])
def test_without_java_one_sentence_says_how_to_get_it(releases, tmp_path, monkeypatch):
    fake_homes(releases, tmp_path, monkeypatch)
    with pytest.raises(ClusterError, match=r"^A test cluster needs a JDK of 21 or newer .*\.$"):
        java.find_java()


def test_the_newest_java_is_taken(tmp_path, monkeypatch):
    fake_homes(["21.0.2", "25", "17.0.1"], tmp_path, monkeypatch)
    assert java.find_java() == tmp_path / "25" / "bin" / "java"


def fake_homes(releases: list[str], folder: Path, monkeypatch) -> None:
    for release in releases:
        program = folder / release / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
        (folder / release / "release").write_text(f'JAVA_VERSION="{release}"\n')
    monkeypatch.setattr(java, "FOLDERS", (f"{folder}/*",))
    monkeypatch.setattr(java, "for_others", lambda path: True)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_without_maven_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"no `mvn` is on the PATH: install it .*\.$"):
        java.find_maven()


def test_a_cluster_to_try_prints_its_address_and_needs_no_torch():
    """As `make cluster` starts it; every import of torch fails."""
    start = "import sys, runpy; sys.modules['torch'] = None; runpy.run_module('tests.cluster', "
    start += "run_name='__main__', alter_sys=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", start],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    url = child.stdout.readline().strip()
    slice_os.index([slice_os.Document("a", "Some text.")], f"{url}/tried", cluster={"replicas": 0})
    child.send_signal(signal.SIGINT)
    assert f"--index {url}/conversations\nCtrl-C ends it." in child.communicate()[1]
    assert child.returncode == 130
