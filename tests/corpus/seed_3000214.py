"""Found by `tilewright fuzz`, case 3000214.

scheduled: InterpreterError: InterpreterError: interpreter: iteration i0 = 0 writes 'T1'[1, 0] and iteration i0 = 1 reads it at i0 = 1, i1 = 0, i2 = 0, k = 0, r = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      T2[vi0, vi1, vi2] = T2[vi0, vi1, vi2] + T1[vi0 + vk, vi1 + vr * 2] * B[vi0, vi2]
"""

FUNCTION = """
def f(T2: output(float32[2, 2, 3])):
    T1 = alloc(float32[3, 2], "global")
    for i0 in range(3):
        for i1 in range(2):
            with block("T1", vi0=spatial(3, i0), vi1=spatial(2, i1)):
                T1[vi0, vi1] = 1.0
    for i0 in range(2):
        for i1 in range(2):
            for i2 in range(3):
                for k in range(2):
                    for r in range(1):
                        with block("T2", vi0=spatial(2, i0), vi1=spatial(2, i1), vi2=spatial(3, i2), vk=reduce(2, k), vr=reduce(1, r)):
                            with init():
                                T2[vi0, vi1, vi2] = 0.0
                            T2[vi0, vi1, vi2] = T2[vi0, vi1, vi2] + T1[vi0 + vk, vi1 + vr * 2]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0'}, 'scope': 'thread'}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
]
REFUSED = "loop-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
