local function sieve(n)
  local out, no = {}, {}
  for i = 2, n do
    if not no[i] then out[#out + 1] = i; for k = i * i, n, i do no[k] = true end end
  end
  return out
end
local primes = sieve(20000)
table.sort(primes, function(a, b) return a % 1000 < b % 1000 or a % 1000 == b % 1000 and a < b end)
print(#primes, table.concat(primes, " ", 1, 30))
local ok, why = pcall(function() local t = setmetatable({}, {__index = function(_, k) error("no " .. k) end}); return t.key end)
print(ok, (why:gsub("^.-:%d+: ", "")))
local co = coroutine.wrap(function() for i = 1, 50 do coroutine.yield(i * i % 17) end end)
local sum = 0
for _ = 1, 50 do sum = sum * 3 % 1000003 + co() end
print(sum, string.format("%5.2f %q %x", 1 / 3, "a\nb", 48879), ("watched memory"):rep(3, ","):gsub("%w+", string.upper))
