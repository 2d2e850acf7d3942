"""reverse_compute_at: two reads that bind different axes to one dimension.

The reader ran on the diagonal alone; it is refused now.
"""

FUNCTION = """
def f(X: int32[3, 1, 3, 2], A: constant(int32[3, 3]), B: constant(bool[3, 1, 1]), T3: output(int32[1, 1, 1, 3, 1])):
    T0 = alloc(int32[3, 1, 2, 3], "global")
    T1 = alloc(bool[3, 1, 1, 3], "global")
    T2 = alloc(int32[1, 1, 1, 3, 3], "global")
    for i0 in range(3):
        for i1 in range(1):
            for i2 in range(2):
                for i3 in range(3):
                    for k in range(1):
                        for r in range(2):
                            with block("T0", vi0=spatial(3, i0), vi1=spatial(1, i1), vi2=spatial(2, i2), vi3=spatial(3, i3), vk=reduce(1, k), vr=reduce(2, r)):
                                with init():
                                    T0[vi0, vi1, vi2, vi3] = int32(-2147483648)
                                T0[vi0, vi1, vi2, vi3] = max(T0[vi0, vi1, vi2, vi3], select(1 <= vi3, X[vi0 + vk, vi1, vi2 + vr, vi3 - 1], int32(5)) * A[vi0, vi3])
    for i0 in range(3):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(3):
                    with block("T1", vi0=spatial(3, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(3, i3)):
                        T1[vi0, vi1, vi2, vi3] = min(T0[vi0, vi1, vi2 + 1, vi3], T0[vi3, vi2, min(vi0, 1), vi0]) - int32(-2) <= int32(5)
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(3):
                    for i4 in range(3):
                        for k in range(3):
                            with block("T2", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(3, i3), vi4=spatial(3, i4), vk=reduce(3, k)):
                                with init():
                                    T2[vi0, vi1, vi2, vi3, vi4] = int32(0)
                                T2[vi0, vi1, vi2, vi3, vi4] = T2[vi0, vi1, vi2, vi3, vi4] + cast(T1[vk, vi0, vi1, vi2 * 3 + vi3] and B[vk, vi0, vi2], "int32")
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(3):
                    for i4 in range(1):
                        for k in range(3):
                            with block("T3", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(3, i3), vi4=spatial(1, i4), vk=reduce(3, k)):
                                with init():
                                    T3[vi0, vi1, vi2, vi3, vi4] = int32(0)
                                T3[vi0, vi1, vi2, vi3, vi4] = T3[vi0, vi1, vi2, vi3, vi4] + max(T2[vi0, vi1, vi2, vi3, vi4 + vk], T2[vi0, vi2, vi1, vi3, vk])
"""

STEPS = [
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 'b0.l0', 'name': 'i0'}, {'loop': 'b0.l5', 'name': 'r'}, {'loop': 'b0.l4', 'name': 'k'}, {'loop': 'b0.l1', 'name': 'i1'}, {'loop': 'b0.l3', 'name': 'i3'}]}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 'b1.l2', 'name': 'i2'}, 'at': 'each'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'at': 'each'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
