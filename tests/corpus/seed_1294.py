"""Found by `tilewright fuzz`, case 1294.

nest: AssertionError: 
"""

FUNCTION = """
def f(T2: output(float32[2, 1, 1])):
    T1 = alloc(float32[1, 2, 2, 1], "global")
    for i0 in range(1):
        for i1 in range(2):
            for i2 in range(2):
                for i3 in range(1):
                    for k in range(1):
                        with block("T1", vi0=spatial(1, i0), vi1=spatial(2, i1), vi2=spatial(2, i2), vi3=spatial(1, i3), vk=reduce(1, k)):
                            with init():
                                T1[vi0, vi1, vi2, vi3] = 0.0
                            T1[vi0, vi1, vi2, vi3] = T1[vi0, vi1, vi2, vi3]
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for k in range(1):
                    with block("T2", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T2[vi0, vi1, vi2] = float("inf")
                        T2[vi0, vi1, vi2] = min(T2[vi0, vi1, vi2], T1[vi1, vi0, vk, vi2])
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l4', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l4', 'name': 'k'}, 'factors': [None, 4], 'tail': 'guard'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
