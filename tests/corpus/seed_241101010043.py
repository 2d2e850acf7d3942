"""Found by `tilewright fuzz`, case 241101010043.

C for c:avx2: 7 of 9 elements of 'T2' differ in their bits from the LOWERED function's, on 1 thread(s)
"""

FUNCTION = """
def f(B: constant(int64[5, 2]), T1: output(int64[2])):
    for i0 in range(2):
        for k in range(5):
            with block("T1", vi0=spatial(2, i0), vk=reduce(5, k)):
                with init():
                    T1[vi0] = 0
                T1[vi0] = T1[vi0] + 1 * B[vk, vi0]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's0.l1', 'name': 'i0_1'}, 'factors': [None, 8], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 'b0.l1', 'name': 'k'}, {'loop': 's1.l0', 'name': 'i0_1_0'}, {'loop': 's1.l1', 'name': 'i0_1_1'}]}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i0_1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'k'}, 'factors': [2, 4, None], 'tail': 'partition'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
