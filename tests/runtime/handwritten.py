"""An artifact of hand-written C, as code generation would make one, for tests of what runs it."""

from __future__ import annotations

from tilewright.codegen.artifact import Artifact, Entry, Parameter
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.target.target import Target

ROWS, COLUMNS = 6, 5

# Y = A + 2*B + C, by rows; `prepare` doubles the constant B; a thread sums in its scratch memory
SOURCE = f"""\
struct tw_team {{ void (*barrier)(void *state, int thread); void *state; }};
enum {{ ROWS = {ROWS}, COLUMNS = {COLUMNS} }};

void twice(void *const *args, const struct tw_team *team, int thread, int threads)
{{
    const float *b = args[0];
    float *doubled = args[1];
    for (int j = thread; j < COLUMNS; j += threads)
        doubled[j] = 2.0f * b[j];
    team->barrier(team->state, thread);
}}

void sum(void *const *args, const struct tw_team *team, int thread, int threads)
{{
    const float *a = args[0], *c = args[1], *doubled = args[2];
    float *y = args[3], *mine = (float *)((char *)args[4] + 64 + 128 * thread);
    (void)team;
    for (int i = thread; i < ROWS; i += threads) {{
        for (int j = 0; j < COLUMNS; j++)
            mine[j] = doubled[j] + c[j];
        for (int j = 0; j < COLUMNS; j++)
            y[i * COLUMNS + j] = a[i * COLUMNS + j] + mine[j];
    }}
}}
"""

B = Parameter("B", FLOAT32, (COLUMNS,), "constant")
C = Parameter("C", FLOAT32, (COLUMNS,), "constant")


def artifact(isa: str = "scalar") -> Artifact:
    return Artifact(
        name="sum",
        symbol="sum",
        source=SOURCE,
        target=Target.parse(f"c:{isa}"),
        parameters=(
            Parameter("A", FLOAT32, (ROWS, COLUMNS), "input"),
            C,
            Parameter("B_twice", FLOAT32, (COLUMNS,), "prepared"),
            Parameter("Y", FLOAT32, (ROWS, COLUMNS), "output"),
        ),
        workspace_bytes=64,
        thread_workspace_bytes=128,
        prepare=Entry("twice", (B, Parameter("B_twice", FLOAT32, (COLUMNS,), "output"))),
    )
