from memgauge import _main

_main()
