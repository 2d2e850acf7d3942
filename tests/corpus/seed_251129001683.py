"""Found by `tilewright fuzz`, case 251129001683.

schedule: StopIteration: 
"""

FUNCTION = """
def f(X: int64[1, 1], T2: output(bool[1, 1])):
    T0 = alloc(int64[1, 1], "global")
    T0_2 = alloc(int64[1, 1], "global")
    for i0 in range(1):
        for i1 in range(1):
            for k in range(1):
                with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vk=reduce(1, k)):
                    with init():
                        T0[vi0, vi1] = 9223372036854775807
                        T0_2[vi0, vi1] = 9223372036854775807
                    T0[vi0, vi1] = let(x0, X[vi0 + vk, vi1], let(x1, vk, T0[vi0, vi1]))
                    T0_2[vi0, vi1] = let(x0_1, X[vi0 + vk, vi1], let(x1_1, vk, select(T0[vi0, vi1] < x0_1, 1, x1_1)))
    for i0 in range(1):
        for i1 in range(1):
            with block("T2", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T2[vi0, vi1] = T0_2[vi1, vi0] < (-2)
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 8], 'tail': 'partition'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'factors': [2, None], 'tail': 'mask'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's1.l1', 'name': 'i0_0_1'}, 'at': 'last'}},
]
REFUSED = "reverse-overlap"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
