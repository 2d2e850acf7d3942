"""Found by `tilewright fuzz`, case 251125012254.

scheduled: InterpreterError: InterpreterError: interpreter: iteration k_0 = 0 writes 'T1'[()] and iteration k_0 = 1 reads it at k_0 = 1, k_1 = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      T1_reg[()] = T1[()]
"""

FUNCTION = """
def f(T1: output(float32[()])):
    T0 = alloc(float32[1], "global")
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = 1.0
    for k in range(1):
        with block("T1", vk=reduce(1, k)):
            with init():
                T1[()] = 0.0
            T1[()] = T1[()] + T0[vk]
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'at': 'each'}},
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's0.l0', 'name': 'k'}}},
    {'primitive': 'parallel', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'k'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l0', 'name': 'k'}, 'factors': [2, None], 'tail': 'partition'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 's3.l1', 'name': 'k_1'}, 'scope': 'register'}},
]
REFUSED = "stage-parallel"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
