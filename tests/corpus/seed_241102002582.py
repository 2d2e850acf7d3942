"""Found by `tilewright fuzz`, case 241102002582.

scheduled: InterpreterError: InterpreterError: interpreter: 'T0'[1, 1] is read at i0_0 = 0, i0_1 = 1 before it is written. [interpreter-uninitialised]
  in f:
      T1[vi0] = min(A[vi0] * A[vi0] + A[vi0], T0[vi0, vi0 + 1]) + T0[vi0, vi0]
"""

FUNCTION = """
def f(T1: output(float32[2])):
    T0 = alloc(float32[3, 2], "global")
    for i0 in range(3):
        for i1 in range(2):
            for k in range(1):
                with block("T0", vi0=spatial(3, i0), vi1=spatial(2, i1), vk=reduce(1, k)):
                    with init():
                        T0[vi0, vi1] = 0.0
                    T0[vi0, vi1] = T0[vi0, vi1]
    for i0 in range(2):
        with block("T1", vi0=spatial(2, i0)):
            T1[vi0] = T0[vi0 + 1, vi0] + T0[vi0, vi0]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
]
REFUSED = "rolling-window"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
