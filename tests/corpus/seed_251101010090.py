"""Found by `tilewright fuzz`, case 251101010090.

proof: unknown (P1 to P5, 5 questions, 4.2 ms)
  undecided: P2: block 'T1_part1' computes T1[2, 0] + ((3 % (-7) & 3) + 5) * A_cache[2], where the canonical form has T1[vi0, vi1] + ((3 % (-7) & vi0 + vk) + vi0 + vk + 2) * A_cache[vi0]
"""

FUNCTION = """
def f(X: int64[3], T1: output(int64[3, 1])):
    T0 = alloc(int64[4], "global")
    for i0 in range(4):
        with block("T0", vi0=spatial(4, i0)):
            T0[vi0] = select(vi0 < 3, X[vi0], 3) % (-7) + vi0
    for i0 in range(3):
        for i1 in range(1):
            for k in range(2):
                with block("T1", vi0=spatial(3, i0), vi1=spatial(1, i1), vk=reduce(2, k)):
                    with init():
                        T1[vi0, vi1] = 0
                    T1[vi0, vi1] = T1[vi0, vi1] + T0[vi0 + vk]
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
