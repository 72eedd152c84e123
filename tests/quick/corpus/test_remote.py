"""Files behind URLs are read as those of folders are, from a real server, whatever it does."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pyarrow as pa
import pytest
import s3fs
from pyarrow import parquet

from slice_os import Index
from slice_os.corpus import read, remote, urls
from slice_os.corpus.paths import Given
from slice_os.corpus.roots import claim
from slice_os.errors import CorpusError, MissingExtraError
from slice_os.types import Document, Reject
from support.object_store import Cutter, ask_for_rights, object_store

ROWS = 20_000
BIG = b"id,text\n" + b"".join(b"%d,%s\n" % (n, b"some words " * 40) for n in range(1, ROWS + 1))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with object_store() as url:
        yield url


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give a client of a server that holds an empty bucket, `corpus`."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setattr(remote, "WAIT", 0.01)
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="corpus")
    yield client
    held = client.list_objects_v2(Bucket="corpus").get("Contents", [])
    for item in held:
        client.delete_object(Bucket="corpus", Key=item["Key"])
    client.delete_bucket(Bucket="corpus")
    s3fs.S3FileSystem.clear_instance_cache()


def put(store: Any, **files: str | bytes) -> None:
    for name, data in files.items():
        body = data.encode() if isinstance(data, str) else data
        store.put_object(Bucket="corpus", Key=name, Body=body)


def reading(*paths: str, **options: Any) -> tuple[dict[str, Document], list[Reject]]:
    rejects: list[Reject] = []
    documents = [*read(*paths, on_reject=rejects.append, **options)]
    assert len({document.id for document in documents}) == len(documents)
    return {document.id: document for document in documents}, rejects


def table(**columns: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


FILES: dict[str, str | bytes] = {
    "docs/a.txt": "I would like to cancel.",
    "docs/sub/b.md": "# Title\nand a text",
    "docs/rows.jsonl": '{"id": 7, "text": "a row", "n": 1}\n',
    "docs/t.parquet": table(id=[1, 2], text=["first", "second"]),
    "docs//odd.txt": "a key with an empty part",
    "docs/what?.txt": "a key with a question mark",
    "docs/[x].txt": "a key in brackets",
    "docs/.hidden/c.txt": "hidden",
    "docs/picture.png": b"\x89PNG",
    "docs/run.rejects.jsonl": "{}",
}


def test_a_folder_of_a_bucket_is_read_as_one_here(store: Any) -> None:
    put(store, **FILES)
    documents, rejects = reading("s3://corpus/docs/")
    assert rejects == []
    assert documents.keys() == {
        "docs/a.txt", "docs/sub/b.md", "docs/rows.jsonl#7", "docs/t.parquet#1", "docs/t.parquet#2",
        "docs//odd.txt", "docs/what?.txt", "docs/[x].txt",
    }  # fmt: skip
    first = documents["docs/a.txt"]
    assert first.text == "I would like to cancel."
    assert first.metadata["folder"] == "docs"
    assert str(first.metadata["modified"]).endswith("Z")
    assert documents["docs/rows.jsonl#7"].metadata == {"path": "docs/rows.jsonl", "n": 1}


@pytest.mark.parametrize(
    ("path", "options", "ids"),
    [
        ("s3://corpus/docs/*.txt", {}, {"a.txt", "[x].txt", "what?.txt"}),
        ("s3://corpus/**/*.md", {}, {"docs/sub/b.md"}),
        ("s3://corpus/docs/[x].txt", {}, {"[x].txt"}),
        ("s3://corpus", {"include": ["*.md"]}, {"corpus/docs/sub/b.md"}),
        ("s3://corpus/docs/sub", {"root": "s3://corpus"}, {"docs/sub/b.md"}),
        ("s3://corpus/docs/a.txt", {"root": "s3://corpus", "id_prefix": "p/"}, {"p/docs/a.txt"}),
        (
            "s3://corpus/docs",
            {"exclude": ["*.txt", "sub/", "s3://corpus/docs/t.parquet"]},
            {"docs/rows.jsonl#7"},
        ),
    ],
)
def test_globs_patterns_and_roots_hold_for_urls(
    store: Any, path: str, options: dict[str, Any], ids: set[str]
) -> None:
    put(store, **FILES)
    documents, rejects = reading(path, **options)
    assert (documents.keys(), rejects) == (ids, [])


def test_a_second_run_encodes_only_what_changed_and_prunes(store: Any, tmp_path: Path) -> None:
    put(store, **FILES)
    with Index(tmp_path / "i.slice") as index:
        assert index.add(read("s3://corpus/docs")).documents == 8
        assert index.add(read("s3://corpus/docs")).unchanged == 8
        put(store, **{"docs/a.txt": "Something else."})
        store.delete_object(Bucket="corpus", Key="docs/sub/b.md")
        report = index.add(read("s3://corpus/docs"), prune=True)
        assert (report.replaced, report.unchanged, report.pruned) == (1, 6, 1)
        put(store, **{"other/c.txt": "Another folder."})
        index.add(read("s3://corpus/other/*.txt"))  # lies in the same root
        assert index.get("other/c.txt") is not None


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("s3://nobody/docs", "There is no file or folder 's3://nobody/docs'."),
        ("s3://corpus/nothing", "There is no file or folder 's3://corpus/nothing'."),
        ("s3://corpus/*.nothing", "The pattern 's3://corpus/*.nothing' matches no file."),
        ("nothing://a/b", "nothing://a/b cannot be read, Protocol not known: nothing"),
    ],
)
def test_what_is_not_there_is_said(store: Any, path: str, says: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read(path)
    assert str(caught.value) == says


def test_a_missing_package_names_the_line_that_brings_it() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'slice-os\[remote\]' gcsfs\."):
        read("gs://corpus/docs")


def test_who_has_no_credentials_is_told_what_to_set(
    store: Any, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, **{"docs/a.txt": "text"})
    ask_for_rights(server, after=0)
    try:
        with pytest.raises(CorpusError, match=r"denied .*AWS_ACCESS_KEY_ID"):
            read("s3://corpus/docs")
    finally:
        ask_for_rights(server, after=float("inf"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(CorpusError, match=r"locate credentials: .*AWS_ACCESS_KEY_ID"):
        read("s3://corpus/docs")


def test_rights_that_end_meanwhile_reject_the_file_not_the_run(store: Any, server: str) -> None:
    put(store, **{"a.txt": "first", "b.txt": "second"})
    rejects: list[Reject] = []
    corpus = read("s3://corpus/", on_reject=rejects.append)
    ask_for_rights(server, after=0)
    try:
        assert [*corpus] == []
    finally:
        ask_for_rights(server, after=float("inf"))
    assert [reject.place for reject in rejects] == ["s3://corpus/a.txt", "s3://corpus/b.txt"]
    assert all(reject.reason.startswith("access is denied") for reject in rejects)
    assert not corpus.covers("corpus/a.txt")  # so that pruning leaves it


@pytest.mark.parametrize("times", [2, 10_000])
def test_connections_that_are_cut_lose_nothing(
    store: Any, server: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, **{"big.csv": BIG, "small.txt": "a text"})
    with Cutter(int(server.rpartition(":")[2]), 3_000_000, times) as cutter:
        monkeypatch.setenv("AWS_ENDPOINT_URL", cutter.url)
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        s3fs.S3FileSystem.clear_instance_cache()
        documents, rejects = reading("s3://corpus/")
        assert cutter.cut >= 2
    assert "corpus/small.txt" in documents
    assert len(rejects) == (times > 2)
    assert len(documents) == (1 if rejects else ROWS + 1)


def test_a_file_that_changes_meanwhile_is_rejected(store: Any) -> None:
    put(store, **{"big.csv": BIG})
    rejects: list[Reject] = []
    documents = iter(read("s3://corpus/big.csv", on_reject=rejects.append))
    first = next(documents)
    put(store, **{"big.csv": BIG.replace(b"words", b"other")})
    assert all("words" in document.text for document in (first, *documents))
    assert [reject.reason for reject in rejects] == [
        "has changed while it was read: run this again"
    ]
    documents, rejects = reading("s3://corpus/big.csv")  # type: ignore[assignment]
    assert (len(documents), rejects) == (ROWS, [])  # type: ignore[arg-type]


def test_a_file_that_changes_before_it_is_read_is_read_as_it_is(store: Any) -> None:
    put(store, **{"big.csv": BIG, "gone.txt": "text"})
    rejects: list[Reject] = []
    corpus = read("s3://corpus/", on_reject=rejects.append)
    put(store, **{"big.csv": BIG.replace(b"words", b"other")})
    store.delete_object(Bucket="corpus", Key="gone.txt")
    assert all("other" in document.text for document in corpus)
    assert corpus.documents == ROWS
    assert [(reject.place, reject.reason) for reject in rejects] == [
        ("s3://corpus/gone.txt", "there is no such file")
    ]


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, from its beginning only, to whoever knows the key if there is one."""

    key = ""

    def log_message(self, *_: object) -> None:
        pass

    def send_head(self) -> Any:
        path, _, query = self.path.partition("?")
        if self.key not in query:
            self.send_error(403)
            return None
        self.path = path
        return super().send_head()


