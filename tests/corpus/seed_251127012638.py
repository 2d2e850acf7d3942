"""Found by `tilewright fuzz`, case 251127012638.

proof: unknown (P1 to P5, 0 questions, 2.4 ms)
  undecided: P2: block 'T0_check' loads X[1, 0, 0], where the canonical form loads X[max(min(cast(B[vi2], "int64"), 5), 0), vi1, vi2 % 3]: their indices depend on other data
"""

FUNCTION = """
def f(X: float64[6, 1, 1], B: uint8[1], T1: output(uint8[1, 1, 1]), T0_check: check(uint64[()], 3, "index")):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for k in range(1):
                    with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T1[vi0, vi1, vi2] = uint8(1)
                        T1[vi0, vi1, vi2] = T1[vi0, vi1, vi2]
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                with block("T0_check", vi0=reduce(1, i0), vi1=reduce(1, i1), vi2=reduce(1, i2)):
                    with init():
                        T0_check[()] = uint64(0)
                    T0_check[()] = max(T0_check[()], select(X[vi2 + 1, vi1, vi2 // 2] <= float64(1.0) and X[max(min(cast(B[vi2], "int64"), 5), 0), vi1, vi2 % 3] <= float64(5.0) and True, uint64(1), uint64(0)))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
