import sys, time, collections, random
from tilewright.schedule.proof import prove
from tilewright.schedule.canonical import canonical_form
from tilewright.codegen.lower.first_half import contraction, lower_to_nest
from tilewright.tir.target import Target
from .random_steps import random_schedule
from .programs import assert_same_values
def test_it():
    import os
    a,b=map(int,os.environ.get("SEEDS","0,100").split(","))
    st=collections.Counter(); ms=[]
    for seed in range(a,b):
        sch=random_schedule(seed, 8, collections.Counter())
        nest=lower_to_nest(contraction(sch.func,Target.parse("c:avx512")))
        try: can=canonical_form(sch.func)
        except Exception as e: print(seed,'CANON',str(e)[:300]); print(sch.func); st['canon']+=1; continue
        try: assert_same_values(can, sch.original)
        except Exception as e: print(seed,'CANONVAL',str(e)[:200]); print(can); print(sch.func); st['canonval']+=1; continue
        try: assert_same_values(nest, sch.original, barriers=True); good=True
        except Exception as e: good=False; print(seed,'NEST BAD',str(e)[:300])
        v=prove(nest,can); st[v.status,good]+=1; ms.append((v.milliseconds,seed))
        if v.status!='proved' or not good: print(seed,v); print(nest); print(can) if os.environ.get('CAN') else 0
        if os.environ.get('EXACT'):
            w=prove(nest,can,shortcuts=False)
            if w.status!=v.status: print(seed,'SHORTCUT',w)
    ms.sort(); print(st, 'median',ms[len(ms)//2],'max',ms[-3:])
