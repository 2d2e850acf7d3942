"""Found by `tilewright fuzz`, case 77000039.

lowered for c:scalar: unknown (P1 to P5, 1 questions, 27.8 ms)
  undecided: it may be that P4: 'f', lowered, loads X[7, 5]; 'X' has shape [11, 5]; T4(i0_0=2, i0_1=0, i1=0, D=1)
"""

FUNCTION = """
def f(X: uint8[1, 5], D: uint8[1], T4: output(int32[2, 1])):
    T0 = alloc(uint8[2, 6], "global")
    T1 = alloc(int32[2, 1], "global")
    for i0 in range(2):
        for i1 in range(6):
            with block("T0", vi0=spatial(2, i0), vi1=spatial(6, i1)):
                T0[vi0, vi1] = select(1 <= vi0 and 1 <= vi1 and vi1 < 6, X[vi0 - 1, vi1 - 1], uint8(5))
    for i0 in range(2):
        for i1 in range(1):
            with block("T1", vi0=spatial(2, i0), vi1=spatial(1, i1)):
                T1[vi0, vi1] = cast(T0[vi0, vi1 + 5], "int32")
    for i0 in range(2):
        for i1 in range(1):
            with block("T4", vi0=spatial(2, i0), vi1=spatial(1, i1)):
                T4[vi0, vi1] = T1[vi0, max(min(cast(D[vi1], "int64"), 2), 0)]
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b1'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
