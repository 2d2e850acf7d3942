from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.runtime.cuda.toolchain import nvrtc as nvrtc_module
from tilewright.runtime.cuda.toolchain.nvrtc import Nvrtc, NvrtcFailed, NvrtcNotFound, find_nvrtc

from ..shared_library import shared_library

# an NVRTC that is out of memory whenever it is asked to compile
EXHAUSTED = """
#include <stddef.h>
int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 7; return 0; }
const char *nvrtcGetErrorString(int result) { return result == 1 ? "OUT_OF_MEMORY" : "OTHER"; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return 0; }
int nvrtcGetSupportedArchs(int *archs) { archs[0] = 80; archs[1] = 90; return 0; }
int nvrtcCreateProgram(void **program) { *program = NULL; return 1; }
#define UNUSED(name) int name(void) { return 2; }
UNUSED(nvrtcDestroyProgram) UNUSED(nvrtcCompileProgram)
UNUSED(nvrtcGetProgramLogSize) UNUSED(nvrtcGetProgramLog)
UNUSED(nvrtcGetPTXSize) UNUSED(nvrtcGetPTX) UNUSED(nvrtcGetCUBINSize)
"""

COMPILE = """
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
print(len(compile_cuda("__global__ void f() {}", "sm_80").image) > 0)
"""


def test_nvrtc_says_what_it_is(nvrtc: Nvrtc) -> None:
    assert str(nvrtc) == "NVRTC {}.{}".format(*nvrtc.version)
    assert nvrtc.version >= (12, 0)
    assert {80, 90} <= set(nvrtc.archs)
    assert len(nvrtc.identity) == 64
    assert find_nvrtc() is nvrtc


def test_a_compilation_keeps_the_log_the_text_and_the_code(nvrtc: Nvrtc) -> None:
    done = nvrtc.compile("__global__ void f() { int q; }", "f.cu", ["--gpu-architecture=sm_80"])
    assert done.complaint is None
    assert done.log.startswith('f.cu(1): warning #177-D: variable "q" was declared')
    assert done.ptx.endswith(b"\0")
    assert done.cubin.startswith(b"\x7fELF")
    failed = nvrtc.compile("void f() {", "f.cu", ["--gpu-architecture=sm_80"])
    assert failed.complaint == "NVRTC_ERROR_COMPILATION"
    assert failed.cubin == b""


def test_a_library_without_a_run_path_finds_its_built_ins(nvrtc: Nvrtc, tmp_path: Path) -> None:
    """As the wheel of NVRTC 13.0 is."""
    path = Path(nvrtc.path)
    if not path.is_absolute():
        pytest.skip("the loader found NVRTC, where its built-ins lie is not known")
    for built_in in path.parent.glob("libnvrtc-builtins.so*"):
        shutil.copy(built_in, tmp_path)
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes().replace(b"\0$ORIGIN\0", b"\0/nowher\0"))
    settings = {"TILEWRIGHT_NVRTC": str(copy), "TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", COMPILE]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.needs_cc
def test_the_named_library_is_taken_and_its_own_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = EXHAUSTED + "UNUSED(nvrtcGetCUBIN)\n"
    path = shared_library(text, tmp_path / "libnvrtc.so")
    monkeypatch.setenv("TILEWRIGHT_NVRTC", str(path))
    nvrtc = find_nvrtc()
    assert (nvrtc.path, nvrtc.version, nvrtc.archs) == (str(path), (12, 7), (80, 90))
    with pytest.raises(NvrtcFailed) as caught:
        nvrtc.compile("", "f.cu", ())
    assert str(caught.value) == (
        f"NvrtcFailed: compile: NVRTC 12.7 at '{path}' failed: OUT_OF_MEMORY. [nvrtc-failed]"
    )


@pytest.mark.needs_cc
def test_a_named_library_that_is_not_nvrtc_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_library(EXHAUSTED, tmp_path / "libnvrtc.so")
    monkeypatch.setenv("TILEWRIGHT_NVRTC", str(path))
    with pytest.raises(NvrtcNotFound) as caught:
        find_nvrtc()
    assert str(caught.value) == (
        f"NvrtcNotFound: compile: $TILEWRIGHT_NVRTC is '{path}', which is not NVRTC: function/"
        f"symbol 'nvrtcGetCUBIN' not found in library '{path}': {path}: undefined symbol: "
        "nvrtcGetCUBIN. [nvrtc-named]\n"
        "  Hint: unset TILEWRIGHT_NVRTC to have the wheel's or the toolkit's found."
    )


def test_no_nvrtc_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_text("not a library")
    monkeypatch.setattr(
        nvrtc_module, "library_candidates", lambda name: (str(broken), f"no-lib{name}.so")
    )
    nvrtc_module._find.cache_clear()
    try:
        with pytest.raises(NvrtcNotFound) as caught:
            find_nvrtc()
    finally:
        nvrtc_module._find.cache_clear()
    said = str(caught.value)
    assert said == (
        "NvrtcNotFound: compile: NVRTC, which compiles CUDA C, is not here; looked for "
        "$TILEWRIGHT_NVRTC (not set), the nvidia-cuda-nvrtc wheel, $CUDA_HOME, $CUDA_PATH and "
        "libnvrtc of the system. [nvrtc-missing]\n"
        f"  Note: '{broken}' does not load: cannot load library '{broken}': {broken}: file too "
        "short.\n"
        "  Hint: anywhere: python -m pip install 'tilewright[cuda]'"
    )
    assert isinstance(caught.value, OSError)
