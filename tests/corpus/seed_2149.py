"""Found by `tilewright fuzz`, case 2149.

proof: unknown (P1 to P5, 0 questions, 0.5 ms)
  undecided: P2: block 'T2' computes int32(0), where the canonical form has select(1 <= vi0, T0[vi0 - 1], int32(4)) // int32(5)
"""

FUNCTION = """
def f(T2: output(int32[1])):
    T0 = alloc(int32[1], "global")
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = int32(1)
    for i0 in range(1):
        with block("T2", vi0=spatial(1, i0)):
            T2[vi0] = select(1 <= vi0, T0[vi0 - 1], int32(4)) // int32(5)
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
