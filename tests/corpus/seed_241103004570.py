"""Found by `tilewright fuzz`, case 241103004570.

nest: InterpreterError: InterpreterError: interpreter: block 'T0_init' runs at vi0_i1 = 12 at i0 = 3, i1_0_k_0_0_0_k_0_0_1 = 0, k_0_1 = 0, k_1 = 0, i1_1 = 4; expected 0 to 11, or a block marked padded. [interpreter-domain]
  in f:
      T0_local[vi0_i1 // 2 - (i0 + i1_1 // 2 + 1), vi0_i1 % 2 - i1_1 % 2] = 0.0
"""

FUNCTION = """
def f(T0: output(float32[2, 2])):
    for i0 in range(2):
        for i1 in range(2):
            for k in range(2):
                with block("T0", vi0=spatial(2, i0), vi1=spatial(2, i1), vk=reduce(2, k)):
                    with init():
                        T0[vi0, vi1] = 0.0
                    T0[vi0, vi1] = T0[vi0, vi1]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 8], 'tail': 'guard'}},
    {'primitive': 'join_axes', 'arguments': {'block': {'block': 'b0'}, 'groups': [[0, 1], [2]]}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i1_0'}, {'loop': 'b0.l2', 'name': 'k'}, {'loop': 's0.l1', 'name': 'i1_1'}]}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 's0.l1', 'name': 'i1_1'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l2', 'name': 'k'}, 'factors': [1, None], 'tail': 'mask'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's4.l0', 'name': 'k_0'}, 'factors': [None, 2, 1], 'tail': 'guard'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's5.l0', 'name': 'k_0_0'}, 'factors': [2, 3, None], 'tail': 'mask'}},
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 's0.l0', 'name': 'i1_0'}, {'loop': 's6.l0', 'name': 'k_0_0_0'}, {'loop': 's6.l1', 'name': 'k_0_0_1'}]}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
