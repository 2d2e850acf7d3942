"""Found by `tilewright fuzz`, case 4068.

nest: max error / bound inf at T1: got inf, expected 1 within 4.77e-07
"""

FUNCTION = """
def f(T1: output(float32[()])):
    T0 = alloc(float32[()], "global")
    for k in range(1):
        for r in range(1):
            with block("T0", vk=reduce(1, k), vr=reduce(1, r)):
                with init():
                    T0[()] = float("inf")
                T0[()] = T0[()]
    with block("T1"):
        T1[()] = tanh(T0[()])
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'k'}, 'factors': [None, 4], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'k_1'}, 'factors': [None, 4, 1], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'k_0'}, 'factors': [4, None], 'tail': 'guard'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's2.l0', 'name': 'k_1_0'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
