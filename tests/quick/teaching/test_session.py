"""Teaching with an index: what is asked, what is kept, what is found."""

from __future__ import annotations

import json

import numpy as np
import pytest

import slice_os
from slice_os.errors import EncoderMismatchError, QueryError, TeachingError
from slice_os.teaching.record import Label, Prototype, TaughtPhrase, read_taught

from .conftest import PHRASE, says, teach, turns


def test_a_taught_phrase_finds_more_than_the_phrase(index):
    session = index.teach(PHRASE)
    teach(session, rounds=6)
    found = list(index.mine(session.taught(), min_probability=0.5))
    right = {one.document for one in found if says(one)}
    before = [one for one in index.mine(PHRASE, min_degree=0.5) if "-" in one.document]
    ranked = sorted(before, key=lambda one: -one.degree)[: len(found)]
    assert len(right) > len({one.document for one in ranked if says(one)})
    assert all(0.5 <= one.probability <= 1 for one in found)
    assert {one.name for one in found} == {PHRASE}
    assert len(right) >= 0.6 * len(found)


def test_nothing_is_asked_twice_and_marks_are_of_the_text(index):
    session = index.teach(PHRASE)
    said = teach(session, rounds=4)
    assert len({(one.document, one.passage) for one in said}) == len(said) == 20
    texts = {one.id: one.text for one in turns()}
    for one in said:
        assert texts[one.document][one.start : one.end] == one.text
        assert f"{one.before}{one.text}{one.after}".strip() in texts[one.document]


def test_a_round_asks_the_best_and_others(index):
    session = index.teach(PHRASE)
    teach(session, rounds=2)
    session.learn()
    asked = session.ask(7)
    chances = [one.probability for one in asked]
    assert len(set(chances)) == 7
    everything = [one.probability for one in (*asked, *session.ask(40))]
    assert max(chances) == max(everything)
    ranks = [sorted(everything, reverse=True).index(chance) for chance in chances]
    assert max(ranks) > 2 * len(chances)


def test_every_answer_is_in_the_file_at_once(index, tmp_path):
    file = tmp_path / "leave.json"
    session = index.teach(PHRASE, output=file)
    for n, one in enumerate(session.ask(5), start=1):
        session.answer(one, says(one))
        assert len(read_taught(file).labels) == n
    assert not list(tmp_path.glob(".partial*"))


def test_it_is_gone_on_with(index, tmp_path):
    file = tmp_path / "leave.json"
    first = index.teach(PHRASE, output=file)
    said = teach(first, rounds=2)
    again = index.teach(PHRASE, output=file)
    assert again.labels == first.labels
    assert again.teacher.prototype().vector @ first.teacher.prototype().vector > 0.98
    more = again.ask(5)
    assert not {one.document for one in said} & {one.document for one in more}
    with pytest.raises(TeachingError, match="give another output"):
        index.teach("something else", output=file)


def test_going_back_takes_the_answer_away(index, tmp_path):
    session = index.teach(PHRASE, output=tmp_path / "leave.json")
    one, other = session.ask(2)
    session.answer(one, True)
    session.answer(other, False)
    session.back(one)
    assert [label.document for label in session.labels] == [other.document]
    assert len(read_taught(tmp_path / "leave.json").labels) == 1
    session.answer(one, False)
    session.answer(one, True)  # the later one counts
    assert [label.right for label in session.labels if label.document == one.document] == [True]


def test_marked_words_are_what_is_learnt(index):
    session = index.teach(PHRASE)
    assert session.teacher.pool.window == range(3, 21)
    for one in session.ask(6):
        sentence = f"{one.before}{one.text}{one.after}"
        begin = one.start - len(one.before)
        if says(one):
            session.answer(one, True, (begin, begin + len(sentence.split()[0])))
        else:
            session.answer(one, False)
    session.learn()
    marked = [label for label in session.labels if label.marked]
    assert marked
    assert session.teacher.pool.window == range(1, 21)
    with pytest.raises(TeachingError, match="mark some between"):
        session.answer(session.ask(1)[0], True, (10_000, 10_010))


def test_skipped_passages_are_not_asked_again(index):
    session = index.teach(PHRASE)
    (one,) = session.ask(1)
    session.skip(one)
    asked = [other for _ in range(12) for other in session.ask(5)]
    assert (one.document, one.passage) not in {(x.document, x.passage) for x in asked}
    assert session.labels == ()


