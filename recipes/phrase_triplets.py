"""Make what a phrase encoder learns from, after Phrase-BERT (Wang et al. 2021, section 3).

    python recipes/phrase_triplets.py phrase-rows.tsv context-rows.tsv DATA/text \
      --ppdb DATA/phrases/ppdb-train.txt --wordnet /usr/share/wordnet

A row of the first file is a phrase, a paraphrase that shares no word of content with it, and a
negative: the phrase with one such word swapped for a random one, and then paraphrased, too. A row
of the second is a phrase, a context of at most 120 tokens in which it is masked, and the context
of another. Phrases are the noun, verb, adjective and adverb phrases of running text that TextBlob's
shallow parser finds: `pip install textblob lemminflect`.

What paraphrases is a language model behind an OpenAI-compatible endpoint (--model; OPENAI_BASE_URL,
OPENAI_MODEL and OPENAI_API_KEY say which): its answers are kept, and the same command goes on.
Without one, PPDB's rows are phrases and paraphrases, and negatives are said with words of PPDB and
of WordNet (the files of Debian's wordnet-base). Of PPDB the pairs that `slice-os evaluate phrases`
stops and measures its probe by are left out.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from sys import intern
from typing import NamedTuple

import click
from judge_sentences import frequencies
from opposites import SMALL
from textblob.en import parse
from tqdm import tqdm
from wordnet import Lexicon

from slice_os.corpus import read
from slice_os.errors import SliceOSError
from slice_os.files import write_whole
from slice_os.lab.evaluate.language_model import Answers, Endpoint, Row
from slice_os.lab.evaluate.phrase_probe import split_paraphrases
from slice_os.lab.evaluate.phrase_sets import read_ppdb
from slice_os.lab.train.objectives import MASK

LONGEST, CONTEXT = 10, 120
"""Tokens of a phrase, and of a context."""
KINDS = ("NP", "VP", "ADJP", "ADVP")
LEAST = 6
"""A word of a vocabulary occurs so often."""
PROMPT = (
    'Say the phrase "{phrase}" in other words. Use none of these words: {words}. Answer with a '
    "phrase of at most ten words alone, without an explanation."
)
_MARKS = re.compile(r" @([-.,])@ |<unk>")
_WORD = re.compile(r"[a-z]+(?:[-'’][a-z]+)*\.?$")


def content(phrase: str) -> set[str]:
    """Return the words of a phrase that say something by themselves."""
    return {word for word in phrase.lower().split() if word[:1].isalpha() and word not in SMALL}


class Place(NamedTuple):
    """Where a phrase stands: the tokens from `start` to `end` of a document."""

    document: int
    start: int
    end: int


class Phrases:
    """The phrases of texts, how often they occur, and where each stands once."""

    def __init__(self, texts: Iterable[str], rng: random.Random) -> None:
        self.documents: list[list[str]] = []
        self.counts: Counter[str] = Counter()
        self._places: dict[str, Place] = {}
        for text in texts:
            tokens: list[str] = []
            for parts in parsed(_MARKS.sub(r"\1", text)):
                for start, end in phrases_of(parts):
                    phrase = " ".join(part[0] for part in parts[start:end]).lower()
                    self.counts[phrase] += 1
                    if rng.random() * self.counts[phrase] < 1:  # each place is as likely
                        begin = len(tokens)
                        place = Place(len(self.documents), begin + start, begin + end)
                        self._places[phrase] = place
                tokens += [intern(part[0].replace("&slash;", "/")) for part in parts]
            self.documents.append(tokens)

    def frequent(self, most: int) -> list[str]:
        """Return the most frequent phrases."""
        return [phrase for phrase, _ in self.counts.most_common(most)]

    def context(self, phrase: str) -> str:
        """Return what stands around a phrase, which is masked."""
        number, start, end = self._places[phrase]
        tokens = self.documents[number]
        first = max(0, min(start - (CONTEXT - 1) // 2, len(tokens) - (end - start) - CONTEXT + 1))
        before = tokens[first:start]
        return " ".join([*before, MASK, *tokens[end : end + CONTEXT - 1 - len(before)]])


def parsed(text: str) -> Iterator[list[list[str]]]:
    """Yield sentences: of each token itself, its tag, and its chunk."""
    for sentence in parse(text).split("\n"):
        yield [one.split("/")[:3] for one in sentence.split(" ") if one.count("/") == 3]


def is_phrase(text: str) -> bool:
    """Tell whether a text is one phrase."""
    return any((0, len(parts)) in phrases_of(parts) for parts in parsed(text))


def phrases_of(parts: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yield where phrases begin and end among a sentence's tokens with their tags and chunks.

    They are chunks, verbs with the chunk after them, and noun phrases joined by "of".
    """
    chunks: list[tuple[str, int, int]] = []
    for at, (_, _, chunk) in enumerate(parts):
        mark, _, kind = chunk.partition("-")
        if mark == "I" and chunks:
            chunks[-1] = (kind, chunks[-1][1], at + 1)
        else:
            chunks.append((kind, at, at + 1))
    for k, (kind, start, end) in enumerate(chunks):
        ends = [end]
        if kind == "VP" and k + 1 < len(chunks) and chunks[k + 1][0] in ("NP", "ADJP", "ADVP"):
            ends.append(chunks[k + 1][2])
        joins = k + 2 < len(chunks) and parts[end][0] == "of" and chunks[k + 2][0] == "NP"
        if kind == "NP" and joins:
            ends.append(chunks[k + 2][2])
        for stop in ends if kind in KINDS else ():
            words = [part[0].lower() for part in parts[start:stop]]
            said = {tag for _, tag, _ in parts[start:stop]}
            if (
                len(words) <= LONGEST
                and all(map(_WORD.match, words))
                and not said & {"PRP", "CC", "UH"}
                and content(" ".join(words))
            ):
                yield start, stop


