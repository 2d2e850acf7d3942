"""Found by `tilewright fuzz`, case 191.

proof: unknown (P1 to P5, 0 questions, 256.2 ms)
  undecided: P2: block 'T0' computes T0[vi0, 0, vi2] - A[0, vi2] * int8(2), where the canonical form has T0[vi0, vi1, vi2] + select(1 <= vi1 and vi1 < 6, X[vi0 + vk, vi1 - 1, vi2], int8(-2)) * A[vi1, vi2]
"""

FUNCTION = """
def f(X: int8[7, 5, 5], A: int8[7, 5], B: int8[5, 2, 7], T1: output(int8[2, 7])):
    T0 = alloc(int8[6, 7, 5], "global")
    for i0 in range(6):
        for i1 in range(7):
            for i2 in range(5):
                for k in range(2):
                    with block("T0", vi0=spatial(6, i0), vi1=spatial(7, i1), vi2=spatial(5, i2), vk=reduce(2, k)):
                        with init():
                            T0[vi0, vi1, vi2] = int8(0)
                        T0[vi0, vi1, vi2] = T0[vi0, vi1, vi2] + select(1 <= vi1 and vi1 < 6, X[vi0 + vk, vi1 - 1, vi2], int8(-2)) * A[vi1, vi2]
    for i0 in range(2):
        for i1 in range(7):
            for k in range(3):
                for r in range(5):
                    with block("T1", vi0=spatial(2, i0), vi1=spatial(7, i1), vk=reduce(3, k), vr=reduce(5, r)):
                        with init():
                            T1[vi0, vi1] = int8(0)
                        T1[vi0, vi1] = T1[vi0, vi1] + T0[vi0 * 2 + vk, vi1, vr] * B[vr, vi0, vi1]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'factors': [5, None], 'tail': 'guard'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
