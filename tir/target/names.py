"""What a target may be named: a back end with an instruction set and its features, or with the
architecture of a GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..errors import TargetError, known_names
from .cpu import CPUS
from .gpu import GPUS
from .kinds import BUILT_IN, GROUP, is_kind

# what some machines of an instruction set have beside it, in the order in which targets name it
FEATURES = {"avx512": ("vnni", "bf16"), "avx2": ("vnni",), "neon": ("dotprod", "i8mm")}


def machines_of(kind: str) -> Collection[str]:
    """The instruction sets, or the architectures, that a target of a kind may name; one of another
    package may name any.
    """
    if kind == "cuda":
        return GPUS
    return CPUS if kind in BUILT_IN else (*CPUS, *GPUS)


def names_gpu(kind: str, isa: str) -> bool:
    """Whether a target of a kind, with an instruction set or an architecture, is a GPU."""
    return kind == "cuda" or (kind not in BUILT_IN and isa in GPUS)


def check_names(kind: str, isa: str, features: Iterable[str]) -> tuple[str, ...]:
    """The features that the instruction set may have; unknown names are refused.

    Raises: TargetError for an unknown back end, instruction set, architecture or feature.
    """
    whole = "+".join((isa, *features))
    text = f"{kind}:{whole}" if whole else kind
    if not is_kind(kind):
        raise TargetError(
            f"target: unknown back end '{kind}' in '{text}'; expected one of "
            f"{known_names(kind, BUILT_IN)}.",
            code="target-kind",
            hints=(
                "'c' compiles for this machine's CPU, 'cuda' for its GPU.",
                f"a package may bring it, as an entry point of the group '{GROUP}'.",
            ),
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
    known = FEATURES.get(isa, ())
    for name in features:
        if name not in known:
            raise TargetError(
                f"target: '{isa}' has no feature '{name}' in '{text}'; expected "
                f"{known_names(name, known) if known else 'none'}.",
                code="target-feature",
            )
    return known
