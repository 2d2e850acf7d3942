"""Tests that need NVRTC or NVIDIA's tools are left out, with the reason, where these are not."""

from __future__ import annotations

import pytest

from tilewright.runtime.cuda.nvrtc import Nvrtc, NvrtcNotFound, find_nvrtc


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    try:
        return find_nvrtc()
    except NvrtcNotFound:
        pytest.skip("NVRTC is not installed: python -m pip install 'tilewright[cuda]'")
