"""The own kernels beside the reference tools, in turn on this machine: ``make bench-kernels``.

pairs.py      what is compared with what, and with which target: data
run.py        one execution of one side, by the instruments of ``peakmark``
namespaces.py two network namespaces joined by a virtual link, made and removed here
ratios.py     ratios of pairs and verdicts: pure functions
table.py      what is printed and written
"""
