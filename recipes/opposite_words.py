"""Make the antonyms that `slice_os.encoders.opposition` knows, of WordNet and of opposites.toml.

    python recipes/opposite_words.py slice_os/encoders/opposites.txt --wordnet /usr/share/wordnet

Each line holds the stem of a word and those of its antonyms, which need not be in the dictionary
form: "rose" has "fell". An adjective also has those of the adjectives that WordNet calls similar
("polite" has "rude", which is similar to "impolite"). Words are those of the packaged tokenizer.
Needs `pip install lemminflect`, and WordNet's files, as Debian's wordnet-base has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import click
from opposites import LISTS, SUBJECTS, both
from wordnet import FEW, Lexicon, WordNet

from slice_os.encoders.opposition import stem

TOKENIZER = Path(__file__).parents[1] / "slice_os/encoders/default/tokenizer.json"


def licence(wordnet: Path) -> list[str]:
    """Return WordNet's licence, which has to go with what is made of it, as comments."""
    lines = (wordnet / "data.noun").read_text(encoding="utf-8").splitlines()
    said = [" ".join(line.split()[1:]) for line in lines if line.startswith("  ")]
    made = "Stems of words and of their antonyms, by recipes/opposite_words.py, from WordNet."
    return [f"# {line}".rstrip() for line in [made, "", *said]]


def further(net: WordNet, word: str) -> Iterator[str]:
    """Yield the synonyms of a word's antonyms, and for an adjective those of its similar ones'."""
    for kind in "nvar":
        for sense in net.senses(word, kind)[:2]:
            heads = [sense, *(head for head, _ in net.pointed(sense, "&"))]
            for at, head in enumerate(heads):
                for far, _ in net.pointed(head, "!", "" if at else word):
                    yield from net.words(far)
                    if not at:
                        for satellite, _ in net.pointed(far, "&"):
                            yield from net.words(satellite)


def listed() -> Iterator[tuple[str, str]]:
    """Yield the pairs of opposites.toml that are single words."""
    persons = {*SUBJECTS, *SUBJECTS.values(), "my", "your", "our", "their"}
    for name in ("opposed", "further", "ways", "sides", "negating"):
        yield from ((a, b) for a, b in LISTS[name] if not persons & {a, b})
    for grade in LISTS["grades"]:
        for one, other in combinations(grade, 2):
            yield from ((a, b) for a in one for b in other)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--wordnet", required=True, type=click.Path(exists=True, path_type=Path))
def main(out: Path, wordnet: Path) -> None:
    """Write OUT."""
    vocabulary: Sequence[str] = json.loads(TOKENIZER.read_text())["model"]["vocab"]
    known = {word for word in vocabulary if word.isascii() and word.isalpha()}
    lexicon = Lexicon(wordnet, Counter(dict.fromkeys(known, FEW + 1)))
    pairs = {(one, other) for one in known for other in lexicon.of(one, "antonyms")}
    pairs |= {(one, far) for one in known for far in further(lexicon.wordnet, one) if far in known}
    pairs |= {pair for pair in listed() if " " not in "".join(pair)}
    found = both([(stem(a), stem(b)) for a, b in pairs if stem(a) != stem(b)])
    lines = [" ".join([word, *sorted({*found[word]})]) for word in sorted(found)]
    out.write_text("\n".join([*licence(wordnet), *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
