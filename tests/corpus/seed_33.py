"""Found by `tilewright fuzz`, case 33.

proof: proved under assumptions (P1 to P5, 0 questions, 1.1 ms)
  assuming that block 'T0' may compute cast(X[0, 0] + int32(2), "int64") for cast(X[vi0, vi1 * 3 + vi2] - int32(-2), "int64")
"""

FUNCTION = """
def f(X: int32[1, 1], T0: output(int64[1, 1, 1])):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2)):
                    T0[vi0, vi1, vi2] = cast(X[vi0, vi1 * 3 + vi2] - int32(-2), "int64")
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
