"""Found by `tilewright fuzz`, case 241101006704.

proof: unknown (P1 to P5, 0 questions, 5.2 ms)
  undecided: P2: block 'T0_check' computes max(T0_check[()], uint64(0)), where the canonical form has max(T0_check[()], select(cast(vi0_0 * 2 + vi0_1, "float32") != (-1.0) and vi2 < 5, cast(cast(A[vi1], "int64"), "uint64"), uint64(0)))
"""

FUNCTION = """
def f(A: int32[1], T0: output(float32[1, 1, 6]), T0_check: check(uint64[()], 2, "index")):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(6):
                with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(6, i2)):
                    T0[vi0, vi1, vi2] = -3.0
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(6):
                with block("T0_check", vi0=reduce(1, i0), vi1=reduce(1, i1), vi2=reduce(6, i2)):
                    with init():
                        T0_check[()] = uint64(0)
                    T0_check[()] = max(T0_check[()], select(1.0 != (-1.0) and vi2 < 5, cast(cast(A[vi1], "int64"), "uint64"), uint64(0)))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
