"""What mutation testing changes, and which tests mirror each file."""

from __future__ import annotations

from pathlib import Path

from sandbox import ROOT

AREAS = {  # area -> files that are mutated
    "legality": (
        "schedule/legality/blocks.py",
        "schedule/legality/loops.py",
        "schedule/legality/tensors.py",
        "schedule/primitives/**/*.py",
    ),
    "proof": ("schedule/proof/**/*.py",),
    "lowering": ("codegen/lanes.py", "codegen/lower/**/*.py"),
    "memory": ("graph/plan/memory_plan.py", "graph/plan/memory_check.py"),
    "passes": ("graph/passes/*.py",),
    "calibration": ("graph/precision/calibration/*.py", "graph/precision/prepared.py"),
    "int8": (
        "graph/precision/accuracy.py",
        "graph/precision/channels/*.py",
        "graph/precision/layers.py",
        "graph/precision/levels/*.py",
    ),
    "narrow": ("graph/precision/blocks/*.py", "graph/precision/halves.py"),
    "text": ("codegen/c/*.py", "codegen/isa/*.py", "codegen/text/*.py"),
    "fusion": (
        "graph/plan/fusion.py",
        "graph/kernels/express.py",
        "graph/kernels/fused_kernel.py",
        "graph/plan/lowering.py",
    ),
    "arithmetic": (
        "tir/analysis/simplify.py",
        "tir/analysis/linear.py",
        "tir/reference/evaluate.py",
    ),
    "threads": ("runtime/cpu/*.c",),
    "checks": (
        "driver/check/budget.py",
        "driver/check/check.py",
        "driver/check/data.py",
        "driver/check/engine.py",
        "driver/check/fenced.py",
        "runtime/cuda/device/fenced_code.py",
        "driver/check/program.py",
        "graph/reference/compare.py",
        "tir/reference/error_bound.py",
    ),
}
MIRRORS = {  # file -> its tests by name, or by path, where they are others than the one named alike
    "runtime/cpu/fibers.c": ("lost_cpus", "pool"),
    "runtime/cpu/gates.c": ("pool",),
    "runtime/cpu/places.c": ("lost_cpus", "pool"),
    "runtime/cpu/pool.c": ("pool", "lost_cpus"),
    "schedule/legality/blocks.py": (
        "recurrence",
        "tests/schedule/primitives/blocks/test_compute_at.py",
        "tests/schedule/primitives/blocks/test_inline.py",
        "tests/schedule/primitives/loops/test_loops.py",
        "tests/schedule/primitives/storage/test_rolling.py",
    ),
    "codegen/lower/loops/in_vectors.py": ("expand_scatters", "expand_suppressions"),
    "schedule/legality/loops.py": (
        "recurrence",
        "tests/schedule/primitives/blocks/test_compute_at.py",
        "tests/schedule/primitives/blocks/test_inline.py",
        "tests/schedule/primitives/loops/test_kinds.py",
        "tests/schedule/primitives/loops/test_loops.py",
        "tests/schedule/primitives/storage/test_stage.py",
    ),
    "schedule/legality/tensors.py": (
        "tests/schedule/primitives/blocks/test_compute_at.py",
        "tests/schedule/primitives/blocks/test_inline.py",
        "tests/schedule/primitives/storage/test_rolling.py",
        "tests/schedule/primitives/storage/test_scope.py",
        "tests/schedule/primitives/storage/test_stage.py",
    ),
    "schedule/primitives/storage/layout.py": (
        "layout",
        "tests/schedule/primitives/blocks/test_padding.py",
    ),
    "schedule/primitives/blocks/moved_blocks.py": ("compute_at",),
    "schedule/primitives/parameters.py": ("primitive", "tests/schedule/trace/test_trace.py"),
    "schedule/primitives/blocks/reverse_compute_at.py": ("compute_at",),
    "schedule/primitives/sample.py": ("tests/schedule/trace/test_decisions.py",),
    "schedule/primitives/step_form.py": ("primitive", "tests/schedule/trace/test_trace.py"),
    "codegen/lower/math/build.py": ("exp", "log", "pow"),
    "codegen/lower/passes.py": ("run_passes",),
    "codegen/lower/threads/merge_threads.py": (
        "tests/codegen/lower/test_run_passes.py",
        "tests/codegen/cuda/test_emit.py",
    ),
    "codegen/lower/threads/thread_owner.py": ("place_team_barriers", "join_threads"),
    "codegen/isa/shuffles.py": ("shuffles", "transpose_tiles"),
    "codegen/lower/vector/vector_body.py": ("vectorize", "tests/codegen/test_lanes.py"),
    "codegen/lower/vector/warp_sums.py": ("tensorize", "tests/codegen/cuda/test_warp_sums.py"),
    "codegen/isa/byte_vectors.py": ("isa", "tests/codegen/c/test_values.py"),
    "codegen/isa/half_vectors.py": ("isa", "tests/codegen/lower/vector/test_narrow_types.py"),
    "codegen/isa/neon_bytes.py": ("neon", "tests/runtime/test_export_on_arm.py"),
    "codegen/isa/x86.py": ("isa", "tests/codegen/c/test_values.py"),
    "codegen/isa/cuda.py": ("tests/codegen/cuda/test_emit.py",),
    "codegen/c/constant_vectors.py": ("emit", "values"),
    "codegen/c/export_frame.py": ("export",),
    "codegen/c/program_frame.py": ("program", "tests/runtime/cpu/test_program_code.py"),
    "codegen/c/vectors.py": ("emit", "values"),
    "codegen/text/functions.py": ("dialect", "tests/codegen/c/test_frame.py"),
    "codegen/text/lines.py": ("tests/codegen/c/test_emit.py", "tests/codegen/c/test_values.py"),
    "codegen/text/scalars.py": tuple(
        f"tests/codegen/c/test_{name}.py" for name in ("emit", "division", "shifts", "values")
    ),
    "codegen/text/statements.py": (
        "tests/codegen/c/test_emit.py",
        "tests/codegen/cuda/test_emit.py",
    ),
    "graph/passes/branch_taking.py": ("control_flow",),
    "graph/passes/common_subexpressions.py": ("simple_passes",),
    "graph/passes/constant_folding.py": ("simple_passes",),
    "graph/passes/dead_code.py": ("simple_passes",),
    "graph/passes/exchange.py": ("attention_recognition", "gelu_recognition"),
    "graph/passes/grid_block_products.py": ("block_products",),
    "graph/passes/heads.py": ("attention_recognition",),
    "graph/passes/identity_removal.py": ("simple_passes",),
    "graph/passes/invariant_hoisting.py": ("control_flow",),
    "graph/passes/levels.py": ("integer_products", "level_motion"),
    "codegen/lower/math/round_quotient.py": ("round_quotient", "level_quotients"),
    "graph/ops/saturation.py": ("level_clamps",),
    "graph/passes/loop_unrolling.py": ("control_flow",),
    "graph/passes/norms.py": ("layer_norm_recognition", "fast_norm_recognition"),
    "graph/passes/spread_weights.py": ("block_products", "level_rows"),
    "graph/passes/region_inputs.py": ("control_flow",),
    "graph/precision/calibration/calibration_file.py": ("calibration",),
    "graph/precision/calibration/calibration_pictures.py": ("calibration",),
    "graph/precision/calibration/value_runner.py": ("calibrate",),
    "graph/precision/levels/byte_model.py": (
        "byte_engine",
        "layer_prices",
        "tests/graph/plan/test_tasks.py",
    ),
    "graph/precision/channels/channel_factors.py": ("equalisation", "byte_engine"),
    "graph/precision/levels/level_values.py": ("level_form",),
    "graph/precision/levels/spelled_levels.py": ("level_form", "simulation"),
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
        proof = sorted((ROOT / "tests/schedule/proof").rglob("test_*.py"))
        found += [str(name.relative_to(ROOT)) for name in proof]
    return found


def unmirrored() -> list[str]:
    """The files of all areas that no test mirrors."""
    return [file for area in AREAS for file in files(area) if not mirrors(file)]
