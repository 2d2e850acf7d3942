"""A Target: what a kernel is compiled for, as a pure value. Nothing here looks at the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from typing import Self

from ..dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType, dtype
from ..errors import TargetError, TargetTypeError, known_names
from ..json_reader import Json
from .cpu import CPUS, CpuModel
from .gpu import GPUS, GpuLimits, GpuRates
from .names import check_names, names_gpu

_HERE = ("c", "cuda")  # those whose machine is this one where none is named


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A back end and the machine model that schedules and the analytical cost model read: a
    CpuTarget or a GpuTarget, which Target(...) makes by what it names.

        Target("c", threads=2)      ->   CpuTarget(kind="c", isa="", threads=2)
        Target("cuda", "sm_90a")    ->   GpuTarget(kind="cuda", isa="sm_90a")

    kind: the back end: "c" compiles, "cuda" compiles for a GPU, "python" interprets, "null" lowers
    and prices but runs nothing; or that of a package that brings one (tir/target/kinds.py).
    isa: "scalar", "avx2" (AVX2 with FMA), "avx512" (AVX-512 F, BW, DQ and VL) or "neon" (of 64-bit
    ARM); of a GPU its architecture, such as "sm_90a" (tir/target/gpu.py). Where a target of "c" or
    "cuda" names none it is open: it means the machine that it is used on, and whoever may look at
    that completes it (driver/resolve_target.py). Other kinds take "scalar".
    features: what the machine has beside it: "vnni" (products of bytes: AVX512-VNNI of "avx512",
    AVX-VNNI of "avx2"), "bf16" (AVX512-BF16, products of bfloat16), "dotprod" and "i8mm" (of
    "neon": FEAT_DotProd and FEAT_I8MM, products of bytes of the same and of different signs).
    threads: what schedules are chosen for; a run may use another number.
    A number of 0 is not given: it becomes the nominal one of what is named, or, of an open target,
    the machine's.
    """

    kind: str = "c"
    isa: str = ""
    _: KW_ONLY
    threads: int = 0
    features: tuple[str, ...] = ()

    def __new__(cls, kind: str = "c", isa: str = "", **given: object) -> Target:
        """A target of the class that the names ask for. Raises: TargetError for fields that only
        the other class has.
        """
        made = _class_of(kind, isa) if cls is Target else cls
        _check_fields(made, kind, isa, given)
        return object.__new__(made)

    def __post_init__(self) -> None:
        """Take the nominal numbers for those that are not given.

        Raises: TargetError for an unknown back end, instruction set, architecture or feature, and
        for one that the class is not for.
        """
        known = check_names(self.kind, self.isa, self.features)
        _check_class(self)
        if not self.isa and self.kind not in _HERE:
            object.__setattr__(self, "isa", "scalar")
        object.__setattr__(self, "features", tuple(f for f in known if f in self.features))
        if self.is_open:
            return
        nominal = {**asdict(self.model), "threads": _THREADS}
        for name, value in nominal.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    def __str__(self) -> str:
        named = self.kind in _HERE and not self.is_open
        return f"{self.kind}:{self.instructions}" if named else self.kind

    __repr__ = __str__

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

    @classmethod
    def of(cls, target: Target) -> Self:
        """The target, which must be of this class. Raises: TargetError."""
        if not isinstance(target, cls):
            raise TargetError(
                f"target: '{target}' is {_WHAT[type(target)]}; expected {_WHAT[cls]}.",
                code="target-class",
            )
        return target

    @property
    def model(self) -> CpuModel | GpuRates:
        """The nominal numbers of what a target that is not open names."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether it names no instruction set and so means the machine that it is used on."""
        return not self.isa

    @property
    def instructions(self) -> str:
        """The instruction set with the features: "avx512+vnni"; empty where it is open."""
        return "+".join((self.isa, *self.features))

    def using(self, features: Iterable[str]) -> Self:
        """This target without the features that are not among `features`."""
        used = set(features)
        return replace(self, features=tuple(name for name in self.features if name in used))

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in one vector register; 1 where there are no vectors."""
        return 1

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """The caches that one core, or one multiprocessor, reads through, the nearest first."""
        raise NotImplementedError

    @property
    def limits(self) -> GpuLimits | None:
        """What the architecture of a GPU allows; None for a CPU, and where it is open."""
        return None

    @property
    def has_vectors(self) -> bool:
        """Whether code computes in vector registers."""
        return False

    @property
    def has_grid(self) -> bool:
        """Whether code runs as a grid of blocks of threads, to which loops are bound."""
        return False

    @property
    def names_registers(self) -> bool:
        """Whether each element of a register tile is a variable of its own, and no array."""
        return self.has_vectors or self.has_grid

    def has_narrow_vectors(self, kind: DType) -> bool:
        """Whether a type of 8 or 16 bits goes in vectors beside numbers of 32 bits."""
        if self.isa == "neon":
            return kind.is_integer and kind.bits == 8
        plain = (kind.is_integer and kind.bits >= 8) or kind in (BOOL, FLOAT16, BFLOAT16)
        return self.isa == "avx512" or (self.isa == "avx2" and plain)

    @property
    def has_shuffles(self) -> bool:
        """Whether a vector is put together of lanes of two others in any order."""
        return self.isa in ("avx2", "avx512")

    @property
    def has_long_vectors(self) -> bool:
        """Whether integers of 64 bits are compared, multiplied and converted in vectors."""
        return self.isa in ("avx512", "scalar") or self.has_grid

    @property
    def has_fma(self) -> bool:
        """Whether a*b+c is one instruction, rounded once."""
        return self.isa != "scalar"

    def to_json(self) -> dict[str, Json]:
        """Every field, for logs and cache keys."""
        return {**asdict(self), "features": list(self.features)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CpuTarget(Target):
    """A target whose code runs on a CPU, with its machine (tir/target/cpu.py).

    vector_bytes, vector_registers: the register file; fma_per_cycle: vector multiply-adds that a
    core starts per cycle; bf16_per_cycle: vectors of pairs of products of bfloat16, where it has
    them. clock_ghz, l1_bytes, l2_bytes (per core), l3_bytes (shared), dram_gb_per_s: nominal, so
    that plans are reproducible.
    """

    vector_bytes: int = 0
    vector_registers: int = 0
    fma_per_cycle: int = 0
    bf16_per_cycle: float = 0.0
    clock_ghz: float = 0.0
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    dram_gb_per_s: float = 0.0

    @property
    def model(self) -> CpuModel:
        """The nominal machine of its instruction set."""
        return CPUS[self.isa]

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in one vector register; 1 where there are no vectors."""
        return max(1, self.vector_bytes // dtype.bytes)

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """The three levels."""
        return self.l1_bytes, self.l2_bytes, self.l3_bytes

    @property
    def has_vectors(self) -> bool:
        """Whether code computes in vector registers."""
        return self.vector_bytes > 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GpuTarget(Target):
    """A target whose code runs on a GPU, with the rates of a board of its architecture, or of the
    one that a caller means: the fields of GpuRates (tir/target/gpu.py). The limits are those of
    the architecture.
    """

    gflops: float = 0.0
    gb_per_s: float = 0.0
    f16_gflops: float = 0.0
    tf32_gflops: float = 0.0
    int8_gops: float = 0.0
    f8_gflops: float = 0.0

    @property
    def model(self) -> GpuRates:
        """The nominal rates of its architecture."""
        return GPUS[self.isa].rates

    @property
    def limits(self) -> GpuLimits | None:
        """What its architecture allows; None where it is open."""
        return GPUS.get(self.isa)

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """That of a multiprocessor and that of the board."""
        return GPUS[named(self).isa].cache_bytes

    @property
    def has_grid(self) -> bool:
        """Always."""
        return True

    def warp_gflops(self, element: DType) -> float:
        """What the tensor cores reach with instructions of one warp that multiply elements of a
        type, in 10^9 operations per second.
        """
        rates = {
            FLOAT16: self.f16_gflops,
            BFLOAT16: self.f16_gflops,
            FLOAT32: self.tf32_gflops,
            dtype("int8"): self.int8_gops,
        }
        return rates[element] * GPUS[named(self).isa].warp_share


_THREADS = 2  # of any machine
_WHAT: dict[type[Target], str] = {CpuTarget: "a CPU", GpuTarget: "a GPU"}


def _class_of(kind: str, isa: str) -> type[CpuTarget | GpuTarget]:
    return GpuTarget if names_gpu(kind, isa) else CpuTarget


def _check_fields(made: type[Target], kind: str, isa: str, given: Iterable[str]) -> None:
    """Refuse a field that only another class of targets has; what none has is Python's to refuse.

    Raises: TargetError.
    """
    common = {f.name for f in fields(Target)}
    own = [f.name for f in fields(made) if f.name not in common]
    others = {f.name for one in (CpuTarget, GpuTarget) for f in fields(one)} - common
    for name in given:
        if name in others and name not in own:
            text = f"{kind}:{isa}" if isa else kind
            raise TargetError(
                f"target: '{text}' is {_WHAT[made]}, which has no '{name}'; expected "
                f"one of {known_names(name, own)}.",
                code="target-field",
            )


def _check_class(target: Target) -> None:
    """Refuse a class by hand that is not the one for what a target names. Raises: TargetError."""
    wanted = _class_of(target.kind, target.isa)
    if type(target) is not wanted:
        raise TargetError(
            f"target: '{target}' is {_WHAT[wanted]}; expected {_WHAT[type(target)]}.",
            code="target-class",
            hints=("Target(...) makes what the names ask for.",),
        )


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


def covers(available: Iterable[str], needed: str) -> bool:
    """Whether a machine with some instruction sets ("avx512+vnni", "avx2") has one that is needed,
    with its features.
    """
    isa, *features = needed.split("+")
    return any(
        base == isa and set(features) <= set(others)
        for base, *others in (text.split("+") for text in available)
    )


ISAS = {isa: CpuTarget(isa=isa) for isa in CPUS}
