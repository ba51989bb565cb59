. @SHELL@

# 1  the employee is a member of the team, with a lease of four minutes: come back to this when calls answer 403
curl -sS -w '\n' -X PUT $API/memberships -H "$AUTH" -H "$JSON" \
  -d "$(json externalUserId=$EMPLOYEE externalTeamId=$TEAM sourceRevision:=$(date +%s) role=member active:=true validUntil=$(in_minutes 4))"

# 2  a conversation with the agent of the store; the same Idempotency-Key would give the same conversation again
CONVERSATION=$(curl -sS -w '\n' -X POST $API/conversations -H "$AUTH" -H "$JSON" -H "Idempotency-Key: tour-$(fresh)" \
  -d "$(json externalUserId=$EMPLOYEE externalTeamId=$TEAM agentId=$AGENT)"); echo $CONVERSATION
C=$(echo $CONVERSATION | pick data.conversationId)

# 3  the issuer, which is for tests only, learns of the conversation and makes a grant for it
curl -sS -w '\n' -X POST $REGISTER_URL -H "Authorization: Bearer $REGISTER_KEY" -H "$JSON" \
  -d "$(json conversationId=$C actorId=$(echo $CONVERSATION | pick data.actorId) \
        teamId=$(echo $CONVERSATION | pick data.teamId) agentId=$AGENT destination=$DESTINATION)"
GRANT=$(curl -sS -w '\n' -X POST $ISSUER_URL -H "Authorization: Bearer $ISSUER_KEY" -H "$JSON" \
  -d "$(json conversationId=$C agentId=$AGENT destination=$DESTINATION)")

# 4  the grant becomes the context of the conversation, at version 0 because there was none
curl -sS -w '\n' -X PUT $API/conversations/$C/context -H "$AUTH" -H "$JSON" \
  -d "$(json externalUserId=$EMPLOYEE externalTeamId=$TEAM serverId=$(echo $CONVERSATION | pick data.mcp.serverId) destination=$DESTINATION \
        grant=$(echo $GRANT | pick grant) expiresAt=$(echo $GRANT | pick expiresAt) expectedVersion:=0)"

# 5  a question: its run is accepted at once
RUN=$(curl -sS -w '\n' -X POST $API/conversations/$C/messages -H "$AUTH" -H "$JSON" -H "Idempotency-Key: tour-$(fresh)" \
  -d "$(json externalUserId=$EMPLOYEE externalTeamId=$TEAM message="@QUESTION@")"); echo $RUN
R=$(echo $RUN | pick data.runId)

# 6  the answer as it comes; with -H "Last-Event-ID: $R:3" it goes on behind event 3
curl -sS -N "$API/conversations/$C/runs/$R/events?$QUERY" -H "$AUTH"

# 7  the run with its timings and its usage, and the conversation
curl -sS "$API/conversations/$C/runs/$R?$QUERY" -H "$AUTH"; echo
curl -sS "$API/conversations/$C/messages?$QUERY" -H "$AUTH"; echo
