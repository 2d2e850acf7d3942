"""Found by `tilewright fuzz`, case 24003266.

lowered for c:scalar: InterpreterError: InterpreterError: interpreter: output 'T0'[3] is never written; expected all 7 elements, got 6. [interpreter-unwritten]
  in f_prepare:
"""

FUNCTION = """
def f(T1: output(float64[1])):
    T0 = alloc(uint8[3], "global")
    for i0 in range(3):
        for k in range(1):
            with block("T0", vi0=spatial(3, i0), vk=reduce(1, k)):
                with init():
                    T0[vi0] = uint8(0)
                T0[vi0] = T0[vi0]
    for i0 in range(1):
        with block("T1", vi0=spatial(1, i0)):
            T1[vi0] = cast(T0[vi0 * 2], "float64")
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i0'}, 'factors': [3, None], 'tail': 'partition'}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'i0_0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
