"""The C text around a model's entry: how it is declared, and how it copies."""

from __future__ import annotations

FUNCTION_TYPE = """\
typedef void tw_function(void *const *args, const struct tw_team *team, int thread, int threads);
"""

ENTRY = """\
/* The whole model: every thread runs every launch, its share of each. */
void {symbol}(void *const *args, const struct tw_team *team, int thread, int threads)
{{
    char *const scratch = args[{scratch}];
    (void)scratch, (void)team, (void)thread, (void)threads;
{body}
}}
"""

# What follows stands in that body, or within each other, indented.
SIZE = """\
const int64_t {name} = (int64_t)(intptr_t)args[{position}];
(void){name};
"""

READ_SIZE = """\
const int64_t {name} = *(const int64_t *)({source});
(void){name};
"""

LAUNCH = """\
{{   /* {label} */
    void *const given[] = {{{arguments}}};
    {symbol}(given, team, thread, threads);
}}
"""

SYNC = """\
team->barrier(team->state, thread);
"""

IF = """\
if ({condition}) {{   /* {label} */
{then}"""

ELSE = """\
}} else {{
{otherwise}}}
"""

END = """\
}
"""

COUNT = """\
const int64_t {most} = *(const int64_t *)({count});
"""

FOR = """\
{read}for (int64_t {number} = 0; {until}; {number}++) {{   /* {label} */
"""

ITERATION = """\
if (thread == 0)
    *(int64_t *)({target}) = i{loop};
"""

LARGEST = """\
if (thread == 0 && *(const uint64_t *)({source}) > *(const uint64_t *)({target}))
    *(uint64_t *)({target}) = *(const uint64_t *)({source});
"""

COPY = """\
/* Each thread copies its part, whole cache lines. */
static void tw_copy(void *target, const void *source, size_t bytes, int thread, int threads)
{
    const size_t part = (bytes / 64 / (size_t)threads + 1) * 64, first = part * (size_t)thread;
    if (first < bytes)
        memcpy((char *)target + first, (const char *)source + first,
               bytes - first < part ? bytes - first : part);
}
"""
