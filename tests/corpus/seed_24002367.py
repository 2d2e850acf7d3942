"""Found by `tilewright fuzz`, case 24002367.

proof: refuted (P1 to P5, 15 questions, 4.5 ms)
  P2: block 'T0' needs T0[()], but T2[()] holds T2[()]; T2(k_1_1_0=4, k_0=2) and T0(k_0=0)
  P2: at the end T2[()] holds T0[()]; T0(k_0=1)
  P3: block 'T2' reads T0[()] before block 'T0' has updated it; T2(k_1_1_0=4, k_0=2) and T0(k_0=1)
"""

FUNCTION = """
def f(T1: output(float32[()])):
    T0 = alloc(float32[()], "global")
    for k in range(16):
        with block("T0", vk=reduce(16, k)):
            with init():
                T0[()] = float("inf")
            T0[()] = T0[()]
    with block("T1"):
        T1[()] = T0[()]
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'k'}, 'factors': [3, None], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'k_1'}, 'factors': [None, 5], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's2.l0', 'name': 'k_1_0'}, {'loop': 's1.l0', 'name': 'k_0'}]}},
]
REFUSED = "reader-early"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
