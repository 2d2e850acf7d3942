"""A program of plain functions becomes an Engine: each distinct function is scheduled, lowered and
proved once, all become one object, each kernel is checked, and what depends on constants alone is
computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from ..codegen.c.program import emit_program, program_sources
from ..codegen.lower.pipeline import lower
from ..codegen.lower.split_prepare import split_prepare
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.arrays import Argument, ArgumentTypeError, Array
from ..runtime.compile import SharedObject, compile_many
from ..runtime.engine import Engine, Reference
from ..runtime.engine_parts import EngineParts
from ..runtime.host import allowed_cpus
from ..runtime.model import Model
from ..runtime.pool import pool_object
from ..runtime.program_code import prepare_constants
from ..runtime.report import EngineReport, KernelReport, MemoryPlan
from ..schedule.source import ScheduleSource
from ..tir.canonical import workload_key
from ..tir.errors import TargetError
from ..tir.func import PrimFunc
from ..tir.program import Launch, Program, Slice, Step, Tensor, place_syncs
from ..tir.target import Target
from .build import Verify, resolve_target
from .check_program import KernelCheck, KernelChecker, ProgramCheckError
from .lower import Lowered, lower_function
