"""The programs a cluster needs from the machine: Java 21 or newer, and Maven."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

OLDEST = 21
FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/*",
    "/opt/homebrew/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


class ClusterError(Exception):
    """A cluster cannot be had; the message is one sentence that says why and what to do."""


def find_java() -> Path:
    """Return the newest `java` of 21 or more that the nodes' user can run."""
    homes = [home for home in _homes() if _can_run(home / "bin" / "java")]
    newest = max(homes, key=_version, default=None)
    if newest is None or _version(newest) < OLDEST:
        raise ClusterError(
            f"A test cluster needs a JDK of {OLDEST} or newer and none was found in "
            f"JAVA_HOME, on the PATH or in {', '.join(FOLDERS)}: install one "
            "(`apt install openjdk-21-jre-headless`, `brew install openjdk`, or adoptium.net) "
            "or set JAVA_HOME."
        )
    return newest / "bin" / "java"


def find_maven() -> str:
    """Return the path of `mvn`."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(
            "A test cluster is put together by Maven and no `mvn` is on the PATH: install it "
            "(`apt install maven`, `brew install maven`, or maven.apache.org)."
        )
    return maven


def for_others(path: Path) -> bool:
    """Tell whether every folder above a path lets other users through to it."""
    above = [folder for folder in path.resolve().parents if folder.exists()]
    return all(folder.stat().st_mode & 0o001 for folder in above)


def as_root() -> bool:
    """Tell whether this process is root's: OpenSearch refuses to be."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in FOLDERS:
        path = Path(pattern).expanduser()
        yield from Path(path.anchor).glob(str(path.relative_to(path.anchor)))


def _can_run(java: Path) -> bool:
    try:
        return os.access(java, os.X_OK) and (not as_root() or for_others(java))
    except OSError:
        return False


def _version(home: Path) -> int:
    """Read a JDK's version from its release file: starting each to ask it takes long."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(found[1]) if found else 0
