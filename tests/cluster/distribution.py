"""The folder a node runs from, put together by Maven once and kept between runs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from .java import ClusterError, as_root, find_maven, for_others

VERSION = "3.6.0"
HERE = Path(__file__).parent
SERVER = "org.opensearch"
PLUGIN = "org.opensearch.plugin"


class Module(NamedTuple):
    """A module of OpenSearch: its artifact in Maven, its class, and whom it extends."""

    artifact: str
    classname: str
    extends: str = ""


MODULES = {
    "transport-netty4": Module("transport-netty4-client", "transport.Netty4ModulePlugin"),
    "analysis-common": Module(
        "analysis-common", "analysis.common.CommonAnalysisModulePlugin", "lang-painless"
    ),
    "lang-painless": Module("lang-painless", "painless.PainlessModulePlugin"),
    "reindex": Module("reindex-client", "index.reindex.ReindexModulePlugin"),
    "mapper-extras": Module("mapper-extras-client", "index.mapper.MapperExtrasModulePlugin"),
    "ingest-common": Module(
        "ingest-common", "ingest.common.IngestCommonModulePlugin", "lang-painless"
    ),
    "parent-join": Module("parent-join-client", "join.ParentJoinModulePlugin"),
    "search-pipeline-common": Module(
        "search-pipeline-common",
        "search.pipeline.common.SearchPipelineCommonModulePlugin",
        "lang-painless",
    ),
    "transport-grpc": Module("transport-grpc", "transport.grpc.GrpcPlugin"),
}
LIBRARIES = {
    "lib": [
        (SERVER, "opensearch", "${opensearch}"),
        (SERVER, "opensearch-plugin-classloader", "${opensearch}"),
        ("org.apache.logging.log4j", "log4j-core", "${log4j}"),
        ("net.java.dev.jna", "jna", "${jna}"),
    ],
    "agent": [
        (SERVER, "opensearch-agent", "${opensearch}"),
        (SERVER, "opensearch-agent-bootstrap", "${opensearch}"),
    ],
} | {
    f"modules/{name}": [(PLUGIN, module.artifact, "${opensearch}")]
    for name, module in MODULES.items()
}
DESCRIPTOR = """\
name={name}
description={name}, from Maven Central
version={version}
opensearch.version={version}
java.version=21
classname=org.opensearch.{classname}
extended.plugins={extends}
has.native.controller=false
"""
# Without it the Java agent denies every socket between nodes, and they never find each other.
SOCKETS = "\n".join(
    f'grant codeBase "${{codebase.{jar}}}" {{\n'
    '  permission java.net.SocketPermission "*", "accept,connect";\n};'
    for jar in ("netty-common", "netty-transport")
)
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


def distribution() -> Path:
    """Return the home folder of OpenSearch; the first call on a machine has Maven make it."""
    cache = _cache()
    home = cache / f"opensearch-{VERSION}-{_fingerprint()}"
    with FileLock(cache / f"{home.name}.lock"):
        if not home.is_dir():
            _make(home)
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


def _fingerprint() -> str:
    """Name a distribution after all that decides what is in it."""
    files = (HERE / "pom.xml", Path(__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _make(home: Path) -> None:
    """Make it under another name first: a half-made folder must never be taken for a home."""
    scratch = home.with_name(f"{home.name}.making")
    shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
    try:
        _fill(scratch / "home", scratch / "project")
        (scratch / "home").rename(home)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(home: Path, project: Path) -> None:
    _write_poms(project)
    _run_maven(project, home)
    for name, module in MODULES.items():
        _finish_module(home / "modules" / name, name, module, home / "lib")
    (home / "bin").mkdir()  # nodes make it where it is missing, and may not
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def _write_poms(project: Path) -> None:
    names = {folder: folder.replace("/", "-") for folder in LIBRARIES}
    for folder, dependencies in LIBRARIES.items():
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


def _run_maven(project: Path, home: Path) -> None:
    command = [find_maven(), "--batch-mode", "--quiet", f"-Dhome={home}", "package"]
    done = subprocess.run(
        command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise ClusterError(f"Maven could not resolve OpenSearch {VERSION}:\n{said}")


def _finish_module(folder: Path, name: str, module: Module, lib: Path) -> None:
    """Take out what lib/ has, for a class found twice stops a node, and describe the module."""
    in_lib = {_artifact(jar) for jar in lib.iterdir()}
    for jar in folder.iterdir():
        if _artifact(jar) in in_lib:
            jar.unlink()
    descriptor = DESCRIPTOR.format(name=name, version=VERSION, **module._asdict())
    (folder / "plugin-descriptor.properties").write_text(descriptor, encoding="utf-8")
    if name == "transport-netty4":
        (folder / "plugin-security.policy").write_text(SOCKETS, encoding="utf-8")


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d.*", "", jar.name)
