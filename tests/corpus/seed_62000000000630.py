"""Found by `tilewright fuzz`, case 62000000000630.

lowered for c:scalar: unknown (P1 to P5, 1 questions, 5.0 ms)
  undecided: it may be that P4: 'f', lowered, loads X_cache[0, -2]; 'X_cache' has shape [14, 12]; T1(i0=0, i1=0, A_packed_packed=0)
"""

FUNCTION = """
def f(X: float32[1, 11], A: uint8[1], T1: output(float32[1, 1])):
    T0 = alloc(float32[1, 4], "global")
    for i0 in range(1):
        for i1 in range(4):
            with block("T0", vi0=spatial(1, i0), vi1=spatial(4, i1)):
                T0[vi0, vi1] = select(2 <= vi1 and vi1 < 13, X[vi0, vi1 - 2], 4.0)
    for i0 in range(1):
        for i1 in range(1):
            with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T1[vi0, vi1] = T0[vi0, max(min(cast(A[vi1], "int64"), 13), 0)]
"""

STEPS = [
    {'primitive': 'cache_read', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p1'}, 'name': 'A_packed'}},
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
