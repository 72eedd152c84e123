"""Filters, exact words and stored fields, on every backend."""

from __future__ import annotations

import pytest

import slice_os
from slice_os.errors import LocationError, QueryError
from slice_os.storage.cluster.mining_scan import Scan
from slice_os.text.filters import parse_filters
from support.filters import holds_of

from .exhaustive import WAYS


def test_filters(index):
    for filters in (["year>=2020", "year<=2021"], ["kind.of=l"], {"year": 2020}):
        found = {hit.document for hit in index.search("ship", filters=filters, size=50)}
        assert found
        assert found <= {"licence", "ship"}
    assert index.search("ship", filters={"year": 1900}) == []
    matches = list(index.mine(["ship"], min_degree=0.0, filters=["year=2021"]))
    assert {match.document for match in matches} == {"ship"}


LONGEST = "\U0001d4b3" * 8500  # more bytes than a term of Lucene may have
WORDED = {
    "plain": ("", "They charged a late fee, and I want the money back."),
    "plural": ("", "They charged late fees, and I want the money back."),
    "shout": ("", "LATE\n- FEE: they charged it, and I want the money back!"),
    "title": ("Late fee", "They charged it, and I want the money back."),
    "apart": ("It was late", "fee or not, I want the money back."),
    "mail": ("", "Send me an e-mail, I want the money back. Or not to be."),
    "email": ("", "Send me an email, I want the money back."),
    "greek": ("", "\u0397 \u039f\u0394\u039f\u03a3 is the road where I want the money back."),
    "han": ("", "\u8bf7\u53d6\u6d88\u8ba2\u9605: I want the money back, na\u00efve as I am."),
    "long": ("", f"{LONGEST} {'x' * 300} and I want the money back."),
}
LATE_FEE = {"plain", "shout", "title"}


@pytest.fixture(scope="module")
def worded(new_location):
    location = new_location()
    documents = [slice_os.Document(name, text, title) for name, (title, text) in WORDED.items()]
    slice_os.index(documents, location)
    with slice_os.open(location) as opened:
        yield opened


@pytest.mark.parametrize(("mode", "fusion"), WAYS)
def test_exact_words_stand_in_every_hit_and_what_must_not_in_none(worded, mode, fusion):
    def found(query, size=20, **wording):
        asked = {"mode": mode, "fusion": fusion, "size": size, "rescore": 0, **wording}
        hits = worded.search(query, **asked)
        assert len(hits) <= size
        return {hit.document for hit in hits}

    asked = "I want the money back"
    assert found(asked) == set(WORDED)
    assert found(f'{asked} "late fee"') == found(asked, must="late fee") == LATE_FEE
    assert found(f'"money back" -"late fee" {asked}') == set(WORDED) - LATE_FEE
    assert found(asked, must_not="LATE fee") == set(WORDED) - LATE_FEE
    assert found(f"{asked} -charged") == set(WORDED) - {"plain", "plural", "shout", "title"}
    assert found(asked, must=["late", "charged"], must_not="fee") == {"plural"}
    assert found(f"{asked} -late -fee -email -x") == {"mail", "greek", "han", "long"}
    for words, names in {
        "e-mail": {"mail"}, "email": {"email"}, "or not to be": {"mail"}, "the": set(WORDED),
        "\u03b7 \u03bf\u03b4\u03bf\u03c3": {"greek"}, "\u53d6\u6d88": {"han"}, "naive": set(),
        "na\u00efve": {"han"}, LONGEST: {"long"}, "x" * 300: {"long"}, "y" * 300: set(),
        "back back": set(),
    }.items():  # fmt: skip
        assert found(asked, must=words) == names, words[:20]
        assert found(asked, must_not=words) == set(WORDED) - names, words[:20]
    # What must (not) be there is left out before the best are chosen, not afterwards.
    assert len(found(asked, size=3, must="late fee")) == 3
    assert found(f"{asked} it is -5 on-line") == set(WORDED)


TYPESET = {
    "plain": "A customer wants a refund at the caf\u00e9 office in ga\u30ac.",
    "decomposed": "A customer wants a refund at the cafe\u0301 office in ga\u30ab\u3099.",
    "ligature": "A customer wants a refund at the caf\u00e9 o\ufb03ce in ga\u30ac.",
    "hyphen": "A cus\u00adtomer wants a re\u00adfund at the caf\u00e9 of\u00adfice in ga\u30ac.",
    "no width": "A cust\u200bomer wants a ref\u200dund\ufeff at the caf\u00e9 office in ga\u30ac.",
    "direction": "A customer\u200e wants a \u2067refund\u2069 at the caf\u00e9 office in ga\u30ac.",
    "width": "A customer wants a \uff52\uff45\uff46und at the caf\u00e9 office in ga\uff76\uff9e.",
}


def test_typesetting_hides_no_word(new_location):
    location = new_location()
    slice_os.index([slice_os.Document(name, text) for name, text in TYPESET.items()], location)
    with slice_os.open(location) as index:
        for phrase in ("refund", "caf\u00e9", "cafe\u0301", "customer wants", "office", "ga\u30ac"):
            literal = index.search(f'"{phrase}"', size=20)
            assert {hit.document for hit in literal} == set(TYPESET), phrase
            assert not index.search("somebody", must_not=phrase), phrase
            lexical = index.search(phrase, mode="lexical", size=20)
            assert {hit.document for hit in lexical} == set(TYPESET), phrase
        for match in index.mine(["refund", "the caf\u00e9 office"], min_degree=0.99):
            text = TYPESET[match.document]
            assert match.text == text[match.start : match.end]
            assert text[match.start - 1] == text[match.end] == " "
        found = index.mine(["customer wants a refund at the caf\u00e9 office"], min_degree=0.99)
        assert {match.document for match in found} == set(TYPESET)
    assert slice_os.check(location).healthy


