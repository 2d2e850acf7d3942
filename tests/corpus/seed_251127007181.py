"""Found by `tilewright fuzz`, case 251127007181.

C for c:scalar: 1 of 1 elements of 'T2' differ in their bits from the LOWERED function's, on 1 thread(s)
"""

FUNCTION = """
def f(X: int8[2, 2, 2], T1: output(float32[1])):
    T0 = alloc(int8[1, 2], "global")
    for i0 in range(1):
        for i1 in range(2):
            for k in range(2):
                for r in range(2):
                    with block("T0", vi0=spatial(1, i0), vi1=spatial(2, i1), vk=reduce(2, k), vr=reduce(2, r)):
                        with init():
                            T0[vi0, vi1] = int8(0)
                        T0[vi0, vi1] = T0[vi0, vi1] + X[vi0 * 2 + vk, vr, vi1]
    for i0 in range(1):
        for k in range(1):
            with block("T1", vi0=spatial(1, i0), vk=reduce(1, k)):
                with init():
                    T1[vi0] = 0.0
                T1[vi0] = T1[vi0] + cast(T0[vi0, vk] % int8(16), "float32")
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 1], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 2], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i1_1'}, 'factors': [None, 1], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 's1.l0', 'name': 'i1_0'}, {'loop': 'b0.l2', 'name': 'k'}, {'loop': 'b0.l3', 'name': 'r'}, {'loop': 's0.l1', 'name': 'i0_1'}, {'loop': 's2.l0', 'name': 'i1_1_0'}, {'loop': 's2.l1', 'name': 'i1_1_1'}]}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's1.l0', 'name': 'i1_0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
