"""Found by `tilewright fuzz`, case 63000000000884.

scheduled: InterpreterError: InterpreterError: interpreter: 'T0'[2, 0] is read at i0 = 1, i1 = 0, k = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1[vi0, vi1] = min(T1[vi0, vi1], T0[vi0 * 2 + vk, vi1] * A[vi1, vk])
"""

FUNCTION = """
def f(T1: output(float32[2, 1])):
    T0 = alloc(float32[5, 1], "global")
    for i0 in range(5):
        for i1 in range(1):
            with block("T0", vi0=spatial(5, i0), vi1=spatial(1, i1)):
                T0[vi0, vi1] = -3.0
    for i0 in range(2):
        for i1 in range(1):
            for k in range(3):
                with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1), vk=reduce(3, k)):
                    with init():
                        T1[vi0, vi1] = float("inf")
                    T1[vi0, vi1] = min(T1[vi0, vi1], T0[vi0 * 2 + vk, vi1])
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
