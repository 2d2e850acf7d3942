"""How much memory this process may take: the machine's, its cgroup's limit, or its own, whichever
is least.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from .cgroups import cgroup_folders, read_text


def process_memory(root: Path = Path("/")) -> int:
    """Bytes that this process may take at most; `root` is where proc and sys are mounted."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    own = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    limits = [limit for limit in own if limit != resource.RLIM_INFINITY]
    for folder in cgroup_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = read_text(folder / name).strip()
            if text.isdecimal():  # "max" means that there is no limit
                limits.append(int(text))
    return min([machine, *limits])
