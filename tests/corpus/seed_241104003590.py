"""Found by `tilewright fuzz`, case 241104003590.

scheduled: InterpreterError: InterpreterError: interpreter: 'T0'[1, 0] is read at i0_0 = 1, i0_1 = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1[vi0] = select(vi0 < 1, T0[vi0, 0], T1[vi0 - 1] * 0.5 + T0[vi0, 0])
"""

FUNCTION = """
def f(T1: output(float32[2])):
    T0 = alloc(float32[2], "global")
    for i0 in range(2):
        with block("T0", vi0=spatial(2, i0)):
            T0[vi0] = -3.0
    for i0 in range(2):
        with block("T1", vi0=ordered(2, i0)):
            T1[vi0] = select(True, T0[vi0], T1[vi0 - 1])
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's0.l0', 'name': 'i0'}, 'factors': [None, 3], 'tail': 'guard'}},
    {'primitive': 'transform_layout', 'arguments': {'buffer': {'tensor': 'b0'}, 'index_map': 'lambda i0: (i0, 0)'}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
]
REFUSED = "rolling-window"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
