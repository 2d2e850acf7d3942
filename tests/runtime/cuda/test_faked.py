"""The tests of folder `faked` in a process whose driver is the fake one, once for each library that
speaks to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .fake_driver import fake_library

HERE = Path(__file__).parent
PRINT = """
from tilewright.runtime.cuda.device.availability import Available, availability
found = availability()
print(found.driver.name if isinstance(found, Available) else found.error())
"""
WITHOUT = "  Hint: without a GPU, target 'cuda:sm_90a' still gives sources and cubins.\n"

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA"),
]


def installed(package: str) -> bool:
    parent, _, child = package.rpartition(".")
    return find_spec(parent or child) is not None and find_spec(package) is not None


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver."""
    spec = find_spec("pycuda")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    extensions = [path for folder in folders for path in Path(folder).glob("_driver*.so")]
    return fake_library(tmp_path_factory.mktemp("fake"), extensions).parent


def environment(library: Path | None, **settings: str) -> dict[str, str]:
    places = [] if library is None else [str(library)]
    places += [os.environ[name] for name in ("LD_LIBRARY_PATH",) if os.environ.get(name)]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(places), **settings}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "package", "how"),
    [
        ("pycuda", "pycuda", "python -m tilewright.runtime.cuda.driver.pycuda_wheel OUT/"),
        ("bindings", "cuda.bindings", "python -m pip install cuda-bindings"),
    ],
)
def test_a_driver_library_is_used_as_it_wants_to_be(
    name: str, package: str, how: str, library: Path
) -> None:
    if not installed(package):
        pytest.skip(f"{package} is not installed: {how}")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / "faked")],
        env=environment(library, TILEWRIGHT_FAKED=name),
        cwd=HERE.parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def found(library: Path | None, code: str = PRINT, **settings: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        env=environment(library, **settings),
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_driver_that_does_not_start_is_told(library: Path) -> None:
    assert found(library, FAKE_CUDA_INIT="803") == (
        "NoDevice: cuda: the driver does not start: system has unsupported display driver / cuda "
        "driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803). [cuda-unavailable]\n"
        "  Hint: see what nvidia-smi says.\n"
    )


def test_a_driver_that_is_too_old_is_told(library: Path) -> None:
    assert found(library, FAKE_CUDA_VERSION="11080") == (
        "NoDevice: cuda: the NVIDIA driver is too old: it knows CUDA 11.8, 12.0 is needed. "
        "[cuda-unavailable]\n"
        "  Hint: install a newer driver.\n"
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"FAKE_CUDA_INIT": "100"},
            "the driver finds no device: no CUDA-capable device is detected",
        ),
        ({"FAKE_CUDA_DEVICES": "0"}, "the driver shows no device"),
    ],
)
def test_a_driver_without_a_device_is_told(
    settings: dict[str, str], reason: str, library: Path
) -> None:
    told = found(library, **settings)
    assert told == f"NoDevice: cuda: {reason}. [cuda-unavailable]\n{WITHOUT}"


def test_no_driver_is_told() -> None:
    hidden = (
        "from tilewright.runtime.cuda.driver import libcuda; libcuda.LIBRARY = 'no-libcuda.so.1'\n"
        + PRINT
    )
    assert found(None, hidden) == (
        "NoDevice: cuda: no NVIDIA driver is installed: libcuda.so.1 does not load. "
        f"[cuda-unavailable]\n{WITHOUT}"
    )


def test_without_pycuda_and_cuda_bindings_it_says_how_to_get_one(library: Path) -> None:
    hidden = "import sys; sys.modules['pycuda'] = sys.modules['cuda.bindings'] = None\n" + PRINT
    assert found(library, hidden) == (
        "NoDevice: cuda: neither PyCUDA nor cuda-bindings is installed. [cuda-unavailable]\n"
        "  Hint: python -m pip install cuda-bindings, or build PyCUDA: python -m "
        "tilewright.runtime.cuda.driver.pycuda_wheel OUT/\n"
    )


def test_pycuda_for_another_driver_is_told(library: Path, tmp_path: Path) -> None:
    """One symbol less than it was built for."""
    if not installed("pycuda"):
        pytest.skip(
            "pycuda is not installed: python -m tilewright.runtime.cuda.driver.pycuda_wheel OUT/"
        )
    older = fake_library(tmp_path, []).parent
    hidden = "import sys; sys.modules['cuda.bindings'] = None\n" + PRINT
    told = found(older, hidden)
    assert told.startswith(
        "NoDevice: cuda: no library speaks to this driver, of CUDA 13.0: PyCUDA: "
    )
    assert "undefined symbol: cu" in told
    assert told.endswith(
        "  Hint: PyCUDA must be built for a CUDA that is not newer than the driver's: python -m "
        "tilewright.runtime.cuda.driver.pycuda_wheel OUT/ --cuda 13.0\n"
    )


def test_a_pycuda_that_cannot_be_used_is_told_before_another_serves(
    library: Path, tmp_path: Path
) -> None:
    for package in ("pycuda", "cuda.bindings"):
        if not installed(package):
            pytest.skip(f"{package} is not installed")
    older = fake_library(tmp_path, []).parent
    loud = "import logging; logging.basicConfig(format='%(message)s', stream=sys.stdout)\n"
    told = found(older, "import sys\n" + loud + PRINT).splitlines()
    assert told[0].startswith("cuda: PyCUDA is installed and cannot be used: ")
    assert told[-1].startswith("cuda-bindings ")


CONTEXT = """
from tilewright.runtime.cuda.device.availability import NoDevice, availability
found = availability()
print(found is availability(), found.context() is found.context(0), found.context().device.name)
try:
    found.context(3)
except NoDevice as error:
    print(error)
"""


def test_a_device_has_one_context_in_a_process(library: Path) -> None:
    if not any(map(installed, ("pycuda", "cuda.bindings"))):
        pytest.skip("neither PyCUDA nor cuda-bindings is installed")
    assert found(library, CONTEXT) == (
        "True True Fake H200\n"
        "NoDevice: cuda: there is no device 3; the driver shows 0: 'Fake H200'. [cuda-device]\n"
        "  Note: CUDA_VISIBLE_DEVICES says which it shows, and in which order.\n"
    )


FORK = """
import gc, os
from tilewright.runtime.cuda.device.availability import availability
from tests.runtime.cuda.fake_driver import FakeDriver
context, fake = availability().context(), FakeDriver()
held = [context.allocate(16), context.stream()]
fake.calls()
child = os.fork()
held.clear()
gc.collect()
calls = fake.calls()
if child == 0:
    os._exit(len(calls))
print(sorted(calls), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_gives_nothing_back_that_is_its_parent_s(library: Path) -> None:
    if not installed("cuda.bindings"):
        pytest.skip("cuda-bindings is not installed: python -m pip install cuda-bindings")
    hidden = "import sys; sys.modules['pycuda'] = None\n" + FORK
    assert found(library, hidden) == "['cuMemFree', 'cuStreamDestroy'] 0\n"


def test_cuda_bindings_serve_where_pycuda_is_not_installed(library: Path) -> None:
    if not installed("cuda.bindings"):
        pytest.skip("cuda-bindings is not installed: python -m pip install cuda-bindings")
    hidden = "import sys; sys.modules['pycuda'] = None\n" + PRINT
    assert found(library, hidden).startswith("cuda-bindings ")
