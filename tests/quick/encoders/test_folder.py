import builtins
import json
import sys

import onnxruntime as ort
import pytest

import slice_os.encoders.devices as providers_module
from slice_os.encoders import EncoderInfo, encoder_info, load_encoder
from slice_os.encoders.devices import PROVIDERS, half_precision
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import EncoderError, MissingExtraError


def edit(folder, **changes):
    path = folder / "encoder.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def refused(folder, match, **settings):
    with pytest.raises(EncoderError, match=match) as caught:
        load_encoder(folder, **settings)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_the_packaged_encoder():
    info = encoder_info(check=True)
    assert (info.name, info.precision, info.dimension) == ("slice-english-v2", "int8", 384)
    assert (info.max_tokens, info.pooling, info.span_range) == (256, "mean", (1, 20))
    assert (info.languages, info.licence) == (("en",), "Apache-2.0")
    assert len(info.weights_hash) == 32
    assert sum(path.stat().st_size for path in DEFAULT_FOLDER.iterdir()) < 37e6


def test_the_description_survives_a_round_trip(tmp_path, folder):
    info = EncoderInfo.load(folder)
    info.dump(tmp_path)
    assert EncoderInfo._parse(tmp_path / "encoder.json") == info
    assert json.loads(json.dumps(info.to_dict()))["name"] == info.name


def test_a_later_description_of_the_same_format_is_read(folder):
    edit(folder, something_new=1)
    assert EncoderInfo.load(folder) == EncoderInfo.load(DEFAULT_FOLDER)


def test_no_folder(tmp_path):
    refused(tmp_path / "none", "no encoder at .*slice-os export")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "encoder.json"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    refused(folder, f"has no {name}: export it again")


@pytest.mark.parametrize(
    ("file", "content", "described", "message"),
    [
        ("model.onnx", b"cut", {}, "holds 3 bytes instead of .* half-written"),
        ("model.onnx", b"no graph", {"graph_bytes": 8}, "onnxruntime cannot load .* export the"),
        *(
            ("tokenizer.json", content, {}, "not a usable tokenizer")
            for content in (b"", b"{}", b'{"version": "1.0", "model": 3}')
        ),
        *(
            ("encoder.json", content, {}, "encoder.json describes no slice-os .* export it again")
            for content in (b"", b"{", b"[1]", b"{}", b'{"format": "1"}', b"\xff\xfe{}")
        ),
    ],
)
def test_a_broken_file(folder, file, content, described, message):
    (folder / file).write_bytes(content)
    if described:
        edit(folder, **described)
    refused(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 768}, "not vectors of dimension 768"),
        ({"format": 2}, "format 2 .* reads up to 1: pip install --upgrade slice-os"),
        *(
            (changes, "encoder.json (describes no|states) .* export it again")
            for changes in (
                {"dimension": 0}, {"dimension": "many"}, {"max_tokens": 2}, {"graph_bytes": None},
                {"pooling": "cls"}, {"span_range": [3, 1]}, {"span_range": 4}, {"languages": 1},
            )
        ),
    ],
)  # fmt: skip
def test_a_description_that_cannot_be(folder, changes, message):
    edit(folder, **changes)
    refused(folder, message)


def test_a_graph_with_a_changed_byte(folder):
    with (folder / "model.onnx").open("r+b") as file:
        file.seek(10_000_000)
        byte = file.read(1)
        file.seek(10_000_000)
        file.write(bytes([byte[0] ^ 1]))
    EncoderInfo.load(folder)
    with pytest.raises(EncoderError, match="is not the file that"):
        encoder_info(folder, check=True)


def test_unknown_device_and_threads():
    refused(None, "no device 'tpu'", device="tpu")
    refused(None, "0 threads", threads=0)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda", r"no CUDA.*slice-os\[gpu\]"),
        ("openvino", "no OpenVINO.*pip install onnxruntime-openvino"),
        ("tensorrt", r"no TensorRT.*slice-os\[gpu\].*TensorRT libraries"),
    ],
)
def test_a_provider_that_is_not_installed(device, message):
    if PROVIDERS[device].names[0] in ort.get_available_providers():
        pytest.skip("it is installed here")
    refused(None, message, device=device)


