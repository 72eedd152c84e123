import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("optimum.exporters")

import onnx
from onnx import numpy_helper

import slice_os.exporters.folder as module
from slice_os.encoders import EncoderInfo, load_encoder
from slice_os.encoders.devices import half_precision
from slice_os.errors import ExportError, MissingExtraError
from slice_os.exporters import export
from slice_os.exporters.checkpoint import Card, load_checkpoint
from slice_os.exporters.graph import check_parity, sentences

TEXT = "Down the Rabbit-Hole, caf\u00e9 we went: 吾輩は猫である 😀 again "


@pytest.mark.parametrize("kind", ["bert", "mpnet", "xlm-roberta", "modernbert"])
def test_every_architecture_agrees_with_torch(checkpoint, tmp_path, kind):
    steps = []
    info = export(checkpoint(kind), tmp_path / "out", name=kind, progress=steps.append)
    assert info.measured["parity"]["all"]["min"] > 0.999
    assert info.precision == "fp32"
    assert len(steps) == 7
    assert EncoderInfo.load(tmp_path / "out", check=True) == info
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").stat().st_mode & 0o555 == 0o555
    with load_encoder(tmp_path / "out", threads=1) as encoder:
        text = TEXT * 30  # several windows, padded together with short texts
        long, short, none = encoder.encode_words([text, TEXT, " "])
        assert len(long) == 30 * len(short) > 0
        assert len(none) == 0
        (alone,) = encoder.encode_words([TEXT])
        # Another batch and its padding change nothing but the last digits.
        np.testing.assert_allclose(short.vectors, alone.vectors, atol=1e-4)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_smaller_precisions(checkpoint, tmp_path, precision):
    full = export(checkpoint(), tmp_path / "fp32")
    info = export(checkpoint(), tmp_path / "out", precision)
    assert info.weights_hash == full.weights_hash
    assert info.graph_bytes < full.graph_bytes
    with load_encoder(tmp_path / "out", threads=1) as encoder:
        vectors = encoder.encode(sentences())
        assert vectors.dtype == np.float32
    with load_encoder(tmp_path / "fp32", threads=1) as encoder:
        assert (vectors * encoder.encode(sentences())).sum(1).mean() > 0.97


def test_the_same_checkpoint_gives_the_same_bytes(checkpoint, tmp_path):
    one, two = (export(checkpoint(), tmp_path / name, "int8", "n") for name in "ab")
    assert one == two
    assert (tmp_path / "a/encoder.json").read_bytes() == (tmp_path / "b/encoder.json").read_bytes()


def test_family_is_of_the_weights(checkpoint, make, tmp_path):
    one = load_checkpoint(checkpoint()).weights_hash
    assert one != load_checkpoint(checkpoint(seed=1)).weights_hash
    assert one != load_checkpoint(checkpoint("mpnet")).weights_hash
    assert one == load_checkpoint(make(tmp_path, "bert")).weights_hash


def test_half_precision_weights_are_computed_in_full(make, tmp_path):
    folder = make(tmp_path / "half", "bert", half=True)
    info = export(folder, tmp_path / "out")
    assert info.measured["parity"]["all"]["min"] > 0.999


def test_what_the_checkpoint_tells(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint(), tmp_path / "mine")
    assert load_checkpoint(folder).max_tokens == 128
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    (folder / "README.md").write_text(
        "---\nlanguage: [en, de]\nlicense: apache-2.0\ndatasets:\n- one\n- two\n---\n# Mine\n"
    )
    info = export(folder, tmp_path / "out")
    assert (info.name, info.max_tokens) == ("mine", 64)
    assert (info.languages, info.licence) == (("en", "de"), "Apache-2.0")
    assert info.training_data == "one, two"
    info = export(
        folder, tmp_path / "out", overwrite=True, languages=["fr"], licence="MIT", version="2",
        training_data="none", max_tokens=32, span_range=(1, 10),
    )  # fmt: skip
    assert EncoderInfo.load(tmp_path / "out") == info
    assert (info.languages, info.licence, info.version) == (("fr",), "MIT", "2")
    assert (info.training_data, info.max_tokens, info.span_range) == ("none", 32, (1, 10))


@pytest.mark.parametrize("text", ["", "# no front", "---\n: [\n---\n", "---\n- a\n---\n", "---\n"])
def test_a_card_without_front_matter_tells_nothing(checkpoint, tmp_path, text):
    folder = shutil.copytree(checkpoint(), tmp_path / "mine")
    (folder / "README.md").write_text(text)
    assert load_checkpoint(folder).card == Card()


def test_a_sentence_transformers_folder(checkpoint, tmp_path):
    shutil.copytree(checkpoint(), tmp_path / "st/0_Transformer")
    (tmp_path / "st/modules.json").write_text(json.dumps([{"path": "0_Transformer"}]))
    assert (
        load_checkpoint(tmp_path / "st").weights_hash == load_checkpoint(checkpoint()).weights_hash
    )


