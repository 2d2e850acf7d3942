"""Found by `tilewright fuzz`, case 24000913.

proof: unknown (P1 to P5, 0 questions, 85.9 ms)
  undecided: P2: block 'T3_check' computes max(T3_check[()], select(L[0, 0, 0] < int32(1), cast(G_reindexed[0], "uint64"), uint64(0))), where the canonical form has max(T3_check[()], select(L[vi1, vi0, vi0] < int32(1) and L[vi0, vi1, vi2] < int32(1), cast(G_reindexed[vi0], "uint64"), uint64(0)))
"""

FUNCTION = """
def f(L: int32[1, 1, 1], T3: output(float32[1, 1, 1]), T3_check: check(uint64[()], 3, "index")):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                with block("T3", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2)):
                    T3[vi0, vi1, vi2] = 1.0
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                with block("T3_check", vi0=reduce(1, i0), vi1=reduce(1, i1), vi2=reduce(1, i2)):
                    with init():
                        T3_check[()] = uint64(0)
                    T3_check[()] = max(T3_check[()], select(L[vi1, vi0, vi0] < int32(1) and L[vi0, vi1, vi2] < int32(1), uint64(1), uint64(0)))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
