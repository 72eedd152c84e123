"""Topics of conversations whose domains are known: ours, LDA's and BERTopic's, of the same text.

Needs `--data FOLDER` with text/multidogo.jsonl (id, text; an id begins with the domain).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import slice_os
from slice_os.lab.topics.comparing import KNOWN, MODELS, Found
from slice_os.lab.topics.vocabulary import Prepared

TITLE = "Topics"
NUMBERS = (6, 50)
SEEDS = 3
OURS = ("topics", "LDA")
SHOWN = ("NMI", "purity", "NPMI", "intrusion, texts", "relatedness, rater", "seconds")


def run(data: Path | None) -> list[str]:
    """Return a table of the models' measures, or nothing without data."""
    file = data / "text" / "multidogo.jsonl" if data else None
    if not file or not file.exists():
        return []
    models = {name: MODELS[name] for name in OURS} | {
        "BERTopic, k-means": partial(_bertopic, means=True),
        "BERTopic, HDBSCAN": partial(_bertopic, means=False),
    }
    found = slice_os.evaluate_topics(
        slice_os.read(file), NUMBERS, label="id", pattern="^[a-z]+", seeds=SEEDS, models=models
    )
    return [
        f"The conversations of {file.name}, whose six domains are the labels; the encoder in the "
        "package encodes passages and words for all but LDA, before the time is taken, and rates. "
        f"Means of {SEEDS} seeds. What HDBSCAN leaves out goes to the topic with the nearest mean. "
        "numba compiles in the first run of BERTopic.",
        "",
        f"| K | model | topics | {' | '.join(SHOWN)} |",
        f"|---:|---|---:|{'---:|' * len(SHOWN)}",
        *(
            f"| {one.k} | {one.model} | {one.means['topics']:.0f} | "
            + " | ".join(f"{one.means[x]:.{1 if x == 'seconds' else 3}f}" for x in SHOWN)
            + " |"
            for one in found
        ),
    ]


def _bertopic(found: Prepared, k: int, seed: int, *, means: bool) -> Found:
    """Grootendorst (2022), with its defaults but for the seed, the words and how many topics."""
    from bertopic import BERTopic
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import CountVectorizer
    from umap import UMAP

    texts = [one.text for one in found.passages]
    words = found.vocabulary.items[: found.vocabulary.words]
    counts = CountVectorizer(vocabulary=words).transform(texts).sum(axis=0).A1
    words = [word for word, count in zip(words, counts, strict=True) if count]
    settings: dict[str, Any] = (
        {"hdbscan_model": KMeans(k, random_state=seed)} if means else {"nr_topics": k + 1}
    )
    model = BERTopic(
        language="multilingual",  # else it takes all but letters and digits out of the texts
        umap_model=UMAP(15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed),
        vectorizer_model=CountVectorizer(vocabulary=words),
        top_n_words=KNOWN,
        **settings,
    )
    topics, _ = model.fit_transform(texts, found.vectors)
    if -1 in topics:
        topics = model.reduce_outliers(
            texts, topics, strategy="embeddings", embeddings=found.vectors
        )
    kept, topics = np.unique(topics, return_inverse=True)
    said = [[word for word, _ in model.get_topic(topic) if word] for topic in kept.tolist()]
    return Found(topics, said, said)
