"""Found by `tilewright fuzz`, case 21003899.

C for c:avx2: IRError: IRError: floor division: the operands have types int32 and int64; expected one type. [expr-types]
  Hint: te.cast(x, 'int32') converts one of them.
"""

FUNCTION = """
def f(T0: output(float32[1, 9])):
    for i0 in range(1):
        for i1 in range(9):
            with block("T0", vi0=spatial(1, i0), vi1=spatial(9, i1)):
                T0[vi0, vi1] = select(cast(vi1, "int32") < int32(1), 1.0, 1.0)
"""

STEPS = [
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l1', 'name': 'i1'}, 'factors': [None, 64, 16], 'tail': 'mask'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's0.l2', 'name': 'i1_2'}}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
