"""Found by `tilewright fuzz`, case 23000593.

scheduled: InterpreterError: InterpreterError: interpreter: 'T3'[7] is read at T3_packed_0 = 2, T3_packed_1 = 1 before it is written. [interpreter-uninitialised]
  in f:
      T3_packed[v0, v1] = select(v0 * 3 + v1 < 8, T3[v0 * 3 + v1], False)
"""

FUNCTION = """
def f(T4: output(int32[1])):
    T3 = alloc(bool[1], "global")
    for i0 in range(1):
        with block("T3", vi0=spatial(1, i0)):
            T3[vi0] = True
    for i0 in range(1):
        with block("T4", vi0=spatial(1, i0)):
            T4[vi0] = cast(T3[vi0], "int32")
"""

STEPS = [
    {'primitive': 'pad', 'arguments': {'buffer': {'tensor': 'b0'}, 'multiples': [2]}},
    {'primitive': 'decompose_padding', 'arguments': {'block': {'block': 'b0'}, 'loop': {'loop': 's0.l0', 'name': 'T3_0'}}},
    {'primitive': 'stage', 'arguments': {'block': {'block': 's1.b0'}, 'buffer': {'tensor': 'b0'}, 'loop': {'loop': 's1.m0', 'name': 'T3_0'}, 'scope': 'thread'}},
    {'primitive': 'cache_read', 'arguments': {'block': {'block': 'b1'}, 'buffer': {'tensor': 'b0'}, 'name': 'T3_packed'}},
]
REFUSED = "cache-part"

if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS, REFUSED)