class Rules:
    """Paraphrases without a language model: words are replaced by PPDB's and WordNet's."""

    def __init__(self, pairs: Sequence[tuple[str, str]], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._table: dict[str, list[str]] = {}
        for one, other in pairs:
            self._table.setdefault(one, []).append(other)
            self._table.setdefault(other, []).append(one)

    def say(self, phrase: str, without: set[str], rng: random.Random) -> str | None:
        """Return other words for a phrase, none of which are in `without`, if there are some."""
        words, said, at = phrase.split(), [], 0
        while at < len(words):
            for end in range(min(len(words), at + 4), at, -1):
                part = " ".join(words[at:end])
                known = self._table.get(part, [])
                if end == at + 1:
                    known = known + self._lexicon.of(part, "synonyms")
                if fitting := [one for one in known if not content(one) & without]:
                    said.append(rng.choice(fitting))
                    at = end
                    break
            else:
                if content(words[at]) & without:
                    return None
                said.append(words[at])
                at += 1
        return " ".join(said)


def core(phrase: str) -> str:
    """Return a phrase without the small words and marks at its ends: PPDB's are often cut there."""
    words = phrase.split()
    while words and (words[0] in SMALL or not words[0][0].isalpha()):
        words = words[1:]
    while words and (words[-1] in SMALL or not words[-1][0].isalpha()):
        words = words[:-1]
    return " ".join(words)


def cores(path: Path) -> list[tuple[str, str]]:
    """Return PPDB's pairs, cut to what they are about, that share no word of content.

    Pairs have no order, and none that is cut to the same as one that is held out is among them.
    """
    learnt, *held_out = [
        [(core(pair.first), core(pair.second)) for pair in part]
        for part in split_paraphrases(read_ppdb(path))
    ]
    known = {frozenset(pair) for part in held_out for pair in part}
    found = []
    for one, other in learnt:
        new = frozenset((one, other)) not in known
        if new and one and other and not content(one) & content(other):
            found.append((one, other))
            known.add(frozenset((one, other)))
    return found


def swapped(phrase: str, words: Sequence[str], rng: random.Random) -> str:
    """Return a phrase with one word of content swapped for a random one."""
    parts = phrase.split()
    at = rng.choice([at for at, word in enumerate(parts) if content(word)])
    return " ".join([*parts[:at], rng.choice(words), *parts[at + 1 :]])


def asked(
    endpoint: Endpoint, out: Path, phrases: Sequence[str], attempts: int = 3
) -> dict[str, str]:
    """Return what a language model says for phrases, none of their words of content."""
    about = {"model": endpoint.model, "prompt": PROMPT}
    answers = Answers(out, about)
    known = {phrase for (phrase,) in answers.fields("phrase")}

    def answer(phrase: str) -> tuple[Row | None, str]:
        words = content(phrase)
        for _ in range(attempts):
            asks = PROMPT.format(phrase=phrase, words=", ".join(sorted(words)))
            said = " ".join(endpoint.complete(asks).split()).strip(' ."“”').lower()
            if said and len(said.split()) <= LONGEST and not content(said) & words:
                return {"phrase": phrase, "paraphrase": said}, ""
        return None, "has words of the phrase, or too many"

    rest = [phrase for phrase in phrases if phrase not in known]
    with click.progressbar(length=len(rest), label="Paraphrases") as bar:
        answers.ask(rest, answer, 4, lambda *_: bar.update(1))
    answered = Answers(out, about).fields("phrase", "paraphrase")
    return {row[0]: row[1] for row in answered}


@click.command()
@click.argument("phrase_rows", type=click.Path(path_type=Path))
@click.argument("context_rows", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--ppdb", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--wordnet", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--model", "answers", type=click.Path(path_type=Path), metavar="FILE.jsonl",
              help="Ask a language model, and keep its answers here.")  # fmt: skip
@click.option("--vocabulary", type=click.Path(path_type=Path), metavar="FILE",
              help="Also write words and the 75,000 most frequent phrases.")  # fmt: skip
@click.option("--rows", default=100_000, show_default=True, help="Rows of each file, at most.")
@click.option("--seed", default=0, show_default=True)
def main(
    phrase_rows: Path,
    context_rows: Path,
    texts: tuple[str, ...],
    ppdb: Path | None,
    wordnet: Path | None,
    answers: Path | None,
    vocabulary: Path | None,
    rows: int,
    seed: int,
) -> None:
    """Write PHRASE_ROWS and CONTEXT_ROWS, both .tsv, from TEXTS, as `slice-os index` reads them."""
    if not answers and not (ppdb and wordnet):
        raise click.UsageError("Give --ppdb and --wordnet, or --model.")
    rng = random.Random(seed)
    try:
        endpoint = Endpoint() if answers else None
        pairs = cores(ppdb) if ppdb else []
        documents = tqdm((one.text for path in texts for one in read(path)), unit=" documents")
        found = Phrases(documents, rng)
    except SliceOSError as exc:
        raise click.ClickException(str(exc)) from exc
    phrases = found.frequent(rows)
    if len(phrases) < 2:
        raise click.ClickException("The texts hold fewer than two phrases: give more.")
    counts = frequencies([" ".join(tokens) for tokens in found.documents])
    words = sorted(word for word, count in counts.items() if count >= LEAST and content(word))
    if vocabulary:
        write_whole(vocabulary, "".join(f"{one}\n" for one in [*words, *found.frequent(75_000)]))
    contexts = [(phrase, found.context(phrase)) for phrase in phrases]
    rng.shuffle(contexts)
    write_rows(
        context_rows,
        [
            (phrase, own, contexts[(k + rng.randrange(1, len(contexts))) % len(contexts)][1])
            for k, (phrase, own) in enumerate(contexts)
        ],
    )
    triplets: list[tuple[str, str, str]] = []
    if endpoint and answers:
        corrupted = {phrase: swapped(phrase, words, rng) for phrase in phrases}
        try:
            said = asked(endpoint, answers, [*phrases, *corrupted.values()])
        except SliceOSError as exc:
            raise click.ClickException(str(exc)) from exc
        triplets = [
            (phrase, said[phrase], said[other])
            for phrase, other in corrupted.items()
            if phrase in said and other in said
        ]
    elif wordnet:
        rules = Rules(pairs, Lexicon(wordnet, counts))
        both = [side for pair in pairs for side in (pair, pair[::-1]) if is_phrase(side[0])]
        rng.shuffle(both)
        for phrase, paraphrase in both[:rows]:
            for _ in range(10):
                negative = rules.say(swapped(phrase, words, rng), content(phrase), rng)
                if negative:
                    triplets.append((phrase, paraphrase, negative))
                    break
    rng.shuffle(triplets)
    write_rows(phrase_rows, triplets)


def write_rows(path: Path, rows: Sequence[tuple[str, str, str]]) -> None:
    """Write rows to a .tsv."""
    write_whole(path, "".join("\t".join(row) + "\n" for row in rows))
    click.echo(f"{len(rows)} rows in {path}.")


if __name__ == "__main__":
    main()
