"""Found by `tilewright fuzz`, case 251126012892.

C for c:scalar: 1 of 25 elements of 'T2' differ in their bits from the LOWERED function's, on 1 thread(s)
"""

FUNCTION = """
def f(T2: output(float64[2, 2])):
    T1 = alloc(float64[3, 1, 2], "global")
    T2_2 = alloc(int64[2, 2], "global")
    for i0 in range(3):
        for i1 in range(1):
            for i2 in range(2):
                with block("T1", vi0=spatial(3, i0), vi1=spatial(1, i1), vi2=spatial(2, i2)):
                    T1[vi0, vi1, vi2] = cast(vi0, "float64") - cast(vi2, "float64")
    for i0 in range(2):
        for i1 in range(2):
            for k in range(2):
                for r in range(1):
                    with block("T2", vi0=spatial(2, i0), vi1=spatial(2, i1), vk=reduce(2, k), vr=reduce(1, r)):
                        with init():
                            T2[vi0, vi1] = float64(float("inf"))
                            T2_2[vi0, vi1] = 9223372036854775807
                        T2[vi0, vi1] = let(x0, T1[vi0 + vk, vr, vi1], let(x1, vk * 4 + vr, select(T2[vi0, vi1] < x0, T2[vi0, vi1], x0)))
                        T2_2[vi0, vi1] = let(x0_1, T1[vi0 + vk, vr, vi1], let(x1_1, vk * 4 + vr, select(T2[vi0, vi1] < x0_1, 1, x1_1)))
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
