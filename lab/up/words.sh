[ -z "$ZSH_VERSION" ] || setopt interactive_comments
AUTH="Authorization: Bearer $CHAT_KEY"
JSON="Content-Type: application/json"
QUERY="externalUserId=$EMPLOYEE&externalTeamId=$TEAM"
# json name=text name:=value: a JSON object
json() { python3 -c 'import json, sys
made = {}
for text in sys.argv[1:]:
    name, _, value = text.partition("=")
    made[name.rstrip(":")] = json.loads(value) if name.endswith(":") else value
print(json.dumps(made))' "$@"; }
# pick a.b: one member of the JSON that comes in
pick() { python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[name]
print(value)' "$1"; }
in_minutes() { python3 -c 'import datetime, sys
then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=float(sys.argv[1]))
print(then.strftime("%Y-%m-%dT%H:%M:%S.000Z"))' "$1"; }
fresh() { python3 -c 'import uuid; print(uuid.uuid4())'; }
