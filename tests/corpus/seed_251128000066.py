"""Found by `tilewright fuzz`, case 251128000066.

proof: unknown (P1 to P5, 6 questions, 3052.9 ms)
  undecided: P2: the proof takes isl more than 1500000 operations
"""

FUNCTION = """
def f(T2: output(float32[3, 13])):
    T1 = alloc(float32[5, 2, 13], "global")
    for i0 in range(5):
        for i1 in range(2):
            for i2 in range(13):
                for k in range(1):
                    with block("T1", vi0=spatial(5, i0), vi1=spatial(2, i1), vi2=spatial(13, i2), vk=reduce(1, k)):
                        with init():
                            T1[vi0, vi1, vi2] = float("-inf")
                        T1[vi0, vi1, vi2] = T1[vi0, vi1, vi2]
    for i0 in range(3):
        for i1 in range(13):
            for k in range(3):
                for r in range(2):
                    with block("T2", vi0=spatial(3, i0), vi1=spatial(13, i1), vk=reduce(3, k), vr=reduce(2, r)):
                        with init():
                            T2[vi0, vi1] = 0.0
                        T2[vi0, vi1] = T2[vi0, vi1] + T1[vi0 + vk, vr, vi1]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l3', 'name': 'k'}, 'factors': [None, 2], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 4, 2], 'tail': 'mask'}},
    {'primitive': 'join_axes', 'arguments': {'block': {'block': 'b1'}, 'groups': [[0, 1], [2, 3]]}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 3], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'i1_0'}, {'loop': 's1.l2', 'name': 'i0_2'}, {'loop': 'b0.l2', 'name': 'i2'}, {'loop': 's1.l1', 'name': 'i0_1'}, {'loop': 's0.l1', 'name': 'k_1'}]}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
