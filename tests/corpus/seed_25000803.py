"""Found by `tilewright fuzz`, case 25000803.

scheduled: InterpreterError: InterpreterError: interpreter: 'T0'[0, 4] is read at i0_0 = 0, i0_1 = 0, i1_2 = 0, i1_1 = 0, i1_0 = 1, k = 0 before it is written. [interpreter-uninitialised]
  in f:
      T1_rf[vk, vi0, vi1] = T1_rf[vk, vi0, vi1] + max(T0[vi0, vi1 + vk], int32(0) - T0[vi0, vi1 + vk])
"""

FUNCTION = """
def f(T1: output(int32[4, 3])):
    T0 = alloc(int32[4, 4], "global")
    for i0 in range(4):
        for i1 in range(4):
            with block("T0", vi0=spatial(4, i0), vi1=spatial(4, i1)):
                T0[vi0, vi1] = int32(1)
    for i0 in range(4):
        for i1 in range(3):
            for k in range(2):
                with block("T1", vi0=spatial(4, i0), vi1=spatial(3, i1), vk=reduce(2, k)):
                    with init():
                        T1[vi0, vi1] = int32(0)
                    T1[vi0, vi1] = T1[vi0, vi1] + T0[vi0, vi1 + vk]
"""

STEPS = [
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l1', 'name': 'i1'}}},
    {'primitive': 'rolling_buffer', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 'b1.l1', 'name': 'i1'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l1', 'name': 'i1'}, 'factors': [2, 1, None], 'tail': 'mask'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's2.l2', 'name': 'i1_2'}, {'loop': 's2.l0', 'name': 'i1_0'}]}},
]
REFUSED = "reader-early"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
