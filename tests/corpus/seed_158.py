"""Found by random steps, case 158.

rfactor left parts unwritten that a condition of a merged loop leaves out.
"""

FUNCTION = """
def f(B: constant(int64[1]), T2: output(float32[2, 1, 1, 1]), T2_check: check(uint64[()], 1, "index")):
    T1 = alloc(float32[2, 1, 1, 1], "global")
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3)):
                        T1[vi0, vi1, vi2, vi3] = 1.0
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    for k in range(1):
                        with block("T2", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3), vk=reduce(1, k)):
                            with init():
                                T2[vi0, vi1, vi2, vi3] = float("-inf")
                            T2[vi0, vi1, vi2, vi3] = max(T2[vi0, vi1, vi2, vi3], T1[vi0, max(min(B[vi1], 0), 0), vk, vi2])
    for i1 in range(1):
        with block("T2_check", vi1=reduce(1, i1)):
            with init():
                T2_check[()] = uint64(0)
            T2_check[()] = T2_check[()]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [5, 1, None], 'tail': 'guard'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 'b1.l0', 'name': 'i0'}, {'loop': 'b2.l0', 'name': 'i1'}]}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 's1.l0', 'name': 'i0'}]}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 's2.l0', 'name': 'i0_0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
