"""Found by `tilewright fuzz`, case 3138.

proof: proved under assumptions (P1 to P5, 0 questions, 0.4 ms)
  assuming that block 'T2' may compute True for 1 == 1
"""

FUNCTION = """
def f(T2: output(bool[1, 1])):
    for i0 in range(1):
        for i1 in range(1):
            with block("T2", vi0=spatial(1, i0), vi1=spatial(1, i1)):
                T2[vi0, vi1] = 1 == 1
"""

STEPS = []

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS)
