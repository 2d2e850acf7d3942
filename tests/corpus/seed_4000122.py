"""Found by `tilewright fuzz`, case 4000122.

nest: InterpreterError: InterpreterError: interpreter: block 'T1_cache_cache_init' runs at vi0 = 7 at i0_0 = 3, i0_1_i1_i2 = 14, i2 = 0; expected 0 to 6, or a block marked padded. [interpreter-domain]
  in f:
      T1_cache_cache[vi0, vi1, vi2] = 0.0
"""

FUNCTION = """
def f(T1: output(float32[5, 5, 1])):
    T0 = alloc(float32[5, 5, 2], "global")
    for i0 in range(5):
        for i1 in range(5):
            for i2 in range(2):
                with block("T0", vi0=spatial(5, i0), vi1=spatial(5, i1), vi2=spatial(2, i2)):
                    T0[vi0, vi1, vi2] = 1.0
    for i0 in range(5):
        for i1 in range(5):
            for i2 in range(1):
                for k in range(1):
                    with block("T1", vi0=spatial(5, i0), vi1=spatial(5, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T1[vi0, vi1, vi2] = 0.0
                        T1[vi0, vi1, vi2] = T1[vi0, vi1, vi2] + T0[vi0, vi1, vk]
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [4, None], 'tail': 'guard'}},
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 's0.l1', 'name': 'i0_1'}, {'loop': 'b0.l1', 'name': 'i1'}, {'loop': 'b0.l2', 'name': 'i2'}]}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 's1.l0', 'name': 'i0_1_i1_i2'}, 'at': 'each'}},
]
REFUSED = "loop-mixed"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
