"""A Target: what a kernel is compiled for, as a pure value. Nothing here looks at the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from .dtype import DType
from .errors import TargetError, TargetTypeError, known_names
from .gpu import GPUS, GpuLimits
from .json_reader import Json

KINDS = ("c", "cuda", "python", "null")
# what some machines of an instruction set have beside it
FEATURES = {"vnni": "avx512", "bf16": "avx512"}


@dataclass(frozen=True, slots=True)
class Target:
    """A back end and the machine model that schedules and the analytical cost model read.

    kind: the back end: "c" compiles, "cuda" compiles for a GPU, "python" interprets, "null" lowers
    and prices but runs nothing.
    isa: "scalar", "avx2" (AVX2 with FMA), "avx512" (AVX-512 F, BW, DQ and VL) or "neon" (of 64-bit
    ARM); of a GPU its architecture, such as "sm_90a" (tir/gpu.py).
    features: what the machine has beside it: "vnni" (AVX512-VNNI, products of bytes), "bf16"
    (AVX512-BF16, products of bfloat16).
    vector_bytes, vector_registers: the register file; fma_per_cycle: vector multiply-adds that a
    core starts per cycle. clock_ghz, l1_bytes, l2_bytes (per core), l3_bytes (shared),
    dram_gb_per_s: nominal, so that plans are reproducible.
    threads: what schedules are chosen for; a run may use another number.
    """

    kind: str = "c"
    isa: str = "scalar"
    vector_bytes: int = 0
    vector_registers: int = 16
    fma_per_cycle: int = 2
    clock_ghz: float = 3.0
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 32 << 20
    dram_gb_per_s: float = 40.0
    threads: int = 2
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}:{self.instructions}" if self.kind in ("c", "cuda") else self.kind

    @property
    def instructions(self) -> str:
        """The instruction set with the features: "avx512+vnni"."""
        return "+".join((self.isa, *self.features))

    @staticmethod
    def parse(text: str) -> Target:
        """The target that `text` names: "c:avx512+vnni", "c:avx2", "c:scalar", "cuda:sm_90a",
        "python" or "null".

        Raises: TargetError for an unknown back end, instruction set or feature; TargetTypeError for
        what is no text.
        """
        if not isinstance(text, str):
            raise TargetTypeError(
                f"target: got {text!r}; expected a Target or its name, such as 'c:avx2' or "
                "'python'.",
                code="target-type",
            )
        kind, _, isa = text.partition(":")
        if kind not in KINDS:
            raise TargetError(
                f"target: unknown back end '{kind}' in '{text}'; expected one of "
                f"{known_names(kind, KINDS)}.",
                code="target-kind",
            )
        if kind == "cuda":
            return _of_gpu(isa, text)
        isa, *features = (isa or "scalar").split("+")
        if isa not in ISAS:
            raise TargetError(
                f"target: unknown instruction set '{isa}' in '{text}'; expected one of "
                f"{known_names(isa, ISAS)}.",
                code="target-isa",
            )
        known = [name for name, base in FEATURES.items() if base == isa]
        for name in features:
            if name not in known:
                raise TargetError(
                    f"target: '{isa}' has no feature '{name}' in '{text}'; expected "
                    f"{known_names(name, known) if known else 'none'}.",
                    code="target-feature",
                )
        return replace(ISAS[isa], kind=kind, features=tuple(f for f in known if f in features))

    def using(self, features: Iterable[str]) -> Target:
        """This target without the features that are not among `features`."""
        used = set(features)
        return replace(self, features=tuple(name for name in self.features if name in used))

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in one vector register; 1 where there are no vectors."""
        return max(1, self.vector_bytes // dtype.bytes)

    @property
    def names_registers(self) -> bool:
        """Whether each element of a register tile is a variable of its own, and no array."""
        return self.vector_bytes > 0 or self.gpu is not None

    @property
    def gpu(self) -> GpuLimits | None:
        """The limits of a GPU's architecture; None for what is none."""
        return GPUS.get(self.isa)

    @property
    def has_byte_vectors(self) -> bool:
        """Whether bytes go in vectors beside numbers of 32 bits, masked ones too."""
        return self.isa == "avx512"

    @property
    def has_long_vectors(self) -> bool:
        """Whether integers of 64 bits are compared, multiplied and converted in vectors."""
        return self.isa in ("avx512", "scalar") or self.gpu is not None

    @property
    def has_fma(self) -> bool:
        """Whether a*b+c is one instruction, rounded once."""
        return self.isa != "scalar"

    def to_json(self) -> dict[str, Json]:
        """Every field, for logs and cache keys."""
        return {**asdict(self), "features": list(self.features)}


def _of_gpu(isa: str, text: str) -> Target:
    if isa not in GPUS:
        what = f"unknown architecture '{isa}'" if isa else "no architecture"
        raise TargetError(
            f"target: {what} in '{text}'; expected one of {known_names(isa, GPUS)}.",
            code="target-gpu",
            hints=("cuda:sm_80 is an A100, cuda:sm_90a an H100 or H200.",),
        )
    return Target(kind="cuda", isa=isa, vector_registers=GPUS[isa].registers_per_thread)


def covers(available: Iterable[str], needed: str) -> bool:
    """Whether a machine with some instruction sets ("avx512+vnni", "avx2") has one that is needed,
    with its features.
    """
    isa, *features = needed.split("+")
    return any(
        base == isa and set(features) <= set(others)
        for base, *others in (text.split("+") for text in available)
    )


ISAS = {
    "scalar": Target(),
    "avx2": Target(isa="avx2", vector_bytes=32, vector_registers=16),
    "avx512": Target(isa="avx512", vector_bytes=64, vector_registers=32),
    "neon": Target(isa="neon", vector_bytes=16, vector_registers=32),
}
