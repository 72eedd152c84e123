"""`python -m tests.cluster`: a cluster to play with, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from .elasticsearch import ELASTICSEARCH, ELASTICSEARCH_8
from .java import ClusterError
from .launcher import start_cluster
from .opensearch import OPENSEARCH
from .server import Server

SERVERS = {
    "opensearch": OPENSEARCH,
    "elasticsearch": ELASTICSEARCH,
    "elasticsearch-8": ELASTICSEARCH_8,
}


def main() -> int:
    """Start it, say where it is, wait, and end it."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1)
    parser.add_argument("--port", type=int, help="the HTTP port of the first node")
    parser.add_argument("--heap", default="512m", help="the heap of each node (default: 512m)")
    parser.add_argument("--server", choices=SERVERS, default="opensearch")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _run(options.nodes, options.heap, options.port, SERVERS[options.server])
    except KeyboardInterrupt:
        return 130
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _run(nodes: int, heap: str, port: int | None, server: Server) -> None:
    sys.stderr.write(
        f"Starting {server.title}; the first time Maven fetches it. Some 20 s a node...\n"
    )
    with start_cluster(nodes, heap=heap, port=port, server=server, measured=True) as cluster:
        sys.stdout.write("\n".join(cluster.urls) + "\n")
        sys.stdout.flush()
        command = f"slice-os index examples/conversations --index {cluster.url}/conversations"
        sys.stderr.write(f"To try it: {command}\nCtrl-C ends it.\n")
        while all(node.alive for node in cluster.nodes):
            time.sleep(0.5)
        dead = next(node for node in cluster.nodes if not node.alive)
        raise ClusterError(f"{dead.name} ended: {dead.end}")


if __name__ == "__main__":
    sys.exit(main())
