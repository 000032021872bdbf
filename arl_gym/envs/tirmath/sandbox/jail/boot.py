"""The first and only frame below a program: `python boot.py template|fresh …`.

`main` of the named module returns once in every process that is to run a program, with that program.
"""

import importlib
import os
import sys
import types

if __name__ == "__main__":
    jail = sys.modules["jail"] = types.ModuleType("jail")
    jail.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    program = importlib.import_module(f"jail.{sys.argv[1]}").main(sys.argv[2:])
    exit_code = 0
    try:
        for code in program.compiled():
            exec(code, program.namespace)
    except BaseException as error:
        exit_code = program.report(error)
    program.end(exit_code)