@pytest.mark.skipif("CUDAExecutionProvider" in ort.get_available_providers(), reason="has CUDA")
@pytest.mark.parametrize("raises", [False, True])
def test_cuda_that_does_not_start(monkeypatch, capfd, raises):
    # onnxruntime-gpu goes on with the CPU where there are no CUDA libraries, and raises (or, if
    # its fallback is on, prints and goes on) where there is no GPU.
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(ort, "get_available_providers", lambda: providers)
    session = ort.InferenceSession

    def start(graph, options, *, providers, **settings):
        if raises and len(providers) > 1:
            assert settings == {"enable_fallback": 0}
            raise RuntimeError("CUDA failure 100: no CUDA-capable device is detected")
        return session(graph, options, providers=providers[-1:], **settings)

    monkeypatch.setattr(ort, "InferenceSession", start)
    monkeypatch.setattr(providers_module, "half_precision", lambda path: pytest.fail("in vain"))
    refused(None, "no usable GPU or no CUDA libraries", device="cuda")
    with load_encoder() as encoder:
        assert encoder.device == "cpu"
    assert capfd.readouterr().out == ""


@pytest.fixture
def cuda(monkeypatch):
    """The GPU's path on the CPU: a session that says that CUDA runs it."""
    pytest.importorskip("onnx")
    names = ["CUDAExecutionProvider", "CPUExecutionProvider"]

    class Session(ort.InferenceSession):
        def __init__(self, graph, options, *, providers, **_):
            super().__init__(graph, options, providers=["CPUExecutionProvider"])
            self.asked = providers

        def get_providers(self):
            return self.asked

    monkeypatch.setattr(ort, "get_available_providers", lambda: names)
    monkeypatch.setattr(ort, "InferenceSession", Session)


def test_on_a_gpu_int8_runs_in_half_precision(encoder, cuda):
    texts = ["i want to cancel", "the well was very deep", "either party may terminate"]
    alone = encoder.encode(texts)
    with load_encoder() as other:
        assert other.device == "cuda"
        together, one = other.encode(texts), other.encode(texts[:1])
    cosines = (together * alone).sum(axis=1)
    assert 0.98 < cosines.min() <= cosines.max() < 0.9999  # activations are rounded no more
    # No scale is shared, so a text's vector does not depend on what is beside it.
    assert float(together[0] @ one[0]) == pytest.approx(1, abs=1e-4)


def test_the_half_precision_graph_multiplies_no_integers():
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_from_string(half_precision(DEFAULT_FOLDER / "model.onnx")).graph
    kinds = {node.op_type for node in graph.node}
    assert "MatMul" in kinds
    assert not {kind for kind in kinds if "Integer" in kind or "Quantize" in kind}
    floats = onnx.TensorProto.FLOAT, onnx.TensorProto.INT8
    assert not [one.name for one in graph.initializer if one.data_type in floats]


def test_int8_on_a_gpu_without_onnx(encoder, cuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"int8 encoder on an NVIDIA GPU.*slice-os\[gpu\]"):
        load_encoder(device="cuda")
    with load_encoder() as other:
        assert other.device == "cpu"


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_runtime_names_both_packages(monkeypatch, package):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"slice-os\[cpu\].*slice-os\[gpu\]") as caught:
        load_encoder()
    assert package in str(caught.value)


def test_the_first_dimensions_of_the_packaged_encoder_say_most():
    with load_encoder() as encoder:
        vectors = encoder.encode(
            [
                "cancel my subscription",
                "The licensor's liability shall not exceed the fees paid.",
                "Alice was beginning to get very tired of sitting by her sister on the bank.",
                "protein folding in yeast cells",
            ]
        )
    assert (vectors[:, :192] ** 2).sum(axis=1).mean() > 0.75
    assert (vectors[:, -64:] ** 2).sum(axis=1).mean() < 0.04
