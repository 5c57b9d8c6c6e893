//! Random programs for `driver.c`, by families.

/// What a family's programs are made of.
pub struct Family<'a> {
    pub name: &'a str,
    /// What a strand other than the first may be: threads (`t`), processes (`f`); drawn for each.
    pub strands: &'a str,
    /// How many of them there are at most.
    pub most: u64,
    /// What the first strand does before it starts the others.
    pub before: &'a [&'a str],
    /// What strands do: operations, `*` for another item or nothing, `#` for another strand's number. None: those of a few other families,
    /// drawn for each program.
    pub items: &'a [&'a str],
}

/// All families.
pub const FAMILIES: &[Family<'static>] = &[
    Family {
        name: "locks",
        strands: "tttf",
        most: 3,
        before: &[""],
        items: &[
            "lock0 * unlock0",
            "lock1 * unlock1",
            "trylock1 * unlock1",
            "trylock2 ?unlock2",
            "lock2 lock2 unlock2 * unlock2",
            "lock0 cwait0.0 unlock0",
            "lock0 csignal0 unlock0",
            "lock0 cbroadcast0 unlock0",
            "csignal0",
            "rd0 * rwunlock0",
            "wr0 * rwunlock0",
            "tryrd0 ?rwunlock0",
            "trywr0 ?rwunlock0",
            "wr1 rwunlock1",
            "rd1 rwunlock1",
            "barrier0",
            "spin0 unspin0",
            "tryspin0 ?unspin0",
            "post0",
            "wait0",
            "trywait0",
            "getvalue0",
            "post1",
            "wait1",
            "yield",
        ],
    },
    Family {
        name: "once",
        strands: "t",
        most: 3,
        before: &[""],
        items: &["once0", "once1", "lock0 once0 unlock0", "yield", "post0", "getvalue0", "trywait0"],
    },
    Family {
        name: "timed",
        strands: "ttf",
        most: 2,
        before: &["", "lock1"],
        items: &[
            "timedlock1 * ?unlock1",
            "lock1 * unlock1",
            "lock0 ctimed0.0 * unlock0",
            "lock0 csignal0 unlock0",
            "lock0 cbroadcast0 unlock0",
            "csignal0",
            "timedwait0",
            "timedwait1",
            "post0",
            "trywait0",
            "getvalue0",
            "timedrd0 ?rwunlock0",
            "timedwr0 ?rwunlock0",
            "rd0 * rwunlock0",
            "wr0 * rwunlock0",
            "sleep",
            "yield",
        ],
    },
    Family {
        name: "threads",
        strands: "t",
        most: 3,
        before: &[""],
        items: &[
            "join#",
            "tryjoin#",
            "timedjoin#",
            "post0",
            "wait0",
            "trywait0",
            "texit7",
            "yield",
            "lock1 * unlock1",
            "getvalue0",
        ],
    },
    Family {
        name: "pidfds",
        strands: "f",
        most: 2,
        before: &[""],
        items: &[
            "pidfd#",
            "pidfd#",
            "overyet#",
            "over#",
            "trypidfd#",
            "trychild#",
            "waitany",
            "sendpidfd#.0",
            "sendpidfd#.9",
            "_exit3",
            "exit4",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "processes",
        strands: "f",
        most: 2,
        before: &[""],
        items: &[
            "waitany",
            "waitnohang",
            "waitchild#",
            "trychild#",
            "peek",
            "getppid",
            "_exit3",
            "exit4",
            "post0",
            "wait0",
            "trywait0",
            "kill#.0",
            "kill#.9",
            "kill#.15",
            "lock3 * unlock3",
            "trylock3",
            "lock3",
        ],
    },
    Family {
        name: "signals",
        strands: "ftt",
        most: 2,
        before: &["handle0", "handle0.1", "block0", "ignore0", ""],
        items: &[
            "send#.0",
            "send#.1",
            "handle0",
            "handle0.1",
            "ignore0",
            "default0",
            "block0",
            "unblock0",
            "pending0",
            "handle1",
            "pause",
            "suspend0",
            "sigtimed0",
            "block0 sigwait0",
            "wait0",
            "post0",
            "trywait0",
            "read0",
            "write0",
            "lock0 * unlock0",
            "sleep",
            "getvalue0",
            "raise0",
        ],
    },
    Family {
        name: "children",
        strands: "f",
        most: 2,
        before: &["handle2", "block2", "ignore2", ""],
        items: &[
            "waitany",
            "waitnohang",
            "pending2",
            "handle2",
            "block2",
            "unblock2",
            "suspend2",
            "sigtimed2",
            "_exit1",
            "post0",
            "wait0",
            "trywait0",
            "getppid",
            "read0",
            "write0",
        ],
    },
    Family {
        name: "pipes",
        strands: "tf",
        most: 2,
        before: &["", "ignore4", "write0", "write0.4096", "nonblock0.0", "nonblock0.1"],
        items: &[
            "read0",
            "read0.64",
            "write0",
            "write0.3",
            "write0.4000",
            "write0.9000",
            "closer0",
            "closew0",
            "fionread0",
            "polls0.0.0",
            "polls0.0.1",
            "polls0.0.2",
            "polls0.1.0",
            "polls0.1.2",
            "pollw0.0",
            "pollw0.2",
            "nonblock0.0",
            "nonblock0.1",
            "write1",
            "read1",
        ],
    },
    Family {
        name: "descriptors",
        strands: "ttf",
        most: 2,
        before: &["", "write0", "write0 write1", "setfl0.0.1"],
        items: &[
            "closer0",
            "closew0",
            "closer1",
            "dup0.0.1",
            "dup0.1.1",
            "dup1.0.0",
            "dupfd0.0",
            "dupfd0.1",
            "newfd",
            "newpipe",
            "openfd",
            "getfl0.0",
            "setfl0.0",
            "setfl0.0.1",
            "fstat0.0",
            "fstat0.1",
            "read0",
            "read1",
            "write0",
            "write1",
            "fionread0",
            "polls0.0.0",
            "polls0.0.2",
            "polls0.1.2",
            "polls0.0.1",
            "fread0",
            "fwrite0",
            "pread0.1",
            "closef0",
        ],
    },
    Family {
        name: "events",
        strands: "ttf",
        most: 2,
        before: &["", "evnonblock0"],
        items: &[
            "evread0",
            "evwrite0",
            "evwrite0.5",
            "evpoll0",
            "evpoll0.1",
            "evread1",
            "evwrite1.2",
            "evpoll1",
            "evnonblock1",
            "tset1.1",
            "tread1",
            "tset0.1 tread0",
            "tset0.0",
        ],
    },
    Family {
        name: "sockets",
        strands: "tf",
        most: 2,
        before: &["", "ssend0.0"],
        items: &[
            "ssend0.0",
            "ssend0.1",
            "srecv0.0",
            "srecv0.1",
            "srecv0.0.1",
            "srecv0.1.1",
            "shutdown0.0.0",
            "shutdown0.0.1",
            "shutdown0.1.2",
            "closes0.0",
            "closes0.1",
            "ssend1.0",
            "srecv1.1",
            "srecv1.1.1",
            "shutdown1.0.1",
        ],
    },
    Family {
        name: "epoll",
        strands: "ttf",
        most: 2,
        before: &["epadd0.0", "epadd0.0.1", "epadd0.0 epadd0.1.1", ""],
        items: &[
            "epwait0",
            "epwait0.1",
            "epwait0.2",
            "write0",
            "write1",
            "read0",
            "epadd0.0",
            "epadd0.1",
            "epdel0.0",
            "closew0",
            "closer0",
        ],
    },
    Family {
        name: "files",
        strands: "fft",
        most: 2,
        before: &[""],
        items: &[
            "flock0.0 * flock0.2",
            "flock0.1 * flock0.2",
            "flock0.3",
            "flock0.4",
            "setlk0.0",
            "setlk0.1",
            "setlk0.2",
            "setlkw0.0 * setlk0.2",
            "setlkw0.1 * setlk0.2",
            "getlk0.1",
            "lseek0.2",
            "lseek0.0.1",
            "fread0",
            "fread0.2",
            "fwrite0",
            "fwrite1",
            "pread0.1",
            "pwrite0.1",
            "size0",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "sysv",
        strands: "ft",
        most: 2,
        before: &["", "semset0.1", "semset0.2"],
        items: &[
            "semop0.1",
            "semop0.2",
            "semminus0.1",
            "semminus0.1.1",
            "semminus0.2",
            "semop0.0",
            "semop0.0.1",
            "semtimed0.1",
            "semundo0.2",
            "semundo0.0",
            "semctl0.0",
            "semctl0.1",
            "semctl0.2",
            "semctl0.3",
            "semset0.1",
            "semset0.0",
            "semop1.1",
            "semminus1.1",
            "semrm",
        ],
    },
    Family {
        name: "messages",
        strands: "ft",
        most: 2,
        before: &["", "msgsnd1"],
        items: &[
            "msgsnd1",
            "msgsnd2",
            "msgrcv0",
            "msgrcv1",
            "msgrcv2",
            "msgrcv0.0.1",
            "msgrcv2.0.1",
            "msgrm",
            "mqsend1",
            "mqsend2.0.1",
            "mqrecv0",
            "mqrecv0.0.1",
            "mqlen",
        ],
    },
    Family {
        name: "streams",
        strands: "t",
        most: 2,
        before: &[""],
        items: &[
            "flockfile0 * funlockfile0",
            "flockfile1 * funlockfile1",
            "ftrylockfile0 ?funlockfile0",
            "flockfile3 flockfile3 funlockfile3 * funlockfile3",
            "putc0",
            "putc1",
            "putc3",
            "getc2",
            "fflush0",
            "fflush1",
            "ftell0",
            "flushall",
            "reopen",
            "rand",
            "lock0 * unlock0",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "state",
        strands: "ttf",
        most: 2,
        before: &["", "umask18", "nice0.2"],
        items: &[
            "umask63",
            "umask18",
            "made",
            "cd1",
            "cd0",
            "cwd",
            "there",
            "ln",
            "unln",
            "nlink",
            "nice0.3",
            "nice#.4",
            "getnice0",
            "getnice#",
            "policy#.1",
            "getpolicy#",
            "getpolicy0",
            "limit7",
            "getlimit",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "kept",
        strands: "tff",
        most: 2,
        before: &["", "shmat", "shmat"],
        items: &[
            "pipesz0.1",
            "pipesz0.0",
            "getpipesz0",
            "opt0.3",
            "getopt0",
            "shmat",
            "shmdt",
            "nattch",
            "shmrm",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "groups",
        strands: "f",
        most: 2,
        before: &[""],
        items: &[
            "setpg#", "ownpg", "getpg#", "getpg0", "setsid", "getsid#", "killpg#", "waitpg#", "setpg1.2", "setpg2.1",
            "post0", "wait0",
        ],
    },
    Family {
        name: "interrupts",
        strands: "fft",
        most: 2,
        before: &["handle0", "handle0.1", "handle0 epadd0.0", "handle0.1 epadd0.0", "handle0 write0.4096"],
        items: &[
            "send#.0",
            "send#.0",
            "send#.0",
            "read0",
            "write0",
            "srecv0.0",
            "ssend0.1",
            "semminus0.1",
            "semop0.1",
            "semop0.0",
            "semtimed0.1",
            "msgrcv0",
            "msgsnd1",
            "mqrecv0",
            "mqsend1",
            "flock0.1 * flock0.2",
            "setlkw0.1 * setlk0.2",
            "epwait0.2",
            "polls0.0.2",
            "evread0",
            "evwrite0",
            "wait0",
            "timedwait0",
            "post0",
            "fwait0",
            "fwait0.0.1",
            "fwake0",
            "waitany",
            "lock0 ctimed0.0 unlock0",
            "lock0 cwait0.0 unlock0",
            "lock0 csignal0 unlock0",
            "sleep",
        ],
    },
    Family {
        name: "exec",
        strands: "f",
        most: 2,
        before: &["", "handle0", "block0", "ignore0", "cloexec0.1", "cloexec0.0", "write0"],
        items: &[
            "exec5",
            "exec5.0.1",
            "exec5.0.2",
            "cloexec0.0",
            "cloexec0.1",
            "read0",
            "write0",
            "waitany",
            "waitnohang",
            "trychild#",
            "send#.0",
            "post0",
            "trywait0",
            "lock3",
            "trylock3",
            "closer0",
            "closew0",
            "exit4",
            "atexit0",
            "atexit1",
        ],
    },
    Family {
        name: "passing",
        strands: "tff",
        most: 2,
        before: &["", "write0", "passfd0.0.0", "passfd0.0.1 closew0"],
        items: &[
            "passfd0.0.0",
            "passfd0.0.1",
            "takefd0",
            "takefd0.1",
            "readgiven",
            "writegiven",
            "closegiven",
            "closer0",
            "closew0",
            "read0",
            "write0",
            "closes0.0",
            "closes0.1",
            "newfd",
            "post0",
            "wait0",
        ],
    },
    Family {
        name: "cancel",
        strands: "t",
        most: 2,
        before: &[""],
        items: &[
            "cancel#",
            "testcancel",
            "wait0",
            "timedwait0",
            "post0",
            "getvalue0",
            "lock0 cwait0.0 unlock0",
            "lock0 ctimed0.0 unlock0",
            "lock0 csignal0 unlock0",
            "lock0 * unlock0",
            "read0",
            "write0",
            "evread0",
            "evwrite0",
            "pause",
            "sleep",
            "fwait0",
            "fwait0.0.1",
            "fwake0.1",
            "polls0.0.2",
            "srecv0.0",
            "ssend0.1",
            "semminus0.1",
            "semop0.1",
            "msgrcv0",
            "msgsnd1",
            "join#",
            "yield",
        ],
    },
    Family { name: "mixed", strands: "", most: 2, before: &[], items: &[] },
];

/// Numbers from a seed (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// Operations that end a process, or replace its program.
const ENDS: &[&str] = &["_exit", "exit", "texit", "exec", "atexit"];

/// A program with items of a few families.
fn mixed(rng: &mut Rng) -> String {
    let whole: Vec<_> = FAMILIES.iter().filter(|family| !family.items.is_empty()).collect();
    let parts: Vec<_> = (0..2 + rng.below(2)).map(|_| *rng.of(&whole)).collect();
    let items: Vec<_> = parts.iter().flat_map(|part| part.items.iter().copied()).collect();
    // Beside other threads these end what is to tell the outcome.
    let alone = items.iter().any(|item| ENDS.iter().any(|end| item.starts_with(end)));
    let strands: String = parts.iter().flat_map(|part| part.strands.chars()).filter(|&c| !alone || c == 'f').collect();
    let first = *rng.of(&parts);
    let before = [*rng.of(first.before)];
    let strands = if strands.is_empty() { "f" } else { &strands };
    Family { name: "", strands, most: 2, before: &before, items: &items }.draw(rng)
}

impl Family<'_> {
    /// A program.
    pub fn draw(&self, rng: &mut Rng) -> String {
        if self.items.is_empty() {
            return mixed(rng);
        }
        let others = 1 + rng.below(self.most);
        let mut strands = vec![Vec::new(); others as usize + 1];
        strands[0].extend(rng.of(self.before).split_whitespace().map(String::from));
        for (i, strand) in strands.iter_mut().enumerate().skip(1) {
            for _ in 0..1 + rng.below(3) {
                self.item(rng, i as u64, others, 0, strand);
            }
        }
        for i in 1..=others {
            // Most programs start everything at once.
            if rng.below(4) == 0 {
                self.item(rng, 0, others, 0, &mut strands[0]);
            }
            let kind = rng.of(self.strands.as_bytes());
            strands[0].push(format!("{}{i}", if *kind == b't' { "thread" } else { "fork" }));
        }
        for _ in 0..rng.below(4) {
            self.item(rng, 0, others, 0, &mut strands[0]);
        }
        strands.iter().map(|ops| ops.join(" ")).collect::<Vec<_>>().join("|")
    }

    fn item(&self, rng: &mut Rng, me: u64, others: u64, depth: u32, ops: &mut Vec<String>) {
        for word in rng.of(self.items).split_whitespace() {
            if word == "*" {
                if depth < 1 && rng.below(2) == 0 {
                    self.item(rng, me, others, depth + 1, ops);
                }
                continue;
            }
            // Who joins a thread twice, or ends before it prints its outcome, shows nothing.
            let whole = me == 0 || !["join", "tryjoin", "timedjoin"].iter().any(|j| word.starts_with(j));
            let ends = me == 0 && ENDS.iter().any(|e| word.starts_with(e));
            if !whole || ends {
                continue;
            }
            let other = (me + 1 + rng.below(others)) % (others + 1);
            // Whether the first thread, when it is cancelled, is the last one is told by a count of libc's that threads change in no
            // order that vsrun could see.
            if other == 0 && word == "cancel#" {
                continue;
            }
            ops.push(word.replace('#', &other.to_string()));
        }
    }
}
