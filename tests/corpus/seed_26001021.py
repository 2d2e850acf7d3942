"""Found by `tilewright fuzz`, case 26001021.

scheduled: InterpreterError: InterpreterError: interpreter: iteration i0_i1 = 0 writes 'X_cache'[0, 0, 0] and iteration i0_i1 = 1 writes it at i0_i1 = 1, T0_unit = 0, _0 = 0, _1 = 0, _2 = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      X_cache[v0, v1, v2] = select(v0 * 4 + v1 < 11, X[v0 * 4 + v1, 0], 0.0)
"""

FUNCTION = """
def f(X: float32[1, 1], T0: output(float32[2, 1])):
    for i0 in range(2):
        for i1 in range(1):
            with block("T0", vi0=spatial(2, i0), vi1=spatial(1, i1)):
                T0[vi0, vi1] = X[vi1 % 11, vi1]
"""

STEPS = [
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 'b0.l0', 'name': 'i0'}, {'loop': 'b0.l1', 'name': 'i1'}]}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's0.l0', 'name': 'i0_i1'}}},
    {'primitive': 'add_unit_loop', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'cache_read', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's3.b0'}, 'loop': {'loop': 's2.l0', 'name': 'T0_unit'}}},
]
REFUSED = "loop-vectorized"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
