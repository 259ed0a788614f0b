-- SPDX-License-Identifier: Apache-2.0
-- journal, after, how many bytes at most
local first, last = journal_ends(ARGV[1])
local after = tonumber(ARGV[2])
if after + 1 < first then return {'cut', number(first), number(last)} end
if after >= last then return {'ok', number(first), number(last)} end
return journal_entries(ARGV[1], after, tonumber(ARGV[3]), {'ok', number(first), number(last)})
