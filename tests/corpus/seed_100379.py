"""Found by the random schedules, case 100379, made small.

scheduled: InterpreterError: interpreter: 'P_local_1'[0, 0] is read at i = 0 before it is written. [interpreter-uninitialised]
"""

FUNCTION = """
def f(X: float32[2, 3], Y: output(float32[2, 3]), Z: output(float32[2, 3])):
    P = alloc(float32[2, 3], "global")
    for i in range(2):
        for j in range(3):
            with block("P", vi=spatial(2, i), vj=spatial(3, j)):
                P[vi, vj] = X[vi, vj] * 2.0
    for i in range(2):
        for j in range(3):
            with block("Y", vi=spatial(2, i), vj=spatial(3, j)):
                Y[vi, vj] = P[vi, vj] + 1.0
    for i in range(2):
        for j in range(3):
            with block("Z", vi=spatial(2, i), vj=spatial(3, j)):
                Z[vi, vj] = P[vi, vj] + 2.0
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l0', 'name': 'i'}, 'scope': 'thread'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b2'}, 'buffer': {'tensor': 's0.b0'}, 'loop': {'loop': 'b2.l0', 'name': 'i'}, 'scope': 'thread'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'i'}, 'at': 'each'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
