"""Found by hand, beside parts_at_once.py: a part of a sum in iterations behind the initialisation.

After a split (None, 4) and a reorder of the loop: InterpreterError: 'T0'[4] is read before it is written.
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
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i'}, 'factors': [None, 2], 'tail': 'guard'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'i_0'}, {'loop': 's1.l1', 'name': 'i'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
