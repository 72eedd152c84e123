"""Elasticsearch from Maven Central: the server and its transport.

The usual start needs an agent, and ``GET /`` and the analyzers modules, that are not there: what
is in stand_ins/ does instead. There is no painless, no _reindex, no _delete_by_query, and nothing
that needs a licence.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from pathlib import Path

from .java import ClusterError, find_java
from .server import Server

SOURCES = Path(__file__).parent / "stand_ins"
MAVEN_SERVER = "org.elasticsearch"
NETTY = "modules/transport-netty4"
STAND_INS = "plugins/stand-ins"
DESCRIPTOR = """\
name=stand-ins
description=Modules that are not on Maven Central
version=1
elasticsearch.version={version}
java.version=21
classname=slices.StandIns
"""
# What the method getRestHandlers takes before its last two parameters, by the major version.
PARAMETERS = {
    "8": (
        "Settings settings, org.elasticsearch.common.io.stream.NamedWriteableRegistry names, "
        "RestController controller, org.elasticsearch.common.settings.ClusterSettings cluster, "
        "org.elasticsearch.common.settings.IndexScopedSettings index, "
        "org.elasticsearch.common.settings.SettingsFilter filter, "
        "org.elasticsearch.cluster.metadata.IndexNameExpressionResolver resolver"
    ),
    "9": "ActionPlugin.RestHandlersServices services",
}


class Elasticsearch(Server):
    """See `Server`."""

    name = "elasticsearch"
    artifacts = {  # noqa: RUF012
        "lib": [(MAVEN_SERVER, "elasticsearch", "${server}")],
        NETTY: [(f"{MAVEN_SERVER}.plugin", "transport-netty4", "${server}")],
    }
    managers = "cluster.initial_master_nodes"
    files = (Path(__file__), *sorted(SOURCES.glob("*.java")))

    def finish(self, home: Path) -> None:
        in_lib = {jar.name for jar in (home / "lib").iterdir()}
        for jar in (home / NETTY).iterdir():
            if jar.name in in_lib:
                jar.unlink()
        (netty,) = (home / NETTY).glob("transport-netty4-*.jar")
        with zipfile.ZipFile(netty) as archive:
            for file in ("plugin-descriptor.properties", "entitlement-policy.yaml"):
                said = archive.read(f"META-INF/es-plugins/transport-netty4/{file}").decode()
                # Its jar is on the class path of a loader of its own, not a Java module.
                lines = [one for one in said.splitlines() if not one.startswith("modulename")]
                (home / NETTY / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._compile(home)

    def _compile(self, home: Path) -> None:
        """Make the start class and the plugin of what is missing."""
        plugin = home / STAND_INS
        plugin.mkdir(parents=True)
        descriptor = DESCRIPTOR.format(version=self.version)
        (plugin / "plugin-descriptor.properties").write_text(descriptor, encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            parameters = PARAMETERS[self.version.partition(".")[0]]
            text = (SOURCES / "StandIns.java").read_text(encoding="utf-8")
            own = Path(folder) / "StandIns.java"
            own.write_text(text.replace("/*PARAMETERS*/", parameters), encoding="utf-8")
            _jar(home, own, plugin / "stand-ins.jar")
        _jar(home, SOURCES / "Start.java", home / "lib" / "start.jar")

    def command(self, home: Path, folder: Path) -> list[str]:
        return [
            "-Dio.netty.noUnsafe=true",
            "-Dorg.elasticsearch.nativeaccess.enableVectorLibrary=false",
            f"-Des.path.home={home}",
            f"-Des.path.conf={folder}/config",
            "-Des.distribution.type=tar",
            "-cp",
            f"{home}/lib/*",
            "slices.Start",
            str(folder),
        ]


def _jar(home: Path, source: Path, jar: Path) -> None:
    """Compile a class into a jar: of a folder of classes, Java keeps no archive."""
    javac = find_java().with_name("javac")
    if not javac.exists():
        raise ClusterError(
            f"{javac} is missing, and a node of Elasticsearch needs it: install a JDK, not a JRE "
            "(`apt install openjdk-21-jdk-headless`), or set JAVA_HOME."
        )
    with tempfile.TemporaryDirectory() as classes:
        command = [str(javac), "-nowarn", "-proc:none", "-cp", f"{home}/lib/*", "-d", classes]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"{source.name} does not compile:\n{done.stderr[-3000:]}")
        with zipfile.ZipFile(jar, "w") as archive:
            for file in sorted(Path(classes).rglob("*.class")):
                archive.write(file, file.relative_to(classes))


ELASTICSEARCH = Elasticsearch("9.5.3")
ELASTICSEARCH_8 = Elasticsearch("8.19.21")
