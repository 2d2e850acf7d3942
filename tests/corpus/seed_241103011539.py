"""Found by `tilewright fuzz`, case 241103011539.

scheduled: max error / bound 3.55e+05 at T2: got 216, expected 600 within 0.00108
"""

FUNCTION = """
def f(T1: output(float32[()]), T2: output(float32[()])):
    for k in range(3):
        with block("T1", vk=reduce(3, k)):
            with init():
                T1[()] = 0.0
            T1[()] = T1[()] + 1.0
    with block("T2"):
        T2[()] = T1[()]
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 'b0.l0', 'name': 'k'}, 'scope': 'register'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'k'}, 'factors': [None, 3, 2], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's2.l2', 'name': 'k_2'}, 'factors': [None, 2], 'tail': 'guard'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'k_2_0'}, {'loop': 's3.l1', 'name': 'k_2_1'}, {'loop': 's2.l1', 'name': 'k_1'}, {'loop': 's2.l0', 'name': 'k_0'}]}},
]
REFUSED = "reader-early"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
