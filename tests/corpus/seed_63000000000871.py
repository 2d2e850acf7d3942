"""Found by `tilewright fuzz`, case 63000000000871.

scheduled: InterpreterError: InterpreterError: interpreter: iteration i0 = 0 writes 'T1'[1, 0, 1, 0] and iteration i0 = 1 reads it at i0 = 1, i1 = 0, i2 = 0, i3_0 = 0, i3_1 = 0, k = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      T2[vi0, vi1, vi2, vi3] = let(x0, cast(T1[vi0 + vk, vi3, max(min(cast(B[vi1], "int64"), 1), 0), vi2], "int32"), let(x1, int32(0) - cast(T1[vi0 + vk, vi3, max(min(cast(B[vi1], "int64"), 1), 0), vi2], "int32"), T2[vi0, vi1, vi2, vi3] + x0))
"""

FUNCTION = """
def f(B: constant(uint8[1]), T2_2: output(int32[2, 1, 1, 3])):
    T1 = alloc(bool[3, 2, 1, 3], "global")
    T2 = alloc(int32[2, 1, 1, 3], "global")
    for i0 in range(3):
        for i1 in range(2):
            for i2 in range(1):
                for i3 in range(3):
                    with block("T1", vi0=spatial(3, i0), vi1=spatial(2, i1), vi2=spatial(1, i2), vi3=spatial(3, i3)):
                        T1[vi0, vi1, vi2, vi3] = True
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(3):
                    for k in range(2):
                        with block("T2", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(3, i3), vk=reduce(2, k)):
                            with init():
                                T2[vi0, vi1, vi2, vi3] = int32(0)
                                T2_2[vi0, vi1, vi2, vi3] = int32(0)
                            T2[vi0, vi1, vi2, vi3] = let(x0, cast(T1[vi0 + vk, max(min(cast(B[vi1], "int64"), 1), 0), vi2, vi3], "int32"), let(x1, int32(0) - cast(T1[vi0 + vk, max(min(cast(B[vi1], "int64"), 1), 0), vi2, vi3], "int32"), T2[vi0, vi1, vi2, vi3]))
                            T2_2[vi0, vi1, vi2, vi3] = let(x0_1, cast(T1[vi0 + vk, max(min(cast(B[vi1], "int64"), 1), 0), vi2, vi3], "int32"), let(x1_1, int32(0) - cast(T1[vi0 + vk, max(min(cast(B[vi1], "int64"), 1), 0), vi2, vi3], "int32"), int32(1)))
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's1.m0', 'name': 'i0'}, {'loop': 'b1.l0', 'name': 'i0'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
