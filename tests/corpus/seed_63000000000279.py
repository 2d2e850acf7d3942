"""Found by `tilewright fuzz`, case 63000000000279.

nest: max error / bound inf at T1[2, 1, 1]: got 11, expected 10 within 0
"""

FUNCTION = """
def f(X: uint8[2, 5, 2, 2], A: constant(int64[3]), T1: output(uint8[3, 2, 2]), T2: output(uint8[2, 5, 2, 2])):
    T0 = alloc(uint8[2, 5, 2, 2], "global")
    for i0 in range(2):
        for i1 in range(5):
            for i2 in range(2):
                for i3 in range(2):
                    with block("T0", vi0=spatial(2, i0), vi1=spatial(5, i1), vi2=spatial(2, i2), vi3=spatial(2, i3)):
                        T0[vi0, vi1, vi2, vi3] = X[vi0, vi1, vi2, vi3]
    for i0 in range(3):
        for i1 in range(2):
            for i2 in range(2):
                for k in range(2):
                    for r in range(1):
                        for s in range(2):
                            with block("T1", vi0=spatial(3, i0), vi1=spatial(2, i1), vi2=spatial(2, i2), vk=reduce(2, k), vr=reduce(1, r), vs=reduce(2, s)):
                                with init():
                                    T1[vi0, vi1, vi2] = uint8(0)
                                T1[vi0, vi1, vi2] = T1[vi0, vi1, vi2] + T0[max(min(A[vi0], 1), 0), vi1 * 2 + vk, vi2 + vr, vs]
    for i1 in range(5):
        for i0 in range(2):
            for i2 in range(2):
                for i3 in range(2):
                    with block("T2", vi1=ordered(5, i1), vi0=spatial(2, i0), vi2=spatial(2, i2), vi3=spatial(2, i3)):
                        T2[vi0, 4 - vi1, vi2, vi3] = select(4 <= 4 - vi1, T0[vi0, 4 - vi1 - 4 + 4, vi2, vi3], max(T2[vi0, 4 - vi1 - (-1), vi2, vi3], T0[vi0, 4 - vi1, vi2, vi3]))
"""

STEPS = [
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 'b1.l0', 'name': 'i0'}, {'loop': 'b2.l0', 'name': 'i1'}]}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
