"""Found by `tilewright fuzz`, case 22000917.

proof: refuted (P1 to P5, 3 questions, 11.6 ms)
  P5: different threads, each with a buffer of its own, write and read T1[0, 0, 0, 1]; T1(i3=1) and T2(i1=0, i3=1, k_2=1)
"""

FUNCTION = """
def f(T2: output(int32[1, 1, 1, 1])):
    T0 = alloc(int32[1, 1, 1, 1], "global")
    T1 = alloc(int32[1, 1, 1, 1], "global")
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3)):
                        T0[vi0, vi1, vi2, vi3] = int32(1)
    for i3 in range(1):
        for i0 in range(1):
            for i1 in range(1):
                for i2 in range(1):
                    with block("T1", vi3=ordered(1, i3), vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2)):
                        T1[vi0, vi1, vi2, vi3] = select(True, int32(1), T1[vi0, vi1, vi2, vi3 - 2] + T0[vi0, vi1, vi2, vi3])
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    for k in range(1):
                        with block("T2", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3), vk=reduce(1, k)):
                            with init():
                                T2[vi0, vi1, vi2, vi3] = int32(-2147483648)
                            T2[vi0, vi1, vi2, vi3] = max(T2[vi0, vi1, vi2, vi3], T1[vi0, vi1, vi2, vk])
"""

STEPS = [
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 'b2.l1', 'name': 'i1'}}},
    {'primitive': 'pad', 'arguments': {'buffer': {'tensor': 'b0'}, 'multiples': [1, 3, 2, 1]}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's1.l1', 'name': 'T0_1'}, 'at': 'each'}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's1.l0', 'name': 'T0_0'}, {'loop': 'b2.l0', 'name': 'i0'}]}},
    {'primitive': 'set_scope', 'arguments': {'buffer': {'tensor': 'b1'}, 'scope': 'register'}},
]
REFUSED = "stage-parallel"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
