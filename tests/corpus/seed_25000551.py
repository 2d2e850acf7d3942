"""Found by `tilewright fuzz`, case 25000551.

proof: refuted (P1 to P5, 17 questions, 57.7 ms)
  P2: block 'T2' needs T2[0], but T3[0] holds T3[0]; T3() and T2()
  P2: block 'T2' needs T2[1], but T3[1] holds T3[1]; T3() and T2()
"""

FUNCTION = """
def f(T3: output(int64[2])):
    T2 = alloc(int64[2], "global")
    for i0 in range(2):
        with block("T2", vi0=ordered(2, i0)):
            T2[vi0] = select(vi0 < 1, 1, T2[vi0 - 1])
    for i0 in range(2):
        with block("T3", vi0=ordered(2, i0)):
            T3[vi0] = select(True, T2[vi0], T3[vi0 - 1])
"""

STEPS = [
    {'primitive': 'reverse_compute_at', 'arguments': {'block': {'block': 'b1'}, 'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'at': 'each'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
