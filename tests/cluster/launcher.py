"""Starts a cluster of real nodes on this machine, and ends it whatever happens."""

from __future__ import annotations

import atexit
import random
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from filelock import FileLock

from .distribution import distribution, fingerprint
from .java import ClusterError, as_root, find_java, for_others
from .node import PATIENCE, Node
from .opensearch import OPENSEARCH
from .server import Server
from .watchdog import Watchdog

# Below the ports that systems give to outgoing connections, so that a node killed and started
# again finds its own still free.
PORTS = range(20_000, 32_000)
# For a node that lives for some minutes: what better compilers win takes longer than that, and
# products of vectors that only they can compile are slower than plain ones.
BRIEF = (
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:TieredStopAtLevel=1",
)
MEASURED = ("-XX:+UseG1GC", "--add-modules=jdk.incubator.vector")
SETTINGS: dict[str, object] = {
    "cluster.name": "slice-os-tests",
    "network.host": "127.0.0.1",
    "bootstrap.memory_lock": False,
    "action.destructive_requires_name": False,
    "cluster.routing.allocation.disk.threshold_enabled": False,
}


class Cluster:
    """Nodes that run until `stop`, the end of the `with` block or the end of this process."""

    def __init__(
        self,
        nodes: int,
        heap: str,
        settings: Mapping[str, object],
        port: int | None,
        server: Server,
        flags: Sequence[str],
    ) -> None:
        self.server = server
        java, home = find_java(), distribution(server)
        ports = _free_ports(2 * nodes, port)
        self.nodes: list[Node] = []
        self._folder = _folder()
        self.snapshots = self._folder / "snapshots"
        """A folder in which every node may keep snapshots."""
        self.snapshots.mkdir()
        self.snapshots.chmod(0o777)
        settings = {"path.repo": [str(self.snapshots)], **settings}
        self._watchdog = Watchdog(self._folder)
        self._stopped = False
        atexit.register(self.stop)
        try:
            for number in range(nodes):
                folder = self._folder / f"node-{number + 1}"
                own = _node_settings(number, ports[:nodes], ports[nodes:], server)
                node = Node(
                    folder,
                    _command(java, home, folder, heap, server, flags),
                    {**SETTINGS, **own, **settings},
                    self._watchdog,
                    f"{server.name}.yml",
                )
                node.launch()
                self.nodes.append(node)
            for node in self.nodes:
                node.wait(nodes)
        except BaseException:
            self.stop()
            raise

    @property
    def urls(self) -> list[str]:
        """Where each node answers."""
        return [node.url for node in self.nodes]

    @property
    def url(self) -> str:
        """Where the first living node answers."""
        return next(node.url for node in self.nodes if node.alive)

    def stop(self) -> None:
        """End the nodes and remove their folders; a second call does nothing."""
        if self._stopped:
            return
        self._stopped = True
        atexit.unregister(self.stop)
        try:
            for node in self.nodes:
                node.terminate()
            for node in self.nodes:
                node.finish()
        finally:
            self._watchdog.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start_cluster(
    nodes: int = 1,
    *,
    heap: str = "512m",
    settings: Mapping[str, object] | None = None,
    port: int | None = None,
    server: Server = OPENSEARCH,
    measured: bool = False,
) -> Cluster:
    """Start a cluster and wait until it is ready.

    Args:
        nodes: How many nodes.
        heap: The memory of each node's heap.
        settings: What else goes into every node's configuration.
        port: The HTTP port of the first node; a free one if not given.
        server: Which server, and which version of it.
        measured: Whether its speed matters: else it starts in half the time, and runs slower.

    Raises:
        ClusterError: There is no Java or Maven, the port is taken, or a node does not start.
    """
    flags = MEASURED if measured else (*BRIEF, *_archived(server))
    return Cluster(nodes, heap, settings or {}, port, server, flags)


def _archived(server: Server) -> list[str]:
    """Say where a server's classes are read and checked already: a node starts a third sooner.

    The first call has a node of its own leave them there; another build of Java makes its own.
    """
    home, build = distribution(server), fingerprint(find_java().parents[1] / "release")
    archive = home.with_name(f"{home.name}-{build}.jsa")
    with FileLock(f"{archive}.lock"):
        if not archive.exists():
            flags = (*BRIEF, "-XX:ArchiveClassesAtExit=classes.jsa")
            with Cluster(1, "512m", {}, None, server, flags) as first:
                (node,) = first.nodes
                node.terminate()
                node.finish(PATIENCE)
                if (node.folder / "classes.jsa").exists():
                    shutil.move(node.folder / "classes.jsa", f"{archive}.making")
                    Path(f"{archive}.making").rename(archive)
        return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def _folder() -> Path:
    """Make the cluster's folder where the nodes' user can go."""
    place = Path(tempfile.gettempdir())
    if as_root() and not for_others(place / "any"):
        place = Path("/var/tmp")
    folder = Path(tempfile.mkdtemp(prefix="slice-os-cluster-", dir=place)).resolve()
    folder.chmod(0o755)
    return folder


def _node_settings(
    number: int, http: list[int], transport: list[int], server: Server
) -> dict[str, object]:
    settings: dict[str, object] = {
        "node.name": f"node-{number + 1}",
        "http.port": http[number],
        "transport.port": transport[number],
    }
    if len(http) == 1:
        return settings | {"discovery.type": "single-node"}
    # Of two managers one may not go: the other has no majority.
    managers = len(http) if len(http) > 2 else 1
    return settings | {
        "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in transport],
        server.managers: [f"node-{n + 1}" for n in range(managers)],
        **({} if number < managers else {"node.roles": ["data", "ingest"]}),
    }


def _command(
    java: Path, home: Path, folder: Path, heap: str, server: Server, flags: Sequence[str]
) -> list[str]:
    return [
        str(java),
        f"-Xms{heap}",
        f"-Xmx{heap}",
        *flags,
        f"-XX:ErrorFile={folder}/logs/java_error.log",
        "--enable-native-access=ALL-UNNAMED",
        "-Dfile.encoding=UTF-8",
        "-Dlog4j2.disable.jmx=true",
        f"-Djava.io.tmpdir={folder}/tmp",
        *server.command(home, folder),
    ]


def _free_ports(count: int, first: int | None) -> list[int]:
    """Choose ports that nobody listens on, beginning with the one asked for."""
    if first is not None and not _is_free(first):
        raise ClusterError(f"Port {first} is taken: give another with --port.")
    ports = [] if first is None else [first]
    for port in random.sample(PORTS, len(PORTS)):
        if len(ports) == count:
            break
        if port not in ports and _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
