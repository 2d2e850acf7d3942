"""A case of `tilewright fuzz`, written anew: a copy of a copy of a sum that goes on there.

proof: refuted
  P3: block 'T0_local_1_in' reads T0[0] as block 'T0_init' left it, but block 'T0' has updated it
  elsewhere since; T0_init() and T0(i_0=0, k=0)
"""

FUNCTION = """
def f(X: int32[1, 3], T1: output(int32[1])):
    T0 = alloc(int32[1], "global")
    for i in range(1):
        for k in range(3):
            with block("T0", vi=spatial(1, i), vk=reduce(3, k)):
                with init():
                    T0[vi] = int32(0)
                T0[vi] = T0[vi] + X[vi, vk]
    for i in range(1):
        with block("T1", vi=spatial(1, i)):
            T1[vi] = T0[vi] * int32(2)
"""

STEPS = [
    {'primitive': 'reindex', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'b0'}}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 's0.b0'}, 'loop': {'loop': 'b0.l1', 'name': 'k'}, 'at': 'last'}},
    {'primitive': 'decompose_reduction', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b0.l0', 'name': 'i'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i'}, 'factors': [2, None], 'tail': 'guard'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's3.l0', 'name': 'i_0'}, 'scope': 'thread'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 's4.b0'}, 'buffer': {'tensor': 's2.b0'}, 'loop': {'loop': 's4.m0', 'name': 'i_1'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