def test_labels_without_a_terminal(index):
    labels = [
        Label(one.id, at := one.text.index("\n") + 1, len(one.text), one.id[:5] == "leave",
              one.text[at:])
        for one in turns()[::2]
    ]  # fmt: skip
    session = index.teach(PHRASE, labels=labels)
    estimate = session.estimate()
    assert estimate.labels == len(labels)
    assert estimate.precision_interval[0] <= estimate.precision <= estimate.precision_interval[1]
    assert estimate.recall_interval[0] <= estimate.recall <= estimate.recall_interval[1]
    assert not estimate.fallback


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([("leave-00", 0, 5, True), ("leave-00", 0, 5, False)], "keep one of them"),
        ([("leave-00", 0, 5, True), ("leave-01", 0, 5, True)], "All 2 labels say yes"),
        ([("near-00", 0, 5, False), ("near-01", 0, 5, False)], "All 2 labels say no"),
        ([("a", 0, 5, True), ("b", 0, 5, False)], "None of the 2 labels"),
    ],
)
def test_labels_that_cannot_be_learnt_from(index, labels, says):
    with pytest.raises(TeachingError, match=says):
        index.teach(PHRASE, labels=[Label(*one) for one in labels])


def test_labels_of_what_changed_or_is_gone_are_named_and_kept(index, tmp_path):
    texts = {one.id: one.text for one in turns()}
    kept = Label("leave-00", 0, 6, True, texts["leave-00"][:6])
    moved = Label("near-00", 90, 97, False, texts["near-00"][10:17])
    changed = Label("near-01", 0, 6, False, "no such words")
    gone = Label("nowhere", 0, 6, False, "gone")
    file = tmp_path / "leave.json"
    session = index.teach(PHRASE, output=file, labels=[kept, moved, changed, gone])
    session.save()
    assert len(session.teacher.answers) == 2
    assert len(session.stale) == 2
    assert any("'nowhere'" in one for one in session.stale)
    assert any("'near-01' has changed" in one for one in session.stale)
    assert set(read_taught(file).labels) == {kept, moved, changed, gone}


@pytest.fixture
def overlapping(tmp_path, encoder):
    """An index of a document of 400 words in one sentence, whose passages share 19 words."""
    words = ["customer", "wants", "cancel", "refund", "card", "late", "parcel", "today"]
    long = " ".join(np.random.default_rng(0).choice(words, 400))
    short = [slice_os.Document("other", "Something else."), slice_os.Document("third", "A ship.")]
    with slice_os.open(tmp_path / "long.slice", encoder=encoder) as index:
        index.add([slice_os.Document("long", long), *short])
        yield index


def test_an_answer_keeps_those_of_passages_that_share_words(overlapping, tmp_path):
    session = overlapping.teach("customer wants cancel", output=tmp_path / "a.json")
    answered = 0
    while questions := session.ask(5):
        for question in questions:
            session.answer(question, answered % 2 == 0)
            answered += 1
    assert answered > 4
    assert len(session.labels) == len(session.teacher.answers) == answered
    assert len(read_taught(tmp_path / "a.json").labels) == answered
    session.answer(question, True)
    assert len(session.labels) == answered
    session.back(question)
    assert len(session.labels) == len(session.teacher.answers) == answered - 1


def test_a_label_past_the_end_of_a_passage_is_learnt_whole(overlapping):
    first, second = [stored.passage for stored in overlapping.passages()][:2]
    text, start = first.text, first.text.rindex(" ", 0, -10) + 1
    label = Label("long", start, first.end + 20, True, marked=True)
    assert second.start < start < first.end < label.end < second.end
    session = overlapping.teach("customer", labels=[label, Label("other", 0, 9, False)])
    (answer,) = [answer for answer in session.teacher.answers if answer.right]
    assert session.teacher.pool.text(answer.span).split()[:2] == text[start:].split()[:2]
    assert session.teacher.pool.stored[answer.row].passage.number == second.number


def test_passages_of_unknown_words_alone_are_not_asked_of(tmp_path):
    vectors = tmp_path / "glove.txt"
    vectors.write_text("customer 1 0 0\nwants 0 1 0\ncancel 0 0 1\nrefund 1 1 0\n")
    documents = [slice_os.Document(f"d{n}", f"xyz{n} qqq{n}") for n in range(40)]
    documents += [slice_os.Document("k1", "customer wants cancel")]
    documents += [slice_os.Document("k2", "customer wants refund")]
    with slice_os.open(tmp_path / "g.slice", encoder=str(vectors)) as index:
        index.add(documents)
        session = index.teach("wants cancel")
        questions = session.ask(5)
        assert {question.document for question in questions} == {"k1", "k2"}
        for question in questions:
            session.answer(question, question.document == "k1")
        assert session.learn().labels == 2


def test_all_answers_no_leave_the_phrase(index, encoder):
    session = index.teach(PHRASE)
    for one in session.ask(6):
        session.answer(one, False)
    estimate = session.learn()
    assert estimate.fallback
    assert session.teacher.prototype().vector @ encoder.encode(PHRASE) == pytest.approx(1, abs=1e-4)
    assert list(index.mine(session.taught(), min_probability=0.9)) == []


