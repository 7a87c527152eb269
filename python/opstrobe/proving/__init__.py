# SPDX-License-Identifier: Apache-2.0
"""`opstrobe prove`: measures the gain of fixes of findings, in the user's program on the user's machine.

fixes.py        the table of fixes: when each applies, and how it is switched on and off between steps
programs.py     what a run learns of the program: its optimizers, modules and results
child.py        one run of the program, in a separate process
plan.py         which steps run with the fix, and what their times and results say
command.py      the command: the runs, their order, the report
"""
