"""Found by `tilewright fuzz`, case 251125003581.

scheduled: InterpreterError: InterpreterError: interpreter: block 'T1_fill0' runs at vi0 = -1 at i0_0 = 0, i0_1 = 0, i1 = 0; expected 0 to 4, or a block marked padded. [interpreter-domain]
  in f:
      T1[vi0, vi1] = select(vi0 == (-1), T0[vi0 + 3, vi1] * (-2) | (-1), 3)
"""

FUNCTION = """
def f(T1: output(int64[1, 1])):
    for i0 in range(1):
        for i1 in range(1):
            with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T1[vi0, vi1] = select(vi0 == (-1), 1, 3)
"""

STEPS = [
    {'primitive': 'decompose_padding', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}}},
]
REFUSED = "padding-box"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
