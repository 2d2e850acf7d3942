from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.runtime.cuda.driver import pycuda_wheel
from tilewright.runtime.cuda.driver.pycuda_wheel import PycudaNotBuilt, build, main

# stands for pip: installs a folder of headers, and makes a wheel of what it was told to build
PIP = """
import json, os, sys
from pathlib import Path
_, _, verb, *arguments = sys.argv[1:]
record = dict(arguments=arguments, ldflags=os.environ.get("LDFLAGS"))
if verb == "install":
    target = Path(arguments[arguments.index("--target") + 1])
    for folder in ("cu13",) if "==13" in arguments[-1] else ("cuda_runtime", "cuda_nvcc"):
        (target / "nvidia" / folder / "include").mkdir(parents=True)
else:
    options = {}
    exec((Path.home() / ".aksetup-defaults.py").read_text(), options)
    del options["__builtins__"]
    (library,) = Path(options["CUDADRV_LIB_DIR"][0]).glob("*.so")
    record |= dict(options=options, library=library.read_bytes().hex())
    record |= dict(settings=os.environ["XDG_CONFIG_HOME"])
    folder = Path(arguments[arguments.index("--wheel-dir") + 1])
    folder.mkdir()
    (folder / "pycuda-2026.1-cp311-cp311-linux_x86_64.whl").write_text("a wheel")
Path(RECORDS, verb + ".json").write_text(json.dumps(record))
"""


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let this Python be a script."""
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\nRECORDS = {str(tmp_path)!r}\n{text}")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA")
def test_the_build_needs_headers_from_wheels_and_an_empty_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "c++")
    monkeypatch.setenv("LDFLAGS", "-s")
    stand_in(tmp_path, monkeypatch, PIP)
    assert main([str(tmp_path / "out")]) == 0
    wheel = tmp_path / "out" / "pycuda-2026.1-cp311-cp311-linux_x86_64.whl"
    assert wheel.read_text() == "a wheel"
    assert capsys.readouterr().out == f"{wheel}\npython -m pip install --no-deps {wheel}\n"

    installed = json.loads((tmp_path / "install.json").read_text())
    assert installed["arguments"][:2] == ["--no-deps", "--target"]
    assert installed["arguments"][3:] == [
        "nvidia-cuda-runtime==13.*",
        "nvidia-cuda-profiler-api==13.*",
        "nvidia-cuda-crt==13.*",
    ]
    made = json.loads((tmp_path / "wheel.json").read_text())
    assert made["arguments"][:2] == ["--no-deps", "--no-cache-dir"]
    assert made["arguments"][-1] == "pycuda==2026.1"
    assert made["ldflags"] == "-s -Wl,--no-as-needed"
    assert made["settings"] == str(Path.home() / ".config")
    options = made["options"]
    assert options["CUDA_ROOT"].endswith("/headers/nvidia/cu13")
    assert options["CUDA_INC_DIR"] == [f"{options['CUDA_ROOT']}/include"]
    assert options["CUDA_ENABLE_CURAND"] is False
    assert options["CXXFLAGS"] == ["-g0", "-w"]
    library = bytes.fromhex(made["library"])
    assert library.startswith(b"\x7fELF")
    assert b"\0libcuda.so.1\0" in library


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA")
def test_an_older_driver_needs_older_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "c++")
    stand_in(tmp_path, monkeypatch, PIP)
    build(tmp_path / "out", cuda="12.4")
    assert json.loads((tmp_path / "install.json").read_text())["arguments"][3:] == [
        "nvidia-cuda-runtime-cu12==12.4.*",
        "nvidia-cuda-profiler-api-cu12==12.4.*",
        "nvidia-cuda-nvcc-cu12==12.4.*",
    ]
    options = json.loads((tmp_path / "wheel.json").read_text())["options"]
    places = [Path(place).parts[-2:] for place in options["CUDA_INC_DIR"]]
    assert places == [("cuda_nvcc", "include"), ("cuda_runtime", "include")]


def test_headers_that_nobody_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "c++")
    with pytest.raises(PycudaNotBuilt) as caught:
        build(tmp_path, cuda="11.8")
    assert str(caught.value) == (
        "PycudaNotBuilt: pycuda: there are no headers of CUDA '11.8'; expected 12 or 13, or one "
        "with its minor version: 12.4. [pycuda-cuda]"
    )


def test_without_a_compiler_of_cpp_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PycudaNotBuilt) as caught:
        build(tmp_path)
    assert str(caught.value) == (
        "PycudaNotBuilt: pycuda: no C++ compiler is here; looked for $CXX (not set), c++, g++ and "
        "clang++. [pycuda-compiler]\n"
        "  Hint: Debian, Ubuntu: sudo apt install g++"
    )


def test_what_pip_said_last_is_shown_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "c++")
    stand_in(
        tmp_path,
        monkeypatch,
        "for n in range(20): print('line', n, flush=True)\nraise SystemExit('no such host')",
    )
    assert main([str(tmp_path / "out")]) == 1
    lines = "".join(f"  line {number}\n" for number in range(13, 20))
    assert capsys.readouterr().err == (
        "PycudaNotBuilt: pycuda: pip install failed with status 1. [pycuda-pip]\n"
        f"{lines}  no such host\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_module_is_a_command() -> None:
    command = [sys.executable, "-m", pycuda_wheel.__name__, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: python -m tilewright.runtime.cuda.driver.pycuda_wheel")
