//! Netlink (NETLINK_ROUTE): what a program asks the kernel of interfaces and addresses, and the answers, which are about
//! loopback alone. Behaviour: net/netlink/af_netlink.c, net/core/rtnetlink.c, net/ipv4/devinet.c, net/ipv6/addrconf.c.

use vsrun_model::address::{Address, INET, INET6};
use vsrun_model::fd::DescId;
use vsrun_model::socket::SockId;
use vsrun_model::{op, Kind};

use super::memory::{copy, Memory};
use super::{fd, interfaces, socket};
use crate::gate::{end, me, world};
use crate::sys::decimal;
use crate::sys::errno::*;

/// Bytes of the longest request that is read.
const LONGEST: usize = 1024;
/// Bytes of struct nlmsghdr.
const HEADER: usize = 16;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_DUMP: u16 = 0x300;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Lower ones are for the protocol itself.
const FIRST_TYPE: u16 = 16;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;

/// AF_BRIDGE, AF_PACKET.
const BRIDGE: u16 = 7;
const PACKET: u16 = 17;

/// A message of several, each padded to four bytes.
struct Answer {
    bytes: [u8; 2048],
    len: usize,
    /// Where the last message begins.
    message: usize,
}

impl Answer {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end.next_multiple_of(4);
        let so_far = (self.len - self.message) as u32;
        self.bytes[self.message..self.message + 4].copy_from_slice(&so_far.to_ne_bytes());
    }

    fn begin(&mut self, typ: u16, flags: u16, asked: &Asked) {
        self.message = self.len;
        let mut header = [0; HEADER];
        header[4..6].copy_from_slice(&typ.to_ne_bytes());
        header[6..8].copy_from_slice(&flags.to_ne_bytes());
        header[8..12].copy_from_slice(&asked.number.to_ne_bytes());
        header[12..16].copy_from_slice(&asked.from.to_ne_bytes());
        self.put(&header);
    }

    fn attribute(&mut self, typ: u16, value: &[u8]) {
        let mut header = [0; 4];
        header[..2].copy_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        header[2..].copy_from_slice(&typ.to_ne_bytes());
        self.put(&header);
        self.put(value);
    }
}

/// One request.
struct Asked<'a> {
    /// With its header.
    whole: &'a [u8],
    typ: u16,
    flags: u16,
    /// What the program counts it by.
    number: u32,
    /// The number of the socket.
    from: u32,
}

