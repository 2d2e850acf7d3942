"""Found by `tilewright fuzz`, case 74000000000114.

lowered for c:avx2: VerificationError: VerificationError: verify: buffer 'T0_reg' is used where it is not declared. [verify-buffer]
  in f, stage lowered:
      prefetch(T0_reg[0, 1], "write", 3)
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(X: float64[4, 1], T0: output(float64[2, 2])):
    for i0 in range(2):
        for i1 in range(2):
            with block("T0", vi0=spatial(2, i0), vi1=spatial(2, i1)):
                T0[vi0, vi1] = log(select(1 <= vi0, X[vi1 + 2, vi0 - 1], float64(3.0)))
"""

STEPS = [
    {'primitive': 'prefetch', 'arguments': {'buffer': {'tensor': 'p1'}, 'at': {'loop': 'b0.l1', 'name': 'i1'}, 'spread': [], 'distance': 1, 'rw': 'write', 'level': 3}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 4], 'tail': 'guard'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p1'}, 'loop': {'loop': 's1.l0', 'name': 'i1_0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
