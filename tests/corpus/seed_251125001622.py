"""Found by `tilewright fuzz`, case 251125001622.

proof: refuted (P1 to P5, 30 questions, 19.4 ms)
  P3: block 'T2' reads T0[()] before block 'T0' has updated it; T2(k_1_0=1, k_0=1) and T0(r=5)
"""

FUNCTION = """
def f(X: int64[5, 1], T2: output(bool[()])):
    T0 = alloc(int64[()], "global")
    T0_2 = alloc(int64[()], "global")
    for k in range(5):
        for r in range(1):
            with block("T0", vk=reduce(5, k), vr=reduce(1, r)):
                with init():
                    T0[()] = -9223372036854775808
                    T0_2[()] = 9223372036854775807
                T0[()] = let(x0, X[vk, vr], let(x1, vk * 6 + vr, T0[()]))
                T0_2[()] = let(x0_1, X[vk, vr], let(x1_1, vk * 6 + vr, select(x0_1 < T0[()], 1, x1_1)))
    with block("T2"):
        T2[()] = T0[()] < 2
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l1', 'name': 'r'}, 'scope': 'thread'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'k'}, 'factors': [2, None], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's2.l1', 'name': 'k_1'}, 'factors': [None, 1], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'k_1_0'}, {'loop': 's2.l0', 'name': 'k_0'}, {'loop': 's3.l1', 'name': 'k_1_1'}]}},
]
REFUSED = "reader-early"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
