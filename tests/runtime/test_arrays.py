from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.arrays import (
    ALIGNMENT,
    Argument,
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    accept_call,
    address,
    empty_aligned,
    memory,
)
from tilewright.runtime.toolchain.library import ffi

F32 = np.dtype(np.float32)
A = Argument("A", F32, (2, 3))
B = Argument("B", F32, (3, 4))
C = Argument("C", F32, (2, 4), written=True)


class Foreign:
    """An array of another library: it shares its memory through DLPack and nothing else."""

    def __init__(self, array: np.ndarray, device: int = 1, failure: str = "") -> None:
        self.array, self.device, self.failure = array, device, failure

    def __dlpack__(self, **options: object) -> object:
        if self.failure:
            raise BufferError(self.failure)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Interface:
    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = array.__array_interface__
        self.keep = array


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def message(argument: Argument, value: object) -> str:
    with pytest.raises(ArgumentError) as caught:
        argument.accept(value, "matmul")
    assert isinstance(caught.value, TypeError | ValueError)
    return str(caught.value)


def test_an_array_that_fits_is_taken_as_it_is() -> None:
    array = ones(2, 3)
    assert A.accept(array, "matmul") is array


@pytest.mark.parametrize("wrap", [Foreign, Interface])
def test_foreign_arrays_are_taken_without_a_copy(wrap: type[Foreign] | type[Interface]) -> None:
    array = ones(2, 3)
    assert address(A.accept(wrap(array), "matmul")) == address(array)


def test_a_subclass_is_taken() -> None:
    matrix = ones(2, 3).view(np.recarray)
    assert address(A.accept(matrix, "matmul")) == address(matrix)


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn", "int4", "uint2", "float16"],
)
@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (1 << 14,)])
def test_types_that_numpy_shows_no_buffer_of_have_an_address(
    name: str, shape: tuple[int, ...]
) -> None:
    argument = Argument("H", np.dtype(getattr(ml_dtypes, name, name)), shape)
    array = argument.accept(argument.new(), "f")
    assert array.dtype == argument.dtype
    assert address(array) == array.__array_interface__["data"][0]
    array.reshape(-1)[...] = 1
    held = bytes(ffi.buffer(memory(array)))
    assert held == array.tobytes()


def test_a_type_that_numpy_lacks_is_named_with_its_package() -> None:
    brief = Argument("H", np.dtype(ml_dtypes.bfloat16), (4,))
    assert message(brief, np.zeros(4, np.float32)) == (
        "ArgumentTypeError: matmul: 'H' is float32, expected bfloat16. [argument-dtype]\n"
        "  Hint: H.astype(ml_dtypes.bfloat16)"
    )


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5)])
def test_arrays_of_size_zero_are_taken(shape: tuple[int, ...]) -> None:
    inputs, outputs = accept_call(
        "f",
        (Argument("A", F32, shape),),
        (Argument("Y", F32, shape, True),),
        (np.zeros(shape, F32),),
    )
    assert (inputs[0].shape, outputs[0].shape) == (shape, shape)


def test_new_outputs_have_the_shape_and_large_ones_start_at_a_cache_line() -> None:
    for shape in ((2, 4), (300, 301), ()):
        array = empty_aligned(shape, F32)
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, F32, True)
        array[...] = 1
        if array.nbytes >= 1 << 14:
            assert address(array) % ALIGNMENT == 0


def test_the_dtype_must_fit() -> None:
    assert message(A, np.ones((2, 3))) == (
        "ArgumentTypeError: matmul: 'A' is float64, expected float32. [argument-dtype]\n"
        "  Hint: A.astype(np.float32)"
    )
    assert "is float32 of foreign byte order, expected float32" in message(
        A, np.ones((2, 3), np.dtype(np.float32).newbyteorder())
    )


def test_the_shape_must_fit() -> None:
    assert message(A, ones(3, 2)) == (
        "ArgumentValueError: matmul: 'A' has shape (3, 2), expected (2, 3). [argument-shape]\n"
        "  Hint: np.ascontiguousarray(A.T)"
    )
    assert message(A, ones(6)) == (
        "ArgumentValueError: matmul: 'A' has shape (6,), expected (2, 3). [argument-shape]\n"
        "  Hint: A.reshape((2, 3))"
    )
    assert message(A, ones(2, 4)) == (
        "ArgumentValueError: matmul: 'A' has shape (2, 4), expected (2, 3). [argument-shape]"
    )


def test_an_input_must_be_in_row_major_order() -> None:
    assert message(A, ones(3, 2).T) == (
        "ArgumentValueError: matmul: 'A' has strides (4, 8); expected row-major order without "
        "gaps. [argument-layout]\n"
        "  Hint: np.ascontiguousarray(A)"
    )


