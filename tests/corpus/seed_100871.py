"""Found by `tilewright fuzz`, case 100871.

lowered for c:avx512: InterpreterError: interpreter: 'T0_reg'[()] is read before it is written. [interpreter-uninitialised]
  in f:
      T0_reg[()] = select(ramp(0, 1, 16) < broadcast(5, 16), broadcast(float("-inf"), 16), T0_reg[()])
"""

FUNCTION = """
def f(X: float32[13], A: float32[5], T1: output(float32[1, 3])):
    T0 = alloc(float32[5], "global")
    for i0 in range(5):
        for k in range(13):
            with block("T0", vi0=spatial(5, i0), vk=reduce(13, k)):
                with init():
                    T0[vi0] = float("-inf")
                T0[vi0] = max(T0[vi0], X[vk] * A[vi0])
    for i0 in range(1):
        for i1 in range(3):
            with block("T1", vi0=spatial(1, i0), vi1=spatial(3, i1)):
                T1[vi0, vi1] = T0[vi0 * 3 + vi1]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's0.l1', 'name': 'i0_1'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 'b0.l1', 'name': 'k'}, {'loop': 's1.l0', 'name': 'i0_1_0'}, {'loop': 's1.l1', 'name': 'i0_1_1'}]}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'i0_1_0'}}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i0_1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's6.l1', 'name': 'i1'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's6.l0', 'name': 'i0'}}},
    {'primitive': 'unroll', 'arguments': {'loop': {'loop': 's7.l0', 'name': 'i1_0'}}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's7.l1', 'name': 'i1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'thread'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's11.l0', 'name': 'X_0'}}},
    {'primitive': 'add_unit_loop', 'arguments': {'block': {'block': 'b1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p2'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
