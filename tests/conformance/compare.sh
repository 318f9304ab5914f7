#!/bin/sh
# compare.sh PROGRAM EXPECTED: what PROGRAM prints is the file EXPECTED.
"$1" | diff "$2" -
