# A peer with the protocol of bench/peers/*.py that computes nothing. Its only argument selects its behaviour:
# well | silent | broken | lost | short | dies.
case "$1" in
  silent) read -r _ ;;  # waits until the starting process ends
  broken) echo '{"event": "error", "message": "no such library here"}'; exit 2 ;;
  dies) exit 3 ;;
esac
echo '{"event": "ready", "description": "a peer of straw", "warning": ""}'
while read -r command steps; do
  if [ "$command" = quit ]; then exit 0; fi
  case "$1" in
    lost) exit 4 ;;
    short) echo '{"event": "steps", "seconds": [0.5]}' ;;
    *) echo "{\"event\": \"steps\", \"seconds\": [0.5, 0.25, 0.$steps]}" ;;
  esac
done
