"""Build a wheel of PyCUDA where there is neither a CUDA toolkit nor a driver.

    python -m tilewright.runtime.cuda.driver.pycuda_wheel OUT/

PyPI has PyCUDA's sources alone, and its set-up wants a toolkit. All that it needs of one are
headers, which NVIDIA gives as wheels of some megabytes, and a libcuda to link with, for which an
empty one will do: the real one is found when PyCUDA is imported.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....tir.errors import TilewrightError
from ...files.temporary import temporary_folder
from ...toolchain.compilers import find_compiler

VERSION = "2026.1"

CUDA = "13"

_HEADERS = {  # by the CUDA's major version
    "12": (
        *("nvidia-cuda-runtime-cu12", "nvidia-cuda-profiler-api-cu12"),
        "nvidia-cuda-nvcc-cu12",
    ),
    "13": ("nvidia-cuda-runtime", "nvidia-cuda-profiler-api", "nvidia-cuda-crt"),
}
_COMPILERS = ("c++", "g++", "clang++")
_SHOWN_LINES = 8  # of what pip said, where it failed

# PyCUDA reads its options from this file of the home folder: neither the environment nor pip's own
# settings reach its set-up
_DEFAULTS = ".aksetup-defaults.py"


class PycudaNotBuilt(TilewrightError, RuntimeError):
    """No wheel of PyCUDA came of it."""


def build(out: Path, version: str = VERSION, cuda: str = CUDA) -> Path:
    """Build the wheel and put it into the folder `out`; takes a minute or two.

    cuda: that of the headers, "13", "12" or "12.4"; the driver must be as new.
    Raises: PycudaNotBuilt, CompilerNotFound.
    """
    if not os.environ.get("CXX") and not any(map(shutil.which, _COMPILERS)):
        raise PycudaNotBuilt(
            "pycuda: no C++ compiler is here; looked for $CXX (not set), c++, g++ and clang++.",
            code="pycuda-compiler",
            hints=("Debian, Ubuntu: sudo apt install g++",),
        )
    packages = _HEADERS.get(cuda.partition(".")[0])
    if packages is None:
        raise PycudaNotBuilt(
            f"pycuda: there are no headers of CUDA '{cuda}'; expected {' or '.join(_HEADERS)}, or "
            "one with its minor version: 12.4.",
            code="pycuda-cuda",
        )
    with temporary_folder() as name:
        home = Path(name)
        headers, built = home / "headers", home / "wheels"
        wanted = [f"{package}=={cuda}.*" for package in packages]
        _pip(["install", "--no-deps", "--target", str(headers), *wanted], os.environ)
        folders = sorted(headers.glob("nvidia/*/include"))
        (home / _DEFAULTS).write_text(_defaults(folders, _empty_driver(home / "stub")))
        # of its cache pip would give a wheel that was made with other headers
        command = ["wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", str(built)]
        command.append(f"pycuda=={version}")
        _pip(command, _environment(home))
        (wheel,) = built.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out))


def _empty_driver(folder: Path) -> Path:
    """A folder with a libcuda that has nothing in it but the name to be looked for at import."""
    folder.mkdir()
    source = folder / "empty.c"
    source.write_text("")
    command = [*find_compiler().command, "-shared", "-Wl,-soname,libcuda.so.1", str(source)]
    subprocess.run([*command, "-o", str(folder / "libcuda.so")], check=True)
    return folder


def _defaults(headers: Sequence[Path], driver: Path) -> str:
    """The options of PyCUDA's set-up, in its language."""
    options = {
        "CUDA_ROOT": str(headers[0].parent),  # else it is taken from the first nvcc of the PATH
        "CUDA_INC_DIR": [str(folder) for folder in headers],
        "CUDADRV_LIB_DIR": [str(driver)],
        "CUDA_ENABLE_CURAND": False,
        "CXXFLAGS": ["-g0", "-w"],
    }
    return "".join(f"{name} = {value!r}\n" for name, value in options.items())


def _environment(home: Path) -> dict[str, str]:
    """Ours with another home, in which pip still finds its settings and its cache."""
    known = {
        "XDG_CONFIG_HOME": str(Path.home() / ".config"),
        "XDG_CACHE_HOME": str(Path.home() / ".cache"),
    }
    # an empty libcuda gives nothing that is asked for, so a linker would leave its name out
    linked = f"{os.environ.get('LDFLAGS', '')} -Wl,--no-as-needed".strip()
    return {**known, **os.environ, "HOME": str(home), "LDFLAGS": linked}


def _pip(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run pip. Raises: PycudaNotBuilt with the end of what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise PycudaNotBuilt(
            f"pycuda: pip {arguments[0]} failed with status {done.returncode}.",
            code="pycuda-pip",
            where="\n".join(done.stdout.strip().splitlines()[-_SHOWN_LINES:]),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build into the named folder and say what to type next."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.runtime.cuda.driver.pycuda_wheel")
    parser.add_argument("out", type=Path, help="the folder that gets the wheel")
    parser.add_argument("--version", default=VERSION, help="of PyCUDA (%(default)s)")
    parser.add_argument(
        "--cuda", default=CUDA, help="of the headers; the driver must be as new (%(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        wheel = build(options.out, options.version, options.cuda)
    except TilewrightError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{wheel}\npython -m pip install --no-deps {wheel}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
