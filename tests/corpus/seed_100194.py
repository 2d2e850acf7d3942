"""Found by the random schedules, case 100194, made small.

schedule: VerificationError: VerificationError: verify: buffer 'P' is used where it is not declared. [verify-buffer]
"""

FUNCTION = """
def f(X: float32[2, 3], Y: output(float32[2, 3])):
    P = alloc(float32[2, 3], "global")
    for i in range(2):
        for j in range(3):
            with block("P", vi=spatial(2, i), vj=spatial(3, j)):
                P[vi, vj] = X[vi, vj] * 2.0
    for i in range(2):
        for j in range(3):
            with block("Y", vi=spatial(2, i), vj=spatial(3, j)):
                Y[vi, vj] = P[vi, vj] + 1.0
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i'}}},
    {'primitive': 'set_scope', 'arguments': {'buffer': {'tensor': 'b0'}, 'scope': 'thread'}},
    {'primitive': 'prefetch', 'arguments': {'buffer': {'tensor': 'b0'}, 'at': {'loop': 'b1.l0', 'name': 'i'}, 'distance': 1, 'spread': [], 'rw': 'write', 'level': 1}},
]
REFUSED = "stage-inside"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