def test_quotes_do_not_lower_a_degree(worded):
    for mode in ("hybrid", "dense", "lexical"):
        plain = worded.search("want the money back", mode=mode, size=20)
        assert worded.search('want the "money back"', mode=mode, size=20) == plain
        literal = worded.search('want the "money back"', mode=mode, size=20, literal=True)
        assert literal != plain
        assert len(literal) == len(WORDED)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("rescore", [False, True])
def test_mining_goes_by_exact_words_too(worded, graph, rescore, monkeypatch):
    monkeypatch.setattr(Scan, "graph_pays", lambda self: graph)

    def found(phrase, **wording):
        mined = worded.mine([phrase], min_degree=0.75, rescore=rescore, **wording)
        return {match.document for match in mined}

    every = found("want the money back")
    assert every == set(WORDED)
    assert found("want the money back", must="late fee") == LATE_FEE
    assert found("want the money back", must_not=["late fee"]) == every - LATE_FEE
    assert found('want the "money back" -"late fee"') == every - LATE_FEE
    # One phrase's words are not another's.
    phrases = {"fee": 'money back "late fee"', "mail": 'money back "e-mail"'}
    mined = {(m.name, m.document) for m in worded.mine(phrases, min_degree=0.75, rescore=rescore)}
    assert mined == {("mail", "mail"), *(("fee", name) for name in LATE_FEE)}
    assert list(worded.mine(['"nowhere" money back'], min_degree=0.5)) == []


def test_what_exact_words_cannot_be(worded):
    for asked in ({"must": "!"}, {"must_not": [""]}):
        with pytest.raises(QueryError, match="holds no word"):
            worded.search("money", **asked)
        with pytest.raises(QueryError, match="holds no word"):
            worded.mine("money", **asked)
    with pytest.raises(QueryError, match="only says what must not"):
        worded.search("-money")


def test_a_filter_may_name_thousands(new_location):
    location = new_location()
    documents = [
        slice_os.Document(f"d{n}", f"Please cancel order {n}.", metadata={"order": n})
        for n in range(3)
    ]
    slice_os.index(documents, location)
    some = ",".join(map(str, range(1, 5000)))
    with slice_os.open(location) as index:
        found = index.search("cancel my order", filters=[f"order in {some}"])
        assert {hit.document for hit in found} == {"d1", "d2"}


def test_filters_in_words_and_on_lists_of_objects(new_location):
    labels = {
        "a": [{"name": "bug", "who": {"id": 7}}, {"name": "ui"}],
        "b": [{"name": "docs"}],
        "c": [],
    }
    documents = [
        slice_os.Document(
            name,
            f"Text number {number}.",
            metadata={"labels": labels[name], "year": 2018 + number, "path": f"docs/{name}.txt"},
        )
        for number, name in enumerate(labels)
    ]
    documents.append(slice_os.Document("d", "Text of another.", metadata={"path": "d", "on": True}))
    wanted = {
        "labels.name=bug": "a",
        "labels.who.id=7": "a",
        "labels.name!=bug": "bcd",
        "labels.name in docs, ui": "ab",
        "labels.name exists": "ab",
        "year exists": "abc",
        "path prefix docs/": "abc",
        "year prefix 201": "ab",
        "on prefix tr": "d",
        "year=2018 or on=true": "ad",
        "year>=2020 or labels.name=docs or year in 2018,1": "abc",
        "path=this or that": "",
    }
    with slice_os.open(new_location()) as own:
        own.add(documents)
        for text, names in wanted.items():
            found = {hit.document for hit in own.search("text", filters=[text], size=9)}
            assert found == set(names), text
            parsed = parse_filters([text])
            meant = {d.id for d in documents if holds_of(parsed[0], d.metadata)}
            assert set(names) == meant, text
        assert {h.document for h in own.search("text", filters={"year": [2018, 2020]})} == {
            "a", "c"
        }  # fmt: skip
        assert own.search("text", filters=["year exists", "on=true"]) == []
        with pytest.raises(QueryError, match="a list without values"):
            own.search("text", filters={"year": []})
        for field, advice in {
            "yaer": "did you mean year?",
            "label.name": "did you mean labels.name",
            "zzz": "they have labels.name, labels.who.id, on, path, year.",
        }.items():
            message = rf"has a field '{field}': {advice}"
            for use in (
                lambda f: own.search("text", filters=[f"{f}=1"]),
                lambda f: list(own.mine(["text"], filters={f: 1})),
                lambda f: own.delete(filters=[f"year=2018 or {f} exists"]),
            ):
                with pytest.raises(QueryError, match=message):
                    use(field)
        assert own.status().documents == 4


def test_stored_fields_are_what_a_hit_brings_along(new_location):
    metadata = {"year": 2020, "kind": {"of": "x", "on": "y"}, "labels": [{"name": "bug"}]}
    for store, wanted in {
        ("year", "kind"): {"year": 2020, "kind.of": "x", "kind.on": "y"},
        ("labels",): {"labels": [{"name": "bug"}]},
        (): {},
    }.items():
        location = new_location()
        with slice_os.open(location, store=store) as own:
            own.add([slice_os.Document("a", "Some text.", metadata=metadata)])
        with slice_os.open(location) as own:
            (hit,) = own.search("text", filters=["labels.name=bug", "kind.of=x", "year=2020"])
            assert hit.metadata == wanted
        with pytest.raises(LocationError, match="was asked for"):
            slice_os.open(location, store=["other"])
