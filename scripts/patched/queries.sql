create table t(n integer primary key, word text, part real);
with recursive c(n) as (select 1 union all select n + 1 from c where n < 3000)
    insert into t select n, 'word ' || (n * 7919 % 1009), n / 7.0 from c;
create index by_word on t(word, part desc);
select count(*), sum(n), round(avg(part), 6), max(word) from t;
select word, count(*), min(n), group_concat(n, '/') from t where n % 13 = 5 group by word having count(*) > 1 order by 2 desc, 1 limit 20;
update t set part = part * 2, word = upper(word) where word like '%77%';
delete from t where n between 100 and 900 and n % 2;
select a.n, b.n, a.word from t a join t b on a.word = b.word and a.n < b.n order by a.n, b.n limit 40;
select n, sum(n) over (order by n rows between 3 preceding and current row), rank() over (partition by n % 5 order by word) from t limit 30;
with recursive fib(a, b) as (select 0, 1 union all select b, a + b from fib limit 40) select group_concat(a) from fib;
create trigger counted after insert on t begin update t set part = part + 1 where n = new.n - 1; end;
insert into t select n + 10000, word, part from t where n > 2900;
begin; delete from t; select count(*) from t; rollback;
select hex(substr(group_concat(word), 1, 60)), printf('%.3f %05d %s', 3.14159, 42, 'x'), json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b') from t;
pragma integrity_check;
select * from nothing;
