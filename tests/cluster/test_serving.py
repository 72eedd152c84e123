"""A server before a cluster: it answers as the library does, and says what that refuses."""

from __future__ import annotations

import slice_os
from support.proxy import proxied
from support.serving import serving
from support.verbs import TEXTS

FORBIDDEN = (403, "application/json", b'{"error": {"type": "security_exception"}, "status": 403}')


def test_a_cluster_is_served_and_what_it_refuses_is_said(cluster, name):
    documents = [slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS)]
    refused = []
    with proxied(cluster.url, lambda _: refused[0] if refused else None) as proxy:
        location = f"{proxy.url}/{name}"
        slice_os.index(documents, location, cluster=slice_os.ClusterSettings(replicas=0))
        with slice_os.open(location) as index, serving({"calls": index}) as server:
            hits = server.post("/api/search", query="end my subscription", size=2)["hits"]
            found = index.search("end my subscription", size=2)
            assert [hit["document"] for hit in hits] == [hit.document for hit in found]
            matches, report = server.mine(phrases="end my subscription", min_degree=0.7)
            mined = index.mine("end my subscription", min_degree=0.7)
            assert matches == [match.to_dict() for match in mined]
            assert report["done"]
            assert server.get("/api/documents/d1")["text"] == TEXTS[1]
            assert server.get("/api/status")["documents"] == len(TEXTS)
            refused.append(FORBIDDEN)
            assert server.post("/api/search", 502, query="another thing")["error"]
            matches, report = server.mine(phrases="another thing")
            assert (matches, report["done"]) == ([], False)
            assert report["error"]
