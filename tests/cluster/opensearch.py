"""OpenSearch with its plugins k-NN and neural-search, from Maven Central."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from .server import Server

MAVEN_SERVER = "org.opensearch"
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


class OpenSearch(Server):
    """See `Server`; its two plugins are in the profile of pom.xml."""

    name = "opensearch"
    artifacts = {
        "lib": [
            (MAVEN_SERVER, "opensearch", "${server}"),
            (MAVEN_SERVER, "opensearch-plugin-classloader", "${server}"),
            # The Java agent that keeps plugins in bounds is left out: a node starts in two thirds.
            (MAVEN_SERVER, "opensearch-agent-bootstrap", "${server}"),
            ("org.apache.logging.log4j", "log4j-core", "${log4j}"),
            ("net.java.dev.jna", "jna", "${jna}"),
        ],
    } | {
        f"modules/{name}": [(PLUGIN, module.artifact, "${server}")]
        for name, module in MODULES.items()
    }
    managers = "cluster.initial_cluster_manager_nodes"
    files = (Path(__file__),)

    def finish(self, home: Path) -> None:
        for name, module in MODULES.items():
            self._finish_module(home / "modules" / name, name, module, home / "lib")

    def _finish_module(self, folder: Path, name: str, module: Module, lib: Path) -> None:
        """Take out what lib/ has, as a class found twice stops a node, and describe the module."""
        in_lib = {_artifact(jar) for jar in lib.iterdir()}
        for jar in folder.iterdir():
            if _artifact(jar) in in_lib:
                jar.unlink()
        descriptor = DESCRIPTOR.format(name=name, version=self.version, **module._asdict())
        (folder / "plugin-descriptor.properties").write_text(descriptor, encoding="utf-8")

    def command(self, home: Path, folder: Path) -> list[str]:
        return [
            f"-Dopensearch.path.home={home}",
            f"-Dopensearch.path.conf={folder}/config",
            "-cp",
            f"{home}/lib/*",
            "org.opensearch.bootstrap.OpenSearch",
            "-Epath.data=" + str(folder / "data"),
            "-Epath.logs=" + str(folder / "logs"),
        ]


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d.*", "", jar.name)


OPENSEARCH = OpenSearch("3.6.0")
