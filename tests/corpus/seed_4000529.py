"""Found by `tilewright fuzz`, case 4000529.

scheduled: InterpreterError: InterpreterError: interpreter: 'T0_reg'[()] is read at k = 9, r_0 = 0, r_1_0 = 1, r_1_1_0 = 0, r_1_1_1 = 1, r_1_2 = 0, r_2_0 = 0, r_2_1_r_2_2 = 1, T1_unit = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1[()] = max(T0_reg[()], T0_reg[()])
"""

FUNCTION = """
def f(T1: output(float32[()])):
    T0 = alloc(float32[()], "global")
    for k in range(1):
        for r in range(1):
            with block("T0", vk=reduce(1, k), vr=reduce(1, r)):
                with init():
                    T0[()] = float("-inf")
                T0[()] = T0[()]
    with block("T1"):
        T1[()] = max(1.0, T0[()])
"""

STEPS = [
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 'b0.l1', 'name': 'r'}, 'scope': 'register'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'r'}, 'factors': [None, 5, 2], 'tail': 'guard'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's1.l2', 'name': 'r_2'}, 'at': 'last'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
