"""From a torch model to an ONNX graph of a given precision."""

from __future__ import annotations

from pathlib import Path

from slice_os.errors import ExportError, needs
from slice_os.exporters.checkpoint import Checkpoint, quiet

PRECISIONS = ("fp32", "fp16", "int8")
_OPSET = 18


def write_plain(checkpoint: Checkpoint, folder: Path) -> Path:
    """Write the fp32 graph of `checkpoint` into `folder` and return its path.

    Raises:
        ExportError: The architecture has no ONNX export.
        MissingExtraError: optimum is not installed.
    """
    with quiet():
        with needs("Exporting an encoder", "export"):
            from optimum.exporters.onnx import onnx_export_from_model
        try:
            # Our own comparison, on real text and on the final precision, replaces validation.
            onnx_export_from_model(
                checkpoint.model,
                output=folder,
                opset=_OPSET,
                task="feature-extraction",
                library_name="transformers",
                preprocessors=[checkpoint.tokenizer],
                do_validation=False,
            )
        except Exception as exc:  # torch and optimum raise many kinds
            line = (str(exc).strip() or type(exc).__name__).splitlines()[0]
            raise ExportError(
                f"optimum cannot export a model of type {checkpoint.model.config.model_type} "
                f"({line}): use an architecture that optimum-onnx lists for feature-extraction."
            ) from exc
    return folder / "model.onnx"


def write_precision(plain: Path, out: Path, precision: str) -> None:
    """Write the fp32 graph `plain` to `out` in `precision`, one of `PRECISIONS`."""
    if precision == "int8":
        _write_int8(plain, out)
    elif precision == "fp16":
        _write_fp16(plain, out)
    else:
        import onnx

        onnx.save(onnx.load(str(plain)), str(out))


def _write_int8(plain: Path, out: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with quiet():
        # 7-bit weights: with 8 bits the sums of processors without VNNI overflow and saturate.
        quantize_dynamic(
            plain, out, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )


def _write_fp16(plain: Path, out: Path) -> None:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        # Outputs stay half precision: half as much to bring back from the GPU.
        onnx.save(convert_float_to_float16(onnx.load(str(plain)), keep_io_types=False), str(out))
