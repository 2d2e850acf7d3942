"""One cache for all tests of the driver, so that the pool and the headers are compiled once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", str(folder))
        patch.setenv("TILEWRIGHT_WERROR", "1")
        patch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
        yield
