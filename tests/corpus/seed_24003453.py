"""Found by `tilewright fuzz`, case 24003453.

schedule: VerificationError: VerificationError: verify: buffer 'T1_2_rf' is used where it is not declared. [verify-buffer]
  in f, stage scheduled:
      T1_2_rf[vk, vi0, vi1] = 0.0
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(T1_2: output(float32[1, 1])):
    T0 = alloc(float32[1, 1, 1], "global")
    T1 = alloc(float32[1, 1], "global")
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for k in range(1):
                    with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vk=reduce(1, k)):
                        with init():
                            T0[vi0, vi1, vi2] = 0.0
                        T0[vi0, vi1, vi2] = T0[vi0, vi1, vi2]
    for i0 in range(1):
        for i1 in range(1):
            for k in range(1):
                with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1), vk=reduce(1, k)):
                    with init():
                        T1[vi0, vi1] = 0.0
                        T1_2[vi0, vi1] = 0.0
                    T1[vi0, vi1] = let(x0, T0[vi0, vk, vi1], let(x1, 0.0 - T0[vi0, vk, vi1], T1[vi0, vi1]))
                    T1_2[vi0, vi1] = let(x0_1, T0[vi0, vk, vi1], let(x1_1, 0.0 - T0[vi0, vk, vi1], 1.0))
"""

STEPS = [
    {'primitive': 'rfactor', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b1.l2', 'name': 'k'}}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's0.b0'}, 'loop': {'loop': 's0.l2', 'name': 'k'}}},
    {'primitive': 'set_scope', 'arguments': {'buffer': {'tensor': 's0.b0.t1'}, 'scope': 'thread'}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 's0.b0'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'at': 'each'}},
]
REFUSED = "storage-elsewhere"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
