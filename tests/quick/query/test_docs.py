"""docs/query*.md: every Python block returns the JSON under it, and curl sends one of those."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import regex

from slice_os import query

DOCS = Path(__file__).parents[3] / "docs"
TEXT, ELASTIC = ((DOCS / name).read_text() for name in ("query.md", "query-elasticsearch.md"))
SENT = regex.findall(r"-d '(.*?)'\n```", TEXT, regex.S)


def value(code, names):
    tree = ast.parse(code)
    last = tree.body.pop()
    exec(compile(tree, "query.md", "exec"), names)
    return eval(compile(ast.Expression(last.value), "query.md", "eval"), names)


def blocks(text):
    return regex.findall(r"```python\n(.*?)```\n\n```json\n(.*?)```", text, regex.S)


@pytest.mark.parametrize("text", [TEXT, ELASTIC], ids=["OpenSearch", "Elasticsearch"])
def test_every_example_is_what_is_returned(text):
    names: dict[str, object] = {}
    assert len(blocks(text)) == text.count("```python") >= 7
    for code, printed in blocks(text):
        assert json.loads(json.dumps(value(code, names))) == json.loads(printed), code


def test_what_curl_sends_is_one_of_the_examples():
    printed = [json.loads(one) for _, one in blocks(TEXT)]
    assert len(SENT) == TEXT.count("curl -") == 2
    for sent in SENT:
        assert json.loads(sent) in printed


@pytest.mark.parametrize(
    "name", [n for n in query.__all__ if n not in ("Dialect", "VectorType", "query_value")]
)
def test_every_function_is_in_the_docs(name):
    assert f"{name}(" in TEXT + ELASTIC
    assert getattr(query, name).__doc__
