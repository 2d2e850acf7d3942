"""Found by `tilewright fuzz`, case 251134000619.

lowered for c:scalar: VerificationError: VerificationError: verify: buffer 'T2_reg' has extent n0, of at most 1; expected a dim of the function, and its upper bound. [verify-dim]
  in f_prepare, stage nest:
      T2_reg = alloc(float64[n0], "register", origin=T2)
      with block("T2_init", vi0=spatial(1, 0), init="T2"):
          T2_reg[0] = float64(float("-inf"))
      for k in range(5):
          with block("T2", vi0=spatial(1, 0), vk=reduce(5, k)):
              T2_reg[0] = max(T2_reg[0], float64(-3.0))
      ...
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(n0: dim(1, 1), B: float64[n0], T3: output(float64[1])):
    T2 = alloc(float64[n0], "global")
    for i0 in range(1):
        for k in range(5):
            with block("T2", vi0=spatial(n0, i0), vk=reduce(5, k)):
                with init():
                    T2[vi0] = float64(float("-inf"))
                T2[vi0] = T2[vi0]
    for i0 in range(1):
        for k in range(1):
            with block("T3", vi0=spatial(1, i0), vk=reduce(1, k)):
                counts(vk < n0)
                with init():
                    T3[vi0] = float64(0.0)
                T3[vi0] = T3[vi0] + T2[vk] * B[vk]
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'scope': 'register'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
