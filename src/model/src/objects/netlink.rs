//! Netlink sockets (NETLINK_ROUTE): what they ask is answered by the kernel, from the socket's own channel.
//! Behaviour: net/netlink/af_netlink.c.

use crate::base::{errno, Address, Tid, NETLINK};
use crate::state::{SockId, World};

impl World {
    /// True if another netlink socket has the number.
    fn netlink_taken(&self, number: u32) -> bool {
        self.sockets.as_slice().iter().any(|s| s.domain == NETLINK && s.local.netlink_number() == Some(number))
    }

    /// Gives a netlink socket of thread `t` the number `wanted`, or for 0 one of the system's choice: that of the process, if it
    /// is free. Gives 0 or minus an error number.
    pub fn netlink_bind(&mut self, t: Tid, s: SockId, wanted: u32, groups: u32) -> i64 {
        let number = match self.sockets[s].local.netlink_number() {
            Some(own) if own != wanted => return errno::EINVAL,
            Some(own) => own,
            None if wanted != 0 && self.netlink_taken(wanted) => return errno::EADDRINUSE,
            None if wanted != 0 => wanted,
            None => self.netlink_choice(t),
        };
        self.sockets[s].local = Address::netlink(number, groups);
        0
    }

    /// Where the process's number is taken, numbers from -4097 downwards.
    fn netlink_choice(&self, t: Tid) -> u32 {
        let own = self.procs[self.threads[t].pid].vpid as u32;
        let further = (4097..).map(|n: u32| n.wrapping_neg());
        core::iter::once(own).chain(further).find(|&number| !self.netlink_taken(number)).unwrap_or(own)
    }
}
