"""Scripts that run on the Redis server, whole or not at all (Lua)."""

from __future__ import annotations

# Charges budgets that are there, gives back what was promised, and says how each stands then: all or nothing, on
# the server. Nil where one of the budgets is not there; an empty list where the promise was settled before.
# KEYS: reservations, the settlement's mark, then state, usage and spend of each budget.
# ARGV: ttl, promise ("" for none), promised tokens, the mark's text, tokens, requests, cost, unpriced, now, then
# pairs of a spend field and its amount.
CHARGE = """
for i = 3, #KEYS, 3 do
    if redis.call('HEXISTS', KEYS[i], 'budget_id') == 0 then return nil end
end
local released = ARGV[2] ~= '' and redis.call('HDEL', KEYS[1], ARGV[2]) == 1
if ARGV[2] ~= '' then
    if not released and redis.call('EXISTS', KEYS[2]) == 1 then return {} end
    redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[1])
end
local function give_back(state, field, amount)
    if redis.call('HINCRBY', state, field, -amount) < 0 then redis.call('HSET', state, field, 0) end
end
local found = {}
for i = 3, #KEYS, 3 do
    local state, usage, spend = KEYS[i], KEYS[i + 1], KEYS[i + 2]
    if released then
        give_back(state, 'reserved', ARGV[3])
        give_back(state, 'requests_reserved', 1)
    end
    found[#found + 1] = redis.call('INCRBY', usage, ARGV[5])
    redis.call('HINCRBY', state, 'requests_used', ARGV[6])
    redis.call('HINCRBYFLOAT', state, 'cost_usd', ARGV[7])
    redis.call('HINCRBY', state, 'unpriced_tokens', ARGV[8])
    redis.call('HSET', state, 'last_updated', ARGV[9])
    for a = 10, #ARGV, 2 do redis.call('HINCRBYFLOAT', spend, ARGV[a], ARGV[a + 1]) end
    for k = i, i + 2 do redis.call('EXPIRE', KEYS[k], ARGV[1]) end
    found[#found + 1] = cjson.encode(redis.call('HGETALL', state))
end
return found
"""

# Takes a name out of a set unless one of the keys it stands for is there. KEYS: set, keys. ARGV: name.
PRUNE = """
for i = 2, #KEYS do if redis.call('EXISTS', KEYS[i]) == 1 then return 0 end end
return redis.call('SREM', KEYS[1], ARGV[1])
"""
