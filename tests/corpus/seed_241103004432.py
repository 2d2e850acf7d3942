"""Found by `tilewright fuzz`, case 241103004432.

proof: refuted (P1 to P5, 19 questions, 8.0 ms)
  P3: block 'T0_check' reads T0_check_cache[()] before block 'T0_check_cache' has updated it; T0_check(i2_1=2, i2_0=1) and T0_check_cache()
  P3: block 'T0_check_cache_local_in' reads T0_check_cache[()] as block 'T0_check_cache_local_out' left it, but block 'T0_check_cache' has updated it elsewhere since; T0_check_cache_local_out(i2_1=2, i2_0=0) and T0_check_cache(i2_1=2, i2_0=1)
"""

FUNCTION = """
def f(T0: output(float64[1, 1, 3]), T0_check: check(uint64[()], 5, "index")):
    for i0 in range(1):
        for i1 in range(1):
            for i2 in range(3):
                with block("T0", vi0=spatial(1, i0), vi1=spatial(1, i1), vi2=spatial(3, i2)):
                    T0[vi0, vi1, vi2] = float64(1.0)
    for i2 in range(3):
        with block("T0_check", vi2=reduce(3, i2)):
            with init():
                T0_check[()] = uint64(0)
            T0_check[()] = T0_check[()]
"""

STEPS = [
    {'primitive': 'cache_write', 'arguments': {'block': {'block': 'b1'}}},
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 's0.b0'}, 'loop': {'loop': 'b1.l0', 'name': 'i2'}, 'at': 'last'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'b1'}, 'loop': {'loop': 'b1.l0', 'name': 'i2'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b1.l0', 'name': 'i2'}, 'factors': [2, None], 'tail': 'guard'}},
    {'primitive': 'reorder', 'arguments': {'loops': [{'loop': 's3.l1', 'name': 'i2_1'}, {'loop': 's3.l0', 'name': 'i2_0'}]}},
]
REFUSED = "reader-early"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
