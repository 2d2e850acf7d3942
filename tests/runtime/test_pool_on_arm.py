"""The thread pool on 64-bit ARM, in an emulator."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tilewright.runtime.cpu.pool import pool_source

from ..codegen.c.emulated import COMPILER, EMULATOR, FLAGS, need_emulator
from .cpu.test_pool import SOURCE

# writes {rounds, threads that took part, errors} of `rounds` for each number of threads
MAIN = """\
#include <stdio.h>
struct tw_team;
typedef void (*tw_entry)(void *const *, const struct tw_team *, int, int);
int tw_pool_run(tw_entry entry, void *const *args, int threads);
void rounds(void *const *args, const struct tw_team *team, int thread, int threads);

int main(void)
{
    for (int threads = 1; threads < 5; threads++) {
        long cells[64] = {0}, count = 100;
        int took = tw_pool_run(rounds, (void *[]){cells, &count}, threads);
        printf("%d %ld %ld\\n", took, cells[62], cells[63]);
    }
    return 0;
}
"""


def test_on_64_bit_arm_every_thread_runs_once_and_barriers_hold(tmp_path: Path) -> None:
    need_emulator()
    for name, text in (("rounds", SOURCE), ("pool", pool_source()), ("main", MAIN)):
        (tmp_path / f"{name}.c").write_text(text, encoding="utf-8")
    files = ["rounds.c", "pool.c", "main.c"]
    command = [COMPILER, *FLAGS, "-pthread", "-static", *files, "-o", "rounds"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [EMULATOR, "./rounds"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "1 1 0\n2 2 0\n3 3 0\n4 4 0\n"
