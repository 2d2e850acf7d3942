"""Found by hand, beside copy_of_a_sum_that_goes_on.py: a copy of what stays in another one.

proof: refuted
  P2: block 'T0_local_1_in' needs T0[3], but nothing was stored to T0[3] before.
"""

FUNCTION = """
def f(X: int32[3], T1: output(int32[3])):
    T0 = alloc(int32[3], "global")
    for i in range(3):
        with block("T0", vi=spatial(3, i)):
            T0[vi] = X[vi] + int32(1)
    for i in range(3):
        with block("T1", vi=spatial(3, i)):
            T1[vi] = T0[vi] * int32(2)
"""

STEPS = [
    {'primitive': 'pad', 'arguments': {'buffer': {'tensor': 'b0'}, 'multiples': [4]}},
    {'primitive': 'decompose_padding', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'T0_0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 's1.b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's1.m0', 'name': 'T0_0'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i'}, 'factors': [None, 2], 'tail': 'guard'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's3.l0', 'name': 'i_0'}, 'scope': 'thread'}},
]
REFUSED = "stage-part"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
