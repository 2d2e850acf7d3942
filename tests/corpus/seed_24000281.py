"""Found by `tilewright fuzz`, case 24000281.

lowered for c:scalar: max error / bound 1.04 at T2[0]: got 0.0472760797, expected 0.0472758872 within 1.84e-07
"""

FUNCTION = """
def f(X: float32[5, 4], A: float32[5], T2: output(float32[2])):
    T0 = alloc(float32[4], "global")
    T1 = alloc(float32[5], "global")
    for i0 in range(4):
        for k in range(5):
            with block("T0", vi0=spatial(4, i0), vk=reduce(5, k)):
                with init():
                    T0[vi0] = 0.0
                T0[vi0] = T0[vi0] + X[vk, vi0] * A[vk]
    for i0 in range(5):
        with block("T1", vi0=spatial(5, i0)):
            T1[vi0] = select(vi0 < 4, T0[vi0], 0.0)
    for i0 in range(2):
        for k in range(2):
            with block("T2", vi0=spatial(2, i0), vk=reduce(2, k)):
                with init():
                    T2[vi0] = 0.0
                T2[vi0] = T2[vi0] + tanh(T1[vi0 * 2 + vk * 2])
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
