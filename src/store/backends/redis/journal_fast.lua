-- SPDX-License-Identifier: Apache-2.0
-- As write_fast.lua, and adds an entry after the last one if that is the expected one.
if ARGV[3] ~= '-' and (redis.call('HGET', ARGV[10], ARGV[8]) or -1) + redis.call('XLEN', ARGV[11]) == tonumber(ARGV[16]) and
   redis.call('GETRANGE', ARGV[2], 0, #ARGV[3] - 1) == ARGV[3] and
   (ARGV[7] == '' or redis.call('EXISTS', ARGV[7]) == 1) then
  redis.call('XADD', ARGV[11], ARGV[12], 'e', ARGV[13])
  if ARGV[7] == '' then
    redis.call('SET', ARGV[2], ARGV[6])
  else
    redis.call('RENAME', ARGV[7], ARGV[2])
    redis.call('PERSIST', ARGV[2])
  end
  return 1
end
