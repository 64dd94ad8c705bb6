"""The own kernels beside the reference tools, in turn on this machine: ``make bench-kernels``.

pairs.py       what is compared with what, and with which target: data
references.py  reference tools that have no column in a report
run.py         one execution of one side, by the instruments of ``peakmark``
namespaces.py  two network namespaces joined by a virtual link, made and removed here
table.py       ratios, verdicts, what is printed and written
"""
