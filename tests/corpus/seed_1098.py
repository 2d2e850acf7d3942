"""Found by `tilewright fuzz`, case 1098.

nest: AssertionError: 
"""

FUNCTION = """
def f(T1: output(float64[2, 1, 1])):
    T0 = alloc(float64[2, 2, 1], "global")
    for i0 in range(2):
        for i1 in range(2):
            for i2 in range(1):
                for k in range(1):
                    with block("T0", vi0=spatial(2, i0), vi1=spatial(2, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T0[vi0, vi1, vi2] = float64(0.0)
                        T0[vi0, vi1, vi2] = T0[vi0, vi1, vi2]
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for k in range(1):
                    with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T1[vi0, vi1, vi2] = float64(0.0)
                        T1[vi0, vi1, vi2] = T1[vi0, vi1, vi2] + T0[vi0, vk, vi1]
"""

STEPS = [
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 'b0.l1', 'name': 'i1'}, {'loop': 'b0.l3', 'name': 'k'}, {'loop': 'b0.l0', 'name': 'i0'}]}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l3', 'name': 'k'}, 'factors': [None, 2], 'tail': 'partition'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l2', 'name': 'i2'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'k_0'}, 'factors': [5, 2, None], 'tail': 'mask'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
