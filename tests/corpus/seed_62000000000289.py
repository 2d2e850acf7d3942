"""Found by `tilewright fuzz`, case 62000000000289.

nest: InterpreterError: InterpreterError: interpreter: 'T0'[1] is read at i0_0 = 0, i0_1 = 1, k = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1_local[vi0 - i0_0 * 4] = T1_local[vi0 - i0_0 * 4] + (T0[vi0 + vk] - T0[vi0 + 1])
"""

FUNCTION = """
def f(T1: output(float32[8])):
    T0 = alloc(float32[9], "global")
    for i0 in range(9):
        with block("T0", vi0=spatial(9, i0)):
            T0[vi0] = 1.0
    for i0 in range(8):
        for k in range(2):
            with block("T1", vi0=spatial(8, i0), vk=reduce(2, k)):
                with init():
                    T1[vi0] = 0.0
                T1[vi0] = T1[vi0] + T0[vi0 + vk]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 's1.b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's1.m0', 'name': 'i0'}, 'scope': 'thread'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's1.m0', 'name': 'i0'}, {'loop': 'b1.l0', 'name': 'i0'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