def test_an_output_must_be_in_row_major_order() -> None:
    assert message(C, ones(2, 8)[:, ::2]) == (
        "ArgumentValueError: matmul: 'C' has strides (32, 8); expected row-major order without "
        "gaps. [argument-layout]\n"
        "  Hint: np.empty((2, 4), np.float32)"
    )


def test_items_must_be_aligned() -> None:
    shifted = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    assert message(A, shifted) == (
        "ArgumentValueError: matmul: 'A' is not aligned to its 4-byte items. [argument-aligned]\n"
        "  Hint: A.copy()"
    )


def test_an_output_must_be_writable() -> None:
    locked = ones(2, 4)
    locked.flags.writeable = False
    assert message(C, locked) == (
        "ArgumentValueError: matmul: 'C' is read-only; expected an array to write into. "
        "[argument-read-only]\n"
        "  Hint: np.empty((2, 4), np.float32)"
    )


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (np.ones((2, 4)), "argument-dtype"),
        (ones(4, 2), "argument-shape"),
        (np.zeros(33, np.uint8)[1:].view(np.float32).reshape(2, 4), "argument-aligned"),
        ([[1.0]], "argument-kind"),
        (Foreign(ones(2, 4), device=2), "argument-device"),
        (Foreign(ones(2, 4), failure="it requires a gradient"), "argument-exchange"),
    ],
)
def test_for_an_output_that_does_not_fit_a_new_array_is_named_and_no_copy(
    value: object, code: str
) -> None:
    text = message(C, value)
    assert f"[{code}]\n  Hint: np.empty((2, 4), np.float32)" in text


def test_a_list_is_not_an_array() -> None:
    assert message(A, [[1.0]]) == (
        "ArgumentTypeError: matmul: 'A' is a list; expected a NumPy array, or one that has "
        "__array_interface__ or __dlpack__. [argument-kind]\n"
        "  Hint: np.asarray(A, dtype=np.float32)"
    )


def test_an_array_on_a_gpu_is_refused() -> None:
    assert message(A, Foreign(ones(2, 3), device=2)) == (
        "ArgumentValueError: matmul: 'A' lies on a device (DLPack type 2); expected the CPU's "
        "memory. [argument-device]\n"
        "  Hint: A.cpu()"
    )


def test_an_array_that_does_not_share_its_memory_says_why() -> None:
    assert message(A, Foreign(ones(2, 3), failure="it requires a gradient")) == (
        "ArgumentTypeError: matmul: 'A', a Foreign, does not share its memory: it requires a "
        "gradient. [argument-exchange]\n"
        "  Hint: np.asarray(A, dtype=np.float32)"
    )


def test_a_call_takes_the_inputs_or_everything() -> None:
    a, b, c = ones(2, 3), ones(3, 4), ones(2, 4)
    inputs, outputs = accept_call("matmul", (A, B), (C,), (a, b))
    assert inputs[0] is a
    assert outputs[0].shape == (2, 4)
    assert accept_call("matmul", (A, B), (C,), (a, b, c))[1][0] is c
    with pytest.raises(ArgumentTypeError) as caught:
        accept_call("matmul", (A, B), (C,), (a,))
    assert str(caught.value) == (
        "ArgumentTypeError: matmul: 1 arrays given; expected 2 (the inputs) or 3 (inputs and "
        "outputs). [argument-count]\n"
        "  Hint: matmul(A, B)\n"
        "  Hint: matmul(A, B, C)"
    )


def test_an_output_must_not_share_memory_with_another_argument() -> None:
    memory = np.zeros(64, np.float32)
    a, c = memory[:6].reshape(2, 3), memory[5:13].reshape(2, 4)
    with pytest.raises(ArgumentValueError) as caught:
        accept_call("matmul", (A, B), (C,), (a, ones(3, 4), c))
    assert str(caught.value) == (
        "ArgumentValueError: matmul: 'C' is written and shares memory with 'A'. "
        "[argument-overlap]\n"
        "  Hint: C: np.empty((2, 4), np.float32)"
    )
    accept_call("matmul", (A, B), (C,), (a, ones(3, 4), memory[6:14].reshape(2, 4)))


def test_two_outputs_must_not_share_memory_but_two_inputs_may() -> None:
    x, y = Argument("X", F32, (4,), True), Argument("Y", F32, (4,), True)
    memory = np.zeros(6, np.float32)
    with pytest.raises(ArgumentValueError, match="'Y' is written and shares memory with 'X'"):
        accept_call("f", (), (x, y), (memory[:4], memory[2:]))
    same = ones(4)
    p, q = Argument("P", F32, (4,)), Argument("Q", F32, (4,))
    assert accept_call("f", (p, q), (x,), (same, same, memory[:4]))[0] == [same, same]
