"""Found by `tilewright fuzz`, case 51000000000739.

definition: ValueError: setting an array element with a sequence.
"""

FUNCTION = """
def f(T2: output(float64[()])):
    T0 = alloc(float64[1], "global")
    T1 = alloc(float64[()], "global")
    for i0 in range(1):
        with block("T0", vi0=spatial(1, i0)):
            T0[vi0] = float64(1.0) + float64(1.0)
    for k in range(1):
        with block("T1", vk=reduce(1, k)):
            with init():
                T1[()] = float64(1.0)
            T1[()] = T1[()]
    with block("T2"):
        T2[()] = select(T0[0] != float64(1.0), T1[()], float64(2.0))
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
