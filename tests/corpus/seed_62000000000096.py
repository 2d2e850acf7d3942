"""Found by `tilewright fuzz`, case 62000000000096.

scheduled: InterpreterError: InterpreterError: interpreter: iteration i0 = 0 writes 'T0'[1, 0] and iteration i0 = 1 reads it at i0 = 1, i1 = 0, k_0 = 0, k_1 = 0, with no barrier between; expected iterations that may run at once to touch different elements. [interpreter-race]
  in f:
      T1[vi0, vi1] = min(T1[vi0, vi1], T0[vi0 + vk, vi1] * D[vi1])
"""

FUNCTION = """
def f(T1: output(uint8[2, 3])):
    T0 = alloc(uint8[3, 3], "global")
    for i0 in range(3):
        for i1 in range(3):
            with block("T0", vi0=spatial(3, i0), vi1=spatial(3, i1)):
                T0[vi0, vi1] = uint8(1)
    for i0 in range(2):
        for i1 in range(3):
            for k in range(2):
                with block("T1", vi0=spatial(2, i0), vi1=spatial(3, i1), vk=reduce(2, k)):
                    with init():
                        T1[vi0, vi1] = uint8(255)
                    T1[vi0, vi1] = min(T1[vi0, vi1], T0[vi0 + vk, vi1])
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i0'}}},
    {'primitive': 'merge', 'arguments': {'loops': [{'loop': 's1.m0', 'name': 'i0'}, {'loop': 'b1.l0', 'name': 'i0'}]}},
]
REFUSED = "merge-carries"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
