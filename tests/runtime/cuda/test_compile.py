from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.runtime.cache import Cache
from tilewright.runtime.compile import CompileFailed, CompileTimedOut
from tilewright.runtime.cuda.compile import Cubin, compile_cuda
from tilewright.runtime.cuda.nvrtc import Nvrtc
from tilewright.tir.errors import TargetError

pytestmark = pytest.mark.usefixtures("nvrtc")

SOURCE = """extern "C" __global__ void scale(float *__restrict__ x)
{
    x[threadIdx.x] = x[threadIdx.x] * 3.0f + 1.0f;
}
"""


def refusal(source: str, arch: str = "sm_90a", name: str = "scale", **options: object) -> str:
    with pytest.raises(CompileFailed) as caught:
        compile_cuda(source, arch, name=name, cache=Cache(None), **options)  # type: ignore[arg-type]
    return str(caught.value)


def ending(nvrtc: Nvrtc, arch: str = "sm_90a", flags: str = "") -> str:
    return (
        f"  Note: the compiler is {nvrtc}, --gpu-architecture={arch} --fmad=false --std=c++17 "
        f"--device-as-default-execution-space{flags}.\n"
        "  Hint: generated CUDA C that a compiler refuses is a defect of tilewright; please report "
        "it."
    )


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_source_becomes_machine_code_of_the_architecture(arch: str, nvrtc: Nvrtc) -> None:
    cubin = compile_cuda(SOURCE, arch, name="scale", cache=Cache(None))
    assert cubin.image.startswith(b"\x7fELF")
    assert b".text.scale\0" in cubin.image
    assert (cubin.arch, cubin.is_ptx, cubin.path, cubin.compiler) == (arch, False, None, str(nvrtc))
    assert cubin.seconds > 0


def test_a_virtual_architecture_gives_text_for_the_driver() -> None:
    cubin = compile_cuda(SOURCE, "compute_90", name="scale", cache=Cache(None))
    assert cubin.is_ptx
    assert cubin.image.endswith(b"}\n\n\0") or cubin.image.endswith(b"\0")
    text = cubin.image.decode()
    assert ".target sm_90" in text
    assert ".entry scale(" in text


def test_a_product_and_a_sum_are_rounded_apart() -> None:
    text = compile_cuda(SOURCE, "compute_90", cache=Cache(None)).image.decode()
    assert "mul.f32" in text or "mul.rn.f32" in text
    assert "fma" not in text


def test_a_cubin_is_compiled_once_and_then_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = compile_cuda(SOURCE, "sm_80", name="scale", cache=cache)
    again = compile_cuda(SOURCE, "sm_80", name="scale", cache=cache)
    assert first.seconds > 0.0 == again.seconds
    assert (first.image, first.path) == (again.image, again.path)
    assert again.path is not None


def test_source_architecture_and_flags_make_the_key_and_the_name_does_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    compile_cuda(SOURCE, "sm_80", cache=cache)
    compile_cuda(SOURCE, "sm_80", name="other", cache=cache)
    assert cache.info().entries == 1
    compile_cuda(SOURCE, "compute_80", cache=cache)
    compile_cuda(SOURCE, "sm_80", cache=cache, flags=("--maxrregcount=32",))
    compile_cuda(SOURCE + "\n", "sm_80", cache=cache)
    assert cache.info().entries == 4


def test_the_same_source_gives_the_same_bytes_under_any_name() -> None:
    images = [compile_cuda(SOURCE, "sm_80", name=n, cache=Cache(None)).image for n in ("a", "b")]
    assert images[0] == images[1]


def test_threads_compile_at_once() -> None:
    def compiled(number: int) -> Cubin:
        source = SOURCE.replace("scale", f"scale{number}").replace("1.0f", f"{number}.0f")
        return compile_cuda(source, "sm_80", name=f"scale{number}", cache=Cache(None))

    with ThreadPoolExecutor(4) as pool:
        cubins = list(pool.map(compiled, range(8)))
    for number, cubin in enumerate(cubins):
        assert f".text.scale{number}\0".encode() in cubin.image


