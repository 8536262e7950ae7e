#!/bin/sh
# The validation of the rig: no file is broken, and no number occurs twice.
if grep -rq --exclude-dir=.git --exclude=check.sh broken .; then
    echo "a file is broken"
    exit 1
fi
twice=$(sort numbers/* 2>/dev/null | uniq -d)
if [ -n "$twice" ]; then
    echo "the number $twice occurs twice"
    exit 1
fi
if grep -rq --exclude-dir=.git '^<<<<<<< ' .; then
    echo "a conflict is not resolved"
    exit 1
fi
