"""Found by `tilewright fuzz`, case 21001650.

nest: max error / bound inf at T1[0]: got inf, expected -18 within 7.63e-06
"""

FUNCTION = """
def f(T1_2: output(int64[1])):
    T0 = alloc(float32[1, 2, 1, 1], "global")
    T1 = alloc(float32[1], "global")
    for i0 in range(1):
        for i1 in range(2):
            for i2 in range(1):
                for i3 in range(1):
                    for k in range(1):
                        for r in range(1):
                            with block("T0", vi0=spatial(1, i0), vi1=spatial(2, i1), vi2=spatial(1, i2), vi3=spatial(1, i3), vk=reduce(1, k), vr=reduce(1, r)):
                                with init():
                                    T0[vi0, vi1, vi2, vi3] = 0.0
                                T0[vi0, vi1, vi2, vi3] = T0[vi0, vi1, vi2, vi3]
    for i0 in range(1):
        for k in range(1):
            for r in range(1):
                for s in range(1):
                    with block("T1", vi0=spatial(1, i0), vk=reduce(1, k), vr=reduce(1, r), vs=reduce(1, s)):
                        with init():
                            T1[vi0] = float("inf")
                            T1_2[vi0] = 9223372036854775807
                        T1[vi0] = let(x0, T0[vi0, vk, vr, vs], let(x1, (vk * 4 + vr) * 5 + vs, T1[vi0]))
                        T1_2[vi0] = let(x0_1, T0[vi0, vk, vr, vs], let(x1_1, (vk * 4 + vr) * 5 + vs, select(T1[vi0] < x0_1, 1, x1_1)))
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l3', 'name': 'i3'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l2', 'name': 'i2'}, 'factors': [None, 3, 2], 'tail': 'guard'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [1, 3, None], 'tail': 'partition'}},
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 's2.l2', 'name': 'i0_2'}, {'loop': 'b0.l1', 'name': 'i1'}, {'loop': 's1.l0', 'name': 'i2_0'}]}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
