"""Found by `tilewright fuzz`, case 275.

proof: unknown (P1 to P5, 3 questions, 37.8 ms)
  undecided: it may be that P4: block 'T2' loads X[19]; 'X' has shape [19]; T2(i0_1=0, A=19)
"""

FUNCTION = """
def f(X: uint8[19], A: uint8[14], T2: output(uint8[14])):
    T0 = alloc(uint8[21], "global")
    T1 = alloc(uint8[21], "global")
    for i0 in range(21):
        with block("T0", vi0=spatial(21, i0)):
            T0[vi0] = min(select(vi0 < 19, X[vi0], uint8(2)), X[min(vi0, 18)]) * cast(vi0, "uint8")
    for i0 in range(21):
        with block("T1", vi0=spatial(21, i0)):
            T1[vi0] = T0[vi0] * uint8(5)
    for i0 in range(14):
        with block("T2", vi0=spatial(14, i0)):
            T2[vi0] = T1[max(min(cast(A[vi0], "int64"), 20), 0)]
"""

STEPS = [
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b0'}}},
    {'primitive': 'compute_inline', 'arguments': {'block': {'block': 'b1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b2'}, 'buffer': {'tensor': 'p2'}, 'loop': {'loop': 'b2.l0', 'name': 'i0'}, 'scope': 'register'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b2.l0', 'name': 'i0'}, 'factors': [None, 8, 1], 'tail': 'partition'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
