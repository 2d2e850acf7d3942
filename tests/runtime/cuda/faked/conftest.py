"""Tests of a process with the fake driver, which `test_faked.py` starts; nothing else runs them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.driver.bindings_driver import BindingsDriver
from tilewright.runtime.cuda.driver.driver import Driver
from tilewright.runtime.cuda.driver.pycuda_driver import PycudaDriver

from ..fake_driver import FakeDriver

FAKED = os.environ.get("TILEWRIGHT_FAKED")
KINDS = {"pycuda": PycudaDriver, "bindings": BindingsDriver}

collect_ignore_glob = [] if FAKED else ["test_*.py"]


@pytest.fixture(scope="session")
def driver() -> Driver:
    return KINDS[FAKED or ""]()


@pytest.fixture(scope="session")
def context(driver: Driver) -> DeviceContext:
    gc.collect()
    gc.freeze()  # what is there before the tests need not be looked at after each
    return DeviceContext(driver, driver.devices()[0])


@pytest.fixture
def fake(context: DeviceContext) -> Iterator[FakeDriver]:
    """The library, with nothing written down; what the test makes must be given back."""
    fake = FakeDriver()
    before = alive(fake)
    fake.calls()
    yield fake
    assert alive(fake) == before
    assert fake.depth() == 0


def alive(fake: FakeDriver) -> dict[str, int]:
    gc.collect()
    return {kind: fake.alive(kind) for kind in "dhmsegx"}
