"""The logger of this package. A library speaks only to those who listen: without a handler it is
silent.
"""

from __future__ import annotations

import logging

log = logging.getLogger("tilewright.runtime")
log.addHandler(logging.NullHandler())
