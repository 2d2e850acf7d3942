"""Found by `tilewright fuzz`, case 241101006367.

scheduled: InterpreterError: InterpreterError: interpreter: block 'T1_rf' runs its point (vk = 0, vi0_0 = 0, vi0_1 = 0, vi1 = 0, vr = 0) twice, at i0_0 = 0, i0_1 = 0, i1 = 0, k = 0, T1_rf_0 = 0, k_1 = 0, i0_0_1 = 0, i0_1_1 = 0, i1_1 = 0, r = 0 and at i0_0 = 1, i0_1 = 0, i1 = 0, k = 0, T1_rf_0 = 0, k_1 = 0, i0_0_1 = 0, i0_1_1 = 0, i1_1 = 0, r = 0; expected once, or a block marked recomputed. [interpreter-twice]
  in f:
      T1_rf[vk, vi0_0 + vi0_1, vi1] = T1_rf[vk, vi0_0 + vi0_1, vi1] + min(T0[vi0_0 + vi0_1 + vk, vi1 + vr * 2], float64(-3.0))
"""

FUNCTION = """
def f(T1: output(float64[2, 1])):
    for i0 in range(2):
        for i1 in range(1):
            for k in range(1):
                for r in range(1):
                    with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1), vk=reduce(1, k), vr=reduce(1, r)):
                        with init():
                            T1[vi0, vi1] = float64(0.0)
                        T1[vi0, vi1] = T1[vi0, vi1]
"""

STEPS = [
    {'primitive': 'split_axis', 'arguments': {'block': {'block': 'b0'}, 'axis': 0, 'factor': 1}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l3', 'name': 'k'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 's1.b0'}, 'loop': {'loop': 's1.l3', 'name': 'k'}, 'scope': 'register'}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's1.b0'}, 'loop': {'loop': 's2.l0', 'name': 'T1_rf_0'}}},
]
REFUSED = "recompute-reduction"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
