"""Found by `tilewright fuzz`, case 3190.

lowered for c:avx2: VerificationError: VerificationError: verify: buffer 'X_reg' is used where it is not declared. [verify-buffer]
  in f, stage lowered:
      prefetch(X_reg[0], "write", 1)
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(X: float64[1], T0: output(float64[1])):
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = X[vi0]
"""

STEPS = [
    {'primitive': 'prefetch', 'arguments': {'buffer': {'tensor': 'p0'}, 'at': {'loop': 'b0.l0', 'name': 'i0'}, 'spread': [], 'distance': 0, 'rw': 'write', 'level': 1}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
