"""What every test may use: goldens, the marker `needs_cc`, the files of the repository."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:  # the tests of the sources' structure run where the package is not installed
    from tilewright.runtime.cuda.toolchain.nvrtc import Nvrtc

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
CACHE = "TILEWRIGHT_CACHE"
LAYERS = ("tir", "schedule", "codegen", "runtime", "driver", "graph", "autotune", "cli", "interop")

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("steady")  # --hypothesis-profile=random looks for new failures


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the cache of all tests of a file, so that what is equal is compiled once."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden and tutorials/reference anew",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Three workers where pytest-xdist is installed and the command line says nothing else: on two
    cores, one of them waits for a compiler or a process. None has threads in NumPy.
    """
    unsaid = getattr(config.option, "numprocesses", 0) is None and not config.option.usepdb
    if unsaid and not hasattr(config, "workerinput"):  # a worker has no workers of its own
        config.option.numprocesses = 3
        config.option.dist = "worksteal"
    if getattr(config.option, "numprocesses", 0):  # workers read it when they load NumPy
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(200_000, 50, 50)  # nodes, which most objects are, form no cycles
    _keep_bytecode()
    _share_cache()
    os.environ["TILEWRIGHT_WERROR"] = "1"
    os.environ.pop("TILEWRIGHT_NUM_THREADS", None)


def _share_cache() -> None:
    """Let all workers, and the processes that tests start, keep what they compile in one folder of
    this run's own, or in the one that the caller names: what many tests need, such as the pool and
    the headers, is made once.
    """
    if os.environ.get(CACHE, "off") == "off":
        os.environ[CACHE] = _folder_of_this_run("cache")


def _folder_of_this_run(what: str) -> str:
    """An empty folder that is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix=f"tilewright-{what}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _keep_bytecode() -> None:
    """Let the many processes that tests start find modules compiled, in a folder of this run's own,
    where the user's setting keeps them from being written beside the sources.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = _folder_of_this_run("bytecode")


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test that is marked `sampled(n)`, leave each n-th one, from the first on,
    to the default run, and call the others slow. Goldens are always written of all.
    """
    if config.getoption("--update-golden"):
        return
    counts: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        if counts[test] % mark.args[0]:
            item.add_marker("slow")
        counts[test] += 1


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from thousands of tests and all modules, which stay."""
    gc.freeze()


def _has_compiler(variable: str, *names: str) -> bool:
    names = (os.environ.get(variable, names[0]).split()[0], *names)
    return any(shutil.which(name) for name in names) or find_spec("ziglang") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_cc") is not None and not _has_compiler(
        "CC", "cc", "gcc", "clang"
    ):
        pytest.skip("no C compiler: looked for $CC, cc, gcc, clang and the ziglang wheel")
    if item.get_closest_marker("needs_cxx") is not None:
        if sys.platform != "linux":
            pytest.skip("CUDA C is emulated on Linux alone")
        if not _has_compiler("CXX", "c++", "g++", "clang++"):
            pytest.skip("no C++ compiler: looked for $CXX, c++, g++, clang++ and the ziglang wheel")


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    """NVRTC; tests that need it are left out, with the reason, where it is not."""
    from tilewright.runtime.cuda.toolchain.nvrtc import NvrtcNotFound, find_nvrtc

    try:
        return find_nvrtc()
    except NvrtcNotFound:
        pytest.skip("NVRTC is not installed: python -m pip install 'tilewright[cuda]'")


@pytest.fixture(scope="session")
def cubin_tools(nvrtc: Nvrtc) -> None:
    """NVRTC and what reads its cubins; tests that need them are left out where one is not."""
    from tilewright.runtime.cuda.toolchain.toolkit import find_tool

    for tool in ("cuobjdump", "nvdisasm"):
        if find_tool(tool) is None:
            pytest.skip(f"{tool} is not installed: python -m pip install 'tilewright[cuda]'")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/<name>; with --update-golden, write it there instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        written = text if text.endswith("\n") else text + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written, encoding="utf-8")
            return
        assert path.exists(), f"tests/golden/{name} is missing; run pytest --update-golden"
        assert written == path.read_text(encoding="utf-8"), f"tests/golden/{name} differs"

    return compare


@pytest.fixture(scope="session")
def root() -> Path:
    """The clone's root, which is the package."""
    return ROOT


@pytest.fixture(scope="session")
def sources() -> tuple[Path, ...]:
    """Every Python file of the package, the root's `__init__` first."""
    inner = (path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py")))
    return (ROOT / "__init__.py", *inner)


@pytest.fixture(scope="session")
def python_files(sources: tuple[Path, ...]) -> tuple[Path, ...]:
    """Every Python file that we write: the package, tests, benchmarks, tutorials, CI."""
    folders = ("tests", "benchmarks", "tutorials", ".ci")
    outer = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return (*sources, *outer)
