"""Found by `tilewright fuzz`, case 309.

proof: unknown (P1 to P5, 3 questions, 21.1 ms)
  undecided: it may be that P2: block 'T1' needs X[1, 4], but nothing was stored to X_reg[1, 4] before; T1(i0_2=0, i1=0, A=5)
"""

FUNCTION = """
def f(X: float32[4, 4], A: uint8[2], T1: output(float32[3, 2]), T1_check: check(uint64[()], 6, "index")):
    T0 = alloc(float32[3, 6], "global")
    for i0 in range(3):
        for i1 in range(6):
            with block("T0", vi0=spatial(3, i0), vi1=spatial(6, i1)):
                T0[vi0, vi1] = tanh(sqrt(abs(select(1 <= vi1 and vi1 < 5, X[vi0 + 1, vi1 - 1], -3.0)) + 0.25)) * X[vi0, vi0 + 1] * X[vi0, vi0 + 1]
    for i0 in range(3):
        for i1 in range(2):
            with block("T1", vi0=spatial(3, i0), vi1=spatial(2, i1)):
                T1[vi0, vi1] = T0[vi0, max(min(cast(A[vi1], "int64"), 5), 0)]
    for i1 in range(2):
        with block("T1_check", vi1=reduce(2, i1)):
            with init():
                T1_check[()] = uint64(0)
            T1_check[()] = max(T1_check[()], cast(cast(A[vi1], "int64"), "uint64"))
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'factors': [None, 4, 4], 'tail': 'mask'}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 'b2.l0', 'name': 'i1'}}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 'b2.l0', 'name': 'i1'}}},
    {'primitive': 'decompose_reduction', 'arguments': {'block': {'block': 'b2'}, 'loop': {'loop': 's2.l0', 'name': 'i1'}}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's1.l2', 'name': 'i0_2'}, {'loop': 'b1.l1', 'name': 'i1'}]}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b2'}, 'buffer': {'tensor': 'p3'}, 'loop': {'loop': 's2.l0', 'name': 'i1'}, 'scope': 'thread'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 's1.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'annotate', 'arguments': {'loop': {'loop': 'b2.l0', 'name': 'i1'}, 'key': 'unroll_hint', 'value': 4}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
