"""Found by `tilewright fuzz`, case 3000010.

nest: AssertionError: no condition for the initialisation of the reduction
"""

FUNCTION = """
def f(T2: output(uint8[()])):
    T1 = alloc(uint8[5], "global")
    for i0 in range(5):
        for k in range(5):
            with block("T1", vi0=spatial(5, i0), vk=reduce(5, k)):
                with init():
                    T1[vi0] = uint8(0)
                T1[vi0] = T1[vi0]
    for k in range(1):
        with block("T2", vk=reduce(1, k)):
            with init():
                T2[()] = uint8(0)
            T2[()] = T2[()] + T1[vk]
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l1', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'k'}, 'factors': [None, 4], 'tail': 'guard'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'k_1'}, 'factors': [None, 5], 'tail': 'guard'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
