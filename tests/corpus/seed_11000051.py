"""Found by `tilewright fuzz`, case 11000051.

lowered for c:avx512: TypeError: Cannot interpret 'DType(kind=<Kind.FLOAT: 'float'>, bits=64, lanes=1)' as a data type
"""

FUNCTION = """
def f(A: float64[1], T3: output(float64[2])):
    T1 = alloc(float64[1], "global")
    T2 = alloc(float64[1], "global")
    for i0 in range(1):
        with block("T1", vi0=spatial(1, i0)):
            T1[vi0] = A[vi0]
    for i0 in range(1):
        with block("T2", vi0=spatial(1, i0)):
            T2[vi0] = T1[vi0]
    for i0 in range(2):
        with block("T3", vi0=spatial(2, i0)):
            T3[vi0] = log(select(1 <= vi0 and vi0 < 5, T2[vi0 - 1], float64(2.0)))
"""

STEPS = [
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 'b2.l0', 'name': 'i0'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
