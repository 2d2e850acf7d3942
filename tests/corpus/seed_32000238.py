"""Found by `tilewright fuzz`, case 32000238.

proof: refuted (P1 to P5, 6 questions, 4.8 ms)
  P2: in block 'T1' vi0 is computed, where the canonical form has 5; T1(i0=3, i3=0)
  P2: in block 'T1' 5 is computed, where the canonical form has vi0; T1(i0=3, i3=0)
"""

FUNCTION = """
def f(T1: output(int64[5, 1, 1, 1])):
    T0 = alloc(int64[2, 1, 1], "global")
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for k in range(1):
                    with block("T0", vi0=spatial(2, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T0[vi0, vi1, vi2] = 0
                        T0[vi0, vi1, vi2] = T0[vi0, vi1, vi2]
    for i0 in range(5):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    with block("T1", vi0=spatial(5, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3)):
                        T1[vi0, vi1, vi2, vi3] = select(1 <= vi0 and vi0 < 3, T0[vi0 - 1, vi1, vi2 * 3 + vi3], 5) + vi0
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l2', 'name': 'i2'}, 'scope': 'register'}},
    {'primitive': 'cache_read', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 's0.b0'}}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's1.b0'}, 'loop': {'loop': 'b1.l3', 'name': 'i3'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
