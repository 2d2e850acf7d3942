"""Found by `tilewright fuzz`, case 4084.

proof: refuted (P1 to P5, 9 questions, 3786.7 ms)
  P2: at the end T1[0] holds T0[0]; T0_reg_out(i0=0, k_0_0=3)
"""

FUNCTION = """
def f(X: float32[5, 7, 6], T1: output(float32[7])):
    T0 = alloc(float32[7], "global")
    for i0 in range(7):
        for k in range(5):
            for r in range(6):
                with block("T0", vi0=spatial(7, i0), vk=reduce(5, k), vr=reduce(6, r)):
                    with init():
                        T0[vi0] = float("-inf")
                    T0[vi0] = max(T0[vi0], X[vk, vi0, vr])
    for i0 in range(7):
        with block("T1", vi0=spatial(7, i0)):
            T1[vi0] = T0[vi0]
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l2', 'name': 'r'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'k'}, 'factors': [None, 4], 'tail': 'mask'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 'b0.l2', 'name': 'r'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'k_0'}, 'factors': [5, None], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's3.l1', 'name': 'k_0_1'}, 'factors': [1, None], 'tail': 'partition'}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's3.l0', 'name': 'k_0_0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's4.l0', 'name': 'k_0_1_0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
