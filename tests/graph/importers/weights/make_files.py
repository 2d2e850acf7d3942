"""Write `blocks.gguf` and `types.safetensors` of this folder, with what their own packages read.

    python tests/graph/importers/weights/make_files.py

Needs gguf, safetensors and torch (the files here are of 0.19, 0.8 and 2.13); nothing else of the
tests does. The blocks are random bytes, with a few scales that are odd, and others that gguf
quantised, where it can.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, quants

HERE = Path(__file__).parent
KIND = GGMLQuantizationType
COLUMNS = 5
ODD = np.array([np.inf, -np.inf, np.nan, -0.0, 6e-8, 65504], np.float16)  # scales
SCALE_AT = {KIND.Q6_K: 208}  # its first byte in a block, where that is not the first one
RANDOM = {KIND.Q4_0: 96, KIND.Q8_0: 96, KIND.Q4_K: 768, KIND.Q6_K: 768, KIND.Q5_K: 256}
QUANTISED = (KIND.Q4_0, KIND.Q8_0, KIND.BF16, KIND.F16)
TYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "U16": torch.uint16,
    "I16": torch.int16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


def blocks() -> None:
    """A file of GGUF, and the numbers that gguf makes of its tensors."""
    generator = np.random.default_rng(0)
    writer = GGUFWriter(HERE / "blocks.gguf", "test")
    writer.add_uint32("test.count", 3)
    writer.add_int64("test.negative", -(1 << 40))
    writer.add_float32("test.half", 0.5)
    writer.add_bool("test.yes", True)
    writer.add_string("test.text", "größer")
    writer.add_array("test.words", ["a", "", "b ü"])
    writer.add_array("test.numbers", [1, -2, 3])
    writer.add_array("test.truths", [True, False])
    wanted = dict[str, np.ndarray]()

    def add(name: str, kind: KIND, data: np.ndarray) -> None:
        writer.add_tensor(name, data, raw_dtype=kind)
        wanted[name] = quants.dequantize(data, kind)

    for kind, steps in RANDOM.items():
        elements, size = GGML_QUANT_SIZES[kind]
        data = generator.integers(0, 256, (COLUMNS, steps // elements * size), dtype=np.uint8)
        if kind != KIND.Q5_K:
            scales = data.reshape(-1, size)[: len(ODD), SCALE_AT.get(kind, 0) :][:, :2]
            scales[:] = ODD.view(np.uint8).reshape(-1, 2)
        add(f"random.{kind.name}", kind, data)
    numbers = generator.standard_normal((COLUMNS, 64)).astype(np.float32)
    for kind in QUANTISED:
        data = quants.quantize(numbers, kind)
        add(f"quantised.{kind.name}", kind, data)
    add("plain.F32", KIND.F32, numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.savez_compressed(HERE / "blocks.npz", **wanted)


def types() -> None:
    """A file of safetensors with a tensor of each type: bytes, and what they are as float64."""
    generator = np.random.default_rng(1)
    tensors, wanted = dict[str, torch.Tensor](), dict[str, np.ndarray]()
    for name, dtype in TYPES.items():
        top = 2 if dtype == torch.bool else 256
        data = generator.integers(0, top, (3, 4 * dtype.itemsize), dtype=np.uint8)
        tensors[name] = torch.from_numpy(data).view(dtype)
        wanted[name] = tensors[name].double().numpy()
    tensors["empty"] = torch.empty(0, 3)
    tensors["scalar"] = torch.tensor(2.5)
    safetensors.torch.save_file(tensors, HERE / "types.safetensors", {"format": "pt"})
    np.savez_compressed(HERE / "types.npz", **wanted)


if __name__ == "__main__":
    blocks()
    types()
