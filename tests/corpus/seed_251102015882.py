"""Found by `tilewright fuzz`, case 251102015882.

lowered for c:avx512: VerificationError: VerificationError: CommonLoads: verify: buffer 'T0_local' is used where it is not declared. [verify-buffer]
  in f, stage lowered:
      prefetch(T0_local[1], "write", 3)
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(X: int64[3], T0: output(float32[3])):
    for i0 in range(3):
        with block("T0", vi0=spatial(3, i0)):
            T0[vi0] = cast(min(X[vi0], 1) <= 4, "float32")
"""

STEPS = [
    {'primitive': 'prefetch', 'arguments': {'buffer': {'tensor': 'p1'}, 'at': {'loop': 'b0.l0', 'name': 'i0'}, 'spread': [], 'distance': 1, 'rw': 'write', 'level': 3}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p1'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [1, None], 'tail': 'guard'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's2.l1', 'name': 'i0_1'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
