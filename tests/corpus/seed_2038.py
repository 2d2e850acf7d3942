"""Found by `tilewright fuzz`, case 2038.

nest: VerificationError: VerificationError: verify: buffer 'T1' is used where it is not declared. [verify-buffer]
  in f, stage nest:
      T1[0] = 1.0
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(T2: output(float32[1])):
    T0 = alloc(float32[1], "global")
    T1 = alloc(float32[1], "global")
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = 1.0
    for i0 in range(1):
        with block("T1", vi0=spatial(1, i0)):
            T1[vi0] = T0[vi0]
    for i0 in range(1):
        for k in range(1):
            with block("T2", vi0=spatial(1, i0), vk=reduce(1, k)):
                with init():
                    T2[vi0] = float("-inf")
                T2[vi0] = max(T2[vi0], T1[vi0 + vk * 2])
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b2.l0', 'name': 'i0'}, 'factors': [None, 5, 2], 'tail': 'mask'}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 's0.l0', 'name': 'i0_0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