def test_a_refused_source_shows_the_line(nvrtc: Nvrtc) -> None:
    wrong = SOURCE.replace("3.0f", "y").replace("1.0f", "z")
    assert refusal(wrong, name="scale by 3") == (
        "CompileFailed: compile: NVRTC refused 'scale by 3': identifier \"y\" is undefined. "
        "[cuda-compile-failed]\n"
        "  in scale_by_3.cu:\n"
        '         1 | extern "C" __global__ void scale(float *__restrict__ x)\n'
        "         2 | {\n"
        "    >    3 |     x[threadIdx.x] = x[threadIdx.x] * y + z;\n"
        "         4 | }\n"
        '  Note: also: identifier "z" is undefined (line 3).\n' + ending(nvrtc)
    )


def test_what_the_assembler_refuses_shows_our_line_too(nvrtc: Nvrtc) -> None:
    wrong = SOURCE.replace("{\n", '{\n    asm volatile("wgmma.fence.sync.aligned;");\n')
    compile_cuda(wrong, "sm_90a", cache=Cache(None))
    assert refusal(wrong, "sm_90") == (
        "CompileFailed: compile: NVRTC refused 'scale': Instruction 'wgmma.fence' not supported on "
        ".target 'sm_90'. [cuda-compile-failed]\n"
        "  in scale.cu:\n"
        '         1 | extern "C" __global__ void scale(float *__restrict__ x)\n'
        "         2 | {\n"
        '    >    3 |     asm volatile("wgmma.fence.sync.aligned;");\n'
        "         4 |     x[threadIdx.x] = x[threadIdx.x] * 3.0f + 1.0f;\n"
        "         5 | }\n" + ending(nvrtc, "sm_90")
    )


def test_a_complaint_without_a_line_is_told(nvrtc: Nvrtc) -> None:
    shared = "{\n    __shared__ volatile float tile[100000];\n    tile[threadIdx.x] = *x;\n"
    assert refusal(SOURCE.replace("{\n", shared)) == (
        "CompileFailed: compile: NVRTC refused 'scale': Entry function 'scale' uses too much "
        "shared data (0x61a80 bytes, 0x38c00 max). [cuda-compile-failed]\n" + ending(nvrtc)
    )
    assert refusal(SOURCE[:-2], flags=("--no-such",)).startswith(
        "CompileFailed: compile: NVRTC refused 'scale': unrecognized option --no-such found. "
    )
    assert refusal(SOURCE[:-2]).startswith(
        "CompileFailed: compile: NVRTC refused 'scale': expected a \"}\". "
    )


def test_a_source_that_takes_too_long_is_given_up(nvrtc: Nvrtc) -> None:
    if nvrtc.version < (12, 8):
        pytest.skip("this NVRTC cannot be told to end")
    with pytest.raises(CompileTimedOut) as refused:
        compile_cuda(SOURCE, "sm_90a", cache=Cache(None), name="scale", seconds=0.0)
    assert str(refused.value) == (
        "CompileTimedOut: compile: NVRTC took longer than 0 s for 'scale'. "
        f"[cuda-compile-timed-out]\n  Note: the compiler is {nvrtc}."
    )


def test_a_header_is_not_found() -> None:
    said = refusal("#include <cuda_fp16.h>\n" + SOURCE)
    assert 'could not open source file "cuda_fp16.h"' in said
    assert "    >    1 | #include <cuda_fp16.h>\n" in said


def test_a_warning_is_an_error_in_our_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    unused = SOURCE.replace("{\n", "{\n    int unused;\n")
    said = refusal(unused)
    assert "NVRTC refused 'scale': variable \"unused\" was declared but never referenced." in said
    assert "    >    3 |     int unused;\n" in said
    monkeypatch.delenv("TILEWRIGHT_WERROR")
    assert compile_cuda(unused, "sm_80", cache=Cache(None)).image


@pytest.mark.parametrize(
    "arch", ["sm_70", "sm_80a", "sm_90f", "90", "sm_90b", "gfx942", "sm_90 ", "SM_90"]
)
def test_an_architecture_that_does_not_exist_is_refused(arch: str, nvrtc: Nvrtc) -> None:
    with pytest.raises(TargetError) as caught:
        compile_cuda(SOURCE, arch, name="scale")
    known = ", ".join(f"sm_{number}" for number in nvrtc.archs)
    assert str(caught.value) == (
        f"TargetError: compile: 'scale' is for '{arch}', which {nvrtc} does not know; expected one "
        f"of {known}. [cuda-arch]\n"
        "  Note: 'a' may follow from sm_90 on: what this one has and no later one; 'f' from sm_100 "
        "on; compute_ instead of sm_ asks for PTX."
    )
