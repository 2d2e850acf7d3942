"""Found by `tilewright fuzz`, case 241103004275.

lowered for c:scalar: unknown (P1 to P5, 1 questions, 1.0 ms)
  undecided: it may be that P4: 'f', lowered, loads X[-1, 2]; 'X' has shape [10, 3]; T1_reg(i0=9, k=2, D_local=0)
"""

FUNCTION = """
def f(X: int32[10, 1], B: constant(int32[12]), D: int64[10], T1: output(int32[10])):
    T0 = alloc(int32[12, 1], "global")
    for i0 in range(12):
        for i1 in range(1):
            with block("T0", vi0=spatial(12, i0), vi1=spatial(1, i1)):
                T0[vi0, vi1] = select(1 <= vi0 and vi0 < 11, X[vi0 - 1, vi1], int32(4)) & B[vi0]
    for i0 in range(10):
        for k in range(1):
            with block("T1", vi0=spatial(10, i0), vk=reduce(1, k)):
                with init():
                    T1[vi0] = int32(2147483647)
                T1[vi0] = min(T1[vi0], T0[max(min(D[vi0], 11), 0), vk])
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p2'}, 'loop': {'loop': 'b1.l1', 'name': 'k'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
