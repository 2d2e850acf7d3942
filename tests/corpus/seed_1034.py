"""Found by `tilewright fuzz`, case 1034.

proof: unknown (P1 to P5, 0 questions, 0.4 ms)
  undecided: P2: block 'T0' computes X[0] * int32(2), where the canonical form has X[vi0] + X[vi0]
"""

FUNCTION = """
def f(X: int32[1], T0: output(int32[1])):
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = X[vi0] + X[vi0]
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
