"""Found by `tilewright fuzz`, case 241101004564.

nest: InterpreterError: InterpreterError: interpreter: block 'T0_init' runs at vi0_0 = 1 at i0_0_0 = 1, i0_0_1 = 0; expected 0 to 0, or a block marked padded. [interpreter-domain]
  in f:
      T0[vi0_1_0_0] = 0.0
"""

FUNCTION = """
def f(T0: output(float32[2])):
    for i0 in range(2):
        for k in range(2):
            with block("T0", vi0=spatial(2, i0), vk=reduce(2, k)):
                with init():
                    T0[vi0] = 0.0
                T0[vi0] = T0[vi0]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [4, None], 'tail': 'mask'}},
    {'primitive': 'split_axis', 'arguments': {'block': {'block': 'b0'}, 'axis': 0, 'factor': 2}},
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 's0.l1', 'name': 'i0_1'}, {'loop': 'b0.l1', 'name': 'k'}]}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
