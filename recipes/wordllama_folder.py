"""Write WordLlama's static vectors as an encoder folder, to compare a static encoder with.

    pip install wordllama
    python recipes/wordllama_folder.py runs/wordllama

A text's vector is the mean of its tokens' vectors, as WordLlama's own is.
"""

from __future__ import annotations

from importlib.metadata import files, version
from pathlib import Path

import click
import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from slice_os.exporters.graph import write_lookup


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--precision", type=click.Choice(["int8", "fp32"]), default="fp32")
def main(out: Path, precision: str) -> None:
    """Write the encoder folder OUT from the installed package wordllama."""
    packed = [Path(str(file.locate())) for file in files("wordllama") or ()]
    (weights,) = (path for path in packed if path.suffix == ".safetensors")
    (tokenizer,) = (
        path for path in packed if path.parent.name == "tokenizers" and path.suffix == ".json"
    )
    (table,) = load_file(weights).values()
    info = write_lookup(
        out,
        Tokenizer.from_file(str(tokenizer)),
        table.astype(np.float32),
        f"wordllama {version('wordllama')}",
        precision=precision,
        about={"licence": "MIT"},
    )
    click.echo(f"{out}: {info.name}, {info.dimension} dimensions")


if __name__ == "__main__":
    main()