def refused(match, folder, out, *args, **settings):
    with pytest.raises(ExportError, match=match) as caught:
        export(folder, out, *args, **settings)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_a_graph_that_differs_is_refused_and_leaves_nothing(checkpoint, tmp_path, monkeypatch):
    write = module.write_precision

    def corrupt(plain, out, precision):
        write(plain, out, precision)
        graph = onnx.load(str(out))
        weights = next(one for one in graph.graph.initializer if list(one.dims) == [32, 64])
        array = numpy_helper.to_array(weights)
        weights.CopyFrom(numpy_helper.from_array(-array, weights.name))
        onnx.save(graph, str(out))

    monkeypatch.setattr(module, "write_precision", corrupt)
    refused(r"fp32 export differs .* cosine .* are needed", checkpoint(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_figures_that_are_no_numbers_are_refused():
    with pytest.raises(ExportError):
        check_parity({"all": {"mean": float("nan"), "min": float("nan")}}, "fp32")


@pytest.mark.parametrize(
    ("error", "match"),
    [(KeyboardInterrupt, None), (OSError(28, "No space left on device"), "No space left")],
)
def test_an_interrupted_export_leaves_nothing(checkpoint, tmp_path, monkeypatch, error, match):
    def stop(*_):
        raise error

    monkeypatch.setattr(module, "write_precision", stop)
    with pytest.raises((KeyboardInterrupt, ExportError), match=match):
        export(checkpoint(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_kept(checkpoint, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    refused("exists: choose another folder", checkpoint(), out)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_precision", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export(checkpoint(), out, overwrite=True)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    with monkeypatch.context() as patch:
        rename = Path.rename

        def interrupted(path, target):
            if path.name == "encoder":  # the second of the two renames
                raise KeyboardInterrupt
            return rename(path, target)

        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            export(checkpoint(), out, overwrite=True)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    export(checkpoint(), out, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == [
        "encoder.json",
        "model.onnx",
        "phrase_head.npz",
        "tokenizer.json",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["bert", "mpnet", "xlm-roberta", "modernbert"])
def test_int8_in_half_precision_is_near_to_fp32(checkpoint, tmp_path, kind):
    texts = [text[:80] for text in sentences()[:12]]
    vectors = {}
    for precision in ("fp32", "int8"):
        export(checkpoint(kind), tmp_path / precision, precision)
        with load_encoder(tmp_path / precision, device="cpu") as encoder:
            vectors[precision] = encoder.encode(texts)
    info = EncoderInfo.load(tmp_path / "fp32")
    assert EncoderInfo.load(tmp_path / "int8").phrase_head == info.phrase_head != ""
    graph = tmp_path / "int8/model.onnx"
    graph.write_bytes(half_precision(graph))
    replace(info, graph_bytes=graph.stat().st_size).dump(tmp_path / "int8")
    with load_encoder(tmp_path / "int8", device="cpu") as encoder:
        half = encoder.encode(texts)
    int8, ours = ((one * vectors["fp32"]).sum(axis=1).mean() for one in (vectors["int8"], half))
    assert ours > min(int8, 0.9999) > 0.97


def test_what_cannot_be_exported_is_refused(checkpoint, tmp_path):
    base, out = checkpoint(), tmp_path / "o"
    refused("no precision 'int4': use fp32, fp16, int8", base, out, "int4")
    refused("at most 130 tokens", base, out, max_tokens=131)
    refused("no checkpoint folder", tmp_path / "none", out)
    (tmp_path / "file").write_text("")
    refused("cannot be made", base, tmp_path / "file/out")


@pytest.mark.parametrize(
    ("gone", "match"),
    [
        (["config.json"], "has no config.json"),
        (["model.safetensors"], "has no weights"),
        (["tokenizer.json", "tokenizer_config.json"], "cannot load the tokenizer"),
    ],
)
def test_a_checkpoint_with_a_part_missing(checkpoint, tmp_path, gone, match):
    folder = shutil.copytree(checkpoint(), tmp_path / "mine")
    for name in gone:
        (folder / name).unlink()
    refused(match, folder, tmp_path / "out")


def test_broken_weights_and_other_weights(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint(), tmp_path / "mine")
    (folder / "model.safetensors").write_bytes(b"\x08" + bytes(20))
    refused("cannot load the model", folder, tmp_path / "out")
    shutil.copy(checkpoint("modernbert") / "model.safetensors", folder)
    refused("lack .* and .* more|cannot load the model", folder, tmp_path / "out")


def test_a_tokenizer_without_a_fast_form(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint(), tmp_path / "mine")
    (folder / "tokenizer.json").unlink()
    config = {"tokenizer_class": "CanineTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    refused("has no fast form", folder, tmp_path / "out")


def test_an_architecture_without_an_export(checkpoint, tmp_path, monkeypatch):
    import optimum.exporters.onnx

    def fail(*_, **__):
        raise ValueError("no such thing\nand more")

    monkeypatch.setattr(optimum.exporters.onnx, "onnx_export_from_model", fail)
    refused("cannot export a model of type bert .no such thing.", checkpoint(), tmp_path / "out")


def test_missing_torch_names_the_extra(checkpoint, tmp_path, monkeypatch):
    folder = checkpoint()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"slice-os\[export\]"):
        export(folder, tmp_path / "out")


def test_importing_the_exporters_is_light():
    code = "import sys, slice_os.exporters; print({'torch', 'onnx', 'optimum'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
