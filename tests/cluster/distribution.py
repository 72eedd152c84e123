"""The folder a node runs from, put together by Maven once and kept between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

from .java import ClusterError, as_root, find_maven, for_others
from .server import Server

HERE = Path(__file__).parent
CHILD = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <parent><groupId>slice-os.tests</groupId><artifactId>cluster</artifactId><version>1</version></parent>
  <artifactId>{name}</artifactId>
  <packaging>pom</packaging>
  <properties><folder>{folder}</folder></properties>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def distribution(server: Server) -> Path:
    """Return the home folder of a server; the first call on a machine has Maven make it."""
    cache = _cache()
    decisive = fingerprint(HERE / "pom.xml", Path(__file__), *server.files)
    home = cache / f"{server.name}-{server.version}-{decisive}"
    with FileLock(cache / f"{home.name}.lock"):
        if not home.is_dir():
            _make(home, server)
    return home


def _cache() -> Path:
    """Choose a folder that the user whom nodes run as can read: a root's home is often shut."""
    chosen = os.environ.get("SLICE_OS_TEST_CACHE")
    cache = Path(chosen).expanduser().absolute() if chosen else _default_cache()
    if not cache.exists():
        cache.mkdir(parents=True, exist_ok=True)  # two may begin at once
        cache.chmod(0o755)  # whatever the umask
    if as_root() and not for_others(cache / "home"):
        raise ClusterError(
            f"Root's nodes run as another user, who cannot read {cache}: "
            "set SLICE_OS_TEST_CACHE to a folder that all can read."
        )
    if cache.stat().st_uid != os.geteuid():
        raise ClusterError(
            f"{cache} belongs to another user: set SLICE_OS_TEST_CACHE to a folder of your own."
        )
    return cache


def _default_cache() -> Path:
    cache = Path.home() / ".cache" / "slice-os-tests"
    if as_root() and not for_others(cache / "home"):
        return Path("/var/tmp/slice-os-tests")
    return cache


def fingerprint(*files: Path) -> str:
    """Name what is made after all files that decide what is in it."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _make(home: Path, server: Server) -> None:
    """Make it under another name first: a half-made folder must never be taken for a home."""
    scratch = home.with_name(f"{home.name}.making")
    shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
    try:
        _fill(scratch / "home", scratch / "project", server)
        (scratch / "home").rename(home)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(home: Path, project: Path, server: Server) -> None:
    _write_poms(project, server)
    _run_maven(project, home, server)
    server.finish(home)
    (home / "bin").mkdir()  # nodes make it where it is missing, and may not
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def _write_poms(project: Path, server: Server) -> None:
    names = {folder: folder.replace("/", "-") for folder in server.artifacts}
    for folder, dependencies in server.artifacts.items():
        child = project / names[folder] / "pom.xml"
        child.parent.mkdir(parents=True)
        listed = "".join(DEPENDENCY.format(*dependency) for dependency in dependencies)
        child.write_text(
            CHILD.format(name=names[folder], folder=folder, dependencies=listed), encoding="utf-8"
        )
    modules = "".join(f"<module>{name}</module>" for name in names.values())
    parent = (HERE / "pom.xml").read_text(encoding="utf-8")
    (project / "pom.xml").write_text(
        parent.replace("<modules/>", f"<modules>{modules}</modules>"), encoding="utf-8"
    )


def _run_maven(project: Path, home: Path, server: Server) -> None:
    asked = [f"-P{server.name}", f"-Dhome={home}", f"-Dserver={server.version}"]
    command = [find_maven(), "--batch-mode", "--quiet", *asked, "package"]
    done = subprocess.run(
        command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise ClusterError(f"Maven could not resolve {server.title}:\n{said}")
