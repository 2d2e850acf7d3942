"""Found by `tilewright fuzz`, case 251131000169.

lowered for c:avx2: VerificationError: VerificationError: CommonLoads: verify: buffer 'T0_reg' has extent n1, of at most 9; expected a dim of the function, and its upper bound. [verify-dim]
  in f, stage lowered:
      T0_reg = alloc(float32[n1], "register", origin=T0)
      for T0_reg_0 in range(9):
          T0_reg[T0_reg_0] = 0.0
      on: boolx8 = ramp(n1 * (-1), 1, 8) < broadcast(0, 8)
      T0_reg[ramp(0, 1, 8)] = select(on, broadcast(0.0, 8), T0_reg[ramp(0, 1, 8)])
      T0_reg[ramp(0, 1, 8)] = select(on, T0_reg[ramp(0, 1, 8)] + masked(X[0, ramp(0, 1, 8)], on), T0_reg[ramp(0, 1, 8)])
      ...
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(n0: dim(1, 12), n1: dim(1, 3), X: float32[n0, n1], T1: output(float32[n1])):
    T0 = alloc(float32[n1], "global")
    for i0 in range(3):
        for k in range(12):
            with block("T0", vi0=spatial(n1, i0), vk=reduce(12, k)):
                counts(vk < n0)
                with init():
                    T0[vi0] = 0.0
                T0[vi0] = T0[vi0] + X[vk, vi0]
    for i0 in range(3):
        with block("T1", vi0=spatial(n1, i0)):
            T1[vi0] = select(vi0 + 1 < n1, T0[vi0 + 1], 3.0)
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's0.l1', 'name': 'i0_1'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i0_0'}, {'loop': 'b0.l1', 'name': 'k'}, {'loop': 's1.l0', 'name': 'i0_1_0'}, {'loop': 's1.l1', 'name': 'i0_1_1'}]}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i0_1_1'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'scope': 'register'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}, 'at': 'last'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's5.l0', 'name': 'i0'}, 'factors': [None, 16], 'tail': 'mask'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's6.l1', 'name': 'i0_1'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
