"""Found by `tilewright fuzz`, case 22000390.

proof: proved under assumptions (P1 to P5, 10 questions, 12.5 ms)
  assuming that block 'T0_check' may compute max(T0_check_local[()], select(D[1, vi1] <= D[1, vi1], cast(A[vi1], "uint64"), uint64(0))) for max(T0_check[()], select(D[vi0, vi1] <= D[vi0, vi1] and vi0 < 2, cast(A[vi1], "uint64"), uint64(0)))
"""

FUNCTION = """
def f(D: int32[1, 1], T0: output(int32[1, 1, 1]), T0_check: check(uint64[()], 4, "index")):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2)):
                    T0[vi0, vi1, vi2] = int32(-2)
    for i0 in range(1):
        for i1 in range(1):
            with block("T0_check", vi0=reduce(1, i0), vi1=reduce(1, i1)):
                with init():
                    T0_check[()] = uint64(0)
                T0_check[()] = max(T0_check[()], select(int32(1) <= D[vi0, vi1] and vi0 < 2, uint64(1), uint64(0)))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
