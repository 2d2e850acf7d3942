"""Found by `tilewright fuzz`, case 4000396.

schedule: VerificationError: VerificationError: verify: buffer 'B_cache' is used where it is not declared. [verify-buffer]
  in f, stage scheduled:
      B_cache[v0, v1] = B[v0, v1]
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(B: constant(float32[1, 1]), T1: output(float32[1, 1, 1, 1])):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    for k in range(1):
                        with block("T1", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(1, i2), vi3=spatial(1, i3), vk=reduce(1, k)):
                            with init():
                                T1[vi0, vi1, vi2, vi3] = 0.0
                            T1[vi0, vi1, vi2, vi3] = T1[vi0, vi1, vi2, vi3] + B[vi3, vi2]
"""

STEPS = [
    {'primitive': 'cache_read', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}}},
    {'primitive': 'compute_at', 'arguments': {'block': {'block': 's0.b0'}, 'loop': {'loop': 'b0.l4', 'name': 'k'}}},
    {'primitive': 'set_scope', 'arguments': {'buffer': {'tensor': 's0.b0'}, 'scope': 'register'}},
    {'primitive': 'reindex', 'arguments': {'block': {'block': 's0.b0'}, 'buffer': {'tensor': 'p0'}}},
    {'primitive': 'reverse_compute_inline', 'arguments': {'block': {'block': 's0.b0'}}},
]
REFUSED = "storage-elsewhere"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
