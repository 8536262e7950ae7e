#!/bin/sh
# The model of the demo agents of a night: reads a message, prints the directives of the answer.
# $NIGHT/kind/ITEM names the trouble of an item, $NIGHT/asked/ITEM counts the messages about it.
id=$(gt hook --json 2>/dev/null | sed -n 's/^ *"id": "\(gt-[^"]*\)".*/\1/p' | head -1)
if [ -z "$id" ]; then
    echo "[[text=Nothing is on my hook.]]"
    exit
fi
echo . >> "$NIGHT/asked/$id"
asked=$(wc -l < "$NIGHT/asked/$id")
kind=$(cat "$NIGHT/kind/$id" 2>/dev/null || echo repair)
work="[[tool=sh $NIGHT/work.sh $id $kind]]"
case "$kind $asked" in
"crash 1") echo "[[tool=echo half > half.txt]][[crash]]" ;;
"doomed "*) echo "[[delay=300ms]][[crash]]" ;;
"exit 1") echo "[[delay=300ms]][[exit=0]]" ;;
"hang 1") echo "[[hang]]" ;;
"freeze 1") echo "[[freeze]]" ;;
"limit 1") echo "[[error=429 You've hit your session limit · resets in 8 seconds]]" ;;
"error 1") echo "[[error=500]]" ;;
"idle 1") echo "[[text=I think that I am done.]]" ;;
*) echo "[[delay=300ms]]$work" ;;
esac
