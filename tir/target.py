"""A Target: what a kernel is compiled for, as a pure value. Nothing here looks at the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from .dtype import DType
from .errors import TargetError, TargetTypeError, known_names
from .gpu import GPUS, GpuLimits
from .parsing.json_reader import Json
from .target_kinds import BUILT_IN, GROUP, is_kind

_HERE = ("c", "cuda")  # those whose machine is this one where none is named
# what some machines of an instruction set have beside it
FEATURES = {"vnni": "avx512", "bf16": "avx512"}
# bytes of a vector and number of vector registers
_REGISTERS = {"scalar": (0, 16), "avx2": (32, 16), "avx512": (64, 32), "neon": (16, 32)}
# of any machine
_NOMINAL = {
    "fma_per_cycle": 2,
    "clock_ghz": 3.0,
    "l1_bytes": 32 << 10,
    "l2_bytes": 1 << 20,
    "l3_bytes": 32 << 20,
    "dram_gb_per_s": 40.0,
    "threads": 2,
}


@dataclass(frozen=True, slots=True)
class Target:
    """A back end and the machine model that schedules and the analytical cost model read.

    kind: the back end: "c" compiles, "cuda" compiles for a GPU, "python" interprets, "null" lowers
    and prices but runs nothing; or that of a package that brings one (tir/target_kinds.py).
    isa: "scalar", "avx2" (AVX2 with FMA), "avx512" (AVX-512 F, BW, DQ and VL) or "neon" (of 64-bit
    ARM); of a GPU its architecture, such as "sm_90a" (tir/gpu.py). Where a target of "c" or "cuda"
    names none it is open: it means the machine that it is used on, and whoever may look at that
    completes it (driver/resolve_target.py). Other kinds take "scalar".
    features: what the machine has beside it: "vnni" (AVX512-VNNI, products of bytes), "bf16"
    (AVX512-BF16, products of bfloat16).
    vector_bytes, vector_registers: the register file; fma_per_cycle: vector multiply-adds that a
    core starts per cycle. clock_ghz, l1_bytes, l2_bytes (per core), l3_bytes (shared),
    dram_gb_per_s: nominal, so that plans are reproducible.
    threads: what schedules are chosen for; a run may use another number.
    A number of 0 is not given: it becomes the instruction set's nominal one, or, of an open target,
    the machine's.
    """

    kind: str = "c"
    isa: str = ""
    vector_bytes: int = 0
    vector_registers: int = 0
    fma_per_cycle: int = 0
    clock_ghz: float = 0.0
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    dram_gb_per_s: float = 0.0
    threads: int = 0
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take the nominal numbers for those that are not given.

        Raises: TargetError for an unknown back end, instruction set, architecture or feature.
        """
        known = _check_names(self)
        if not self.isa and self.kind not in _HERE:
            object.__setattr__(self, "isa", "scalar")
        object.__setattr__(self, "features", tuple(f for f in known if f in self.features))
        if self.is_open:
            return
        for name, value in _nominal(self.isa).items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    def __str__(self) -> str:
        named = self.kind in _HERE and not self.is_open
        return f"{self.kind}:{self.instructions}" if named else self.kind

    __repr__ = __str__

    @property
    def is_open(self) -> bool:
        """Whether it names no instruction set and so means the machine that it is used on."""
        return not self.isa

    @property
    def instructions(self) -> str:
        """The instruction set with the features: "avx512+vnni"; empty where it is open."""
        return "+".join((self.isa, *self.features))

    @staticmethod
    def parse(text: str) -> Target:
        """The target that `text` names: "c:avx512+vnni", "c:avx2", "c:scalar", "cuda:sm_90a",
        "python" or "null"; "c" and "cuda" alone are open.

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
        isa, *features = isa.split("+")
        return Target(kind, isa, features=tuple(features))

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
    def has_grid(self) -> bool:
        """Whether code runs as a grid of blocks of threads, to which loops are bound."""
        return self.gpu is not None

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


def _check_names(target: Target) -> tuple[str, ...]:
    """The features that the instruction set may have; unknown names are refused."""
    kind, isa, features = target.kind, target.isa, target.features
    whole = "+".join((isa, *features))
    text = f"{kind}:{whole}" if whole else kind
    if not is_kind(kind):
        raise TargetError(
            f"target: unknown back end '{kind}' in '{text}'; expected one of "
            f"{known_names(kind, BUILT_IN)}.",
            code="target-kind",
            hints=(f"a package may bring it, as an entry point of the group '{GROUP}'.",),
        )
    machines = machines_of(kind)
    if isa and isa not in machines:
        gpu = kind == "cuda"
        raise TargetError(
            f"target: unknown {'architecture' if gpu else 'instruction set'} '{isa}' in '{text}'; "
            f"expected one of {known_names(isa, machines)}.",
            code="target-gpu" if gpu else "target-isa",
            hints=("cuda:sm_80 is an A100, cuda:sm_90a an H100 or H200.",) if gpu else (),
        )
    if features and not isa:
        raise TargetError(
            f"target: '{text}' has features and no instruction set; expected one before them, as "
            "in 'c:avx512+vnni'.",
            code="target-feature-alone",
        )
    known = tuple(name for name, base in FEATURES.items() if base == isa)
    for name in features:
        if name not in known:
            raise TargetError(
                f"target: '{isa}' has no feature '{name}' in '{text}'; expected "
                f"{known_names(name, known) if known else 'none'}.",
                code="target-feature",
            )
    return known


def machines_of(kind: str) -> Iterable[str]:
    """The instruction sets, or the architectures, that a target of a kind may name."""
    return GPUS if kind == "cuda" else _REGISTERS


def named(target: Target) -> Target:
    """The target, which must name its instruction set. Raises: TargetError."""
    if target.is_open:
        raise TargetError(
            f"target: '{target}' names no instruction set; expected a target that was resolved, or "
            "one such as 'c:avx2'.",
            code="target-open",
            hints=("tw.build, tw.compile and tw.tune resolve it: this machine is meant.",),
        )
    return target


def _nominal(isa: str) -> dict[str, float]:
    """The machine model of an instruction set, or of a GPU's architecture."""
    if isa in GPUS:
        return {**_NOMINAL, "vector_registers": GPUS[isa].registers_per_thread}
    vector_bytes, vector_registers = _REGISTERS[isa]
    return {**_NOMINAL, "vector_bytes": vector_bytes, "vector_registers": vector_registers}


def covers(available: Iterable[str], needed: str) -> bool:
    """Whether a machine with some instruction sets ("avx512+vnni", "avx2") has one that is needed,
    with its features.
    """
    isa, *features = needed.split("+")
    return any(
        base == isa and set(features) <= set(others)
        for base, *others in (text.split("+") for text in available)
    )


ISAS = {isa: Target(isa=isa) for isa in _REGISTERS}
