"""The tools of an agent, as the official client sees them, over stdio and streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import ExitStack

import pytest
from mcp import Client, StdioServerParameters

import slice_os
from slice_os.options import ServeOptions
from slice_os.server.mcp import mcp_server
from slice_os.server.tools import Tools
from support.serving import SLICE_OS, Endless, started

TRANSPORTS = ["stdio", "http"]


def converse(transport, location, talk, *arguments):
    """Return what `talk(client)` returns, a coroutine, of a client over a transport."""

    async def over(place):
        async with Client(place, read_timeout_seconds=60) as client:
            return await talk(client)

    if transport == "stdio":
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return asyncio.run(over(StdioServerParameters(
            command=SLICE_OS, args=["mcp", "--index", str(location), *map(str, arguments)],
            env=environment,
        )))  # fmt: skip
    with started("--http", "--index", location, *arguments, verb="mcp") as (_, server):
        return asyncio.run(over(f"{server.url}/mcp"))


async def call(client, tool, **arguments):
    """Return the structured answer of a tool, which its text holds, too."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_agent_finds_reads_and_counts(transport, location, index):
    async def talk(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search", "mine", "read", "list", "status"]
        assert tools["search"].input_schema["required"] == ["query"]
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        found = await call(client, "search", query="wants to cancel", size=2)
        best = found["hits"][0]
        around = await call(client, "read", document=best["document"], at=best["start"])
        mined = await call(client, "mine", phrases=["wants to cancel"], min_degree=0.6)
        listed = await call(client, "list", size=3, filters="number<3")
        status = await call(client, "status")
        wrong = await client.call_tool("read", {"document": "nobody"})
        odd = await client.call_tool("search", {"query": "a", "siz": 1})
        missing = await client.call_tool("search", {})
        unknown = await client.call_tool("delete", {})
        return found, around, mined, listed, status, [wrong, odd, missing, unknown]

    found, around, mined, listed, status, failed = converse(transport, location, talk)
    for hit, wanted in zip(found["hits"], index.search("wants to cancel", size=2), strict=True):
        span = wanted.spans[0]
        assert hit["document"] == wanted.document
        assert hit["start"] == wanted.document_start + span.start
        assert hit["words"] == span.text
        assert hit["degree"] == round(span.degree, 4)
        text = index.get(hit["document"]).text
        assert text[hit["start"] : hit["end"]] == hit["words"]
        assert hit["words"] not in hit["before"]
    assert found["hits"][0]["words"] in around["text"]
    matches = list(index.mine(["wants to cancel"], min_degree=0.6))
    assert mined["counts"] == {"wants to cancel": len(matches)}
    best = max(matches, key=lambda match: match.degree)
    assert mined["matches"][0]["words"] == best.text
    assert [one["document"] for one in listed["documents"]] == ["calls/1#a", "calls/2"]
    assert status["indexes"] == ["calls"]
    assert status["status"]["documents"] == len(index)
    said = [result.content[0].text for result in failed]
    assert all(result.is_error for result in failed)
    assert "There is no document 'nobody'" in said[0]
    assert "'slice-os list' shows the ids" in said[0]
    assert "did you mean 'size'" in said[1]
    assert "'query' is missing" in said[2]
    assert "There is no tool 'delete'" in said[3]


def test_an_answer_is_cut_to_the_tokens_and_says_so(tmp_path):
    with slice_os.open(tmp_path / "long.slice") as index:
        text = "\n\n".join(f"I want to cancel the plan number {n} today." for n in range(200))
        index.add([("long", text), *((f"call-{n:03}", "I want to cancel.") for n in range(60))])

    async def talk(client):
        return (
            await call(client, "mine", phrases="want to cancel", min_degree=0.8, max_tokens=300),
            await call(client, "search", query="want to cancel", size=50, max_tokens=300),
            await call(client, "read", document="long", at=3000, context=100, max_tokens=300),
            await call(client, "list", size=50, max_tokens=300),
        )

    mined, found, read, listed = converse("stdio", tmp_path / "long.slice", talk)
    for answer in (mined, found, read, listed):
        assert len(json.dumps(answer).encode()) <= 300 * 4
        assert answer["note"]
    assert mined["left_out"] == mined["counts"]["want to cancel"] - len(mined["matches"])
    assert mined["counts"]["want to cancel"] >= 260
    assert found["left_out"] == 50 - len(found["hits"])
    assert f"offset {len(found['hits'])}" in found["note"]
    assert read["start"] <= 3000 < read["end"]
    assert read["text"] == text[read["start"] : read["end"]]
    assert listed["more"] is True


def within(index, talk, **options):
    """Return what `talk(client)` returns, of a client within this process."""

    async def over(server):
        async with Client(server) as client:
            return await talk(client)

    with ExitStack() as stack:
        tools = Tools({"calls": index}, ServeOptions.of(**options))
        return asyncio.run(over(mcp_server(tools, stack)))


def test_mining_ends_when_the_call_is_cancelled(index, monkeypatch):
    endless = Endless()
    monkeypatch.setattr(index, "mine", endless.mine)

    async def talk(client):
        calling = asyncio.ensure_future(client.call_tool("mine", {"phrases": "a"}))
        while not endless.begun:
            await asyncio.sleep(0.02)
        calling.cancel()
        while not endless.closed:
            await asyncio.sleep(0.02)

    within(index, lambda client: asyncio.wait_for(talk(client), 20))


def test_mining_that_takes_too_long_says_so(index, monkeypatch):
    monkeypatch.setattr(index, "mine", Endless().mine)
    answer = within(
        index, lambda client: call(client, "mine", phrases="a", max_tokens=300), max_seconds=1
    )
    assert answer["note"].startswith("It was stopped after 1 seconds, and is not all")
    assert answer["matches"]


def test_ctrl_c_ends_it_by_stdio(location):
    with subprocess.Popen(
        [SLICE_OS, "mcp", "--index", str(location)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}  # fmt: skip
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["result"]["serverInfo"]["name"] == "slice-os"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"Traceback" not in process.stderr.read()


def test_an_agent_needs_the_token_where_there_is_one(location):
    with started("--http", "--index", location, verb="mcp", SLICE_OS_TOKEN="s3cret") as (_, server):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        status, headers, _ = server.ask("POST", "/mcp", body)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        status, _, _ = server.ask("POST", "/mcp", body, {"Host": "evil.example"})
        assert status == 421
