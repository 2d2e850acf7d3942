"""Found by `tilewright fuzz`, case 241101011933.

lowered for c:avx2: InterpreterError: InterpreterError: interpreter: 'T1_reg_1'[()] is read before it is written. [interpreter-uninitialised]
  in f:
      T1_reg_1[()] = select(ramp(8, 1, 8) < broadcast(11, 8), broadcast(float("inf"), 8), T1_reg_1[()])
"""

FUNCTION = """
def f(X: float32[9, 13], A: float32[11], T1: output(float32[11])):
    T0 = alloc(float32[6, 11], "global")
    for i0 in range(6):
        for i1 in range(11):
            for k in range(3):
                with block("T0", vi0=spatial(6, i0), vi1=spatial(11, i1), vk=reduce(3, k)):
                    with init():
                        T0[vi0, vi1] = 0.0
                    T0[vi0, vi1] = T0[vi0, vi1] + select(1 <= vi1 and vi1 < 10, X[vi1 - 1, vi0 * 2 + vk], 3.0) * A[vi1]
    for i0 in range(11):
        for k in range(6):
            with block("T1", vi0=spatial(11, i0), vk=reduce(6, k)):
                with init():
                    T1[vi0] = float("inf")
                T1[vi0] = min(T1[vi0], T0[vk, vi0])
"""

STEPS = [
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 'b0.l2', 'name': 'k'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'scope': 'register'}},
    {'primitive': 'sample_categorical', 'arguments': {'candidates': [[1, 1, 2], [1, 1, 1]], 'default': 0, 'name': 'tile of T1'}, 'decision': [1, 1, 2]},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's3.l1', 'name': 'i0_1'}, 'factors': [None, 8], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's3.l0', 'name': 'i0_0'}, {'loop': 'b1.l1', 'name': 'k'}, {'loop': 's4.l0', 'name': 'i0_1_0'}, {'loop': 's4.l1', 'name': 'i0_1_1'}]}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's4.l0', 'name': 'i0_1_0'}}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's4.l1', 'name': 'i0_1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p2'}, 'loop': {'loop': 's3.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'sample_categorical', 'arguments': {'candidates': [0, 6], 'default': 1, 'name': 'terms written out of T1'}, 'decision': 6},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 'b1.l1', 'name': 'k'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's8.m0', 'name': 'i0_1_0'}, 'factors': [3, 2, None], 'tail': 'partition'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 's1.b0'}, 'loop': {'loop': 'b1.l1', 'name': 'k'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
