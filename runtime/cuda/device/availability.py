"""Whether there is a GPU to run on, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ....tir.errors import TilewrightError
from ...log import log
from ..driver.bindings_driver import BindingsDriver
from ..driver.driver import CallFailed, DeviceProperties, Driver
from ..driver.libcuda import libcuda
from ..driver.pycuda_driver import PycudaDriver
from .context import DeviceContext

OLDEST_DRIVER = (12, 0)

_WITHOUT = "without a GPU, target 'cuda:sm_90a' still gives sources and cubins."
_GET_PYCUDA = (
    "python -m pip install cuda-bindings, or build PyCUDA: "
    "python -m tilewright.runtime.cuda.driver.pycuda_wheel OUT/"
)
_NO_DEVICE = 100


class NoDevice(TilewrightError, RuntimeError):
    """Something is to run on a GPU, and there is none to run on."""


@dataclass(frozen=True, slots=True)
class Available:
    """GPUs are here; driver: how they are spoken to."""

    driver: Driver
    devices: tuple[DeviceProperties, ...]

    def context(self, device: int = 0) -> DeviceContext:
        """The primary context of a device, one for this whole process. Raises: NoDevice."""
        if not 0 <= device < len(self.devices):
            names = ", ".join(f"{one.index}: '{one.name}'" for one in self.devices)
            raise NoDevice(
                f"cuda: there is no device {device}; the driver shows {names}.",
                code="cuda-device",
                notes=("CUDA_VISIBLE_DEVICES says which it shows, and in which order.",),
            )
        return _context(self.driver, self.devices[device])


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No GPU can be used; reason: why. hint: what would change it."""

    reason: str
    hint: str

    def error(self) -> NoDevice:
        """It as an error, for one who needs a GPU."""
        return NoDevice(f"cuda: {self.reason}.", code="cuda-unavailable", hints=(self.hint,))


@cache
def availability() -> Available | Unavailable:
    """Look once for the driver's library, a device, and PyCUDA or cuda-bindings; never raises."""
    try:
        library = libcuda()
    except OSError:
        return Unavailable("no NVIDIA driver is installed: libcuda.so.1 does not load", _WITHOUT)
    except AttributeError as error:
        return _too_old(f"it lacks a function: {error}")
    try:
        library.check("Init", 0)
        if library.version() < OLDEST_DRIVER:
            return _too_old("it knows CUDA {}.{}, 12.0 is needed".format(*library.version()))
        if library.device_count() == 0:
            return Unavailable("the driver shows no device", _WITHOUT)
    except CallFailed as failed:
        if failed.status == _NO_DEVICE:
            return Unavailable(f"the driver finds no device: {failed.text}", _WITHOUT)
        status = f"{failed.text} ({library.name(failed.status)}, {failed.status})"
        return Unavailable(f"the driver does not start: {status}", "see what nvidia-smi says.")
    driver = _driver()
    if isinstance(driver, Unavailable):
        return driver
    return Available(driver, driver.devices())


def _too_old(why: str) -> Unavailable:
    return Unavailable(f"the NVIDIA driver is too old: {why}", "install a newer driver.")


def _driver() -> Driver | Unavailable:
    """PyCUDA where it can be imported, else cuda-bindings."""
    refusals = []
    for name, kind in (("PyCUDA", PycudaDriver), ("cuda-bindings", BindingsDriver)):
        try:
            return kind()
        except ModuleNotFoundError:
            continue
        except (ImportError, CallFailed) as error:
            log.warning("cuda: %s is installed and cannot be used: %s", name, error)
            refusals.append(f"{name}: {error}")
    if refusals:
        version = "CUDA {}.{}".format(*libcuda().version())
        return Unavailable(
            f"no library speaks to this driver, of {version}: {'; '.join(refusals)}",
            "PyCUDA must be built for a CUDA that is not newer than the driver's: "
            "python -m tilewright.runtime.cuda.driver.pycuda_wheel OUT/ --cuda {}.{}".format(
                *libcuda().version()
            ),
        )
    return Unavailable("neither PyCUDA nor cuda-bindings is installed", _GET_PYCUDA)


@cache
def _context(driver: Driver, device: DeviceProperties) -> DeviceContext:
    return DeviceContext(driver, device)
