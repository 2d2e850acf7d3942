"""Found by `tilewright fuzz`, case 241101000497.

lowered for c:avx2: refuted (P1 to P5, 1 questions, 1.6 ms)
  P4: 'f', lowered, loads T0_reg[-1]; 'T0_reg' has shape [8]; T1(lane=0)
"""

FUNCTION = """
def f(T1: output(float32[1])):
    T0 = alloc(float32[1], "global")
    for i0 in range(1):
        for k in range(1):
            with block("T0", vi0=spatial(1, i0), vk=reduce(1, k)):
                with init():
                    T0[vi0] = float("-inf")
                T0[vi0] = T0[vi0]
    for i0 in range(1):
        with block("T1", vi0=spatial(1, i0)):
            T1[vi0] = select(1 <= vi0, T0[vi0 - 1], 3.0)
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 8], 'tail': 'mask'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's2.l0', 'name': 'i0'}, 'factors': [None, 8], 'tail': 'mask'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's3.l1', 'name': 'i0_1'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
