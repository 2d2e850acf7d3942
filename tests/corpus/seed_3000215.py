"""Found by `tilewright fuzz`, case 3000215.

nest: InterpreterError: InterpreterError: interpreter: 'T0_rf'[0] is read at k_0 = 0, k_1 = 1, r = 0 before it is written. [interpreter-uninitialised]
  in f:
      T0_rf[0] = T0_rf[0] + X[vk, vr]
"""

FUNCTION = """
def f(T0: output(float32[()])):
    for k in range(3):
        for r in range(1):
            with block("T0", vk=reduce(3, k), vr=reduce(1, r)):
                with init():
                    T0[()] = 0.0
                T0[()] = T0[()]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'k'}, 'factors': [None, 3, 1], 'tail': 'guard'}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l2', 'name': 'k_2'}}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l2', 'name': 'k_2'}, 'at': 'last'}},
    {'primitive': 'set_scope', 'arguments': {'buffer': {'tensor': 's1.b0'}, 'scope': 'thread'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
