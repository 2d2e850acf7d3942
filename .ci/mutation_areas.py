"""What mutation testing changes, and which tests mirror each file."""

from __future__ import annotations

from pathlib import Path

from sandbox import ROOT

AREAS = {  # area -> files that are mutated
    "legality": (
        "schedule/legality/loops.py",
        "schedule/legality/placement.py",
        "schedule/primitives/*.py",
    ),
    "proof": ("schedule/proof/*.py",),
    "lowering": ("codegen/lower/*.py", "codegen/lower/math/*.py"),
    "memory": ("graph/plan/memory_plan.py", "graph/plan/memory_check.py"),
    "passes": ("graph/passes/*.py",),
    "text": ("codegen/c/*.py",),
    "fusion": (
        "graph/plan/fusion.py",
        "graph/kernels/express.py",
        "graph/kernels/form.py",
        "graph/plan/lowering.py",
    ),
    "arithmetic": (
        "tir/analysis/simplify.py",
        "tir/analysis/linear.py",
        "tir/reference/evaluate.py",
    ),
    "threads": ("runtime/cpu/pool.c",),
    "checks": (
        "driver/check*.py",
        "driver/check/fenced.py",
        "graph/reference/compare.py",
        "tir/reference/error_bound.py",
    ),
}
MIRRORS = {  # file -> its tests by name, or by path, where they are others than the one named alike
    "schedule/legality/placement.py": (
        "compute_at",
        "inline",
        "loops",
        "recurrence",
        "rolling",
        "scope",
    ),
    "schedule/legality/loops.py": ("kinds", "loops", "inline", "stage", "compute_at", "recurrence"),
    "schedule/primitives/layout.py": ("layout", "padding"),
    "codegen/lower/math/build.py": ("exp", "log", "pow"),
    "codegen/lower/merge_threads.py": ("pipeline", "tests/codegen/cuda/test_emit.py"),
    "codegen/lower/thread_owner.py": ("place_team_barriers", "join_threads"),
    "codegen/lower/vector_body.py": ("vectorize", "lanes"),
    "codegen/lower/warp_sums.py": ("tensorize", "tests/codegen/cuda/test_warp_sums.py"),
    "codegen/c/byte_vectors.py": ("isa", "values"),
    "codegen/c/export_frame.py": ("export",),
    "codegen/c/lines.py": ("emit", "values"),
    "codegen/c/program_frame.py": ("program", "tests/runtime/cpu/test_program_code.py"),
    "codegen/c/scalars.py": ("emit", "division", "shifts", "values"),
    "codegen/c/vectors.py": ("emit", "values"),
    "graph/passes/common_subexpressions.py": ("simple_passes",),
    "graph/passes/constant_folding.py": ("simple_passes",),
    "graph/passes/dead_code.py": ("simple_passes",),
    "graph/passes/exchange.py": ("attention_recognition", "gelu_recognition"),
    "graph/passes/heads.py": ("attention_recognition",),
    "graph/passes/identity_removal.py": ("simple_passes",),
    "driver/check/check.py": ("check", "check_faults", "chain"),
    "driver/check/data.py": ("check", "check_faults"),
    "runtime/cuda/device/fenced_code.py": ("tests/runtime/cuda/test_faked.py",),
    "driver/check/fenced.py": ("check", "fenced"),
}


def files(area: str) -> list[str]:
    """The files of an area."""
    return sorted(
        str(path.relative_to(ROOT))
        for pattern in AREAS[area]
        for path in ROOT.glob(pattern)
        if path.name != "__init__.py"
    )


def mirrors(file: str) -> list[str]:
    """The test files that mirror a module, those that exist; none where a name is missing above."""
    path = Path(file)
    folders = (Path("tests") / path.parent, Path("tests") / path.parent.parent)
    named = [
        Path(stem) if "/" in stem else folder / f"test_{stem}.py"
        for folder in folders
        for stem in MIRRORS.get(file, (path.stem,))
    ]
    found = [str(name) for name in dict.fromkeys(named) if (ROOT / name).exists()]
    if "proof" in path.parts:
        proof = sorted((ROOT / "tests/schedule").glob("test_proof*.py"))
        found += [str(name.relative_to(ROOT)) for name in proof]
    return found


def unmirrored() -> list[str]:
    """The files of all areas that no test mirrors."""
    return [file for area in AREAS for file in files(area) if not mirrors(file)]
