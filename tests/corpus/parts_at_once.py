"""After a case of `tilewright fuzz`: parts of a sum in one parallel loop.

scheduled: InterpreterError: iteration i_0 = 0 writes 'T0'[1] and iteration i_0 = 1 reads it.
"""

FUNCTION = """
def f(X: int32[8, 6], T0: output(int32[8])):
    for i in range(8):
        for k in range(6):
            with block("T0", vi=spatial(8, i), vk=reduce(6, k)):
                with init():
                    T0[vi] = int32(0)
                T0[vi] = T0[vi] + X[vi, vk]
"""

STEPS = [
    {'primitive': 'loop_partition', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'k'}, 'points': [2, 4]}},
    {'primitive': 'fission', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i'}, 'block': {'block': 'b0'}}},
    {'primitive': 'fission', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i'}, 'block': {'block': 's0.b0'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i'}, 'factors': [None, 2], 'tail': 'mask'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'i_0'}, {'loop': 's2.l1', 'name': 'i'}]}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 's4.l0', 'name': 'i_0'}}},
]
REFUSED = "loop-conflict"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
