"""Compare static encoders with others: sentence pairs, words a second, size.

    python recipes/static_peers.py sts/stsb-dev.tsv text/wikisplit-sentences.txt \
      --encoder runs/static/best --encoder runs/wordllama --join

The encoder inside the package comes first. `--join` adds the ensemble of those given, which encodes
whole texts only (`Ensemble`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import click
import numpy as np

import slice_os
from slice_os.corpus import read
from slice_os.encoders import Encoder, EncoderInfo
from slice_os.errors import EncoderError
from slice_os.lab.train.sampling import read_pairs
from slice_os.lab.train.static import spearman
from slice_os.text import split
from slice_os.types import Float32, Words

PASSAGES, ROUNDS = 300, 5


class Ensemble(Encoder):
    """Wada et al. (2025), equation 1: each encoder's vector at unit length, weighted and joined.

        E(z) = [a_1 f(E_1(z)), ..., a_L f(E_L(z))] / sqrt(sum a_i^2),    f(x) = x / |x|

    so that a cosine is the mean of the encoders' cosines, weighted by a_i^2. A joined vector is no
    sum of words' vectors, since each block has a norm of its own: texts can be encoded, spans in
    their context cannot. The encoders stay their owners' to close.
    """

    def __init__(self, encoders: Sequence[Encoder], weights: Sequence[float] = ()) -> None:
        """Join `encoders`; `weights` are the a_i, 1 each by default."""
        self._weights = [*weights] or [1.0] * len(encoders)
        if not encoders or len(self._weights) != len(encoders) or min(self._weights) <= 0:
            raise EncoderError(
                f"{len(encoders)} encoders cannot be joined by the weights {self._weights}: give "
                "one above 0 for each."
            )
        self._encoders = encoders
        infos = [encoder.info for encoder in encoders]
        self.info = EncoderInfo(
            name=" + ".join(info.name for info in infos),
            version="1",
            weights_hash="+".join(info.weights_hash for info in infos),
            precision="fp32",
            dimension=sum(info.dimension for info in infos),
        )

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Refuse: see the class."""
        raise EncoderError(
            f"{self.info.name} encodes whole texts, not words in context: give one encoder."
        )

    def _vectors(self, texts: Sequence[str]) -> Float32:
        blocks = zip(self._weights, self._encoders, strict=True)
        joined = [np.float32(weight) * encoder.encode(texts) for weight, encoder in blocks]
        return np.concatenate(joined, axis=1)


@click.command()
@click.argument("pairs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("text", type=click.Path(exists=True, path_type=Path))
@click.option("--encoder", multiple=True, type=click.Path(exists=True, path_type=Path))
@click.option("--join", is_flag=True, help="Add the ensemble of the encoders given.")
@click.option("--threads", type=int, help="Cores.  [default: all]")
def main(
    pairs: Path, text: Path, encoder: tuple[Path, ...], join: bool, threads: int | None
) -> None:
    """Print Spearman's correlation on PAIRS, and words a second of the passages of TEXT."""
    judged = read_pairs(pairs)
    passages = (one.text for document in read(str(text)) for one in split(document))
    texts = list(islice(passages, PASSAGES))
    words = sum(len(one.split()) for one in texts)
    loaded = [slice_os.load_encoder(one, threads=threads) for one in (None, *encoder)]
    rates: list[list[float]] = [[] for _ in loaded]
    for _ in range(ROUNDS):  # in turns, so that a slow minute of the machine hits all alike
        for one, found in zip(loaded, rates, strict=True):
            begun = time.perf_counter()
            for _words in one.encode_words(texts):
                pass
            found.append(words / (time.perf_counter() - begun))
    click.echo("| encoder | dimensions | MB | Spearman | words/s | times as fast |")
    click.echo("|---|---:|---:|---:|---:|---:|")
    first = statistics.median(rates[0])
    for one, found, path in zip(loaded, rates, (None, *encoder), strict=True):
        rate = statistics.median(found)
        size = (
            sum(
                file.stat().st_size
                for file in Path(path or slice_os.encoders.info.DEFAULT_FOLDER).iterdir()
            )
            / 1e6
        )
        click.echo(
            f"| {one.info.name}, {one.info.precision} | {one.info.dimension} | {size:.1f} | "
            f"{spearman(one, judged):.4f} | {rate:,.0f} | {rate / first:.1f} |"
        )
    if join:
        both = Ensemble(loaded[1:])
        click.echo(
            f"| {both.info.name} | {both.info.dimension} | | {spearman(both, judged):.4f} | | |"
        )


if __name__ == "__main__":
    main()
