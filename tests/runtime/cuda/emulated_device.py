"""The fake driver's device computes: behind it the emulation of sources runs, on the arguments that
a launch packs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tilewright.runtime.cuda.emulator import build as emulation_build
from tilewright.runtime.toolchain.library import Library, SharedObject

from .shared_library import shared_library

PLAN = r"""
#include <dlfcn.h>
#include <stdio.h>
typedef void Emulate(void *thread, void *const *arguments, const long long *request,
                     long long *counts, void *findings, void *sites);
static const char *const MADE[] = {PATHS};
/* where the parameters of each kernel lie, as `pack` places them: 8 bytes an address, 4 a size */
static int place(const char *types, int number)
{
    int at = 0;
    for (int i = 0; i < number; ++i) at = types[i] == 'P' ? (at + 7) / 8 * 8 + 8 : at + 4;
    return types[number] == 'P' ? (at + 7) / 8 * 8 : at;
}
int fake_kernel(const char *name, const unsigned *grid, const unsigned *block,
                const void *arguments, double *microseconds)
{
    *microseconds = 10;
    if (!arguments || name[3] == 'p') return 0; /* recorded, or tw_probe */
    char symbol[128];
    snprintf(symbol, sizeof symbol, "em_thread_%s", name);
    for (unsigned n = 0; n < sizeof MADE / sizeof *MADE; ++n) {
        void *made = dlopen(MADE[n], RTLD_NOW);
        void *thread = dlsym(made, symbol);
        if (!thread) continue;
        Emulate *emulate = (Emulate *)dlsym(made, "em_emulate");
        snprintf(symbol, sizeof symbol, "em_types_%s", name);
        const char *types = ((const char *(*)(void))dlsym(made, symbol))();
        void *given[16];
        for (int i = 0; types[i]; ++i) given[i] = (char *)arguments + place(types, i);
        long long request[] = {grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, 8, 8, 0};
        long long counts[2];
        static char findings[8][256], sites[8][64];
        emulate(thread, given, request, counts, findings, sites);
        return counts[0] ? 700 : 0;
    }
    return 500;
}
"""


def emulate_on_device(
    sources: Iterable[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the fake's kernels be those of these sources."""
    made: list[SharedObject] = []

    def kept(shared: SharedObject, *, name: str) -> Library:
        made.append(shared)
        return Library(shared, name=name)

    with monkeypatch.context() as patched:
        patched.setattr(emulation_build, "Library", kept)
        for source in sources:
            emulation_build.Emulation(source, checked=False)
    paths = [folder / f"made{number}.so" for number in range(len(made))]
    for path, shared in zip(paths, made, strict=True):
        path.write_bytes(shared.binary)
    text = PLAN.replace("PATHS", ", ".join(f'"{path}"' for path in paths))
    monkeypatch.setenv("FAKE_CUDA_PLAN", str(shared_library(text, folder / "plan.so", "-ldl")))