def test_files_and_folders_of_a_web_server_are_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "sub" / "b.txt").write_text("another")
    (tmp_path / "big.csv").write_bytes(BIG)
    (tmp_path / "t.parquet").write_bytes(table(text=["first", "second"]))
    with serving(partial(Quiet, directory=str(tmp_path))) as url:
        documents, rejects = reading(f"{url}/")
        assert rejects == []
        assert len(documents) == ROWS + 4
        host = url.partition("://")[2]
        assert f"{host}/sub/b.txt" in documents
        documents, rejects = reading(f"{url}/*.txt")
        assert ([*documents], rejects) == (["a.txt"], [])
        with pytest.raises(CorpusError, match="There is no file or folder"):
            read(f"{url}/nothing.txt")


def test_a_signed_address_leaves_no_key_in_ids_and_messages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    handler = type("Keyed", (Quiet,), {"key": "sign=secret"})
    with serving(partial(handler, directory=str(tmp_path))) as url:
        (document,) = read(f"{url}/a.txt?sign=secret")
        assert (document.id, document.metadata["path"]) == ("a.txt", "a.txt")
        with pytest.raises(CorpusError) as caught:
            read(f"{url}/a.txt?sign=secre")
        assert "access is denied (403" in str(caught.value)
        assert "check the credentials" in str(caught.value)
        assert "secre" not in str(caught.value)
        with pytest.raises(CorpusError, match="is given twice"):
            read(f"{url}/a.txt?sign=secret", f"{url}/a.txt?sign=secret&part=2")


def test_names_of_urls_hold_no_credentials() -> None:
    assert urls.public("https://me:pw@host/a/b.txt?key=1#x") == "https://host/a/b.txt"
    assert urls.public("s3://bucket/a?b#c/") == "s3://bucket/a?b#c"
    assert urls.public("abfs://container@account.host/a") == "abfs://container@account.host/a"
    assert urls.without_secrets("at 'https://me:pw@h/a?key=1', no") == "at 'https://h/a', no"
    assert urls.common(["s3://b/x/y", "s3://b/x"]) == "s3://b/x"
    assert urls.common(["s3://b/x", "s3://c/x"]) == "s3://"
    with pytest.raises(CorpusError, match="have no folder in common"):
        claim({}, [Given("s3://b/x", "s3://b"), Given(Path("/tmp"), Path("/"))], None, None)


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("a text")
    (document,) = read((tmp_path / "a b.txt").as_uri())
    assert document.id == "a b.txt"
    assert json.dumps(dict(document.metadata))
