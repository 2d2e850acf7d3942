"""Found by `tilewright fuzz`, case 251127002039.

C for c:avx2: 15 of 30 elements of 'T1' differ in their bits from the LOWERED function's, on 1 thread(s)
"""

FUNCTION = """
def f(X: int32[6, 6], B: int32[6], T1: output(int32[6, 1])):
    T0 = alloc(int32[6, 1], "global")
    for i0 in range(6):
        for i1 in range(1):
            for k in range(6):
                with block("T0", vi0=spatial(6, i0), vi1=spatial(1, i1), vk=reduce(6, k)):
                    with init():
                        T0[vi0, vi1] = int32(0)
                    T0[vi0, vi1] = T0[vi0, vi1] + X[vk, vi0]
    for i0 in range(6):
        for i1 in range(1):
            with block("T1", vi0=spatial(6, i0), vi1=spatial(1, i1)):
                T1[vi0, vi1] = T0[vi0, vi1] * B[vi0]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 6], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 1], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i1_1'}, 'factors': [None, 1], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's1.l0', 'name': 'i1_0'}, {'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 'b0.l2', 'name': 'k'}, {'loop': 's0.l1', 'name': 'i0_1'}, {'loop': 's2.l0', 'name': 'i1_1_0'}, {'loop': 's2.l1', 'name': 'i1_1_1'}]}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's0.l1', 'name': 'i0_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'at': 'last'}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's6.l0', 'name': 'i0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
