"""Found by `tilewright fuzz`, case 21001191.

proof: refuted (P1 to P5, 5 questions, 9.9 ms)
  P1: point (vi0=1, vi1=0, vi2=0, vi3=4) of block 'T0' never runs
  P2: block 'T0_cache' needs T0[1, 0, 0, 0], but T0[0, 0, 0, 0] holds T0[0, 0, 0, 0]; T0_local_out() and T0_cache(T0_0=1, T0_3=0)
  P2: block 'T0_cache' needs T0[1, 0, 0, 4], but T0[0, 0, 0, 4] holds T0[0, 0, 0, 4]; T0(i0=1, i3=1) and T0_cache(T0_0=1, T0_3=4)
"""

FUNCTION = """
def f(T1: output(float32[1, 1, 1, 1])):
    T0 = alloc(float32[1, 1, 1, 2], "global")
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(2):
                    with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(2, i3)):
                        T0[vi0, vi1, vi2, vi3] = 1.0
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    for k in range(1):
                        for r in range(1):
                            with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3), vk=reduce(1, k), vr=reduce(1, r)):
                                with init():
                                    T1[vi0, vi1, vi2, vi3] = 0.0
                                T1[vi0, vi1, vi2, vi3] = T1[vi0, vi1, vi2, vi3] + T0[vi2 * 2 + vr * 2, vi3, vi1, vi0 * 2 + vk]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b1.l4', 'name': 'k'}}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's1.b0'}, 'loop': {'loop': 's1.l0', 'name': 'i0'}}},
]
REFUSED = "operand-inside"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
