"""Found by `tilewright fuzz`, case 2069.

proof: proved under assumptions (P1 to P5, 0 questions, 0.7 ms)
  assuming that block 'T0' may compute select(X[0, 0] == uint8(1), int32(1), int32(-3)) for select(not (not X[vi0, vi1] == uint8(1)), int32(1), int32(-3))
"""

FUNCTION = """
def f(X: uint8[1, 1], T0: output(int32[1, 1])):
    for i0 in range(1):
        for i1 in range(1):
            with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T0[vi0, vi1] = select(not (not X[vi0, vi1] == uint8(1)), int32(1), int32(-3))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
