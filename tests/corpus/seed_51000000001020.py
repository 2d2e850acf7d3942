"""Found by `tilewright fuzz`, case 51000000001020.

nest: InterpreterError: InterpreterError: interpreter: 'T0'[4] is read at i0_0 = 1, i0_1 = 0, k = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1_rf[vk, vi0] = T1_rf[vk, vi0] + T0[vi0 + vk]
"""

FUNCTION = """
def f(T1: output(float32[5])):
    T0 = alloc(float32[6], "global")
    for i0 in range(6):
        with block("T0", vi0=spatial(6, i0)):
            T0[vi0] = 5.0
    for i0 in range(5):
        for k in range(2):
            with block("T1", vi0=spatial(5, i0), vk=reduce(2, k)):
                with init():
                    T1[vi0] = 0.0
                T1[vi0] = T1[vi0] + T0[vi0 + vk]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.m0', 'name': 'i0'}, 'factors': [3, None], 'tail': 'guard'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'factors': [None, 4, 1], 'tail': 'guard'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's2.l0', 'name': 'i0_0'}, {'loop': 's3.l0', 'name': 'i0_0'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
