"""Found by `tilewright fuzz`, case 251101000138.

C for c:avx2: InternalError: InternalError: c: no C text for FloorDiv of int32x8; expected a pass before to have replaced it. [c-expression]
  Hint: this is a defect of tilewright; please report it with the program that led here.
"""

FUNCTION = """
def f(T0: output(float32[1, 2, 9, 7])):
    for i0 in range(1):
        for i1 in range(2):
            for i2 in range(9):
                for i3 in range(7):
                    with block("T0", vi0=spatial(1, i0), vi1=spatial(2, i1), vi2=spatial(9, i2), vi3=spatial(7, i3)):
                        T0[vi0, vi1, vi2, vi3] = cast(select(2 <= vi2, 1, 5), "float32")
"""

STEPS = [
    {'primitive': 'fuse', 'arguments': {'loops': [{'loop': 'b0.l1', 'name': 'i1'}, {'loop': 'b0.l2', 'name': 'i2'}, {'loop': 'b0.l3', 'name': 'i3'}]}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 'b0.l0', 'name': 'i0'}, 'factors': [None, 1], 'tail': 'partition'}},
    {'primitive': 'vectorize', 'arguments': {'loop': {'loop': 's0.l0', 'name': 'i1_i2_i3'}}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's1.l1', 'name': 'i0_1'}, 'factors': [None, 5, 3], 'tail': 'partition'}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 'b0'}, 'buffer': {'tensor': 'p0'}, 'loop': {'loop': 's3.l1', 'name': 'i0_1_1'}, 'scope': 'thread'}},
    {'primitive': 'split', 'arguments': {'loop': {'loop': 's4.m1', 'name': 'i1_i2_i3'}, 'factors': [4, None], 'tail': 'partition'}},
]

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
