"""Found by `tilewright fuzz`, case 63000000000935.

lowered for c:scalar: unknown (P1 to P5, 1 questions, 1.2 ms)
  undecided: it may be that P4: 'f', lowered, loads X[-1]; 'X' has shape [14]; T2(A_0=0, A_reindexed=0)
"""

FUNCTION = """
def f(X: int32[14], A: uint8[1], T2: output(int32[1])):
    T0 = alloc(int32[4], "global")
    T1 = alloc(int32[1], "global")
    for i0 in range(4):
        with block("T0", vi0=spatial(4, i0)):
            T0[vi0] = select(1 <= vi0, X[vi0 - 1], int32(5))
    for i0 in range(1):
        with block("T1", vi0=spatial(1, i0)):
            T1[vi0] = T0[max(min(cast(A[vi0], "int64"), 14), 0)]
    for i0 in range(1):
        with block("T2", vi0=spatial(1, i0)):
            T2[vi0] = T1[vi0]
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b1'}}},
    {'primitive': 'reindex', 'arguments': {'block': {'block': 'b2'}, 'buffer': {'tensor': 'p1'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
