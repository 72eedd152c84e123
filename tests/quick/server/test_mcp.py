"""The tools of an agent, as the official client sees them, over stdio and streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from mcp import Client, StdioServerParameters

import slice_os
from support.serving import SLICE_OS, started

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


def test_an_agent_needs_the_token_where_there_is_one(location):
    with started("--http", "--index", location, verb="mcp", SLICE_OS_TOKEN="s3cret") as (_, server):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        status, headers, _ = server.ask("POST", "/mcp", body)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        status, _, _ = server.ask("POST", "/mcp", body, {"Host": "evil.example"})
        assert status == 421
