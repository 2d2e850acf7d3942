"""Found by `tilewright fuzz`, case 62000000001289.

nest: max error / bound inf at T1[1, 0]: got 4, expected 1 within 0
"""

FUNCTION = """
def f(T1: output(int32[2, 1]), T3: output(int32[2, 1, 2])):
    T0 = alloc(int32[3, 1], "global")
    T2 = alloc(int32[3, 1], "global")
    for i0 in range(3):
        for i1 in range(1):
            for k in range(1):
                with block("T0", vi0=spatial(3, i0), vi1=spatial(1, i1), vk=reduce(1, k)):
                    with init():
                        T0[vi0, vi1] = int32(0)
                    T0[vi0, vi1] = T0[vi0, vi1]
    for i0 in range(2):
        for i1 in range(1):
            for k in range(1):
                with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1), vk=reduce(1, k)):
                    with init():
                        T1[vi0, vi1] = int32(-2147483648)
                    T1[vi0, vi1] = max(T1[vi0, vi1], T0[vi0 + vk, vi1])
    for i0 in range(3):
        for i1 in range(1):
            with block("T2", vi0=spatial(3, i0), vi1=spatial(1, i1)):
                T2[vi0, vi1] = T0[vi0, vi1] - int32(1)
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(2):
                for k in range(2):
                    with block("T3", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(2, i2), vk=reduce(2, k)):
                        with init():
                            T3[vi0, vi1, vi2] = int32(0)
                        T3[vi0, vi1, vi2] = T3[vi0, vi1, vi2] + T2[vi0 + vk, vi1]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 'b3.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 'b3.l0', 'name': 'i0'}}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 'b1.l0', 'name': 'i0'}, {'loop': 's1.m0', 'name': 'i0'}]}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's2.l0', 'name': 'i0'}, {'loop': 'b3.l0', 'name': 'i0'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