def test_another_encoder_is_refused_by_name_and_labels_go_across(index, tmp_path, location):
    file = tmp_path / "leave.json"
    session = index.teach(PHRASE, output=file)
    teach(session, rounds=2)
    said = json.loads(file.read_text())
    said["encoder"]["name"], said["encoder"]["weights_hash"] = "other-model", "0" * 32
    file.write_text(json.dumps(said))
    other = read_taught(file)
    for use in (
        lambda: list(index.mine(other)),
        lambda: index.search_taught(other),
        lambda: index.teach(output=file),
    ):
        with pytest.raises(EncoderMismatchError, match=r"other-model.*teach --from"):
            use()
    anew = index.teach(taught=file)
    assert anew.labels == session.labels
    assert anew.phrases == (PHRASE,)
    assert anew.estimate().labels == len(anew.teacher.answers)


def test_taught_and_other_phrases_are_mined_together(index):
    session = index.teach(PHRASE, name="leaves")
    teach(session, rounds=3)
    found = list(index.mine({"leaves": session.taught(), "rain": "it rains"}, min_degree=0.7))
    assert {one.name for one in found} == {"leaves", "rain"}
    assert all((one.probability is None) == (one.name == "rain") for one in found)


def test_several_vectors_are_one_phrase(index, encoder):
    def prototype(text):
        return Prototype(encoder.encode(text), 20.0, -14.0, 2, 6)

    info = encoder.info
    both = TaughtPhrase(
        "two", ("rain", "violin"), (prototype("it rains"), prototype("plays the violin")),
        info.name, info.weights_hash,
    )  # fmt: skip
    found = list(index.mine(both, min_probability=0.3))
    texts = " ".join(one.text for one in found)
    assert "rain" in texts
    assert "violin" in texts
    alone = list(index.mine(TaughtPhrase("one", ("rain",), both.prototypes[:1], info.name,
                                         info.weights_hash), min_probability=0.3))  # fmt: skip
    assert {(m.document, m.start) for m in alone} <= {(m.document, m.start) for m in found}
    hits = index.search_taught(both, size=40)
    assert [hit.probability for hit in hits] == sorted(
        (hit.probability for hit in hits), reverse=True
    )


def test_hits_of_a_taught_phrase(index):
    session = index.teach(PHRASE)
    teach(session, rounds=5)
    hits = index.search_taught(session.taught(), size=5)
    assert sum(says(hit) for hit in hits) >= 4
    for hit in hits:
        assert hit.probability == hit.score
        assert hit.text[hit.spans[0].start : hit.spans[0].end] == hit.spans[0].text
    later = index.search_taught(session.taught(), size=3, offset=2)
    assert [hit.document for hit in later] == [hit.document for hit in hits[2:5]]
    sure = index.search_taught(session.taught(), size=30, min_probability=0.5)
    assert all(hit.probability >= 0.5 for hit in sure)
    with pytest.raises(QueryError, match="mine"):
        index.search_taught(session.taught(), size=5000)
    with pytest.raises(QueryError, match="between 0 and 1"):
        list(index.mine(session.taught(), min_probability=0))


def test_liked_hits_come_nearer_and_disliked_ones_go(index):
    query = "end the contract"
    texts = ["The ship sank in the night."]
    plain = index.search(query, size=40, mode="dense", late=0)
    liked = index.search(query, size=40, mode="dense", late=0, liked=texts)
    disliked = index.search(query, size=40, mode="dense", late=0, disliked=plain[:1])

    def place(hits, says):
        return next(n for n, hit in enumerate(hits) if says in hit.text)

    assert place(liked, "ship sank") < place(plain, "ship sank")
    (former,) = [hit for hit in disliked if hit.document == plain[0].document]
    assert former.score < plain[0].score
    assert former.degree == plain[0].degree  # that of the query
    assert index.search(query, size=3, liked=[], disliked=[]) == index.search(query, size=3)


def test_an_empty_index_and_no_phrase(tmp_path, encoder, index):
    with slice_os.open(tmp_path / "new.slice", encoder=encoder) as new:
        new.add([slice_os.Document("a", "One.")])
        new.delete(["a"])
        with pytest.raises(TeachingError, match="index some documents first"):
            new.teach(PHRASE)
    with pytest.raises(TeachingError, match="give at least one"):
        index.teach([])
    with pytest.raises(QueryError, match="knows"):
        index.teach("꧁꧂")


def test_prototype_probabilities_and_cosines_are_inverse():
    one = Prototype(np.array([1, 0], np.float32), 12.0, -8.0, 1, 4)
    for chance in (0.01, 0.5, 0.97):
        assert float(one.probabilities(np.array(one.cosine(chance)))) == pytest.approx(chance)
    assert one.probabilities(np.array([-np.inf])).tolist() == [0.0]
    assert one.cosine(1.0) == np.inf