impl Asked<'_> {
    fn family(&self) -> u16 {
        self.whole.get(HEADER).map_or(0, |&family| family.into())
    }

    /// The 32 bits at a place behind the header, 0 beyond its end.
    fn word(&self, at: usize) -> u32 {
        self.whole.get(HEADER + at..HEADER + at + 4).map_or(0, |w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))
    }

    /// The first attribute of a type behind a header of `size` bytes.
    fn attribute(&self, size: usize, typ: u16) -> Option<&[u8]> {
        let mut rest = self.whole.get(HEADER + size..)?;
        while let &[a, b, c, d, ..] = rest {
            let (len, found) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
            let value = rest.get(4..len)?;
            if found == typ {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        None
    }
}

fn refuse(what: &[u8], number: u32) -> ! {
    end::unsupported(&[b"a netlink socket: ", what, b" ", &decimal(number)])
}

/// connect: to the kernel, the only one that answers.
pub fn connect(desc: DescId, to: &Address) -> i64 {
    if to.family != 0 {
        check_target(to);
        bind(socket::of(desc));
    }
    0
}

fn check_target(to: &Address) {
    match to.netlink_number() {
        Some(0) | None if to.netlink_groups() == 0 => {}
        number => refuse(b"a message to socket", number.unwrap_or(0)),
    }
}

/// Who sends without a number is given one.
fn bind(s: SockId) {
    if world().sockets[s].local.netlink_number().is_none() {
        socket::bind_netlink(s, Address::netlink(0, 0));
    }
}

/// Sends requests, which are answered at once.
pub fn send(desc: DescId, memory: &Memory, to: Option<Address>) -> i64 {
    let s = socket::of(desc);
    if let Some(to) = to {
        check_target(&to);
    }
    let n = memory.len();
    if n > LONGEST as u64 {
        refuse(b"a request of more bytes than", LONGEST as u32);
    }
    if memory.readable(0, n) < n {
        return EFAULT;
    }
    bind(s);
    let from = world().sockets[s].local.netlink_number().unwrap_or(0);
    let mut requests = [0u8; LONGEST];
    let mut rest = &mut requests[..n as usize];
    memory.get(rest);
    while rest.len() >= HEADER {
        let half = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        let word = |at: usize| u32::from_ne_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let len = word(0) as usize;
        if len < HEADER || len > rest.len() {
            break;
        }
        let asked = Asked { whole: &rest[..len], typ: half(4), flags: half(6), number: word(8), from };
        let mut answer = Answer { bytes: [0; 2048], len: 0, message: 0 };
        let result = reply(&asked, &mut answer);
        deliver(desc, &answer);
        if let Some(error) = result.filter(|&error| error != 0 || asked.flags & NLM_F_ACK != 0) {
            (answer.len, answer.message) = (0, 0);
            acknowledge(&asked, error, &mut answer);
            deliver(desc, &answer);
        }
        let next = len.next_multiple_of(4).min(rest.len());
        rest = &mut rest[next..];
    }
    n as i64
}

fn deliver(desc: DescId, answer: &Answer) {
    if answer.len == 0 {
        return;
    }
    let s = socket::of(desc);
    let memory = Memory::one(answer.bytes.as_ptr() as u64, answer.len as u64);
    let op = world().channel_op(Kind::FD_SEND, world().sockets[s].input, answer.len as i64).with(op::TRY);
    fd::pass(desc, op, |n| {
        let [at, channel, _] = me().out;
        if n > 0 && channel >= 0 {
            copy(channel as u32, at as u64, &memory, 0, n as u64, true);
        } else {
            end::unsupported(&[b"a netlink socket: more answers than it has room for"]);
        }
    });
}

/// What the kernel answers. Gives 0 or minus an error number, which is told in a message of its own; `None`: none is.
fn reply(asked: &Asked, answer: &mut Answer) -> Option<i64> {
    if asked.flags & NLM_F_REQUEST == 0 || asked.typ < FIRST_TYPE {
        return Some(0);
    }
    // Of each four types the third asks; the others need privileges.
    let asks = asked.typ & 3 == 2;
    let all = asked.flags & NLM_F_DUMP != 0;
    let error = match (asked.typ, asked.family()) {
        _ if !asks => EPERM,
        (RTM_GETLINK, 0 | INET | PACKET | BRIDGE) if all => {
            if asked.family() != BRIDGE {
                link(asked, NLM_F_MULTI, answer);
            }
            done(asked, answer);
            return None;
        }
        (RTM_GETADDR, 0 | INET | INET6) if all => {
            addresses(asked, answer);
            done(asked, answer);
            return None;
        }
        (RTM_GETLINK, 0 | INET | PACKET) => named(asked),
        (RTM_GETADDR, 0 | INET) => EOPNOTSUPP,
        _ => refuse(b"a request of type", asked.typ.into()),
    };
    if error == 0 {
        link(asked, 0, answer);
    }
    Some(error)
}

fn acknowledge(asked: &Asked, error: i64, answer: &mut Answer) {
    let told = if error == 0 { &asked.whole[..HEADER] } else { asked.whole };
    answer.begin(NLMSG_ERROR, if error == 0 { NLM_F_CAPPED } else { 0 }, asked);
    answer.put(&(error as i32).to_ne_bytes());
    answer.put(told);
}

fn done(asked: &Asked, answer: &mut Answer) {
    answer.begin(NLMSG_DONE, NLM_F_MULTI, asked);
    answer.put(&[0; 4]);
}

/// 0 if the interface that is asked for by index or name is there, or minus an error number.
fn named(asked: &Asked) -> i64 {
    const IFLA_IFNAME: u16 = 3;
    const INFO: usize = 16;
    let name = asked.attribute(INFO, IFLA_IFNAME);
    match asked.word(4) {
        interfaces::INDEX => 0,
        0 => match name {
            None => EINVAL,
            Some(name) if name == interfaces::NAME || name == &interfaces::NAME[..2] => 0,
            Some(_) => ENODEV,
        },
        _ => ENODEV,
    }
}

fn link(asked: &Asked, flags: u16, answer: &mut Answer) {
    /// IFF_UP, IFF_LOOPBACK, IFF_RUNNING, IFF_LOWER_UP.
    const FLAGS: u32 = 0x1_0049;
    const IFLA_ADDRESS: u16 = 1;
    const IFLA_BROADCAST: u16 = 2;
    const IFLA_IFNAME: u16 = 3;
    const IFLA_MTU: u16 = 4;
    const IFLA_QDISC: u16 = 6;
    const IFLA_STATS: u16 = 7;
    const IFLA_TXQLEN: u16 = 13;
    const IFLA_OPERSTATE: u16 = 16;
    const IFLA_LINKMODE: u16 = 17;
    const IFLA_STATS64: u16 = 23;
    const IFLA_GROUP: u16 = 27;
    const IFLA_CARRIER: u16 = 33;
    answer.begin(RTM_NEWLINK, flags, asked);
    let mut info = [0; 16];
    info[2..4].copy_from_slice(&interfaces::HARDWARE.to_ne_bytes());
    info[4..8].copy_from_slice(&interfaces::INDEX.to_ne_bytes());
    info[8..12].copy_from_slice(&FLAGS.to_ne_bytes());
    answer.put(&info);
    answer.attribute(IFLA_IFNAME, interfaces::NAME);
    answer.attribute(IFLA_TXQLEN, &interfaces::QUEUE.to_ne_bytes());
    answer.attribute(IFLA_OPERSTATE, &[0]);
    answer.attribute(IFLA_LINKMODE, &[0]);
    answer.attribute(IFLA_MTU, &interfaces::MTU.to_ne_bytes());
    answer.attribute(IFLA_GROUP, &[0; 4]);
    answer.attribute(IFLA_CARRIER, &[1]);
    answer.attribute(IFLA_QDISC, b"noqueue\0");
    answer.attribute(IFLA_ADDRESS, &[0; 6]);
    answer.attribute(IFLA_BROADCAST, &[0; 6]);
    // What goes over it is the model's: nothing is counted.
    answer.attribute(IFLA_STATS64, &[0; 200]);
    answer.attribute(IFLA_STATS, &[0; 96]);
}

fn addresses(asked: &Asked, answer: &mut Answer) {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_LABEL: u16 = 3;
    const IFA_CACHEINFO: u16 = 6;
    const IFA_FLAGS: u16 = 8;
    /// IFA_F_PERMANENT.
    const PERMANENT: u8 = 0x80;
    /// RT_SCOPE_HOST.
    const WITHIN: u8 = 254;
    // Preferred and valid for ever.
    let mut lives = [0xff; 16];
    lives[8..].fill(0);
    let begin = |family: u16, bits: u8, answer: &mut Answer| {
        let wanted = [0, family].contains(&asked.family());
        if wanted {
            answer.begin(RTM_NEWADDR, NLM_F_MULTI, asked);
            let [a, b, c, d] = interfaces::INDEX.to_ne_bytes();
            answer.put(&[family as u8, bits, PERMANENT, WITHIN, a, b, c, d]);
        }
        wanted
    };
    if begin(INET, 8, answer) {
        answer.attribute(IFA_ADDRESS, &interfaces::ADDRESS);
        answer.attribute(IFA_LOCAL, &interfaces::ADDRESS);
        answer.attribute(IFA_LABEL, interfaces::NAME);
        answer.attribute(IFA_FLAGS, &[PERMANENT, 0, 0, 0]);
        answer.attribute(IFA_CACHEINFO, &lives);
    }
    if begin(INET6, 128, answer) {
        let mut own = [0; 16];
        own[15] = 1;
        answer.attribute(IFA_ADDRESS, &own);
        answer.attribute(IFA_CACHEINFO, &lives);
        answer.attribute(IFA_FLAGS, &[PERMANENT, 0, 0, 0]);
    }
}
