"""Found by `tilewright fuzz`, case 24005240.

nest: InterpreterError: InterpreterError: interpreter: iteration 0 of a parallel loop over 4 writes 'T0'[0, 0] and the serial part reads it at i1 = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      T1[0, vi1] = select(B_local[0] <= 2.0, cast(T0[0, vi1], "float32") * B_local[0], -1.0)
"""

FUNCTION = """
def f(A: constant(int32[1, 1]), B: constant(float32[1]), T1: output(float32[1, 1])):
    T0 = alloc(bool[1, 1], "global")
    for i0 in range(1):
        for i1 in range(1):
            with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T0[vi0, vi1] = A[vi0, vi1] == int32(2)
    for i0 in range(1):
        for i1 in range(1):
            with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T1[vi0, vi1] = cast(T0[vi0, vi1], "float32") * B[vi0]
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p1'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'scope': 'thread'}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 'b0.l0', 'name': 'i0'}, {'loop': 'b1.l0', 'name': 'i0'}]}},
]
REFUSED = "stage-parallel"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
