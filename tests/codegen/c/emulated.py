"""Compiled code for 64-bit ARM, in an emulator: a static program reads arrays from one file and
writes the outputs to another.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.artifact import Entry
from tilewright.codegen.c.build import entry
from tilewright.codegen.c.emit import emit_function
from tilewright.codegen.c.externs import with_externs
from tilewright.codegen.c.frame import prelude
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.runtime.toolchain.compilers import isa_flags
from tilewright.tir.target.target import Target

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Werror")

Arrays = Mapping[str, np.ndarray]


def need_emulator() -> None:
    """Skip the test where the cross compiler or the emulator is absent."""
    missing = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)}: Debian's gcc-aarch64-linux-gnu, qemu-user")


def run_emulated(parts: Prepared, target: Target, given: Arrays, folder: Path) -> Arrays:
    """The outputs of a lowered function, on one thread."""
    funcs = [func for func in (parts.prepare, parts.run) if func is not None]
    texts = [emit_function(func, target, f"tw_f{n}") for n, func in enumerate(funcs)]
    entries = [entry(func, f"tw_f{n}") for n, func in enumerate(funcs)]
    body = "\n".join(texts)
    source = f"{prelude(target, body)}\n{with_externs(body, *funcs)}\n{_main(entries)}"
    (folder / "f.c").write_text(source, encoding="utf-8")
    named = {p.name: p for e in entries for p in e.parameters}
    made = {p.name for e in entries for p in e.parameters if p.role == "output"}
    with (folder / "in.bin").open("wb") as file:
        for name in named:
            if name not in made:
                file.write(given[name].tobytes())
    command = [COMPILER, *FLAGS, *isa_flags(target), "-static", "f.c", "-o", "f"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run([EMULATOR, "./f"], cwd=folder, check=True, timeout=120)
    data = (folder / "out.bin").read_bytes()
    outputs: dict[str, np.ndarray] = {}
    for p in entries[-1].parameters:
        if p.role == "output":
            outputs[p.name] = np.frombuffer(data[: p.bytes], p.dtype.numpy).reshape(p.shape)
            data = data[p.bytes :]
    return outputs


def _main(entries: list[Entry]) -> str:
    """The program around the entries: every array once, by name."""
    named = {p.name: p for e in entries for p in e.parameters}
    made = {p.name for e in entries for p in e.parameters if p.role == "output"}
    numbers = {name: n for n, name in enumerate(named)}
    scratch = max(e.workspace_bytes + e.thread_workspace_bytes for e in entries)
    arrays = [
        f"static _Alignas(64) unsigned char b{n}[{named[name].bytes + 64}];"
        for name, n in numbers.items()
    ]
    reads = [
        f"    fread(b{n}, 1, {named[name].bytes}, in) == {named[name].bytes} || (exit(2), 0);"
        for name, n in numbers.items()
        if name not in made
    ]
    calls = [
        f"    {e.symbol}((void *const[]){{{', '.join(f'b{numbers[p.name]}' for p in e.parameters)}"
        f", scratch}}, &team, 0, 1);"
        for e in entries
    ]
    writes = [
        f"    fwrite(b{numbers[p.name]}, 1, {p.bytes}, out);"
        for p in entries[-1].parameters
        if p.role == "output"
    ]
    lines = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        *arrays,
        f"static _Alignas(64) unsigned char scratch[{scratch + 64}];",
        "static void barrier(void *state, int thread) { (void)state; (void)thread; }",
        "int main(void)",
        "{",
        "    const struct tw_team team = { barrier, 0 };",
        '    FILE *in = fopen("in.bin", "rb"), *out = fopen("out.bin", "wb");',
        *reads,
        *calls,
        *writes,
        "    return fclose(out) || fclose(in);",
        "}",
    ]
    return "\n".join(lines) + "\n"
